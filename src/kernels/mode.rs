//! The floating-point mode of the calling thread. The contract's arithmetic is
//! the thread's: a program may round another way or flush subnormals, and the
//! bounds of the certified path hold in the default mode only.

/// Whether this thread rounds to nearest and keeps subnormals.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_default() -> bool {
    /// Flush to zero (bit 15), rounding control (14, 13), denormals are zero (6).
    const NOT_DEFAULT: u32 = 0xe040;
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

/// Whether this thread rounds to nearest and keeps subnormals.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn is_default() -> bool {
    arithmetic_is_default()
}

/// The same, found out by arithmetic that shows it. On x86-64 a test asks it
/// beside the register.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) fn arithmetic_is_default() -> bool {
    use std::hint::black_box;
    // Halfway between two floats only the default mode goes down from the even
    // one of them and up from the odd one.
    let (even, odd) = (black_box(1.0_f32), black_box(1.0 + f32::EPSILON));
    let half = black_box(f32::EPSILON / 2.0);
    // 0 where either results or operands are flushed.
    let subnormal = black_box(f32::MIN_POSITIVE) / black_box(4.0);
    even + half == even && odd + half > odd && subnormal > 0.0
}
