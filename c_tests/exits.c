/*
 * What the library does where the C code would be undefined: each row of that table in docs/contract.md, called in a
 * process of its own; a lack of memory is in faults.c. Also what is not undefined beside it: greedy calls that have
 * nothing to read.
 */
#include "qwen36_sample.h"

#include "child.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum function { SERVE_SAMPLE, SERVE_SAMPLE_SORTED, ARGMAX_FIRST };

enum pointer { NOTHING, UNREADABLE, FOUR_LOGITS };

struct row {
    enum function function;
    enum pointer pointer;
    int count;
    float temperature;
    const char *message; /* how the line on stderr begins, with exit status 1; NULL: the call returns 0 */
};

static const struct row rows[] = {
    /* V < 1 where a weight would be needed; it is checked before the pointer. */
    {SERVE_SAMPLE, FOUR_LOGITS, 0, 1.0f, "serve_sample: V "},
    {SERVE_SAMPLE, FOUR_LOGITS, -1, 0.7f, "serve_sample: V "},
    {SERVE_SAMPLE, FOUR_LOGITS, INT32_MIN, 0.7f, "serve_sample: V "},
    {SERVE_SAMPLE, FOUR_LOGITS, 0, NAN, "serve_sample: V "},
    {SERVE_SAMPLE, FOUR_LOGITS, 0, INFINITY, "serve_sample: V "},
    {SERVE_SAMPLE, NOTHING, 0, 1.0f, "serve_sample: V "},
    {SERVE_SAMPLE_SORTED, FOUR_LOGITS, 0, 1.0f, "serve_sample_sorted: V "},
    {SERVE_SAMPLE_SORTED, FOUR_LOGITS, 0, 0.0f, "serve_sample_sorted: V "},
    {SERVE_SAMPLE_SORTED, FOUR_LOGITS, -7, -1.0f, "serve_sample_sorted: V "},
    {SERVE_SAMPLE_SORTED, NOTHING, -7, NAN, "serve_sample_sorted: V "},
    /* No logits. */
    {SERVE_SAMPLE, NOTHING, 4, 1.0f, "serve_sample: lo "},
    {SERVE_SAMPLE, NOTHING, 1, 1.0f, "serve_sample: lo "},
    {SERVE_SAMPLE, NOTHING, 4, NAN, "serve_sample: lo "},
    {SERVE_SAMPLE, NOTHING, 4, 0.0f, "serve_sample: lo "},
    {SERVE_SAMPLE_SORTED, NOTHING, 4, 1.0f, "serve_sample_sorted: lo "},
    {SERVE_SAMPLE_SORTED, NOTHING, 1, 0.0f, "serve_sample_sorted: lo "},
    {ARGMAX_FIRST, NOTHING, 2, 0.0f, "argmax_first: x "},
    {ARGMAX_FIRST, NOTHING, INT32_MAX, 0.0f, "argmax_first: x "},
    /* Greedy without a vocabulary: 0, and nothing is read. */
    {SERVE_SAMPLE, NOTHING, 0, 0.0f, NULL},
    {SERVE_SAMPLE, NOTHING, -1, -1.0f, NULL},
    {SERVE_SAMPLE, NOTHING, INT32_MIN, -INFINITY, NULL},
    {SERVE_SAMPLE, UNREADABLE, 0, -0.0f, NULL},
    /* One token needs no reading either: argmax_first has nothing to compare. */
    {SERVE_SAMPLE, NOTHING, 1, 0.0f, NULL},
    {SERVE_SAMPLE, UNREADABLE, 1, 0.0f, NULL},
    {ARGMAX_FIRST, NOTHING, 1, 0.0f, NULL},
    {ARGMAX_FIRST, NOTHING, 0, 0.0f, NULL},
    {ARGMAX_FIRST, NOTHING, -1, 0.0f, NULL},
    {ARGMAX_FIRST, NOTHING, INT32_MIN, 0.0f, NULL},
    {ARGMAX_FIRST, UNREADABLE, 1, 0.0f, NULL},
    {ARGMAX_FIRST, UNREADABLE, 0, 0.0f, NULL},
};

#define ROWS ((int)(sizeof rows / sizeof rows[0]))

static const float four_logits[] = {0.0f, 1.0f, 2.0f, 3.0f};

/* By enum pointer; main fills in the mapped one. */
static const float *pointers[] = {NULL, NULL, four_logits};

static int result_of(const struct row *row)
{
    const float *values = pointers[row->pointer];

    switch (row->function) {
    case SERVE_SAMPLE: return serve_sample(values, row->count, row->temperature, 0.9f);
    case SERVE_SAMPLE_SORTED: return serve_sample_sorted(values, row->count, row->temperature, 0.9f);
    default: return argmax_first(values, row->count);
    }
}

/* A call that returned leaves its result in the exit status, well away from the 1 of a refusal. */
enum { RETURNED_ZERO = 40, RETURNED_OTHER = 41 };

static int call(const void *row)
{
    return result_of(row) == 0 ? RETURNED_ZERO : RETURNED_OTHER;
}

static int is_one_line(const char *text)
{
    const char *newline = strchr(text, '\n');

    return newline != NULL && newline[1] == '\0';
}

static void describe(const struct row *row, int status, const char *text)
{
    static const char *const functions[] = {"serve_sample", "serve_sample_sorted", "argmax_first"};
    static const char *const names[] = {"NULL", "an unreadable page", "four logits"};

    fprintf(stderr, "exits: %s on %s, count %d, temperature %g:\n  expected ", functions[row->function],
            names[row->pointer], row->count, (double)row->temperature);
    if (row->message != NULL)
        fprintf(stderr, "exit status 1 and the line '%s...'", row->message);
    else
        fputs("the result 0 and silence", stderr);
    fputs(", saw ", stderr);
    if (WIFSIGNALED(status))
        fprintf(stderr, "signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) == RETURNED_ZERO)
        fputs("the result 0", stderr);
    else if (WEXITSTATUS(status) == RETURNED_OTHER)
        fputs("another result than 0", stderr);
    else
        fprintf(stderr, "exit status %d", WEXITSTATUS(status));
    fprintf(stderr, " and on stderr: '%s'\n", text);
}

static void check_row(const struct row *row)
{
    char text[1024];
    int status = run_child(call, row, text, sizeof text);
    int good;

    if (row->message != NULL)
        good = WIFEXITED(status) && WEXITSTATUS(status) == 1 && is_one_line(text) &&
               strncmp(text, row->message, strlen(row->message)) == 0 && strlen(text) > strlen(row->message) + 1;
    else
        good = WIFEXITED(status) && WEXITSTATUS(status) == RETURNED_ZERO && text[0] == '\0';
    if (!good) {
        describe(row, status, text);
        exit(1);
    }
}

int main(void)
{
    void *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (unreadable == MAP_FAILED) {
        perror("exits");
        return 2;
    }
    pointers[UNREADABLE] = unreadable;
    for (int i = 0; i < ROWS; i++)
        check_row(&rows[i]);
    printf("%d of %d calls end as the contract says\n", ROWS, ROWS);
    return 0;
}
