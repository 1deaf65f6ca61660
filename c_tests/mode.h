/*
 * Draws in another floating-point mode than the default one. Set from C and around a call through a pointer, so that
 * no compiler moves arithmetic across the change.
 */
#ifndef MODE_H
#define MODE_H

#ifdef __cplusplus
extern "C" {
#endif

/* How results are rounded, and what becomes of subnormals. */
struct reference_mode {
    int rounding;       /* 0 to nearest, 1 downward, 2 upward, 3 toward zero */
    int flush_results;  /* subnormal results are 0 (FTZ) */
    int flush_operands; /* subnormal operands are 0 (DAZ) */
};

typedef int reference_draw(const float *logits, int vocab_size, float temperature, float top_p);

/* 1, and the draw made in that mode goes to token; 0 when this CPU has no such mode. The mode is put back. */
int reference_in_mode(struct reference_mode mode, reference_draw *draw, const float *logits, int vocab_size,
                      float temperature, float top_p, int *token);

#ifdef __cplusplus
}
#endif

#endif /* MODE_H */
