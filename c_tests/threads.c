/*
 * Threads that draw at once, each from a stream of its own, get the reference's tokens: also when the very first draws
 * of the process are made by all of them at the same moment, which is when the library looks at the CPU and at expf.
 *
 *     threads [LARGEST_VOCAB [PROCESSES]]
 */
#include "draws.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 16, FIRST_DRAWS = 3, DRAWS = 1000, BATCH_EVERY = 50, BATCH_THREADS = 3 };

static pthread_barrier_t start;
static int draws_of_each;

/* The streams are numbered from here; a process has its own. */
static unsigned first_stream;

static void *draw(void *index)
{
    stream_start(first_stream + (unsigned)(uintptr_t)index);
    pthread_barrier_wait(&start);
    for (int number = 0; number < draws_of_each; number++) {
        if (!draws_agree(&linked, number, 1))
            return "differs";
        if (number % BATCH_EVERY == BATCH_EVERY - 1 && !batch_agrees(&linked, number, BATCH_THREADS))
            return "differs";
    }
    return NULL;
}

/* 1 when all threads agree with the reference. */
static int run(unsigned process, int draws)
{
    pthread_t threads[THREADS];
    int good = 1;

    first_stream = process * THREADS;
    draws_of_each = draws;
    pthread_barrier_init(&start, NULL, THREADS);
    for (uintptr_t t = 0; t < THREADS; t++) {
        if (pthread_create(&threads[t], NULL, draw, (void *)t) != 0) {
            fputs("threads: no thread\n", stderr);
            exit(2);
        }
    }
    for (int t = 0; t < THREADS; t++) {
        void *differs;

        pthread_join(threads[t], &differs);
        good &= differs == NULL;
    }
    pthread_barrier_destroy(&start);
    return good;
}

int main(int argc, char **argv)
{
    unsigned processes = argc > 2 ? (unsigned)atoi(argv[2]) : 101;

    draws_make(argc > 1 ? atoi(argv[1]) : 248320);
    draws_prepare();
    /* Nothing has been drawn in this process, so nothing has in its children. */
    for (unsigned process = 1; process < processes; process++) {
        pid_t child = fork();
        int status;

        if (child == 0) {
            alarm(60);
            _exit(run(process, FIRST_DRAWS) ? 0 : 1);
        }
        if (child < 0 || waitpid(child, &status, 0) != child) {
            perror("threads");
            return 2;
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "threads: process %u of %u did not draw as the reference (wait status %d)\n", process,
                    processes, status);
            return 1;
        }
    }
    if (!run(0, DRAWS))
        return 1;
    printf("%d threads: %d draws and %d batches as the reference; %d first draws at once in each of %u processes "
           "(expf: %s)\n",
           THREADS, THREADS * DRAWS, THREADS * (DRAWS / BATCH_EVERY), THREADS, processes, kind_of_expf());
    return 0;
}
