#ifndef COLIBRI_SAMPLER_H
#define COLIBRI_SAMPLER_H

/* Generated from the Rust source by `make headers`; not edited by hand. */

#include <stddef.h>
#include <stdint.h>
#define COLIBRI_SAMPLER_VERSION "0.1.0"
#define COLIBRI_SAMPLER_VERSION_MAJOR 0
#define COLIBRI_SAMPLER_VERSION_MINOR 1
#define COLIBRI_SAMPLER_VERSION_PATCH 0

/**
 * What a call came to. Values keep their meaning; later versions may add some.
 *
 */
typedef enum {
    /**
     * All outputs are written.
     */
    COLIBRI_STATUS_OK = 0,
    /**
     * A pointer that is needed is NULL.
     */
    COLIBRI_STATUS_NULL = 1,
    /**
     * There are no logits.
     */
    COLIBRI_STATUS_EMPTY = 2,
    /**
     * There are more logits than a 32-bit id can tell apart.
     */
    COLIBRI_STATUS_TOO_LONG = 3,
    /**
     * A draw is NaN or outside [0, 1].
     */
    COLIBRI_STATUS_BAD_UNIFORM = 4,
    /**
     * A temperature is NaN, negative or infinite; for log-probabilities also 0.
     */
    COLIBRI_STATUS_BAD_TEMPERATURE = 5,
    /**
     * A top_k is negative, or a k is 0 or above the number of logits.
     */
    COLIBRI_STATUS_BAD_TOP_K = 6,
    /**
     * A min_p is NaN or outside [0, 1].
     */
    COLIBRI_STATUS_BAD_MIN_P = 7,
    /**
     * A logit is NaN or +inf.
     */
    COLIBRI_STATUS_BAD_LOGIT = 8,
    /**
     * Every logit is -inf.
     */
    COLIBRI_STATUS_ALL_MASKED = 9,
    /**
     * A stride is less than a row, or rows do not fit into an address space.
     */
    COLIBRI_STATUS_BAD_STRIDE = 10,
    /**
     * A workspace has fewer bytes than colibri_workspace_size says.
     */
    COLIBRI_STATUS_WORKSPACE_TOO_SMALL = 11,
    /**
     * An allocation failed.
     */
    COLIBRI_STATUS_NO_MEMORY = 12,
    /**
     * Some rows of a batch failed; each row's error says why.
     */
    COLIBRI_STATUS_BAD_ROWS = 13,
} colibri_status;

/**
 * The path by which a token was found. Later versions may add some.
 *
 */
typedef enum {
    /**
     * The argmax, at temperature 0.
     */
    COLIBRI_PATH_GREEDY,
    /**
     * Exponent buckets, then a sort of what they let through.
     */
    COLIBRI_PATH_BUCKETS,
    /**
     * Exponent buckets that ran out below the cutoff, then the full sort.
     */
    COLIBRI_PATH_FELL_BACK,
    /**
     * A sort of the whole vocabulary.
     */
    COLIBRI_PATH_FULL_SORT,
    /**
     * A sort of what `top_k` or `min_p` leaves.
     */
    COLIBRI_PATH_SELECTION,
} colibri_path;

/**
 * What shapes the distribution that a draw is made from. `docs/api.md` says to
 * the bit what each filter means.
 */
typedef struct {
    /**
     * The divisor of the logits, finite. 0: the argmax.
     */
    float temperature;
    /**
     * The share of the total weight that the nucleus has to reach. Outside the
     * open interval (0, 1), and NaN: no cut.
     */
    float top_p;
    /**
     * How many tokens are left, counted along the order. 0: all.
     */
    int32_t top_k;
    /**
     * The least weight of a token as a share of the largest one, in [0, 1].
     * 0: no bound.
     */
    float min_p;
} colibri_params;

/**
 * Memory of the caller's, in which a call allocates nothing.
 */
typedef struct {
    /**
     * Its first byte, at any alignment.
     */
    void *memory;
    /**
     * Its bytes.
     */
    size_t size;
} colibri_workspace;

/**
 * What a token was drawn from.
 */
typedef struct {
    /**
     * The natural logarithm of the token's probability over the whole
     * vocabulary, at the temperature of the draw. 0 for a greedy token.
     */
    double logprob;
    /**
     * The same over the nucleus.
     */
    double nucleus_logprob;
    /**
     * The sum of the weights of the whole vocabulary, the largest being 1.
     */
    double total_weight;
    /**
     * The sum of the weights of the nucleus: its share is
     * `kept / total_weight`.
     */
    double kept;
    /**
     * Tokens in the nucleus, all that could have been drawn.
     */
    size_t nucleus;
    /**
     * Tokens that were sorted to find it. 0 for a greedy token.
     */
    size_t candidates;
    /**
     * The path by which the token was found.
     */
    colibri_path path;
} colibri_info;

/**
 * Why a row has no token. Beside the status of a call it names the place.
 */
typedef struct {
    /**
     * What is wrong.
     */
    colibri_status status;
    /**
     * The row of a batch; 0 for a single call.
     */
    size_t row;
    /**
     * The first logit that is NaN or +inf, for that status; 0 for others.
     */
    size_t index;
} colibri_error;

/**
 * Rows of logits to draw a token from each, and where the results go. Row r
 * has the logits logits[r * stride] to logits[r * stride + vocab_size - 1].
 */
