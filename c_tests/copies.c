/*
 * Several copies of the library in one process. The shared one is loaded, drawn with and unloaded again and again: it
 * leaves nothing behind. Then it draws beside the one that the program is linked with, in turn and from threads: the
 * reference's tokens, by one and the same rand().
 *
 *     copies SHARED_LIBRARY [LARGEST_VOCAB]
 */
#include "draws.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

enum { ROUNDS = 300, WARM_UP = 20, DRAWS = 20, IN_TURN = 2000, THREADS = 4, OF_EACH_THREAD = 500, BATCH_THREADS = 3 };

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);

    if (found == NULL) {
        fprintf(stderr, "copies: %s\n", dlerror());
        exit(1);
    }
    return found;
}

static void *load(const char *path, struct sampler *sampler)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *functions[4];

    if (library == NULL) {
        fprintf(stderr, "copies: %s\n", dlerror());
        exit(1);
    }
    functions[0] = symbol(library, "serve_sample");
    functions[1] = symbol(library, "serve_sample_sorted");
    functions[2] = symbol(library, "argmax_first");
    functions[3] = symbol(library, "colibri_sample_batch");
    memcpy(&sampler->serve_sample, &functions[0], sizeof functions[0]);
    memcpy(&sampler->serve_sample_sorted, &functions[1], sizeof functions[1]);
    memcpy(&sampler->argmax_first, &functions[2], sizeof functions[2]);
    memcpy(&sampler->colibri_sample_batch, &functions[3], sizeof functions[3]);
    if (sampler->serve_sample == linked.serve_sample) {
        fputs("copies: the copy that was loaded is the one that the program is linked with\n", stderr);
        exit(1);
    }
    return library;
}

/* ---- loaded again and again ---- */

struct footprint {
    size_t mappings;
    int of_the_library; /* mappings of its file */
    size_t mapped;      /* bytes in all mappings */
    size_t in_use;      /* bytes of the heap */
};

static struct footprint footprint(void)
{
    struct footprint found = {0, 0, 0, 0};
    char line[4352]; /* a path and what stands before it */
    FILE *maps = fopen("/proc/self/maps", "r");

    if (maps == NULL) {
        perror("/proc/self/maps");
        exit(2);
    }
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end;

        if (sscanf(line, "%lx-%lx", &start, &end) != 2)
            continue;
        found.mappings++;
        found.mapped += end - start;
        found.of_the_library += strstr(line, "libcolibri_sampler.so") != NULL;
    }
    fclose(maps);
    found.in_use = mallinfo2().uordblks;
    return found;
}

static void print_footprint(const char *when, struct footprint found)
{
    fprintf(stderr, "copies: %s: %zu mappings, %d of the library, %zu bytes mapped, %zu of the heap in use\n", when,
            found.mappings, found.of_the_library, found.mapped, found.in_use);
}

/*
 * A copy is loaded, drawn with, with threads too, and unloaded. All rounds draw the same. Each is a thread's, since the
 * C library keeps some of what a thread frees, more or less by chance, until that thread ends.
 */
static void *one_round(void *path)
{
    struct sampler shared;
    void *library = load(path, &shared);
    int good;

    stream_start(1000);
    good = draws_agree(&shared, 0, DRAWS) && batch_agrees(&shared, 0, BATCH_THREADS);
    if (footprint().of_the_library == 0) {
        fputs("copies: the library was not seen among the mappings while it was loaded\n", stderr);
        good = 0;
    }
    return dlclose(library) == 0 && good ? NULL : "differs";
}

static pthread_t thread_of(void *(*body)(void *), void *argument)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, body, argument) != 0) {
        fputs("copies: no thread\n", stderr);
        exit(2);
    }
    return thread;
}

static int ends_well(pthread_t thread)
{
    void *differs;

    return pthread_join(thread, &differs) == 0 && differs == NULL;
}

/* By so much in every round: less may be what the C library keeps of freed memory, which is a little by chance. */
static int grew(size_t before, size_t after, size_t in_each_round)
{
    return after >= before + in_each_round * (ROUNDS - 1 - WARM_UP);
}

static int again_and_again(char *path)
{
    struct footprint before = {0, 0, 0, 0}, after;

    for (int number = 0; number < ROUNDS; number++) {
        if (!ends_well(thread_of(one_round, path))) {
            fprintf(stderr, "copies: round %d of %d of loading and unloading\n", number, ROUNDS);
            return 0;
        }
        if (number == WARM_UP)
            before = footprint();
    }
    after = footprint();
    if (after.of_the_library != 0 || grew(before.mappings, after.mappings, 1) ||
        grew(before.mapped, after.mapped, 4096) || grew(before.in_use, after.in_use, 32)) {
        print_footprint("after some rounds", before);
        print_footprint("after all of them", after);
        return 0;
    }
    return 1;
}

/* ---- side by side ---- */

static int in_turn(const struct sampler *shared)
{
    stream_start(1);
    for (int number = 0; number < IN_TURN; number++)
        if (!draws_agree(number % 2 ? shared : &linked, number, 1))
            return 0;
    return batch_agrees(shared, 0, BATCH_THREADS) && batch_agrees(&linked, 0, BATCH_THREADS);
}

struct part {
    const struct sampler *sampler;
    unsigned stream;
};

static void *draw(void *argument)
{
    const struct part *part = argument;

    stream_start(part->stream);
    return draws_agree(part->sampler, 0, OF_EACH_THREAD) ? NULL : "differs";
}

static int in_threads(const struct sampler *shared)
{
    struct part parts[THREADS];
    pthread_t threads[THREADS];
    int good = 1;

    for (int t = 0; t < THREADS; t++) {
        parts[t] = (struct part){t % 2 ? shared : &linked, 100 + (unsigned)t};
        threads[t] = thread_of(draw, &parts[t]);
    }
    for (int t = 0; t < THREADS; t++)
        good &= ends_well(threads[t]);
    return good;
}

int main(int argc, char **argv)
{
    struct sampler shared;

    if (argc < 2) {
        fputs("usage: copies SHARED_LIBRARY [LARGEST_VOCAB]\n", stderr);
        return 2;
    }
    /* A heap for each thread would come and go by chance. */
    mallopt(M_ARENA_MAX, 1);
    draws_make(argc > 2 ? atoi(argv[2]) : 32000);
    draws_prepare();
    if (!again_and_again(argv[1]))
        return 1;
    load(argv[1], &shared);
    if (!in_turn(&shared) || !in_threads(&shared))
        return 1;
    printf("loaded and unloaded %d times, nothing left behind; beside the linked copy %d draws in turn and %d from %d "
           "threads as the reference\n",
           ROUNDS, IN_TURN, THREADS * OF_EACH_THREAD, THREADS);
    return 0;
}
