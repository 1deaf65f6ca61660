/* A thing in the place of a model: logits out of the tokens so far, the same on every run. */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

/* What a row of logits is like. */
enum manner {
    TAIL,      /* a few likely tokens and a long tail */
    FLAT,      /* hardly any difference */
    TIES,      /* steps of a half: many equal logits */
    MASKED,    /* a grammar allows some tokens, the others are at -inf */
    FAINT,     /* most weights subnormal or zero */
    BROKEN,    /* a NaN or an infinity in every fourth row */
    MANNERS
};

struct history {
    uint64_t state;
    int length;
};

struct history history_start(uint64_t prompt);
void history_add(struct history *history, int token);

/* The logits of the next token, V of them. */
void model_forward(const struct history *history, enum manner manner, float *logits, int V);

#endif
