/*
 * Logits are read inside [0, V) only. Every length from 1 to 600, and lengths around the powers of two up to 65,536:
 *
 * - with a page that may not be read right behind the last logit (so the first one has every alignment in turn), and
 *   with one right before the first: a read beyond it is a fault;
 * - at every alignment to 4 bytes within a cache line, between neighbours that would change the answer: huge ones and
 *   NaNs. Under valgrind and AddressSanitizer these neighbours may not be read, so that no byte too many goes unseen.
 *
 * Every answer is compared with the C reference's, which has a copy of the logits.
 *
 *     bounds [STEP]
 *
 * STEP is from one length to the next, for valgrind, and then there are fewer long ones too. (Those stand at one
 * alignment of the 16 in any case.)
 */
#include "calls.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

/* gcc's name for it, and clang's. */
#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER
#endif
#endif

#if defined(ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#elif defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif

enum {
    EVERY_LENGTH = 600,
    LONGEST = 65537,
    LINE = 16,        /* floats in a cache line */
    AROUND = 4 * LINE /* neighbours on either side */
};

/* What a fault is told of. */
static struct {
    const struct call *call;
    int length;
    enum shape shape;
    const char *place;
    int offset;
} now;

static void say(const char *what)
{
    fprintf(stderr, "bounds: %s: %s, %d logits, %s, %s, %d floats behind a cache line\n", what, now.call->name,
            now.length, shape_names[now.shape], now.place, now.offset);
}

/* Not a place for stdio in general, but nothing follows it. */
static void on_fault(int signal)
{
    say(signal == SIGABRT ? "the process was ended" : "a read outside the logits");
    _exit(1);
}

/* ---- neighbours that may not be read ---- */

static void forbid(const float *begin, const float *end)
{
#if defined(ADDRESS_SANITIZER)
    /* To the byte behind the logits. Before them a read of the 4 bytes that share 8 with the first one goes unseen. */
    ASAN_POISON_MEMORY_REGION(begin, (size_t)((const char *)end - (const char *)begin));
#elif defined(VALGRIND_MAKE_MEM_NOACCESS)
    VALGRIND_MAKE_MEM_NOACCESS(begin, (size_t)((const char *)end - (const char *)begin));
#else
    (void)begin, (void)end;
#endif
}

static void allow(const float *begin, const float *end)
{
#if defined(ADDRESS_SANITIZER)
    ASAN_UNPOISON_MEMORY_REGION(begin, (size_t)((const char *)end - (const char *)begin));
#elif defined(VALGRIND_MAKE_MEM_DEFINED)
    VALGRIND_MAKE_MEM_DEFINED(begin, (size_t)((const char *)end - (const char *)begin));
#else
    (void)begin, (void)end;
#endif
}

static const char *watched_by(void)
{
#if defined(ADDRESS_SANITIZER)
    return ", neighbours forbidden by AddressSanitizer";
#elif defined(RUNNING_ON_VALGRIND)
    return RUNNING_ON_VALGRIND ? ", neighbours forbidden by valgrind" : "";
#else
    return "";
#endif
}

/* ---- one vector, everywhere ---- */

static float copy[LONGEST];
static struct answer expected[CALLS];
static int raw_rands[CALLS];
static long answers;

static void ask_reference(int length, enum shape shape)
{
    uint64_t state = (uint64_t)length * SHAPES + shape;

    fill_logits(copy, length, shape);
    for (int i = 0; i < CALLS; i++) {
        raw_rands[i] = (int)(next_random(&state) % ((uint64_t)RAND_MAX + 1));
        expected[i] = reference_answer(&calls[i], copy, length, raw_rands[i]);
    }
}

static void check_at(float *logits, int length, enum shape shape, const char *place)
{
    memcpy(logits, copy, (size_t)length * sizeof *logits);
    now.length = length;
    now.shape = shape;
    now.place = place;
    now.offset = (int)((uintptr_t)logits / sizeof *logits % LINE);
    for (int i = 0; i < CALLS; i++) {
        struct answer answer;
        now.call = &calls[i];
        answer = library_answer(now.call, logits, length, raw_rands[i]);
        if (!same_answer(answer, expected[i])) {
            say("another answer than the reference's");
            fprintf(stderr, "  token %d and total %a, expected %d and %a\n", answer.token, answer.total_weight,
                    expected[i].token, expected[i].total_weight);
            exit(1);
        }
        answers++;
    }
}

static void check_between(float *block, int offset, int length, enum shape shape, float neighbour)
{
    float *logits = block + AROUND + offset;
    float *end = logits + length;

    for (int i = 1; i <= AROUND; i++)
        logits[-i] = end[i - 1] = neighbour;
    forbid(logits - AROUND, logits);
    forbid(end, end + AROUND);
    check_at(logits, length, shape, isnan(neighbour) ? "between NaNs" : "between huge logits");
    allow(logits - AROUND, logits);
    allow(end, end + AROUND);
}

/* Between the two unreadable pages memory begins at `lower` and ends at `upper`. */
static void check_length(int length, int offset_step, float *lower, float *upper)
{
    static float block[AROUND + LINE + LONGEST + AROUND] __attribute__((aligned(64)));

    for (int shape = 0; shape < SHAPES; shape++) {
        ask_reference(length, (enum shape)shape);
        check_at(upper - length, length, (enum shape)shape, "before an unreadable page");
        check_at(lower, length, (enum shape)shape, "behind an unreadable page");
        /* Over the shapes each alignment has both kinds of neighbours. */
        for (int offset = length * 7 % offset_step; offset < LINE; offset += offset_step)
            check_between(block, offset, length, (enum shape)shape, (shape + offset) % 2 ? NAN : 3e38f);
    }
}

static void *between_unreadable_pages(size_t size, size_t page)
{
    char *memory = mmap(NULL, page + size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED || mprotect(memory + page, size, PROT_READ | PROT_WRITE) != 0) {
        perror("bounds");
        exit(2);
    }
    return memory + page;
}

int main(int argc, char **argv)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (LONGEST * sizeof(float) + page - 1) / page * page;
    float *lower = between_unreadable_pages(size, page);
    float *upper = lower + size / sizeof *lower;
    int step = argc == 2 ? atoi(argv[1]) : 1;
    int lengths = 0;
    const char *tier = getenv("COLIBRI_SAMPLER_TIER");

    if (argc > 2 || step < 1) {
        fputs("usage: bounds [STEP]\n", stderr);
        return 2;
    }
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    signal(SIGABRT, on_fault);
    for (int length = 1; length <= EVERY_LENGTH; length += step, lengths++)
        check_length(length, 1, lower, upper);
    for (int power = 1024; power < LONGEST / step; power *= 2)
        for (int length = power - 1; length <= power + 1; length++, lengths++)
            check_length(length, LINE, lower, upper);
    printf("%d lengths, %ld answers%s%s, no read outside the logits%s\n", lengths, answers, tier ? " at tier " : "",
           tier ? tier : "", watched_by());
    return 0;
}
