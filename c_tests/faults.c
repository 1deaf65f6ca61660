/*
 * Memory that cannot be had. Every allocation of a call fails in turn, alone or with all that follow; then the address
 * space is limited, to more and more. Each time in a process of its own, which ends in one of two ways: with a refusal,
 * which is "OOM sampling" on stderr and exit status 1 (for the colibri_ functions COLIBRI_STATUS_NO_MEMORY), or with
 * the reference's answer.
 *
 * On one allocation the answer may depend: the one that the host's qsort makes for itself and can do without. With a
 * NaN its order is then another. The reference's is the same when it has no such memory either, and that is asked for.
 */
#define _GNU_SOURCE /* RTLD_NEXT */

#include "calls.h"
#include "child.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __GLIBC__
#error "the allocator that this program stands in front of is glibc's"
#endif

/* ---- an allocator that fails ---- */

enum which { NONE, ONE, ALL_FROM, THOSE_OF_SORTS };

static struct {
    enum which which;
    long number; /* of the first one to fail, from 1 on */
    long limit;  /* if not 0, the bytes by which the address space may grow */
} fault;

/* Told to the parent, and written to only while a call is watched. */
struct record {
    long allocations;
    long failures;
    int sort_failed;
    int returned;
    struct answer answer;
};

static struct record *record;
static int watched;
static int in_sort;

static int fails(void)
{
    long number;

    if (!watched)
        return 0;
    number = ++record->allocations;
    switch (fault.which) {
    case ONE: return number == fault.number;
    case ALL_FROM: return number >= fault.number;
    case THOSE_OF_SORTS: return in_sort;
    default: return 0;
    }
}

