/*
 * Makes the vendored original callable beside the library, and compares both surfaces at compile time.
 *
 * Ours is found by its place beside this folder; the original by the include path (-I DIR/original/c). Ours is read
 * under other names, so that nothing here can be answered by the library.
 */
#define SampleProb ours_SampleProb
#define sample_prob_desc ours_sample_prob_desc
#define serve_sample ours_serve_sample
#define serve_sample_sorted ours_serve_sample_sorted
#define argmax_first ours_argmax_first
#include "../include/qwen36_sample.h"
#include "../include/argmax_first.h"
#undef SampleProb
#undef sample_prob_desc
#undef serve_sample
#undef serve_sample_sorted
#undef argmax_first

#if !defined(QWEN36_SAMPLE_H) || !defined(ARGMAX_FIRST_H)
#error "our headers lack the original's guards QWEN36_SAMPLE_H and ARGMAX_FIRST_H"
#endif
#undef QWEN36_SAMPLE_H
#undef ARGMAX_FIRST_H

/* The original's headers hold static functions; that some are of no use here is no fault of theirs. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <qwen36_sample.h>
#include <argmax_first.h>
#pragma GCC diagnostic pop

#if !defined(QWEN36_SAMPLE_H) || !defined(ARGMAX_FIRST_H)
#error "the original has other guards than QWEN36_SAMPLE_H and ARGMAX_FIRST_H: a forced include of ours cannot replace it"
#endif

#include "original.h"

#include <stddef.h>

#define SAME_TYPE(a, b) __builtin_types_compatible_p(__typeof__(a), __typeof__(b))
#define SAME_SIGNATURE(name) \
    _Static_assert(SAME_TYPE(name, ours_##name), #name ": signature differs between the original and ours")
#define SAME_FIELD(field) \
    _Static_assert(SAME_TYPE(((SampleProb *)0)->field, ((ours_SampleProb *)0)->field) && \
                       offsetof(SampleProb, field) == offsetof(ours_SampleProb, field), \
                   "SampleProb." #field ": type or offset differs between the original and ours")

SAME_SIGNATURE(serve_sample);
SAME_SIGNATURE(serve_sample_sorted);
SAME_SIGNATURE(sample_prob_desc);
SAME_SIGNATURE(argmax_first);
SAME_FIELD(p);
SAME_FIELD(id);
_Static_assert(sizeof(SampleProb) == sizeof(ours_SampleProb), "SampleProb: size differs between the original and ours");

int original_serve_sample(const float *lo, int V, float temp, float top_p)
{
    return serve_sample(lo, V, temp, top_p);
}

int original_serve_sample_sorted(const float *lo, int V, float temp, float top_p)
{
    return serve_sample_sorted(lo, V, temp, top_p);
}

int original_argmax_first(const float *x, int n)
{
    return argmax_first(x, n);
}

int original_sample_prob_desc(const void *a, const void *b)
{
    return sample_prob_desc(a, b);
}
