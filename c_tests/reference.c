/* The reference sampler; reference.h says what it is for. Step numbers are those of docs/contract.md. */
#include "reference.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__FAST_MATH__) || FLT_EVAL_METHOD != 0
#error "the reference needs IEEE arithmetic in the types given: no fast-math, no excess precision"
#endif

/* Same layout as SampleProb: where a weight is NaN the order is the host qsort's, which may depend on element size. */
struct weighted_token {
    float weight;
    int id;
};

static void *allocate(int count, size_t size)
{
    void *memory = malloc((size_t)count * size);
    if (memory == NULL) {
        fputs("OOM sampling\n", stderr);
        exit(1);
    }
    return memory;
}

/* Step 6. A NaN weight differs from every weight and is greater than none: 0, whatever the ids. */
static int compare_tokens(const void *left, const void *right)
{
    const struct weighted_token *a = left;
    const struct weighted_token *b = right;

    if (a->weight != b->weight)
        return (b->weight > a->weight) - (a->weight > b->weight);
    return (a->id > b->id) - (a->id < b->id);
}

/* Steps 2 to 4: fills weights and returns their total. */
static double compute_weights(const float *logits, int vocab_size, float temperature, float *weights)
{
    float max_logit = logits[0];
    double total_weight = 0.0;

    for (int id = 1; id < vocab_size; id++)
        if (logits[id] > max_logit)
            max_logit = logits[id];
    for (int id = 0; id < vocab_size; id++) {
        weights[id] = expf((logits[id] - max_logit) / temperature);
        total_weight += weights[id];
    }
    return total_weight;
}

static int cuts_the_tail(float top_p)
{
    return top_p > 0.0f && top_p < 1.0f;
}

/* Step 5. */
static double cutoff_for(float top_p, double total_weight)
{
    return cuts_the_tail(top_p) ? (double)top_p * total_weight : total_weight;
}

/* Step 7: the size of the nucleus; its mass goes to kept. */
static int walk_nucleus(const struct weighted_token *order, int count, double cutoff, double *kept)
{
    int nucleus = 0;

    *kept = 0.0;
    while (nucleus < count && *kept < cutoff)
        *kept += order[nucleus++].weight;
    return nucleus;
}

/* Step 8, for a given raw rand() value. */
static double target_for(int raw_rand, double kept)
{
    return ((double)raw_rand / RAND_MAX) * kept;
}

/* Steps 8 and 9. order[0] is there even when the nucleus is empty. */
static int draw(const struct weighted_token *order, int nucleus, double kept)
{
    double target = target_for(rand(), kept);
    double mass = 0.0;

    for (int k = 0; k < nucleus; k++) {
        mass += order[k].weight;
        if (mass >= target)
            return order[k].id;
    }
    return order[0].id;
}

/* Step 6 for the whole vocabulary; the caller frees the result. */
static struct weighted_token *sort_vocabulary(const float *weights, int vocab_size)
{
    struct weighted_token *order = allocate(vocab_size, sizeof *order);

    for (int id = 0; id < vocab_size; id++) {
        order[id].weight = weights[id];
        order[id].id = id;
    }
    qsort(order, (size_t)vocab_size, sizeof *order, compare_tokens);
    return order;
}

/* Steps 6 to 9 for the whole vocabulary. */
static int sample_sorted(const float *weights, int vocab_size, double cutoff, int *nucleus)
{
    struct weighted_token *order = sort_vocabulary(weights, vocab_size);
    double kept;
    int id;

    *nucleus = walk_nucleus(order, vocab_size, cutoff, &kept);
    id = draw(order, *nucleus, kept);
    free(order);
    return id;
}

/* Larger weights lie in lower buckets; zero and subnormals in 255; NaN (and infinity) in 0. */
static int bucket_of(float weight)
{
    uint32_t bits;

    memcpy(&bits, &weight, sizeof bits);
    return 255 - (int)((bits >> 23) & 255u);
}

