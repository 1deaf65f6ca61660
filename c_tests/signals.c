/*
 * Draws that are interrupted every 50 us by a handler that leaves everything that it may leave in a mess: the vector
 * registers, the rounding mode and float state, errno. It calls the library too. Each answer is compared with the
 * reference's. How many signals meet a call is the machine's affair; none at all would be no test, and fails.
 */
#include "calls.h"

#include <errno.h>
#include <fenv.h>
#include <signal.h>
#include <sys/time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LARGEST = 30000, DRAWS = 300 };

static volatile sig_atomic_t in_call;
static volatile sig_atomic_t signals_in_calls;
static volatile sig_atomic_t wrong_in_handler;
static volatile float anything = 0.3f;

#if defined(__x86_64__)
__attribute__((target("avx"))) static void spoil_registers(void)
{
    __asm__ volatile("vpcmpeqd %%xmm0, %%xmm0, %%xmm0\n\t"
                     "vinsertf128 $1, %%xmm0, %%ymm0, %%ymm0\n\t"
                     "vmovaps %%ymm0, %%ymm1\n\tvmovaps %%ymm0, %%ymm2\n\tvmovaps %%ymm0, %%ymm3\n\t"
                     "vmovaps %%ymm0, %%ymm4\n\tvmovaps %%ymm0, %%ymm5\n\tvmovaps %%ymm0, %%ymm6\n\t"
                     "vmovaps %%ymm0, %%ymm7\n\tvmovaps %%ymm0, %%ymm8\n\tvmovaps %%ymm0, %%ymm9\n\t"
                     "vmovaps %%ymm0, %%ymm10\n\tvmovaps %%ymm0, %%ymm11\n\tvmovaps %%ymm0, %%ymm12\n\t"
                     "vmovaps %%ymm0, %%ymm13\n\tvmovaps %%ymm0, %%ymm14\n\tvmovaps %%ymm0, %%ymm15"
                     ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                         "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
#endif

/* What the handler asks for the greatest of. */
enum { OF_HANDLER = 100, GREATEST = 77 };

static const float of_handler[OF_HANDLER] = {[GREATEST] = 1.0f};

static void on_alarm(int signal)
{
    (void)signal;
    signals_in_calls += in_call;
    wrong_in_handler |= argmax_first(of_handler, OF_HANDLER) != GREATEST;
    anything = expf(anything) / 1.7f - 1.0f;
    fesetround(FE_UPWARD);
    feraiseexcept(FE_ALL_EXCEPT);
    errno = EINTR;
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040u); /* subnormals flushed */
    if (__builtin_cpu_supports("avx"))
        spoil_registers();
#endif
}

static void interrupt_every(long microseconds, int flags)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};

    if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &timer, NULL) != 0) {
        perror("signals");
        exit(2);
    }
}

static long answers;

/* The signals that met the library. */
static int ask(const float *logits, int vocab_size, enum shape shape, int flags)
{
    uint64_t state = (uint64_t)vocab_size * SHAPES + shape;

    signals_in_calls = 0;
    for (int k = 0; k < CALLS; k++) {
        int raw_rand = (int)(next_random(&state) % ((uint64_t)RAND_MAX + 1));
        struct answer expected = reference_answer(&calls[k], logits, vocab_size, raw_rand);

        interrupt_every(50, flags);
        for (int i = 0; i < DRAWS / CALLS; i++) {
            struct answer answer;
            in_call = 1;
            answer = library_answer(&calls[k], logits, vocab_size, raw_rand);
            in_call = 0;
            if (!same_answer(answer, expected)) {
                interrupt_every(0, flags);
                fprintf(stderr, "signals: %s, %d logits, %s: token %d and total %a, expected %d and %a\n",
                        calls[k].name, vocab_size, shape_names[shape], answer.token, answer.total_weight,
                        expected.token, expected.total_weight);
                exit(1);
            }
            answers++;
        }
        interrupt_every(0, flags);
    }
    return signals_in_calls;
}

static long ask_all(int flags)
{
    static const int sizes[] = {500, 3000, LARGEST};
    static float logits[LARGEST];
    long signals = 0;

    for (int i = 0; i < 3; i++) {
        for (int shape = 0; shape < SHAPES; shape++) {
            fill_logits(logits, sizes[i], (enum shape)shape);
            signals += ask(logits, sizes[i], (enum shape)shape, flags);
        }
    }
    return signals;
}

int main(void)
{
    long restarting = ask_all(SA_RESTART);
    long interrupting = ask_all(0);

    if (restarting == 0 || interrupting == 0) {
        fprintf(stderr, "signals: %ld with SA_RESTART and %ld without met a call\n", restarting, interrupting);
        return 1;
    }
    if (wrong_in_handler) {
        fputs("signals: argmax_first is wrong in a handler\n", stderr);
        return 1;
    }
    printf("%ld answers, met by %ld signals with SA_RESTART and %ld without\n", answers, restarting, interrupting);
    return 0;
}