typedef struct {
    /**
     * The first row's first logit.
     */
    const float *logits;
    /**
     * How many rows there are.
     */
    size_t rows;
    /**
     * Logits in a row.
     */
    size_t vocab_size;
    /**
     * Floats from the beginning of a row to that of the next: vocab_size or
     * more.
     */
    size_t stride;
    /**
     * Parameters, one for each row.
     */
    const colibri_params *params;
    /**
     * Draws in [0, 1], one for each row.
     */
    const double *uniforms;
    /**
     * Takes the token id of each row that has one.
     */
    int32_t *tokens;
    /**
     * Takes the information of each row that has a token. May be NULL.
     */
    colibri_info *infos;
    /**
     * Takes the error of each row: COLIBRI_STATUS_OK where there is a token.
     */
    colibri_error *errors;
    /**
     * The most threads to use, this one among them. 0 counts as 1.
     */
    uint32_t threads;
} colibri_batch;

/**
 * A seedable generator: PCG64 (XSL RR 128/64), after M. E. O'Neill, "PCG: A
 * Family of Simple Fast Space-Efficient Statistically Good Algorithms for
 * Random Number Generation", 2014. Plain data: a copy of it goes on as the
 * original does, on every machine, and any numbers in the fields are a state.
 */
typedef struct {
    /**
     * The upper half of the state.
     */
    uint64_t state_high;
    /**
     * The lower half of the state.
     */
    uint64_t state_low;
    /**
     * The upper half of the stream's number, the highest bit of which counts
     * for nothing.
     */
    uint64_t stream_high;
    /**
     * The lower half of the stream's number.
     */
    uint64_t stream_low;
} colibri_rng;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The library's version, as COLIBRI_SAMPLER_VERSION was when it was built.
 */
const char *colibri_sampler_version(void);

/**
 * A line in English for a status, without a full stop. Never NULL.
 */
const char *colibri_strerror(int status);

/**
 * Parameters under which colibri_sample draws as serve_sample does at
 * temperature 1 and top_p 1: no filter.
 */
colibri_params colibri_params_default(void);

/**
 * The bytes of a workspace for rows of n logits, at any alignment; a batch
 * needs as many for each thread. 0 where n is 0 or above INT32_MAX.
 */
size_t colibri_workspace_size(size_t n);

/**
 * Draws a token id from n logits by the caller's own number in [0, 1].
 *
 * With top_k 0 and min_p 0 the token is serve_sample's for the same
 * temperature and top_p, where (double)rand() / RAND_MAX is the number. At
 * temperature 0 it is the argmax, and the number only has to be in range.
 *
 * workspace may be NULL: the function allocates. info may be NULL; what it
 * takes costs some time. error may be NULL; it is written to only on failure,
 * token and info only on success.
 *
 * logits must point to n readable floats aligned to 4 bytes, and every other
 * pointer that is not NULL to its struct. The workspace must not be in use by
 * another call.
 */
colibri_status colibri_sample(const float *logits,
                              size_t n,
                              const colibri_params *params,
                              double uniform,
                              const colibri_workspace *workspace,
                              int32_t *token,
                              colibri_info *info,
                              colibri_error *error);

/**
 * Writes the ids of the k best of n logits, in the order of sampling, and the
 * natural logarithms of their probabilities at a temperature, over the whole
 * vocabulary. A temperature of 0 gives no probabilities and is refused.
 *
 * workspace may be NULL: the function allocates. error may be NULL; it is
 * written to only on failure, ids and logprobs only on success.
 *
 * logits must point to n readable floats aligned to 4 bytes, ids and logprobs
 * to room for k values, and every other pointer that is not NULL to its struct.
 * The workspace must not be in use by another call.
 */
colibri_status colibri_top_logprobs(const float *logits,
                                    size_t n,
                                    float temperature,
                                    size_t k,
                                    const colibri_workspace *workspace,
                                    int32_t *ids,
                                    double *logprobs,
                                    colibri_error *error);

/**
 * Draws a token from each row of a batch: the same as colibri_sample row by
 * row, on up to batch->threads threads, all of which end before the call
 * returns. It works in a forked child.
 *
 * COLIBRI_STATUS_OK when every row has a token, and when there are no rows.
 * COLIBRI_STATUS_BAD_ROWS when some have none; then their errors say why, and
 * the others have their tokens. Any other status is about the batch as a whole,
 * and nothing is written.
 *
 * workspace may be NULL: rows allocate. Otherwise it has
 * colibri_workspace_size(vocab_size) bytes for each thread that may be used:
 * as many as rows at most.
 *
 * What the batch's fields point to must be there for every row, readable or
 * writable. The workspace must not be in use by another call.
 */
colibri_status colibri_sample_batch(const colibri_batch *batch,
                                    const colibri_workspace *workspace);

/**
 * Sets a generator to what the PCG library's pcg64_srandom_r makes of a seed
 * and a stream. COLIBRI_STATUS_NULL for a NULL rng.
 *
 * rng, unless NULL, must point to a colibri_rng.
 */
colibri_status colibri_rng_seed(colibri_rng *rng, uint64_t seed, uint64_t stream);

/**
 * The generator's next number, in [0, 1): the upper 53 of its next 64 bits,
 * over 2^53. NaN for a NULL rng, which colibri_sample refuses.
 *
 * rng, unless NULL, must point to a colibri_rng that was seeded or restored.
 */
double colibri_rng_uniform(colibri_rng *rng);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* COLIBRI_SAMPLER_H */