/* The last bucket to gather: the one in which the mass reaches the cutoff, and one more as a margin for rounding. */
static int last_bucket(const float *weights, int vocab_size, double cutoff)
{
    double bucket_mass[256] = {0};
    double mass = 0.0;
    int bucket = 0;

    for (int id = 0; id < vocab_size; id++)
        bucket_mass[bucket_of(weights[id])] += weights[id];
    for (; bucket < 255; bucket++) {
        mass += bucket_mass[bucket];
        if (mass >= cutoff)
            return bucket + 1;
    }
    return 255;
}

/* The bucket path: the full sort's walk over the candidates alone, and the full sort itself when they run out. */
static int sample_by_buckets(const float *weights, int vocab_size, double cutoff, struct reference_trace *trace)
{
    int last = last_bucket(weights, vocab_size, cutoff);
    struct weighted_token *candidates = allocate(vocab_size, sizeof *candidates);
    int count = 0;
    double kept;
    int id;

    for (int token = 0; token < vocab_size; token++) {
        if (bucket_of(weights[token]) <= last) {
            candidates[count].weight = weights[token];
            candidates[count].id = token;
            count++;
        }
    }
    qsort(candidates, (size_t)count, sizeof *candidates, compare_tokens);

    trace->candidates = count;
    trace->nucleus = walk_nucleus(candidates, count, cutoff, &kept);
    trace->fell_back = kept < cutoff && count < vocab_size;
    if (trace->fell_back)
        /* The bucket masses, added in another order, reached the cutoff by rounding alone. */
        id = sample_sorted(weights, vocab_size, cutoff, &trace->nucleus);
    else
        id = draw(candidates, trace->nucleus, kept);
    free(candidates);
    return id;
}

int reference_serve_sample_traced(const float *logits, int vocab_size, float temperature, float top_p,
                                  struct reference_trace *trace)
{
    float *weights;
    double cutoff;
    int id;

    memset(trace, 0, sizeof *trace);
    if (temperature <= 0.0f) /* false for NaN, which goes on */
        return reference_argmax_first(logits, vocab_size);

    weights = allocate(vocab_size, sizeof *weights);
    cutoff = cutoff_for(top_p, compute_weights(logits, vocab_size, temperature, weights));
    if (cuts_the_tail(top_p)) {
        id = sample_by_buckets(weights, vocab_size, cutoff, trace);
    } else {
        trace->candidates = vocab_size;
        id = sample_sorted(weights, vocab_size, cutoff, &trace->nucleus);
    }
    free(weights);
    return id;
}

int reference_serve_sample(const float *logits, int vocab_size, float temperature, float top_p)
{
    struct reference_trace trace;

    return reference_serve_sample_traced(logits, vocab_size, temperature, top_p, &trace);
}

int reference_serve_sample_sorted(const float *logits, int vocab_size, float temperature, float top_p)
{
    float *weights = allocate(vocab_size, sizeof *weights);
    double total_weight = compute_weights(logits, vocab_size, temperature, weights);
    int nucleus;
    int id = sample_sorted(weights, vocab_size, cutoff_for(top_p, total_weight), &nucleus);

    free(weights);
    return id;
}

