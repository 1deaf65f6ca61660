/*
 * For check_cpus.sh: which instructions the CPU has on which the library's tiers depend, by its CPUID (under qemu-user
 * /proc/cpuinfo is the host's), and one draw, in whose log the tier is seen.
 */
#include "qwen36_sample.h"

int main(void)
{
    static float logits[1000];
    int token;

    for (int id = 0; id < 1000; id++)
        logits[id] = (float)(id % 77) / 7.0f;
    token = serve_sample(logits, 1000, 1.0f, 0.9f);
    printf("avx2 %d, fma %d, avx512f %d\n", __builtin_cpu_supports("avx2") != 0, __builtin_cpu_supports("fma") != 0,
           __builtin_cpu_supports("avx512f") != 0);
    return token < 0;
}
