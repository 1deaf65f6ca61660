/*
 * Draws for the programs that put the library into surroundings of their own (threads, forks, copies, modes): logits of
 * some shapes and sizes, a rand() whose stream each thread has to itself, and a comparison with the C reference, draw
 * by draw. One of the vectors tells by its token which of its two expf glibc uses, so that a wrong guess of it shows.
 */
#ifndef DRAWS_H
#define DRAWS_H

#include "colibri_sampler.h"
#include "qwen36_sample.h"

/* A copy of the library. */
struct sampler {
    int (*serve_sample)(const float *lo, int V, float temp, float top_p);
    int (*serve_sample_sorted)(const float *lo, int V, float temp, float top_p);
    int (*argmax_first)(const float *x, int n);
    colibri_status (*colibri_sample_batch)(const colibri_batch *batch, const colibri_workspace *workspace);
};

/* The one that the program is linked with. */
extern const struct sampler linked;

/* Makes the logits, up to a vocabulary size. Nothing of the library is called, here and in draws_prepare. */
void draws_make(int largest_vocab);

/*
 * Has the reference sort each vector once, for all draws from it and in the floating-point mode of this moment. Without
 * it the reference is called for every draw, and draws in the mode of that moment.
 */
void draws_prepare(void);

/* The calling thread's rand() starts on a stream of its own. */
void stream_start(unsigned number);

/*
 * Draws number `first` to `first + count - 1` of the thread's stream by a sampler: the vector, its parameters and the
 * function go by these numbers. 1 when each token is the reference's and each draw called rand() as often; otherwise a
 * line on stderr says which did not, and the result is 0.
 */
int draws_agree(const struct sampler *sampler, int first, int count);

/* The same for a batch of the vectors of one size, on so many threads. */
int batch_agrees(const struct sampler *sampler, int number, int threads);

/* The tokens of draws_agree's draws by the reference alone, for a comparison of modes. */
void reference_draws(int first, int count, int *tokens);

/* "fused" or "separate", by the one weight in which they differ; else "another". */
const char *kind_of_expf(void);

/* Called by each rand() of the calling thread, unless it is NULL, as it is at first. */
extern _Thread_local void (*on_rand)(void);

#endif /* DRAWS_H */
