/*
 * The reference sampler: docs/contract.md in plain C, one function for each way through it.
 *
 * It is what the library is compared with, so it is written to be read and shares no code with the library. It
 * requires valid input: logits readable in [0, vocab_size), and vocab_size >= 1 (what the library does with other
 * input is tested on the library alone). When memory runs out it says "OOM sampling" on stderr and exits with 1.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#ifdef __cplusplus
extern "C" {
#endif

/* What the bucket path did for one call. All zero for a greedy call; no candidate was selected there. */
struct reference_trace {
    int candidates; /* tokens that were sorted, before any fallback; vocab_size where the full sort answers at once */
    int nucleus;    /* tokens kept by the walk that gave the answer; 0 when the cutoff is NaN */
    int fell_back;  /* 1 when the candidates ran out below the cutoff and the full sort answered */
};

/* serve_sample of the contract: greedy, bucket path or full sort. */
int reference_serve_sample(const float *logits, int vocab_size, float temperature, float top_p);

/* The same call, telling what it did. */
int reference_serve_sample_traced(const float *logits, int vocab_size, float temperature, float top_p,
                                  struct reference_trace *trace);

/* serve_sample_sorted of the contract: always the full sort; no greedy branch. */
int reference_serve_sample_sorted(const float *logits, int vocab_size, float temperature, float top_p);

/* argmax_first of the contract, by the strict-> scan. Reads nothing when count <= 1. */
int reference_argmax_first(const float *values, int count);

/*
 * One full sort that answers many draws: everything of reference_serve_sample_sorted that comes before rand().
 * (For temperature > 0 or NaN that is also reference_serve_sample's answer.)
 */
struct reference_prepared {
    int vocab_size;
    int nucleus;          /* n, the tokens kept; 0 when the cutoff is NaN */
    double total_weight;
    double cutoff;
    double kept;          /* cumulative[nucleus - 1], or 0 */
    int *order;           /* vocab_size token ids in sampling order */
    double *cumulative;   /* [k]: mass of order[0..k], added in that order; valid for k < nucleus */
};

struct reference_prepared *reference_prepare(const float *logits, int vocab_size, float temperature, float top_p);

/* The token for one raw rand() value in [0, RAND_MAX], by binary search in the cumulative masses. */
int reference_pick(const struct reference_prepared *prepared, int raw_rand);

/*
 * The smallest raw rand() value whose pick lies behind order[position]; -1 when there is none. This value and its
 * predecessor are the two draws on the edge between two tokens. Requires 0 <= position < nucleus.
 */
int reference_first_draw_behind(const struct reference_prepared *prepared, int position);

void reference_release(struct reference_prepared *prepared);

/* What a draw under the filters of docs/api.md was made from. */
struct reference_filtered {
    int nucleus;         /* tokens that could be drawn */
    double kept;         /* their mass, added in sampling order */
    double total_weight; /* the mass of the whole vocabulary, added in the order of ids */
};

/*
 * One draw under all filters, by docs/api.md. Requires what that text accepts, and a temperature above 0: a finite
 * maximum, no NaN, 0 <= top_k, 0 <= min_p <= 1, 0 <= uniform <= 1.
 */
int reference_sample_filtered(const float *logits, int vocab_size, float temperature, float top_p, int top_k,
                              float min_p, double uniform, struct reference_filtered *found);

#ifdef __cplusplus
}
#endif

#endif /* REFERENCE_H */
