//! Is the host's expf the function that the kernels compute? Asked once per
//! tier, of points where its known versions differ and of some thousand others.
//! `make check-exhaustive` asks it of every float.

use super::exp::{Rounding, twin};
use super::rows::{self, Row};
use super::{Kernels, Scale};

/// Points that a version of expf is known to differ at: the one float of
/// [-87.34, -0] where fusing changes the result.
const DISCRIMINATORS: [u32; 1] = [0xc27c_65d9];

/// Points in all, over the floats from -2^-26 to -104.
const POINTS: usize = 4096;

fn point(index: usize) -> f32 {
    if let Some(&bits) = DISCRIMINATORS.get(index) {
        return f32::from_bits(bits);
    }
    const FIRST: usize = 0xb280_0000;
    const LAST: usize = 0xc2d0_0000;
    f32::from_bits((FIRST + (LAST - FIRST) / (POINTS - 1) * index) as u32)
}

/// The rounding in which `host` equals both the scalar twin and the one that
/// `kernels` has. None if there is none: one wrong bit is enough.
pub(super) fn rounding(host: fn(f32) -> f32, kernels: &Kernels) -> Option<Rounding> {
    [Rounding::Fused, Rounding::Separate]
        .into_iter()
        .find(|&rounding| agrees(host, kernels, rounding))
}

fn agrees(host: fn(f32) -> f32, kernels: &Kernels, rounding: Rounding) -> bool {
    // Arguments as they are: exp((x - 0) / 1).
    let scale = Scale {
        max_logit: 0.0,
        temperature: 1.0,
    };
    (0..POINTS).step_by(Row::LEN).all(|first| {
        let points: [f32; Row::LEN] = std::array::from_fn(|lane| point(first + lane));
        let mut row = [Row(points)];
        kernels.weigh(&mut row, scale, rounding);
        points.iter().zip(rows::floats(&row)).all(|(&x, &vector)| {
            let bits = host(x).to_bits();
            bits == twin::exp(x, rounding).to_bits() && bits == vector.to_bits()
        })
    })
}
