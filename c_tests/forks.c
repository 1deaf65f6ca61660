/*
 * A process that forks: before its first draw, between draws, while other threads draw, and while another thread is in
 * the middle of the process's very first draw. Every child gets the reference's tokens, and ends.
 *
 *     forks [LARGEST_VOCAB]
 *
 * The program's rand() has no lock. The C library's has one, and a child that was forked while another thread held it
 * waits for ever in its own rand(): glibc's does, whoever calls it, so C code that draws would wait too.
 */
#define _GNU_SOURCE
#include "draws.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BETWEEN = 50,        /* forks between draws */
    WHILE_DRAWING = 100, /* forks while threads draw */
    FRESH = 200,         /* processes that fork when a first draw has just begun */
    STOPPED = 200,       /* processes that fork while a first draw stands still, each at another place */
    THREADS = 4,
    DRAWS = 10           /* of a child */
};

/* Runs the body in a child; 1 when it gives 1. The nearer a process is to the leaves, the fewer seconds it has. */
static int in_child(unsigned seconds, int (*body)(int), int argument)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        alarm(seconds);
        _exit(body(argument) ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("forks");
        _exit(2);
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        fprintf(stderr, "forks: a child was still not done after %u seconds\n", seconds);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* What every child does: some draws, and a batch on threads of its own. */
static int draw(int stream)
{
    stream_start((unsigned)stream);
    return draws_agree(&linked, 0, DRAWS) && batch_agrees(&linked, 0, THREADS) && draws_agree(&linked, DRAWS, DRAWS);
}

/* ---- between draws ---- */

/* The child goes on along its parent's stream. */
static int draw_on(int number)
{
    return draws_agree(&linked, number, DRAWS) && batch_agrees(&linked, number, THREADS);
}

static int between(int unused)
{
    (void)unused;
    stream_start(1);
    for (int i = 0; i < BETWEEN; i++)
        if (!draws_agree(&linked, i * DRAWS, DRAWS) || !in_child(30, draw_on, (i + 1) * DRAWS))
            return 0;
    return 1;
}

/* ---- while threads draw ---- */

static atomic_int enough;

static void *keep_drawing(void *stream)
{
    stream_start((unsigned)(uintptr_t)stream);
    for (int number = 0; !enough; number++)
        if (!draws_agree(&linked, number, 1))
            return "differs";
    return NULL;
}

static pthread_t thread_of(void *(*body)(void *), uintptr_t argument)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, body, (void *)argument) != 0) {
        fputs("forks: no thread\n", stderr);
        _exit(2);
    }
    return thread;
}

static int ends_well(pthread_t thread)
{
    void *differs;

    return pthread_join(thread, &differs) == 0 && differs == NULL;
}

static int while_drawing(int unused)
{
    pthread_t threads[THREADS];
    int good = 1;

    (void)unused;
    for (uintptr_t t = 0; t < THREADS; t++)
        threads[t] = thread_of(keep_drawing, 100 + t);
    for (int i = 0; i < WHILE_DRAWING && good; i++)
        good = in_child(30, draw, 200 + i);
    enough = 1;
    for (int t = 0; t < THREADS; t++)
        good &= ends_well(threads[t]);
    return good;
}

/* ---- when a first draw has just begun ---- */

static atomic_int begun;

static void *first_draw(void *stream)
{
    stream_start((unsigned)(uintptr_t)stream);
    begun = 1;
    return draws_agree(&linked, 0, DRAWS) ? NULL : "differs";
}

/* A little later in each process, as far as a first draw may take. */
static int when_begun(int process)
{
    pthread_t thread = thread_of(first_draw, 1000 + (uintptr_t)process);
    int good;

    while (!begun)
        ;
    for (volatile int wait = process * 500; wait > 0; wait--)
        ;
    good = in_child(30, draw, 2000 + process);
    return ends_well(thread) && good;
}

/* ---- while a first draw stands still ---- */

static sem_t stopped, go_on;

static void stop(void)
{
    sem_post(&stopped);
    sem_wait(&go_on);
}

static float (*real_expf)(float);
static _Thread_local int calls_before_stop;

/* The C library's, with a stop before it. The first draw of a process asks it some thousand times. */
float expf(float x)
{
    if (calls_before_stop > 0 && --calls_before_stop == 0)
        stop();
    return real_expf(x);
}

static void find_expf(void)
{
    void *symbol = dlsym(RTLD_NEXT, "expf");

    if (symbol == NULL) {
        fputs("forks: no expf\n", stderr);
        exit(2);
    }
    memcpy(&real_expf, &symbol, sizeof real_expf);
}

/* At the first place in rand(), at the others in expf(). */
static void *stopping_draw(void *place)
{
    if (place == NULL)
        on_rand = stop;
    calls_before_stop = (int)(uintptr_t)place * 20;
    stream_start(3000 + (unsigned)(uintptr_t)place);
    linked.serve_sample((const float[]){0.0f, 1.0f}, 2, 1.0f, 0.9f);
    on_rand = NULL;
    return draws_agree(&linked, 0, DRAWS) ? NULL : "differs";
}

static int while_stopped(int place)
{
    pthread_t thread = thread_of(stopping_draw, (uintptr_t)place);
    int good;

    sem_wait(&stopped);
    good = in_child(30, draw, 4000 + place);
    sem_post(&go_on);
    return ends_well(thread) && good;
}

static int check(const char *what, int good)
{
    if (!good)
        fprintf(stderr, "forks: %s: not every process drew as the reference and ended\n", what);
    return good;
}

int main(int argc, char **argv)
{
    find_expf();
    sem_init(&stopped, 0, 0);
    sem_init(&go_on, 0, 0);
    draws_make(argc > 1 ? atoi(argv[1]) : 3000);
    draws_prepare();

    /* This process never draws, so none of these children has when it begins. */
    if (!check("before the first draw", in_child(30, draw, 0)))
        return 1;
    if (!check("between draws", in_child(60, between, 0)))
        return 1;
    if (!check("while threads draw", in_child(60, while_drawing, 0)))
        return 1;
    for (int process = 0; process < FRESH; process++)
        if (!check("when a first draw has begun", in_child(60, when_begun, process)))
            return 1;
    for (int place = 0; place < STOPPED; place++)
        if (!check("while a first draw stands still", in_child(60, while_stopped, place)))
            return 1;
    printf("children forked before the first draw, between draws (%d), while threads draw (%d) and amid a first draw "
           "(%d) draw as the reference and end (expf: %s)\n",
           BETWEEN, WHILE_DRAWING, FRESH + STOPPED, kind_of_expf());
    return 0;
}
