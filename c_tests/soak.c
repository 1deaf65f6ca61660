/*
 * A million draws of mixed sizes and shapes, each compared with the reference: the heap in use is the same after them
 * as before, and the process has not grown.
 */
#include "calls.h"
#include "reference.h"

#include <malloc.h>
#include <unistd.h>

enum { DRAWS = 1000000, ALLOWED_KB = 64 };

/* How often logits of a size and a shape are drawn from: what is slow less often. */
struct size {
    int vocab_size;
    int share; /* of all shares */
    int nan_share;
};

static const struct size sizes[] = {
    {1, 20000, 20000},  {2, 20000, 20000},  {15, 20000, 20000},  {64, 20000, 10000},
    {300, 5000, 500},   {513, 5000, 200},   {2000, 5000, 50},    {20000, 1000, 5},
    {248320, 100, 1},
};

static const struct setting {
    float temperature;
    float top_p;
} settings[] = {{0.7f, 0.9f}, {1.0f, 1.0f}};

enum { SIZES = sizeof sizes / sizeof sizes[0], SETTINGS = 2, SOURCES = SIZES * SHAPES * SETTINGS };

/* Logits, with the reference's answers to every draw. */
struct source {
    const float *logits;
    const struct setting *setting;
    const struct reference_prepared *prepared;
    long until; /* the sum of the shares up to this one's */
};

static struct source sources[SOURCES];
static long all_shares;

static void prepare(void)
{
    struct source *source = sources;

    for (int i = 0; i < SIZES; i++) {
        for (int shape = 0; shape < SHAPES; shape++) {
            float *logits = malloc((size_t)sizes[i].vocab_size * sizeof *logits);
            if (logits == NULL)
                exit(2);
            fill_logits(logits, sizes[i].vocab_size, (enum shape)shape);
            for (int k = 0; k < SETTINGS; k++, source++) {
                source->logits = logits;
                source->setting = &settings[k];
                source->prepared =
                    reference_prepare(logits, sizes[i].vocab_size, settings[k].temperature, settings[k].top_p);
                all_shares += shape == WITH_NAN ? sizes[i].nan_share : sizes[i].share;
                source->until = all_shares;
            }
        }
    }
}

/* Mostly by serve_sample. The others give the same token, but colibri_sample refuses a NaN, which leaves no nucleus. */
static void draw(const struct source *source, int raw_rand)
{
    int expected = reference_pick(source->prepared, raw_rand);
    int vocab_size = source->prepared->vocab_size;
    struct call call = {"serve_sample", SERVE_SAMPLE, source->setting->temperature, source->setting->top_p, 0, 0};
    int token;

    if (raw_rand % 8 == 0) {
        call.name = "serve_sample_sorted";
        call.function = SERVE_SAMPLE_SORTED;
    } else if (raw_rand % 8 == 1 && source->prepared->nucleus > 0) {
        call.name = "colibri_sample";
        call.function = SAMPLE;
    }
    token = library_answer(&call, source->logits, vocab_size, raw_rand).token;
    if (token != expected) {
        fprintf(stderr,
                "soak: %s, %d logits (source %d), temperature %g, top_p %g, rand() = %d: token %d, expected %d\n",
                call.name, vocab_size, (int)(source - sources), (double)call.temperature, (double)call.top_p, raw_rand,
                token, expected);
        exit(1);
    }
}

static void draw_from_some(long draws, uint64_t *state)
{
    for (long i = 0; i < draws; i++) {
        long share = (long)(next_random(state) % (uint64_t)all_shares);
        int first = 0;
        while (sources[first].until <= share)
            first++;
        draw(&sources[first], (int)(next_random(state) % ((uint64_t)RAND_MAX + 1)));
    }
}

static size_t heap_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static long resident_kb(void)
{
    long size, resident;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%ld %ld", &size, &resident) != 2) {
        perror("soak: /proc/self/statm");
        exit(2);
    }
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* What glibc keeps for the next call depends on the last ones: it is given back first. */
static long resident_kb_at_rest(void)
{
    malloc_trim(0);
    return resident_kb();
}

/* glibc counts as in use what a thread's cache holds: this process begins anew without one. */
static void without_thread_cache(char **argv)
{
    static const char tunable[] = "glibc.malloc.tcache_count=0";
    const char *now = getenv("GLIBC_TUNABLES");

    if (now != NULL && strcmp(now, tunable) == 0)
        return;
    setenv("GLIBC_TUNABLES", tunable, 1);
    execv("/proc/self/exe", argv);
    perror("soak: /proc/self/exe");
    exit(2);
}

int main(int argc, char **argv)
{
    uint64_t state = 1;
    size_t before, after;
    long early, late;

    (void)argc;
    without_thread_cache(argv);
    prepare();
    /* What is found out once, is kept from here on: the host's expf, the tier. */
    for (int i = 0; i < SOURCES; i++)
        draw(&sources[i], RAND_MAX / 2);
    resident_kb();
    before = heap_in_use();
    draw_from_some(DRAWS / 10, &state);
    early = resident_kb_at_rest();
    draw_from_some(DRAWS - DRAWS / 10, &state);
    late = resident_kb_at_rest();
    after = heap_in_use();
    if (after != before || late > early + ALLOWED_KB) {
        fprintf(stderr, "soak: heap in use %zu and then %zu bytes, resident after a tenth %ld and at the end %ld KB\n",
                before, after, early, late);
        return 1;
    }
    printf("%d draws, heap in use before and after %zu bytes, resident after a tenth %ld and at the end %ld KB\n",
           DRAWS, before, early, late);
    return 0;
}
