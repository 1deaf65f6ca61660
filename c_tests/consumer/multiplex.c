/*
 * The multiplexed loop: slots with a request each, a token for every slot in turn, a new request where one has ended.
 * All of them draw from the one rand(), so a call too many in one slot changes the tokens of every other.
 */
#include "multiplex.h"

#include "argmax_first.h"
#include "model.h"
#include "qwen36_sample.h"

enum { SLOTS = 5 };

struct slot {
    struct history history;
    enum manner manner;
    float temp, top_p;
    int request, left;
};

static void accept(struct slot *slot, int request)
{
    static const float temps[] = {0.7f, 0.0f, 1.0f, 0.2f, 1.5f, 0.6f, 2.0f};
    static const float top_ps[] = {0.9f, 0.95f, 1.0f, 0.3f, 0.99f, 0.05f};

    slot->history = history_start((uint64_t)request * 7919u);
    slot->manner = (enum manner)(request % MANNERS);
    slot->temp = temps[request % 7];
    slot->top_p = top_ps[request / 2 % 6];
    slot->request = request;
    slot->left = 20 + request * 13 % 50;
}

long serve_multiplexed(int V, int rounds)
{
    struct slot slots[SLOTS];
    float *logits = malloc(SLOTS * (size_t)V * sizeof *logits);
    int requests = 0;
    long count = 0;

    if (!logits) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    srand(20260);
    for (int s = 0; s < SLOTS; s++)
        accept(&slots[s], requests++);
    for (int round = 0; round < rounds; round++) {
        /* The rows of a batch first, then a token for each. */
        for (int s = 0; s < SLOTS; s++)
            model_forward(&slots[s].history, slots[s].manner, logits + (size_t)s * (size_t)V, V);
        printf("round %d:", round);
        for (int s = 0; s < SLOTS; s++) {
            const float *row = logits + (size_t)s * (size_t)V;
            int token = serve_sample(row, V, slots[s].temp, slots[s].top_p);

            printf(" %d=%d/%d", slots[s].request, token, argmax_first(row, V));
            history_add(&slots[s].history, token);
            count++;
            if (--slots[s].left == 0)
                accept(&slots[s], requests++);
        }
        putchar('\n');
    }
    printf("multiplex: %d requests, rand: %d\n", requests, rand());
    free(logits);
    return count;
}
