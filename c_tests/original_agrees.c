/*
 * The vendored original, through original.c, against the library: a sign that the shim calls what it says, for
 * check_vendor.sh. The real comparison is in the Rust tests.
 */
#include "qwen36_sample.h"

#include "original.h"

static int next_value;

int rand(void)
{
    return next_value;
}

int main(void)
{
    static const float temperatures[] = {0.0f, 0.2f, 1.0f, 5.0f};
    static const float top_ps[] = {0.3f, 0.9f, 1.0f};
    uint32_t state = 1;
    long compared = 0;

    for (int round = 0; round < 2000; round++) {
        float logits[100];
        int size = 1 + round % 100;

        for (int i = 0; i < size; i++) {
            state = state * 1664525u + 1013904223u;
            logits[i] = (float)(state >> 24) / 16.0f;
        }
        state = state * 1664525u + 1013904223u;
        next_value = round == 0 ? 0 : round == 1 ? RAND_MAX : (int)(state >> 1);
        for (int t = 0; t < 4; t++) {
            for (int p = 0; p < 3; p++) {
                float temperature = temperatures[t], top_p = top_ps[p];
                if (serve_sample(logits, size, temperature, top_p) !=
                        original_serve_sample(logits, size, temperature, top_p) ||
                    serve_sample_sorted(logits, size, temperature, top_p) !=
                        original_serve_sample_sorted(logits, size, temperature, top_p)) {
                    fprintf(stderr, "original_agrees: round %d, V %d, temperature %a, top_p %a, rand() = %d differs\n",
                            round, size, (double)temperature, (double)top_p, next_value);
                    return 1;
                }
                compared += 2;
            }
        }
        if (argmax_first(logits, size) != original_argmax_first(logits, size)) {
            fprintf(stderr, "original_agrees: round %d, argmax_first differs\n", round);
            return 1;
        }
        compared++;
    }
    for (int i = 0; i < 100; i++) {
        SampleProb a = {(float)(i % 5), i}, b = {(float)(i % 7), 50};
        int ours = sample_prob_desc(&a, &b), theirs = original_sample_prob_desc(&a, &b);
        if ((ours > 0) - (ours < 0) != (theirs > 0) - (theirs < 0)) {
            fprintf(stderr, "original_agrees: sample_prob_desc differs\n");
            return 1;
        }
        compared++;
    }
    printf("%ld of %ld results agree\n", compared, compared);
    return 0;
}
