/*
 * Every function that reads logits, and the C reference's answer to the same call, for the programs that look at
 * memory and faults: bounds.c, faults.c, soak.c, small_stack.c, signals.c.
 *
 * The program's rand() is the one of calls.c, which gives what an answer was asked for with.
 */
#ifndef CALLS_H
#define CALLS_H

#include "colibri_sampler.h"
#include "qwen36_sample.h"

#include <limits.h>

/* ---- logits ---- */

enum shape { TAIL, TIES, MASKED, FLAT, WITH_NAN, SHAPES };

extern const char *const shape_names[SHAPES];

/* The logits of a shape and a size: always the same ones. */
void fill_logits(float *logits, int vocab_size, enum shape shape);

/* splitmix64, for whatever else is to be chosen: the number after `state`, which goes on. */
uint64_t next_random(uint64_t *state);

/* ---- calls ---- */

enum function { SERVE_SAMPLE, SERVE_SAMPLE_SORTED, ARGMAX_FIRST, SAMPLE, SAMPLE_WITH_INFO, TOP_LOGPROBS };

struct call {
    const char *name;
    enum function function;
    float temperature;
    float top_p;
    int top_k;
    float min_p;
};

enum { CALLS = 10 };

extern const struct call calls[CALLS];

struct answer {
    int token;           /* or one of the below; of colibri_top_logprobs a number made of all its ids */
    double total_weight; /* where the call tells it; otherwise 0 */
};

/* In the place of a token: a bad logit is told by its index, as bad_logit(index). */
enum { NO_MEMORY = INT_MIN, OTHER_STATUS };

static inline int bad_logit(int index)
{
    return -1 - index;
}

/* raw_rand is what rand() gives; divided by RAND_MAX, the draw that the colibri_ functions are given. */
struct answer library_answer(const struct call *call, const float *logits, int vocab_size, int raw_rand);
struct answer reference_answer(const struct call *call, const float *logits, int vocab_size, int raw_rand);

static inline int same_answer(struct answer a, struct answer b)
{
    return a.token == b.token && a.total_weight == b.total_weight;
}

#endif /* CALLS_H */
