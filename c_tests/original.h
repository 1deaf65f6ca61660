/* The vendored original under names that do not meet the library's; original.c is compiled only when it is there. */
#ifndef ORIGINAL_H
#define ORIGINAL_H

#ifdef __cplusplus
extern "C" {
#endif

int original_serve_sample(const float *lo, int V, float temp, float top_p);
int original_serve_sample_sorted(const float *lo, int V, float temp, float top_p);
int original_argmax_first(const float *x, int n);
int original_sample_prob_desc(const void *a, const void *b);

#ifdef __cplusplus
}
#endif

#endif /* ORIGINAL_H */
