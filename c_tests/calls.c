/* Logits, calls and what the reference says to them; calls.h says what for. */
#include "calls.h"

#include "reference.h"

/* ---- logits ---- */

const char *const shape_names[SHAPES] = {"a long tail", "ties", "masks", "all equal", "a NaN"};

uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In (0, 1), both ends excluded. */
static double random_uniform(uint64_t *state)
{
    return ((double)(next_random(state) >> 12) + 0.5) / 4503599627370496.0;
}

void fill_logits(float *logits, int vocab_size, enum shape shape)
{
    uint64_t state = (uint64_t)vocab_size * SHAPES + shape;
    /* In the middle, where how the host sorts decides what becomes of it; for some sizes at an end. */
    int nan_place = vocab_size % 4 == 2 ? 0 : vocab_size % 4 == 3 ? vocab_size - 1 : vocab_size / 2;

    for (int id = 0; id < vocab_size; id++) {
        double tail = -2.0 * log(-log(random_uniform(&state)));
        switch (shape) {
        case TIES: logits[id] = (float)floor(tail / 2.0); break;
        case MASKED: logits[id] = id % 3 == 0 ? (float)tail : -INFINITY; break;
        case FLAT: logits[id] = 1.5f; break;
        default: logits[id] = (float)tail;
        }
    }
    if (shape == WITH_NAN)
        logits[nan_place] = NAN;
}

/* ---- calls ---- */

const struct call calls[CALLS] = {
    {"serve_sample with a cut", SERVE_SAMPLE, 0.7f, 0.9f, 0, 0},
    {"serve_sample without a cut", SERVE_SAMPLE, 1.0f, 1.0f, 0, 0},
    {"serve_sample at temperature 0", SERVE_SAMPLE, 0.0f, 0.9f, 0, 0},
    {"serve_sample_sorted with a cut", SERVE_SAMPLE_SORTED, 0.7f, 0.9f, 0, 0},
    {"serve_sample_sorted without a cut", SERVE_SAMPLE_SORTED, 1.0f, 1.0f, 0, 0},
    {"argmax_first", ARGMAX_FIRST, 0, 0, 0, 0},
    {"colibri_sample without filters", SAMPLE, 0.7f, 0.9f, 0, 0},
    {"colibri_sample with top_k", SAMPLE, 0.7f, 0.9f, 20, 0},
    {"colibri_sample with min_p and information", SAMPLE_WITH_INFO, 0.7f, 0.9f, 0, 0.05f},
    {"colibri_top_logprobs", TOP_LOGPROBS, 0.7f, 1.0f, 5, 0},
};

static int next_rand;

/* In the place of the C library's: nothing to seed, and the same for the library and the reference. */
int rand(void)
{
    return next_rand;
}

static struct answer of_token(int token)
{
    struct answer answer = {token, 0};

    return answer;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Ids in their order, as one number that is not negative. */
static int ids_as_one(const int *ids, int count)
{
    uint32_t one = 0;

    for (int i = 0; i < count; i++)
        one = one * 1000003u + (uint32_t)ids[i];
    return (int)(one >> 1);
}

enum { MOST_IDS = 8 };

static struct answer of_status(colibri_status status, const colibri_error *error, struct answer answer)
{
    switch (status) {
    case COLIBRI_STATUS_OK: return answer;
    case COLIBRI_STATUS_NO_MEMORY: return of_token(NO_MEMORY);
    case COLIBRI_STATUS_BAD_LOGIT: return of_token(bad_logit((int)error->index));
    default: return of_token(OTHER_STATUS);
    }
}

static struct answer by_request(const struct call *call, const float *logits, int vocab_size, int raw_rand)
{
    colibri_params params = {call->temperature, call->top_p, call->top_k, call->min_p};
    colibri_error error = {COLIBRI_STATUS_OK, 0, 0};
    struct answer answer = {OTHER_STATUS, 0};
    int32_t ids[MOST_IDS];
    double logprobs[MOST_IDS];
    colibri_info info;
    int count;
    colibri_status status;

    if (call->function == TOP_LOGPROBS) {
        count = smaller(call->top_k, vocab_size);
        status = colibri_top_logprobs(logits, (size_t)vocab_size, call->temperature, (size_t)count, NULL, ids,
                                      logprobs, &error);
        if (status == COLIBRI_STATUS_OK)
            answer.token = ids_as_one(ids, count);
    } else {
        status = colibri_sample(logits, (size_t)vocab_size, &params, (double)raw_rand / RAND_MAX, NULL, &answer.token,
                                call->function == SAMPLE_WITH_INFO ? &info : NULL, &error);
        if (status == COLIBRI_STATUS_OK && call->function == SAMPLE_WITH_INFO)
            answer.total_weight = info.total_weight;
    }
    return of_status(status, &error, answer);
}

struct answer library_answer(const struct call *call, const float *logits, int vocab_size, int raw_rand)
{
    next_rand = raw_rand;
    switch (call->function) {
    case SERVE_SAMPLE: return of_token(serve_sample(logits, vocab_size, call->temperature, call->top_p));
    case SERVE_SAMPLE_SORTED: return of_token(serve_sample_sorted(logits, vocab_size, call->temperature, call->top_p));
    case ARGMAX_FIRST: return of_token(argmax_first(logits, vocab_size));
    default: return by_request(call, logits, vocab_size, raw_rand);
    }
}

static struct answer reference_by_request(const struct call *call, const float *logits, int vocab_size, int raw_rand)
{
    struct reference_filtered found;
    struct reference_prepared *prepared;
    struct answer answer = {OTHER_STATUS, 0};

    for (int id = 0; id < vocab_size; id++)
        if (isnan(logits[id]))
            return of_token(bad_logit(id));
    if (call->function == TOP_LOGPROBS) {
        prepared = reference_prepare(logits, vocab_size, call->temperature, call->top_p);
        answer.token = ids_as_one(prepared->order, smaller(call->top_k, vocab_size));
        reference_release(prepared);
        return answer;
    }
    answer.token = reference_sample_filtered(logits, vocab_size, call->temperature, call->top_p, call->top_k,
                                             call->min_p, (double)raw_rand / RAND_MAX, &found);
    if (call->function == SAMPLE_WITH_INFO)
        answer.total_weight = found.total_weight;
    return answer;
}

struct answer reference_answer(const struct call *call, const float *logits, int vocab_size, int raw_rand)
{
    next_rand = raw_rand;
    switch (call->function) {
    case SERVE_SAMPLE:
        return of_token(reference_serve_sample(logits, vocab_size, call->temperature, call->top_p));
    case SERVE_SAMPLE_SORTED:
        return of_token(reference_serve_sample_sorted(logits, vocab_size, call->temperature, call->top_p));
    case ARGMAX_FIRST: return of_token(reference_argmax_first(logits, vocab_size));
    default: return reference_by_request(call, logits, vocab_size, raw_rand);
    }
}
