/*
 * A program's own rand() is honoured: it is called exactly once for every draw, on every path through the sampler, and
 * its value decides the token. Greedy calls leave it alone.
 *
 *     own_rand FALLBACK_CASE
 */
#include "qwen36_sample.h"

/* In one piece with this program: the reference is wanted for its trace alone. */
#include "reference.c"

static int next_value;
static int calls;

int rand(void)
{
    calls++;
    return next_value;
}

/* The draws of this file, by the path that they take. */
static int checked;

static void expect(const char *path, int token, int expected_token, int expected_calls)
{
    if (token != expected_token || calls != expected_calls) {
        fprintf(stderr, "own_rand: %s, rand() = %d: token %d after %d calls of rand(), expected token %d after %d\n",
                path, next_value, token, calls, expected_token, expected_calls);
        exit(1);
    }
    calls = 0;
    checked++;
}

/* One call of each function; where the path is the same the token is. */
static void expect_both(const char *path, const float *logits, int vocab_size, float temperature, float top_p, int raw,
                        int expected_token)
{
    next_value = raw;
    expect(path, serve_sample(logits, vocab_size, temperature, top_p), expected_token, 1);
    expect(path, serve_sample_sorted(logits, vocab_size, temperature, top_p), expected_token, 1);
}

static void check_draws(void)
{
    static const float one[] = {-3.0f};
    static const float flat[] = {0.0f, 0.0f, 0.0f, 0.0f};
    static const float with_nan[] = {1.0f, NAN, 3.0f, 2.0f};
    static const float last_nan[] = {1.0f, 3.0f, 2.0f, NAN};
    static const float with_infinity[] = {0.0f, INFINITY, 1.0f};
    static const float masked[] = {-INFINITY, -INFINITY, 2.0f, -INFINITY};
    static const float all_masked[] = {-INFINITY, -INFINITY};

    expect_both("bucket path", flat, 4, 1.0f, 0.5f, 0, 0);
    expect_both("bucket path", flat, 4, 1.0f, 0.5f, RAND_MAX, 1);
    expect_both("tiny top_p", flat, 4, 1.0f, 1e-30f, RAND_MAX, 0);
    expect_both("top_p 1", flat, 4, 1.0f, 1.0f, RAND_MAX / 2, 1);
    expect_both("top_p 1", flat, 4, 1.0f, 1.0f, RAND_MAX, 3);
    expect_both("top_p 2", flat, 4, 1.0f, 2.0f, RAND_MAX, 3);
    expect_both("top_p 0", flat, 4, 1.0f, 0.0f, RAND_MAX, 3);
    expect_both("top_p NaN", flat, 4, 1.0f, NAN, RAND_MAX, 3);
    expect_both("V = 1", one, 1, 0.7f, 0.9f, RAND_MAX, 0);
    expect_both("V = 1, top_p 1", one, 1, 0.7f, 1.0f, 0, 0);
    expect_both("one token unmasked", masked, 4, 0.7f, 0.9f, RAND_MAX, 2);
    expect_both("a NaN logit", with_nan, 4, 0.7f, 0.9f, RAND_MAX, 2);
    expect_both("a NaN logit at the end", last_nan, 4, 0.7f, 0.9f, RAND_MAX, 1);
    expect_both("an infinite logit", with_infinity, 3, 1.0f, 0.9f, 0, 0);
    expect_both("everything masked", all_masked, 2, 1.0f, 0.9f, RAND_MAX, 0);
    expect_both("temperature NaN", flat, 4, NAN, 0.9f, RAND_MAX, 0);
    expect_both("temperature infinite", flat, 4, INFINITY, 0.9f, RAND_MAX, 3);
    expect_both("smallest temperature", flat, 4, 1.4e-45f, 1.0f, RAND_MAX, 3);
}

/*
 * The fallback, from logits that are known to take it: one hexadecimal float a line. Whether they do is a matter of the
 * host's expf, so the reference's trace is asked; it draws from the same rand().
 */
static int check_fallback(const char *path)
{
    enum { LIMIT = 100000 };
    static float logits[LIMIT];
    static const int draws[] = {0, 12345, RAND_MAX / 2, RAND_MAX - 1, RAND_MAX};
    const float top_p = 0.99999994f;
    struct reference_trace trace = {0, 0, 0};
    char line[128];
    int size = 0;
    FILE *file = fopen(path, "r");

    if (file == NULL) {
        perror(path);
        exit(2);
    }
    while (size < LIMIT && fgets(line, sizeof line, file) != NULL)
        logits[size++] = strtof(line, NULL);
    fclose(file);

    for (int k = 0; k < (int)(sizeof draws / sizeof draws[0]); k++) {
        int expected;
        next_value = draws[k];
        expected = reference_serve_sample_traced(logits, size, 1.0f, top_p, &trace);
        expect("the reference's fallback", expected, expected, 1);
        expect("fallback", serve_sample(logits, size, 1.0f, top_p), expected, 1);
        expect("sorted instead of the fallback", serve_sample_sorted(logits, size, 1.0f, top_p), expected, 1);
    }
    return trace.fell_back;
}

static void check_greedy(void)
{
    static const float logits[] = {1.0f, 3.0f, 3.0f, NAN};
    int sorted;

    next_value = RAND_MAX;
    expect("greedy", serve_sample(logits, 4, 0.0f, 0.9f), 1, 0);
    expect("greedy", serve_sample(logits, 4, -0.0f, 1.0f), 1, 0);
    expect("greedy", serve_sample(logits, 4, -1.0f, NAN), 1, 0);
    expect("greedy", serve_sample(logits, 4, -INFINITY, 0.0f), 1, 0);
    expect("greedy, V = 1", serve_sample(logits, 1, 0.0f, 0.9f), 0, 0);
    expect("greedy, V = 0", serve_sample(logits, 0, 0.0f, 0.9f), 0, 0);
    expect("argmax_first", argmax_first(logits, 4), 1, 0);
    /* The sorted one has no greedy branch; the order of its NaN weights is the host qsort's. */
    sorted = reference_serve_sample_sorted(logits, 4, 0.0f, 0.9f);
    calls = 0;
    expect("sorted at temperature 0", serve_sample_sorted(logits, 4, 0.0f, 0.9f), sorted, 1);
}

int main(int argc, char **argv)
{
    int fell_back;

    if (argc != 2) {
        fputs("usage: own_rand FALLBACK_CASE\n", stderr);
        return 2;
    }
    check_draws();
    fell_back = check_fallback(argv[1]);
    check_greedy();
    printf("%d of %d calls took the program's own rand() as often as they should, %s\n", checked, checked,
           fell_back ? "the fallback included" : "but the fallback is not taken with this host's expf");
    return 0;
}
