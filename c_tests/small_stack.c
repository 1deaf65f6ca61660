/*
 * Every call in a thread with a stack of 64 KiB, and how much of it was used: also by the C library, which keeps its
 * own of a thread there.
 */
#include "calls.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STACK = 64 * 1024, PAINT = 0xa5, LARGEST = 248320 };

static const int sizes[] = {1, 100, 513, 5000, LARGEST};

enum { SIZES = sizeof sizes / sizeof sizes[0] };

struct question {
    float *logits;
    int raw_rand;
    struct answer expected;
};

static struct question questions[SIZES][SHAPES][CALLS];

/* The reference's answers, by the main thread. */
static void prepare(void)
{
    uint64_t state = 1;

    for (int i = 0; i < SIZES; i++) {
        for (int shape = 0; shape < SHAPES; shape++) {
            float *logits = malloc((size_t)sizes[i] * sizeof *logits);
            if (logits == NULL)
                exit(2);
            fill_logits(logits, sizes[i], (enum shape)shape);
            for (int k = 0; k < CALLS; k++) {
                struct question *question = &questions[i][shape][k];
                question->logits = logits;
                question->raw_rand = (int)(next_random(&state) % ((uint64_t)RAND_MAX + 1));
                question->expected = reference_answer(&calls[k], logits, sizes[i], question->raw_rand);
            }
        }
    }
}

static int answers;

static void say(const struct question *question, const char *what)
{
    int number = (int)(question - &questions[0][0][0]);

    fprintf(stderr, "small_stack: %s, %d logits, %s: %s\n", calls[number % CALLS].name,
            sizes[number / CALLS / SHAPES], shape_names[number / CALLS % SHAPES], what);
}

/* On a stack of its own. The answers so far tell which question it was. */
static void on_overflow(int signal)
{
    (void)signal;
    say(&questions[0][0][0] + answers, "more stack than there is");
    _exit(1);
}

/* Says nothing on this stack: the question that went wrong is returned. */
static void *ask_library(void *nothing)
{
    static unsigned char memory[64 * 1024];
    stack_t other = {.ss_sp = memory, .ss_size = sizeof memory};

    sigaltstack(&other, NULL);
    for (int i = 0; i < SIZES; i++) {
        for (int shape = 0; shape < SHAPES; shape++) {
            for (int k = 0; k < CALLS; k++) {
                struct question *question = &questions[i][shape][k];
                if (!same_answer(library_answer(&calls[k], question->logits, sizes[i], question->raw_rand),
                                 question->expected))
                    return question;
                answers++;
            }
        }
    }
    return nothing;
}

static void *do_nothing(void *nothing)
{
    return nothing;
}

/* Runs body in a thread on a painted stack, and tells how many bytes of the paint are gone. */
static size_t used_by(void *(*body)(void *), unsigned char *stack)
{
    pthread_attr_t attributes;
    pthread_t thread;
    void *wrong;
    size_t untouched = 0;

    memset(stack, PAINT, STACK);
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstack(&attributes, stack, STACK) != 0 ||
        pthread_create(&thread, &attributes, body, NULL) != 0 || pthread_join(thread, &wrong) != 0) {
        fputs("small_stack: no thread\n", stderr);
        exit(2);
    }
    pthread_attr_destroy(&attributes);
    if (wrong != NULL) {
        say(wrong, "another answer than the reference's");
        exit(1);
    }
    while (untouched < STACK && stack[untouched] == PAINT)
        untouched++;
    return STACK - untouched;
}

int main(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_handler = on_overflow, .sa_flags = SA_ONSTACK};
    unsigned char *memory = mmap(NULL, page + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t idle, used;

    /* Below the stack is a page that ends the program. */
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) {
        perror("small_stack");
        return 2;
    }
    sigaction(SIGSEGV, &action, NULL);
    prepare();
    idle = used_by(do_nothing, memory + page);
    used = used_by(ask_library, memory + page);
    printf("%d answers on a stack of %d bytes: %zu used, %zu of them by a thread that does nothing\n", answers, STACK,
           used, idle);
    return 0;
}
