//! The two exponentials: the host's, known to the bit, and a quick one with a
//! proved error. Arguments are never positive here.

use std::ffi::c_float;

unsafe extern "C" {
    fn expf(x: c_float) -> c_float;
}

/// The host C library's expf: the weights that decide a token come from it, or
/// from a twin that was found equal to it, and from nothing else. Another
/// library's differs in the last bit.
pub(crate) fn host_expf(x: f32) -> f32 {
    // SAFETY: expf is a pure function of its argument, whatever the bits.
    unsafe { expf(x) }
}

/// How the host's expf rounds its double polynomial: with every multiply-add
/// fused, or with none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// On a CPU with FMA, where glibc picks that version at load time.
    Fused,
    /// Anywhere else.
    Separate,
}

/// The exponential of Arm's optimized-routines (math/expf.c, exp2f_data.c), in
/// glibc since 2.28: exp(x) = 2^(k/32) exp(r ln2/32), with k the whole and r the
/// broken part of x 32/ln2, a table for k mod 32 and a cubic for r, all in
/// double and rounded to float once.
pub(crate) mod twin {
    /// 32 / ln 2.
    pub(crate) const SCALE: f64 = 46.166_241_308_446_83; // 0x1.71547652b82fep+5
    /// Added and subtracted, it leaves the nearest whole number.
    pub(crate) const SHIFT: f64 = 6_755_399_441_055_744.0; // 0x1.8p+52
    /// The cubic's coefficients for r in units of ln2/32, from r^3 down to r.
    pub(crate) const CUBIC: f64 = f64::from_bits(0x3fac_6af8_4b91_2394) / 32.0 / 32.0 / 32.0;
    pub(crate) const SQUARE: f64 = f64::from_bits(0x3fce_bfce_50fa_c4f3) / 32.0 / 32.0;
    pub(crate) const LINEAR: f64 = f64::from_bits(0x3fe6_2e42_ff0c_52d6) / 32.0;
    /// Below it the result is 0 and k would leave its range.
    pub(crate) const LOWEST: f32 = -104.0;
    /// The bits of 2^(j/32), less j << 47: adding k << 47 gives those of 2^(k/32).
    pub(crate) static TABLE: [u64; 32] = [
        0x3ff0_0000_0000_0000,
        0x3fef_d9b0_d315_8574,
        0x3fef_b558_6cf9_890f,
        0x3fef_9301_d012_5b51,
        0x3fef_72b8_3c7d_517b,
        0x3fef_5487_3168_b9aa,
        0x3fef_387a_6e75_6238,
        0x3fef_1e9d_f51f_dee1,
        0x3fef_06fe_0a31_b715,
        0x3fee_f1a7_373a_a9cb,
        0x3fee_dea6_4c12_3422,
        0x3fee_ce08_6061_892d,
        0x3fee_bfda_d536_2a27,
        0x3fee_b42b_569d_4f82,
        0x3fee_ab07_dd48_5429,
        0x3fee_a47e_b03a_5585,
        0x3fee_a09e_667f_3bcd,
        0x3fee_9f75_e8ec_5f74,
        0x3fee_a114_73eb_0187,
        0x3fee_a589_994c_ce13,
        0x3fee_ace5_422a_a0db,
        0x3fee_b737_b0cd_c5e5,
        0x3fee_c491_82a3_f090,
        0x3fee_d503_b23e_255d,
        0x3fee_e89f_995a_d3ad,
        0x3fee_ff76_f2fb_5e47,
        0x3fef_199b_dd85_529c,
        0x3fef_3720_dcef_9069,
        0x3fef_5818_dcfb_a487,
        0x3fef_7c97_337b_9b5f,
        0x3fef_a4af_a2a4_90da,
        0x3fef_d076_5b6e_4540,
    ];

    /// One value, in `rounding`. The vector twins do the same lane by lane.
    pub(crate) fn exp(x: f32, rounding: super::Rounding) -> f32 {
        let fused = rounding == super::Rounding::Fused;
        let mul_add = |a: f64, b: f64, c: f64| if fused { a.mul_add(b, c) } else { a * b + c };
        let x = f64::from(if x > LOWEST { x } else { LOWEST });
        let shifted = mul_add(x, SCALE, SHIFT);
        let k = shifted.to_bits();
        let r = mul_add(x, SCALE, -(shifted - SHIFT));
        let scale = f64::from_bits(TABLE[(k % 32) as usize].wrapping_add(k << 47));
        let high = mul_add(CUBIC, r, SQUARE);
        let low = mul_add(LINEAR, r, 1.0);
        (mul_add(high, r * r, low) * scale) as f32
    }
}

/// The quick exponential of a distance below the maximum, by a slope in octaves
/// per logit: 2^(distance * slope) = 2^k 2^f with k the nearest whole number and
/// a polynomial of degree five for f, all in float.
///
/// It stands for the host's expf of the contract's argument. With y the octaves
/// and u = 2^-24 (half a float's last place), relative to the host's weight:
///
/// - the slope is rounded: u |y| ln2; so is the contract's quotient: u |y| ln2;
///   so is y where the CPU has no FMA: u |y| ln2;
/// - the polynomial and its roundings: below `POLYNOMIAL_ERROR`, checked for
///   every float by `tests.rs` beside this (`make check-exhaustive`);
/// - with FMA y is exact and f = y - k is rounded instead: 2^-26 ln2;
/// - the host's own rounding: below 1.01 u.
///
/// Down to 32 octaves that is below `ERROR`. A weight further down is under
/// 2^-32, and wrong by less than `FAR`, absolute.
pub(crate) mod screen {
    /// Added and subtracted, it leaves the nearest whole number.
    pub(crate) const SHIFT: f32 = 12_582_912.0; // 0x1.8p+23
    /// 2^f, relative minimax over |f| <= 1/2, from f^0 up.
    pub(crate) const POLYNOMIAL: [f32; 6] = [
        f32::from_bits(0x3f80_0001),
        f32::from_bits(0x3f31_7214),
        f32::from_bits(0x3e75_fc8a),
        f32::from_bits(0x3d63_5b76),
        f32::from_bits(0x3c1e_86a4),
        f32::from_bits(0x3aae_0411),
    ];
    /// Octaves below which results would be subnormal, which the exponent trick
    /// cannot make. Distances are raised to it.
    pub(crate) const LOWEST: f32 = -125.0;

    #[cfg_attr(not(test), allow(dead_code, reason = "what the test proves"))]
    pub(crate) const POLYNOMIAL_ERROR: f64 = 3e-7;
    /// 32 octaves times three roundings, the polynomial and the host's: 4.4e-6.
    pub(crate) const ERROR: f64 = 4.5e-6;
    /// 2^-32 times the same for 125 octaves, 1.6e-5: 3.8e-15. What a token below
    /// LOWEST is overestimated by is nothing beside it.
    pub(crate) const FAR: f64 = 4e-15;

    /// Octaves per logit, and the distance at LOWEST.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Slope {
        pub(crate) octaves: f32,
        pub(crate) lowest: f32,
    }

    impl Slope {
        /// `temperature` is neither so small nor so large that either number
        /// leaves the normal floats.
        pub(crate) fn of(temperature: f32) -> Self {
            let octaves = (std::f64::consts::LOG2_E / f64::from(temperature)) as f32;
            Slope {
                octaves,
                lowest: LOWEST / octaves,
            }
        }
    }
}