int reference_argmax_first(const float *values, int count)
{
    int best = 0;

    for (int i = 1; i < count; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

struct reference_prepared *reference_prepare(const float *logits, int vocab_size, float temperature, float top_p)
{
    struct reference_prepared *prepared = allocate(1, sizeof *prepared);
    float *weights = allocate(vocab_size, sizeof *weights);
    struct weighted_token *order;
    double mass = 0.0;

    prepared->vocab_size = vocab_size;
    prepared->total_weight = compute_weights(logits, vocab_size, temperature, weights);
    prepared->cutoff = cutoff_for(top_p, prepared->total_weight);
    order = sort_vocabulary(weights, vocab_size);
    prepared->nucleus = walk_nucleus(order, vocab_size, prepared->cutoff, &prepared->kept);

    prepared->order = allocate(vocab_size, sizeof *prepared->order);
    for (int k = 0; k < vocab_size; k++)
        prepared->order[k] = order[k].id;
    prepared->cumulative = allocate(prepared->nucleus > 0 ? prepared->nucleus : 1, sizeof *prepared->cumulative);
    for (int k = 0; k < prepared->nucleus; k++) {
        mass += order[k].weight;
        prepared->cumulative[k] = mass;
    }
    free(order);
    free(weights);
    return prepared;
}

/*
 * The position in the order that a target picks: the first with cumulative >= target, or 0 when there is none.
 * Binary search is sound because the cumulative masses never fall: with n > 0 the cutoff is a number, so no weight is
 * NaN, and none is negative.
 */
static int position_of(const struct reference_prepared *prepared, double target)
{
    int below = 0; /* every position before this one has cumulative < target */
    int end = prepared->nucleus;

    while (below < end) {
        int middle = below + (end - below) / 2;
        if (prepared->cumulative[middle] >= target)
            end = middle;
        else
            below = middle + 1;
    }
    /* A NaN target is reached by no mass: below ran to the end, and the first token of the order answers. */
    return below < prepared->nucleus ? below : 0;
}

int reference_pick(const struct reference_prepared *prepared, int raw_rand)
{
    return prepared->order[position_of(prepared, target_for(raw_rand, prepared->kept))];
}

int reference_first_draw_behind(const struct reference_prepared *prepared, int position)
{
    int64_t below = 0; /* every raw value before this one has target <= cumulative[position] */
    int64_t end = (int64_t)RAND_MAX + 1;

    while (below < end) {
        int64_t middle = below + (end - below) / 2;
        if (target_for((int)middle, prepared->kept) > prepared->cumulative[position])
            end = middle;
        else
            below = middle + 1;
    }
    return below <= RAND_MAX ? (int)below : -1;
}

void reference_release(struct reference_prepared *prepared)
{
    if (prepared == NULL)
        return;
    free(prepared->cumulative);
    free(prepared->order);
    free(prepared);
}

/* The mass of the first tokens of an order, added in the order of ids. */
static double mass_by_id(const struct weighted_token *order, int count, int vocab_size)
{
    float *left = allocate(vocab_size, sizeof *left);
    double mass = 0.0;

    for (int id = 0; id < vocab_size; id++)
        left[id] = 0.0f;
    for (int k = 0; k < count; k++)
        left[order[k].id] = order[k].weight;
    for (int id = 0; id < vocab_size; id++)
        mass += left[id]; /* a token that is not left adds 0, which changes no sum */
    free(left);
    return mass;
}

int reference_sample_filtered(const float *logits, int vocab_size, float temperature, float top_p, int top_k,
                              float min_p, double uniform, struct reference_filtered *found)
{
    float *weights = allocate(vocab_size, sizeof *weights);
    struct weighted_token *order;
    double target;
    double mass = 0.0;
    int left = vocab_size;
    int id;

    found->total_weight = compute_weights(logits, vocab_size, temperature, weights);
    order = sort_vocabulary(weights, vocab_size);
    id = order[0].id;

    if (top_k > 0 && top_k < vocab_size)
        left = top_k;
    found->nucleus = walk_nucleus(order, left, cutoff_for(top_p, mass_by_id(order, left, vocab_size)), &found->kept);
    while (order[found->nucleus - 1].weight < (double)min_p * order[0].weight)
        found->nucleus--;
    found->kept = 0.0;
    for (int k = 0; k < found->nucleus; k++)
        found->kept += order[k].weight;

    target = uniform * found->kept;
    for (int k = 0; k < found->nucleus; k++) {
        mass += order[k].weight;
        if (mass >= target) {
            id = order[k].id;
            break;
        }
    }
    free(order);
    free(weights);
    return id;
}
