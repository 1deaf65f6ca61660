/* A stand-in for the original's test, for check_vendor.sh: our own code, not Colibri's file. */
#include "../qwen36_sample.h"

int main(void)
{
    const float logits[] = {1.0f, 3.0f, 2.0f, 3.0f};
    int seen[4] = {0};

#ifdef STANDIN_ORIGINAL
    puts("header: the stand-in's");
#else
    puts("header: another one");
#endif
    if (argmax_first(logits, 4) != 1 || serve_sample(logits, 4, 0.0f, 0.9f) != 1) {
        puts("greedy differs");
        return 1;
    }
    for (unsigned seed = 1; seed <= 200; seed++) {
        int quick, sorted;
        srand(seed);
        quick = serve_sample(logits, 4, 1.0f, 0.9f);
        srand(seed);
        sorted = serve_sample_sorted(logits, 4, 1.0f, 0.9f);
        if (quick != sorted) {
            printf("seed %u: %d, sorted %d\n", seed, quick, sorted);
            return 1;
        }
        seen[quick]++;
    }
    if (!seen[1] || !seen[2] || !seen[3] || seen[0]) {
        puts("another nucleus than {1, 3, 2}");
        return 1;
    }
    puts("stand-in test passed");
    return 0;
}
