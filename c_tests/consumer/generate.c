/*
 * The ordinary loop of a serving engine, and its main: one request after another, a token at a time out of the logits
 * of all tokens before. Prints a transcript.
 *
 *     engine [V [TOKENS]]
 */
#include "qwen36_sample.h"

#include "model.h"
#include "multiplex.h"

static void *need(void *memory)
{
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

/* The three likeliest, as an engine shows them to who asks for alternatives. */
static void print_top(const float *logits, int V, SampleProb *order)
{
    float mx = logits[argmax_first(logits, V)];

    for (int i = 0; i < V; i++) {
        order[i].p = expf(logits[i] - mx);
        order[i].id = i;
    }
    qsort(order, (size_t)V, sizeof *order, sample_prob_desc);
    for (int k = 0; k < 3 && k < V; k++) {
        uint32_t bits;

        memcpy(&bits, &order[k].p, sizeof bits);
        printf(" %d:%08x", order[k].id, (unsigned)bits);
    }
}

static long generate(int V, int tokens, enum manner manner, float temp, float top_p, unsigned seed)
{
    float *logits = need(malloc((size_t)V * sizeof *logits));
    SampleProb *order = need(malloc((size_t)V * sizeof *order));
    struct history history = history_start(seed);

    srand(seed);
    printf("generate: manner %d, temp %g, top_p %g, seed %u\n", (int)manner, (double)temp, (double)top_p, seed);
    for (int t = 0; t < tokens; t++) {
        int token;

        model_forward(&history, manner, logits, V);
        token = t % 16 == 15 ? serve_sample_sorted(logits, V, temp, top_p) : serve_sample(logits, V, temp, top_p);
        printf("%d", token);
        if (t % 32 == 0)
            print_top(logits, V, order);
        putchar('\n');
        history_add(&history, token);
    }
    /* The next number tells whether rand() was called as often. */
    printf("rand: %d\n", rand());
    free(order);
    free(logits);
    return tokens;
}

int main(int argc, char **argv)
{
    static const float temps[] = {0.0f, 0.2f, 0.7f, 1.0f, 2.0f, -1.0f, NAN};
    static const float top_ps[] = {0.3f, 0.9f, 0.99f, 1.0f, 0.0f, NAN};
    int V = argc > 1 ? atoi(argv[1]) : 2048;
    int tokens = argc > 2 ? atoi(argv[2]) : 48;
    unsigned seed = 0;
    long count = 0;

    for (int manner = 0; manner < MANNERS; manner++)
        for (size_t t = 0; t < sizeof temps / sizeof *temps; t++)
            for (size_t p = 0; p < sizeof top_ps / sizeof *top_ps; p++)
                count += generate(V, tokens, (enum manner)manner, temps[t], top_ps[p], ++seed);
    count += serve_multiplexed(V, tokens * 20);
    printf("%ld tokens\n", count);
    return 0;
}