static void *allocated(void *memory)
{
    if (memory == NULL && watched) {
        errno = ENOMEM;
        record->failures++;
        record->sort_failed |= in_sort;
    }
    return memory;
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* free is glibc's own: what it is given is glibc's. */
void *malloc(size_t size)
{
    return allocated(fails() ? NULL : __libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return allocated(fails() ? NULL : __libc_calloc(count, size));
}

void *realloc(void *memory, size_t size)
{
    return allocated(fails() ? NULL : __libc_realloc(memory, size));
}

void *memalign(size_t alignment, size_t size)
{
    return allocated(fails() ? NULL : __libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *got = memalign(alignment, size);

    if (got == NULL)
        return ENOMEM;
    *memory = got;
    return 0;
}

static void (*host_qsort)(void *, size_t, size_t, int (*)(const void *, const void *));

/* The library's and the reference's, so that an allocation is known for a sort's. */
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    in_sort = 1;
    host_qsort(base, count, size, compare);
    in_sort = 0;
}

/* ---- one call in a child ---- */

struct question {
    const struct call *call;
    const float *logits;
    int vocab_size;
    enum shape shape;
    int raw_rand;
    struct answer expected;
    struct answer expected_after_sort; /* when sorts get no memory */
};

static long calls_made, refusals, answers, after_sort, changed_by_sort;

/* The pages of the address space, without a library that might allocate. */
static long pages_in_use(void)
{
    char text[32] = "";
    int file = open("/proc/self/statm", O_RDONLY);

    if (file < 0 || read(file, text, sizeof text - 1) <= 0) {
        perror("/proc/self/statm");
        _exit(2);
    }
    close(file);
    return atol(text);
}

/* So that a limit does not meet a stack that has yet to grow. Inlined, it would push the call below what it grew. */
static __attribute__((noinline)) void grow_stack(void)
{
    volatile char pages[256 * 1024];

    for (size_t i = 0; i < sizeof pages; i += 1024)
        pages[i] = 1;
}

static int call_once(const void *context)
{
    const struct question *question = context;

    if (fault.limit > 0) {
        struct rlimit limit;
        grow_stack();
        limit.rlim_cur = limit.rlim_max = (rlim_t)(pages_in_use() * sysconf(_SC_PAGESIZE) + fault.limit);
        setrlimit(RLIMIT_AS, &limit);
    }
    watched = 1;
    record->answer = library_answer(question->call, question->logits, question->vocab_size, question->raw_rand);
    watched = 0;
    record->returned = 1;
    return 0;
}

static void complain(const struct question *question, int status, const char *text)
{
    static const char *const which[] = {"none fails", "one fails", "all fail from one on", "sorts have none"};

    fprintf(stderr, "faults: %s, %s, %d logits; of the allocations %s (number %ld, limit %ld), %ld of %ld failed:\n",
            question->call->name, shape_names[question->shape], question->vocab_size, which[fault.which],
            fault.number, fault.limit, record->failures, record->allocations);
    if (WIFSIGNALED(status))
        fprintf(stderr, "  signal %d", WTERMSIG(status));
    else
        fprintf(stderr, "  exit status %d", WEXITSTATUS(status));
    if (record->returned)
        fprintf(stderr, ", token %d, total %a", record->answer.token, record->answer.total_weight);
    fprintf(stderr, ", on stderr '%s'\n  the reference's token is %d, and %d when sorts have no memory\n", text,
            question->expected.token, question->expected_after_sort.token);
    exit(1);
}

/* Whether allocations failed. */
static int check_once(const struct question *question)
{
    enum function function = question->call->function;
    int may_exit = function == SERVE_SAMPLE || function == SERVE_SAMPLE_SORTED;
    struct answer expected;
    char text[1024];
    int status;

    memset(record, 0, sizeof *record);
    status = run_child(call_once, question, text, sizeof text);
    expected = record->sort_failed ? question->expected_after_sort : question->expected;
    calls_made++;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && record->returned && text[0] == '\0' &&
        same_answer(record->answer, expected)) {
        answers++;
        after_sort += record->sort_failed;
        changed_by_sort += record->sort_failed && !same_answer(expected, question->expected);
    } else if (record->failures > 0 && may_exit && WIFEXITED(status) && WEXITSTATUS(status) == 1 &&
               !record->returned && strcmp(text, "OOM sampling\n") == 0) {
        refusals++;
    } else if (record->failures > 0 && !may_exit && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
               record->returned && record->answer.token == NO_MEMORY && text[0] == '\0') {
        refusals++;
    } else {
        complain(question, status, text);
    }
    return record->failures > 0;
}

/* ---- every fault ---- */

static int sorts_allocate;

/* Nothing has called the library in this process: in each child the call is the first one. */
static struct question ask_reference(const struct call *call, const float *logits, int vocab_size, enum shape shape)
{
    struct question question = {.call = call, .logits = logits, .vocab_size = vocab_size, .shape = shape};
    uint64_t state = (uint64_t)vocab_size * SHAPES + shape;

    question.raw_rand = (int)(next_random(&state) % ((uint64_t)RAND_MAX + 1));
    question.expected = reference_answer(call, logits, vocab_size, question.raw_rand);
    memset(record, 0, sizeof *record);
    fault.which = THOSE_OF_SORTS;
    watched = 1;
    question.expected_after_sort = reference_answer(call, logits, vocab_size, question.raw_rand);
    watched = 0;
    fault.which = NONE;
    sorts_allocate |= record->sort_failed;
    return question;
}

static void fail_each(const struct question *question, enum which which)
{
    enum { ENOUGH = 1000 };

    fault.which = which;
    for (fault.number = 1; check_once(question); fault.number++) {
        if (fault.number == ENOUGH) {
            fprintf(stderr, "faults: %s allocates without end\n", question->call->name);
            exit(1);
        }
    }
    fault.which = NONE;
}

static void limit_memory(const struct question *question)
{
    enum { STEP = 128 * 1024, ENOUGH = 64 * 1024 * 1024 };

    for (fault.limit = 1; check_once(question); fault.limit += STEP) {
        if (fault.limit > ENOUGH) {
            fprintf(stderr, "faults: %s has no memory within %d bytes\n", question->call->name, ENOUGH);
            exit(1);
        }
    }
    fault.limit = 0;
}

int main(void)
{
    enum { LARGEST = 100000 };
    static const int sizes[] = {1, 7, 100, 129, 600, 5000, LARGEST};
    static float logits[LARGEST];
    void *found = dlsym(RTLD_NEXT, "qsort");
    long limited;

    memcpy(&host_qsort, &found, sizeof host_qsort);
    record = mmap(NULL, sizeof *record, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == NULL || record == MAP_FAILED) {
        fputs("faults: no qsort or no memory\n", stderr);
        return 2;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int shape = 0; shape < SHAPES; shape++) {
            fill_logits(logits, sizes[i], (enum shape)shape);
            for (int k = 0; k < CALLS; k++) {
                struct question question = ask_reference(&calls[k], logits, sizes[i], (enum shape)shape);
                fail_each(&question, ONE);
                fail_each(&question, ALL_FROM);
            }
        }
    }
    limited = -calls_made;
    for (int shape = 0; shape < SHAPES; shape++) {
        fill_logits(logits, LARGEST, (enum shape)shape);
        for (int k = 0; k < CALLS; k++) {
            struct question question = ask_reference(&calls[k], logits, LARGEST, (enum shape)shape);
            limit_memory(&question);
        }
    }
    limited += calls_made;
    /* Had no sort of the library's failed where the reference's can, it would not be the host's qsort. */
    if (refusals == 0 || (after_sort > 0) != sorts_allocate) {
        fprintf(stderr, "faults: %ld refusals, %ld answers after a sort without memory\n", refusals, after_sort);
        return 1;
    }
    printf("%ld calls, %ld of them in limited memory: %ld refusals, %ld answers (%ld by a sort without memory, %ld of "
           "these another token for it)\n",
           calls_made, limited, refusals, answers, after_sort, changed_by_sort);
    return 0;
}
