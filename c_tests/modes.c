/*
 * A floating-point mode that is in force before the first draw of a process: the C reference's tokens in that mode, and
 * after it, back in the default one. tests/modes.rs has the other modes of single draws.
 *
 *     modes default|flushed [LARGEST_VOCAB]
 *
 * "flushed" is for a program that is linked with gcc's crtfastmath.o, which -ffast-math links in: it flushes subnormals
 * from the start of the process on.
 */
#include "draws.h"

#include <fenv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { DRAWS = 400, BATCHES = 20, THREADS = 3 };

enum kind { ROUNDING, FLUSHING, AS_STARTED, X87_PRECISION };

struct mode {
    const char *name;
    enum kind kind;
    int setting;
};

enum { FLUSH_RESULTS = 0x8000, FLUSH_OPERANDS = 0x0040 };

/* The one of a program that started so, then those that a program sets. */
static const struct mode modes[] = {
    {"subnormals flushed since the start", AS_STARTED, FLUSH_RESULTS | FLUSH_OPERANDS},
    {"rounding downward", ROUNDING, FE_DOWNWARD},
    {"rounding upward", ROUNDING, FE_UPWARD},
    {"rounding toward zero", ROUNDING, FE_TOWARDZERO},
#if defined(__x86_64__)
    {"subnormal results flushed", FLUSHING, FLUSH_RESULTS},
    {"subnormal operands flushed", FLUSHING, FLUSH_OPERANDS},
    {"x87 precision of 24 bits", X87_PRECISION, 0},
#endif
};

#define MODES ((int)(sizeof modes / sizeof modes[0]))

/* ---- setting a mode, and seeing it by what arithmetic does ---- */

#if defined(__x86_64__)

static void flush(int setting)
{
    _mm_setcsr((_mm_getcsr() & ~(unsigned)(FLUSH_RESULTS | FLUSH_OPERANDS)) | (unsigned)setting);
}

static void x87_precision(int bits_of_24)
{
    unsigned short word;

    __asm__ volatile("fnstcw %0" : "=m"(word));
    word = (unsigned short)((word & ~0x0300) | (bits_of_24 ? 0 : 0x0300));
    __asm__ volatile("fldcw %0" : : "m"(word));
}

#else

static void flush(int setting)
{
    (void)setting;
}

static void x87_precision(int bits_of_24)
{
    (void)bits_of_24;
}

#endif

static void back_to_default(void)
{
    fesetround(FE_TONEAREST);
    flush(0);
    x87_precision(0);
}

static void set(const struct mode *mode)
{
    switch (mode->kind) {
    case ROUNDING: fesetround(mode->setting); break;
    case FLUSHING: flush(mode->setting); break;
    case X87_PRECISION: x87_precision(1); break;
    case AS_STARTED: break;
    }
}

static int rounding_seen(void)
{
    volatile float one = 1.0f, little = 0x1p-30f;
    volatile float above = one + little, below = -one - little;

    if (above > 1.0f)
        return FE_UPWARD;
    if (below < -1.0f)
        return FE_DOWNWARD;
    above = one - little;
    return above < 1.0f ? FE_TOWARDZERO : FE_TONEAREST;
}

static int flushing_seen(void)
{
    volatile float least_normal = 0x1p-126f, half = 0.5f, two_to_60 = 0x1p60f, subnormal = 0x1p-130f;
    volatile float result = least_normal * half, from_operand = subnormal * two_to_60;
    uint32_t bits;

    /* A comparison would flush the operand itself. */
    memcpy(&bits, (const void *)&result, sizeof bits);
    return (bits == 0 ? FLUSH_RESULTS : 0) | (from_operand == 0.0f ? FLUSH_OPERANDS : 0);
}

static int x87_is_short(void)
{
#if defined(__x86_64__)
    volatile long double one = 1.0L, little = 0x1p-40L;
    volatile long double sum = one + little;

    return sum == 1.0L;
#else
    return 0;
#endif
}

/* 1 when the mode, or the default one for NULL, is in force, and nothing else. */
static int in_force(const struct mode *mode)
{
    int rounding = mode != NULL && mode->kind == ROUNDING ? mode->setting : FE_TONEAREST;
    int flushing = mode != NULL && (mode->kind == FLUSHING || mode->kind == AS_STARTED) ? mode->setting : 0;
    int is_short = mode != NULL && mode->kind == X87_PRECISION;

    return rounding_seen() == rounding && flushing_seen() == flushing && x87_is_short() == is_short;
}

/* ---- a process ---- */

/* Draws whose token is not that of the default mode, by the reference; shared with the children. */
static int *differing;

static int draw(unsigned stream, const struct mode *mode)
{
    int good;

    stream_start(stream);
    good = in_force(mode) && draws_agree(&linked, 0, DRAWS);
    for (int batch = 0; batch < BATCHES && good; batch++)
        good = batch_agrees(&linked, batch, THREADS);
    if (!in_force(mode)) {
        fputs("modes: the mode is not in force, or no longer\n", stderr);
        return 0;
    }
    return good;
}

static int draw_in_mode(int index)
{
    static int in_mode[DRAWS], in_default[DRAWS];
    const struct mode *mode = &modes[index];

    set(mode);
    if (!draw(1, mode))
        return 0;
    stream_start(1);
    reference_draws(0, DRAWS, in_mode);
    back_to_default();
    stream_start(1);
    reference_draws(0, DRAWS, in_default);
    for (int i = 0; i < DRAWS; i++)
        *differing += in_mode[i] != in_default[i];
    return draw(2, NULL);
}

/* In a process of its own, where nothing has been drawn before. */
static int check_mode(int index)
{
    pid_t child = fork();
    int status;

    *differing = 0;
    if (child == 0) {
        alarm(120);
        _exit(draw_in_mode(index) ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("modes");
        exit(2);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "modes: %s: not as the reference\n", modes[index].name);
        return 0;
    }
    /* The reference computes with SSE, as every x86-64 program does, and knows nothing of the x87. */
    if ((*differing > 0) != (modes[index].kind != X87_PRECISION)) {
        fprintf(stderr, "modes: %s: of the reference's tokens %d are not those of the default mode\n",
                modes[index].name, *differing);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    int flushed = argc > 1 && strcmp(argv[1], "flushed") == 0;
    int first = flushed ? 0 : 1, end = flushed ? 1 : MODES, differ = 0;

    if (argc < 2 || (!flushed && strcmp(argv[1], "default") != 0)) {
        fputs("usage: modes default|flushed [LARGEST_VOCAB]\n", stderr);
        return 2;
    }
    if (!in_force(flushed ? &modes[0] : NULL)) {
        fprintf(stderr, "modes: the process did not start with subnormals %s\n", flushed ? "flushed" : "kept");
        return 1;
    }
    differing = mmap(NULL, sizeof *differing, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (differing == MAP_FAILED) {
        perror("modes");
        return 2;
    }
    draws_make(argc > 2 ? atoi(argv[2]) : 3000);
    for (int index = first; index < end; index++) {
        if (!check_mode(index))
            return 1;
        differ += *differing;
    }
    printf("%s: %d draws and %d batches as the reference, %d tokens not those of the default mode; as many after it "
           "(expf: %s)\n",
           flushed ? "subnormals flushed since the start" : "modes set before the first draw", (end - first) * DRAWS,
           (end - first) * BATCHES, differ, kind_of_expf());
    return 0;
}
