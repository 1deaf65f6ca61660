//! The floating-point mode of the calling thread. The contract's arithmetic is
//! the thread's: a program may round another way or flush subnormals, and the
//! bounds of the certified path hold in the default mode only.

/// Whether this thread rounds to nearest and keeps subnormals.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_default() -> bool {
    /// Flush to zero, rounding control and denormals are zero.
    const NOT_DEFAULT: u32 = 0x8000 | 0x6000 | 0x0040;
    let mut mxcsr = 0_u32;
    // SAFETY: stmxcsr writes four bytes to the address, which is a u32's.
    unsafe {
        std::arch::asm!(
            "stmxcsr [{}]",
            in(reg) &mut mxcsr,
            options(nostack, preserves_flags)
        );
    }
    mxcsr & NOT_DEFAULT == 0
}

/// Whether this thread rounds to nearest and keeps subnormals, found out by
/// arithmetic that shows it.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn is_default() -> bool {
    use std::hint::black_box;
    let (one, tiny) = (black_box(1.0_f32), black_box(f32::MIN_POSITIVE));
    let nudge = black_box(2.0_f32.powi(-25));
    let to_nearest = one + nudge == one && -one - nudge == -one && one - nudge / 2.0 == one;
    let subnormal = tiny / black_box(4.0);
    to_nearest && subnormal > 0.0 && subnormal * black_box(4.0) == tiny
}
