//! What a case is: everything but the logits, from the seed and the case's
//! number alone.

use crate::shapes::{Kind, SHAPES, Shape};

/// Numbers of a case, which no other case shares.
pub fn random(seed: u64, case: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(mix(mix(seed) ^ case))
}

/// The finalizer of splitmix64: neighbours end far apart.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A range of vocabulary sizes.
pub struct Class {
    pub name: &'static str,
    sizes: std::ops::RangeInclusive<usize>,
    /// Of 100,000 cases. Chosen by time: the last class gets a tenth of it.
    share: u32,
    /// Draws that one vector answers: the more, the dearer its sort.
    draws: u32,
    /// The same where each draw costs the library a sort by the host's qsort.
    dear_draws: u32,
}

const fn class(
    name: &'static str,
    sizes: std::ops::RangeInclusive<usize>,
    share: u32,
    draws: u32,
    dear_draws: u32,
) -> Class {
    Class {
        name,
        sizes,
        share,
        draws,
        dear_draws,
    }
}

pub const CLASSES: [Class; 6] = [
    class("1 to 64", 1..=64, 20_000, 32, 16),
    class("65 to 512", 65..=512, 20_000, 48, 12),
    class("513 to 4,099", 513..=4_099, 56_000, 96, 6),
    class("4,100 to 65,537", 4_100..=65_537, 2_000, 192, 4),
    class("65,538 to 151,935", 65_538..=151_935, 220, 192, 3),
    class("151,936 and above", 151_936..=300_000, 80, 256, 2),
];

impl Class {
    /// Powers of two and their neighbours, the rows of kernels and theirs, the
    /// vocabularies of models, or any.
    fn size(&self, random: &mut fastrand::Rng) -> usize {
        const MODELS: [usize; 6] = [32_000, 50_257, 128_256, 151_936, 151_936, 248_320];
        let (low, high) = (*self.sizes.start(), *self.sizes.end());
        let any = {
            let (low, high) = ((low as f64).ln(), (high as f64 + 1.0).ln());
            (low + (high - low) * random.f64()).exp() as usize
        };
        let neighbour = random.usize(..3);
        let size = match random.u8(..8) {
            0 | 1 => any.next_power_of_two() - 1 + neighbour,
            2 => any / 16 * 16 + 15 + neighbour,
            3 => *random.choice(&MODELS).expect("there are some"),
            _ => any,
        };
        if self.sizes.contains(&size) {
            size
        } else {
            any.clamp(low, high)
        }
    }
}

/// What a case was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Nothing in particular.
    None,
    /// A `top_p` at the share of a cumulative sum, as near as floats come.
    TopP,
    /// And four light tokens that bring the cutoff to that sum, give or take a
    /// few ulp of a double.
    Cutoff,
    /// The same for the target of a draw, with the whole vocabulary kept.
    Target,
    /// A power of two of equal tokens among masked ones: every sum exact, and
    /// the cutoff equal to one.
    Exact,
}

impl Edge {
    pub const ALL: [Edge; 5] = [
        Edge::None,
        Edge::TopP,
        Edge::Cutoff,
        Edge::Target,
        Edge::Exact,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Edge::None => "none",
            Edge::TopP => "top_p at a cumulative sum's share",
            Edge::Cutoff => "cut on a cumulative sum",
            Edge::Target => "draw on a cumulative sum",
            Edge::Exact => "cut equal to a cumulative sum",
        }
    }
}

#[derive(Clone, Copy)]
pub struct Plan {
    pub case: u64,
    pub shape: usize,
    pub seed: u64,
    pub class: usize,
    pub vocab_size: usize,
    /// Floats by which the logits miss a 64-byte boundary.
    pub offset: usize,
    pub temperature: f32,
    pub top_p: f32,
    pub edge: Edge,
    pub draws: u32,
}

