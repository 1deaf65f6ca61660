/*
 * A stand-in for the original, for check_vendor.sh: written from docs/contract.md, not Colibri's file. It has the
 * original's surface and gives its answers, by the full sort alone.
 */
#ifndef QWEN36_SAMPLE_H
#define QWEN36_SAMPLE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argmax_first.h"

#define STANDIN_ORIGINAL 1

typedef struct {
    float p;
    int id;
} SampleProb;

static int sample_prob_desc(const void *a, const void *b)
{
    const SampleProb *x = a, *y = b;

    return x->p != y->p ? (y->p > x->p) - (x->p > y->p) : (x->id > y->id) - (x->id < y->id);
}

static int serve_sample_sorted(const float *lo, int V, float temp, float top_p)
{
    SampleProb *order = malloc((size_t)V * sizeof *order);
    float mx = lo[0];
    double sum = 0, kept = 0, acc = 0, cut, r;
    int n = 0, answer;

    if (!order) {
        fputs("OOM sampling\n", stderr);
        exit(1);
    }
    for (int i = 1; i < V; i++)
        mx = lo[i] > mx ? lo[i] : mx;
    for (int i = 0; i < V; i++) {
        order[i].p = expf((lo[i] - mx) / temp);
        order[i].id = i;
        sum += order[i].p;
    }
    cut = top_p > 0 && top_p < 1 ? (double)top_p * sum : sum;
    qsort(order, (size_t)V, sizeof *order, sample_prob_desc);
    while (n < V && kept < cut)
        kept += order[n++].p;
    r = ((double)rand() / RAND_MAX) * kept;
    answer = order[0].id;
    for (int k = 0; k < n; k++) {
        acc += order[k].p;
        if (acc >= r) {
            answer = order[k].id;
            break;
        }
    }
    free(order);
    return answer;
}

static int serve_sample(const float *lo, int V, float temp, float top_p)
{
    return temp <= 0 ? argmax_first(lo, V) : serve_sample_sorted(lo, V, temp, top_p);
}

#endif
