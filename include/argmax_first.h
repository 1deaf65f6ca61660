#ifndef ARGMAX_FIRST_H
#define ARGMAX_FIRST_H

/* Generated from the Rust source by `make headers`; not edited by hand. */

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The first index of the maximum of `n` floats `x`, as a scan by strict `>`
 * finds it: a NaN at index 0 stays, a later one never wins, and -0 ties with
 * +0. 0 for `n` of 1 or below, and then `x` is not read.
 *
 * A NULL `x` with more than one float ends the process with a line on stderr
 * and status 1.
 *
 * `x` must point to `n` readable floats, aligned to 4 bytes.
 */
int argmax_first(const float *x, int n);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ARGMAX_FIRST_H */
