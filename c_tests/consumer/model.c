#include "model.h"

#include <math.h>

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* On [0, 1), exact in a float. */
static float fraction(uint64_t bits)
{
    return (float)(bits >> 40) / 16777216.0f;
}

struct history history_start(uint64_t prompt)
{
    return (struct history){mix(prompt + 1), 0};
}

void history_add(struct history *history, int token)
{
    history->state = mix(history->state + (uint64_t)token + 0x9e3779b97f4a7c15u);
    history->length++;
}

/* Products and halves alone, so that no compiler's choice of instructions changes a logit. */
void model_forward(const struct history *history, enum manner manner, float *logits, int V)
{
    for (int i = 0; i < V; i++) {
        float u = fraction(mix(history->state ^ (uint64_t)i * 0xd1342543de82ef95u));
        float u4 = u * u * u * u;
        float u16 = u4 * u4 * u4 * u4;

        switch (manner) {
        case FLAT: logits[i] = u * 0.015625f; break;
        case TIES: logits[i] = (float)(int)(u16 * 24.0f) * 0.5f; break;
        case MASKED: logits[i] = (i + history->length) % 7 ? -INFINITY : u4 * 8.0f; break;
        case FAINT: logits[i] = u16 * 128.0f; break;
        default: logits[i] = u16 * 16.0f; break;
        }
    }
    if (manner == BROKEN && history->length % 4 == 0) {
        int where = (int)(history->state % (uint64_t)V);

        switch (history->length / 4 % 5) {
        case 0: logits[where] = NAN; break;
        case 1: logits[0] = NAN; break;
        case 2: logits[where] = INFINITY; break;
        case 3: logits[where] = logits[(where + 1) % V] = INFINITY; break;
        default:
            for (int i = 0; i < V; i++)
                logits[i] = -INFINITY;
        }
    }
}