impl Plan {
    /// The plan of a case, from the numbers that [`random`] gives for it.
    pub fn new(case: u64, random: &mut fastrand::Rng) -> Self {
        let shares: u32 = CLASSES.iter().map(|class| class.share).sum();
        let mut left = random.u32(..shares);
        let class = CLASSES
            .iter()
            .position(|class| {
                let here = left < class.share;
                left = left.wrapping_sub(class.share);
                here
            })
            .expect("less than the sum of the shares");
        let shape = random.usize(..SHAPES.len());
        let vocab_size = CLASSES[class].size(random);
        let edge = match random.u8(..16) {
            0 | 1 => Edge::TopP,
            2 | 3 => Edge::Cutoff,
            4 | 5 => Edge::Target,
            6 => Edge::Exact,
            _ => Edge::None,
        };
        let kind = SHAPES[shape].kind;
        let edge = if kind == Kind::NotFinite || vocab_size < 8 {
            Edge::None
        } else {
            edge
        };
        let (temperature, top_p) = match edge {
            // What the shape was made for.
            Edge::None if SHAPES[shape].name == "near-fallback" && random.bool() => {
                (1.0, 0.999_999_94)
            }
            Edge::None => (temperature(random), top_p(random)),
            _ => (ordinary_temperature(random), top_p(random)),
        };
        let sorts = kind == Kind::NotFinite || !(temperature > 0.0 && temperature.is_finite());
        Plan {
            case,
            shape,
            seed: random.u64(..),
            class,
            vocab_size,
            offset: random.usize(..16),
            temperature,
            top_p,
            edge,
            draws: if sorts {
                CLASSES[class].dear_draws
            } else {
                CLASSES[class].draws
            },
        }
    }

    pub fn shape(&self) -> &'static Shape {
        &SHAPES[self.shape]
    }
}

fn ordinary_temperature(random: &mut fastrand::Rng) -> f32 {
    const USUAL: [f32; 8] = [0.7, 1.0, 0.6, 0.2, 2.0, 1.3, 0.9, 5.0];
    if random.bool() {
        *random.choice(&USUAL).expect("there are some")
    } else {
        // 0.02 to 50.
        (50.0_f64.powf(random.f64() * 2.0 - 1.0)) as f32
    }
}

/// From subnormal to infinite; now and then greedy or NaN.
fn temperature(random: &mut fastrand::Rng) -> f32 {
    const ODD: [f32; 20] = [
        1.4e-45,
        1e-40,
        f32::MIN_POSITIVE,
        1e-30,
        9.999_999e-19,
        1e-18,
        1.000_000_1e-18,
        1e-9,
        1e-4,
        65_504.0,
        1e9,
        9.999_999e17,
        1e18,
        1.000_000_1e18,
        1e30,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
        -0.7,
        f32::NEG_INFINITY,
    ];
    match random.u8(..64) {
        0..50 => ordinary_temperature(random),
        // Every order of magnitude that there is.
        50..56 => (10.0_f64.powf(random.f64() * 84.0 - 45.0)) as f32,
        56..59 => *random.choice(&[0.0, -0.0]).expect("there are some"),
        _ => *random.choice(&ODD).expect("there are some"),
    }
}

/// Across (0, 1), at its ends and outside.
fn top_p(random: &mut fastrand::Rng) -> f32 {
    const USUAL: [f32; 8] = [0.9, 0.95, 0.8, 0.5, 0.99, 0.3, 0.999, 1.0];
    const ODD: [f32; 14] = [
        1e-45,
        f32::MIN_POSITIVE,
        1e-6,
        0.999_999_94,
        0.999_999_9,
        1.0,
        1.000_000_1,
        1.5,
        f32::INFINITY,
        0.0,
        -0.0,
        -0.5,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    match random.u8(..16) {
        0..6 => *random.choice(&USUAL).expect("there are some"),
        6..10 => random.f32(),
        10 | 11 => 1.0,
        // Near 1, and near 0.
        12 => 1.0 - (-random.f32() * 17.0).exp2(),
        13 => (-random.f32() * 30.0).exp2(),
        _ => *random.choice(&ODD).expect("there are some"),
    }
}
