#ifndef QWEN36_SAMPLE_H
#define QWEN36_SAMPLE_H

/* Generated from the Rust source by `make headers`; not edited by hand. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "argmax_first.h"

/**
 * A weight and its token id.
 */
typedef struct {
    /**
     * The weight: exp((logit - max_logit) / temperature), not normalised.
     */
    float p;
    /**
     * The token id.
     */
    int id;
} SampleProb;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Orders two `SampleProb` for `qsort`: the heavier weight first, equal weights
 * by ascending id. 0 where a weight is NaN. Only the sign counts.
 *
 * `a` and `b` must each point to a readable `SampleProb`.
 */
int sample_prob_desc(const void *a, const void *b);

/**
 * Draws a token id from `V` logits `lo` at temperature `temp` out of the
 * nucleus of mass `top_p`. A `temp` of 0 or below is greedy and draws nothing;
 * every other one calls `rand()` once. A `top_p` outside the open interval
 * (0, 1) keeps the whole vocabulary.
 *
 * `V` below 1 (unless greedy: 0) and a NULL `lo` end the process with a line on
 * stderr and status 1, as does a lack of memory.
 *
 * `lo` must point to `V` readable floats, aligned to 4 bytes.
 */
int serve_sample(const float *lo, int V, float temp, float top_p);

/**
 * `serve_sample` by sorting the whole vocabulary, at every `temp` and `top_p`:
 * it has no greedy branch and calls `rand()` once.
 *
 * `V` below 1 and a NULL `lo` end the process with a line on stderr and status
 * 1, as does a lack of memory.
 *
 * `lo` must point to `V` readable floats, aligned to 4 bytes.
 */
int serve_sample_sorted(const float *lo, int V, float temp, float top_p);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* QWEN36_SAMPLE_H */
