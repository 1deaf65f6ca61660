/* Draws in another floating-point mode; mode.h says what for. */
#include "mode.h"

#if defined(__x86_64__)

#include <xmmintrin.h>

#define ROUNDING_SHIFT 13
#define FLUSH_RESULTS 0x8000u
#define FLUSH_OPERANDS 0x0040u
#define ALL_MODES (FLUSH_RESULTS | FLUSH_OPERANDS | 3u << ROUNDING_SHIFT)

int reference_in_mode(struct reference_mode mode, reference_draw *draw, const float *logits, int vocab_size,
                      float temperature, float top_p, int *token)
{
    unsigned saved = _mm_getcsr();
    unsigned wanted = saved & ~ALL_MODES;

    wanted |= (unsigned)mode.rounding << ROUNDING_SHIFT;
    wanted |= mode.flush_results ? FLUSH_RESULTS : 0;
    wanted |= mode.flush_operands ? FLUSH_OPERANDS : 0;
    _mm_setcsr(wanted);
    *token = draw(logits, vocab_size, temperature, top_p);
    _mm_setcsr(saved);
    return 1;
}

#else

#include <fenv.h>

int reference_in_mode(struct reference_mode mode, reference_draw *draw, const float *logits, int vocab_size,
                      float temperature, float top_p, int *token)
{
    static const int roundings[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    int saved = fegetround();

    if (mode.flush_results || mode.flush_operands || fesetround(roundings[mode.rounding]) != 0)
        return 0;
    *token = draw(logits, vocab_size, temperature, top_p);
    fesetround(saved);
    return 1;
}

#endif
