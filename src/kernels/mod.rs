//! The loops over logits: one table of kernels per tier, chosen once. The
//! portable tier is the definition; the others give the same tokens sooner.

pub(crate) mod exp;
mod lanes;
pub(crate) mod mode;
mod portable;
mod probe;
mod row_loops;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering};

use exp::Rounding;
use exp::screen::Slope;
use rows::{Buffer, Row};

/// The temperature and the largest logit, which every weight is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) max_logit: f32,
    pub(crate) temperature: f32,
}

/// What logits are screened by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    pub(crate) max_logit: f32,
    pub(crate) slope: Slope,
    /// Logits from here on are gathered, the others weighed.
    pub(crate) threshold: f32,
    /// Below the threshold: those from here on are summed once more.
    pub(crate) deep: f32,
}

/// Sums of the screened weights below a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Screened {
    pub(crate) all: f64,
    /// Of those at or above a second threshold.
    pub(crate) above: f64,
}

/// Sum and count of the weights of an interval, and the sum of those above it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Extracted {
    pub(crate) above: f64,
    pub(crate) within: f64,
    pub(crate) count: usize,
}

/// A set of instructions that kernels are compiled for, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The baseline of the target.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl Tier {
    /// All of them, rising.
    pub const ALL: [Tier; 3] = [Tier::Portable, Tier::Avx2, Tier::Avx512];

    /// The name, as `COLIBRI_SAMPLER_TIER` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Portable => "portable",
            Tier::Avx2 => "avx2",
            Tier::Avx512 => "avx512",
        }
    }

    /// Whether this CPU can run it.
    pub fn is_available(self) -> bool {
        match self {
            Tier::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Tier::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Tier::Avx512 => {
                Tier::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    fn table(self) -> &'static Kernels {
        match self {
            Tier::Portable => &PORTABLE,
            #[cfg(target_arch = "x86_64")]
            Tier::Avx2 => &AVX2,
            #[cfg(target_arch = "x86_64")]
            Tier::Avx512 => &AVX512,
            #[cfg(not(target_arch = "x86_64"))]
            _ => &PORTABLE,
        }
    }
}

/// Declares `Kernels` and its methods from the list of the loops in `row_loops`,
/// and a function per tier that fills it.
macro_rules! kernels {
    (
        tiers { $($(#[$attribute:meta])* $table:ident [$feature:meta] $lanes:expr;)* }
        $loops:tt
    ) => {
        kernels! { @struct $loops }
        $(kernels! { @table [$(#[$attribute])*] $table [$feature] $lanes; $loops })*
    };
    (@struct { $($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)* }) => {
        /// The loops of one tier. Handed out only where the tier is available.
        pub(crate) struct Kernels {
            $($name: unsafe fn($($type),*) $(-> $result)?,)*
        }

        impl Kernels {
            $($(#[$doc])*
            pub(crate) fn $name(&self, $($argument: $type),*) $(-> $result)? {
                // SAFETY: `Tier::table` is asked for available tiers only, by
                // `Engine::at`, and that is all that these functions need.
                unsafe { (self.$name)($($argument),*) }
            })*
        }
    };
    (@table [$(#[$attribute:meta])*] $table:ident [$feature:meta] $lanes:expr;
        { $($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)* }
    ) => {
        $(#[$attribute])*
        static $table: Kernels = {
            $(#[$feature]
            fn $name($($argument: $type),*) $(-> $result)? {
                row_loops::$name($lanes, $($argument),*)
            })*
            Kernels { $($name),* }
        };
    };
}

kernels! {
    tiers {
        PORTABLE [inline(never)] portable::Portable;
        // SAFETY: inside functions that are compiled for AVX2 and FMA.
        #[cfg(target_arch = "x86_64")]
        AVX2 [target_feature(enable = "avx2,fma")] unsafe { avx2::Avx2::new() };
        // SAFETY: inside functions that are compiled for these.
        #[cfg(target_arch = "x86_64")]
        AVX512 [target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")] unsafe { avx512::Avx512::new() };
    }
    {
        /// Writes, block by block, the maximum of each of the sixteen columns,
        /// and tells whether a NaN was met. NaN does not take part in the maxima.
        fn column_maxima(rows: &[Row], rows_per_block: usize, maxima: &mut [Row]) -> bool;
        /// The index of the `nth` (from 0) value from `low` to `high`.
        fn nth_between(rows: &[Row], low: f32, high: f32, nth: usize) -> Option<usize>;
        /// Appends the logits that are at least `threshold`. `out` has room for
        /// all of `rows`.
        fn gather(rows: &[Row], threshold: f32, out: &mut Buffer);
        /// Appends the logits from `screen.threshold` on, for which `out` has
        /// room, and sums the screened weights of the others.
        fn screen(rows: &[Row], screen: Screen, out: &mut Buffer) -> Screened;
        /// Turns logits into weights, in place, and sums them.
        fn weigh(rows: &mut [Row], scale: Scale, rounding: Rounding) -> f64;
        /// The sum of the weights of all logits below `threshold`.
        fn weigh_below(rows: &[Row], scale: Scale, rounding: Rounding, threshold: f32) -> f64;
        /// Sums the weights above `high`, and sums, counts and (where `out` is
        /// given, with room for all) appends those from `low` to `high`.
        fn extract(rows: &[Row], low: f32, high: f32, out: Option<&mut Buffer>) -> Extracted;
    }
}

/// What calls run on: a tier's kernels, and how the host's expf rounds when it
/// is a function that the kernels can compute.
#[derive(Clone, Copy)]
pub(crate) struct Engine {
    pub(crate) tier: Tier,
    pub(crate) kernels: &'static Kernels,
    /// None: the host's expf is unknown and has to be called for each weight.
    pub(crate) rounding: Option<Rounding>,
}

impl Engine {
    /// The engine of `tier`, or of the highest one below it that this CPU has
    /// and whose twin of expf passes the probe.
    pub(crate) fn at(tier: Tier) -> Engine {
        static KNOWN: [AtomicU8; Tier::ALL.len()] = [const { AtomicU8::new(0) }; Tier::ALL.len()];
        Engine::known_at(tier, &KNOWN[tier as usize])
    }

    /// The engine that `known` holds; it is found out where that is still 0.
    /// Threads may do so at once, all to the same end: none waits for another,
    /// which in a forked child might be gone.
    fn known_at(tier: Tier, known: &AtomicU8) -> Engine {
        if let Some(engine) = Engine::decode(known.load(Ordering::Relaxed)) {
            return engine;
        }
        let available = || {
            let tiers = Tier::ALL.into_iter().rev();
            tiers.filter(move |&candidate| candidate <= tier && candidate.is_available())
        };
        // What expf gives in another mode tells nothing of its rounding in this
        // one: such a call does without a twin, and leaves the question open.
        if !mode::is_default() {
            return Engine::new(available().next().unwrap_or(Tier::Portable), None);
        }
        let engine = available()
            .find_map(|tier| {
                let rounding = probe::rounding(exp::host_expf, tier.table())?;
                Some(Engine::new(tier, Some(rounding)))
            })
            .unwrap_or(Engine::new(Tier::Portable, None));
        known.store(engine.encode(), Ordering::Relaxed);
        engine
    }

    fn new(tier: Tier, rounding: Option<Rounding>) -> Engine {
        Engine {
            tier,
            kernels: tier.table(),
            rounding,
        }
    }

    const ROUNDINGS: [Option<Rounding>; 3] =
        [None, Some(Rounding::Fused), Some(Rounding::Separate)];

    /// As a byte that is not 0.
    fn encode(self) -> u8 {
        let place = Engine::ROUNDINGS.iter().position(|&r| r == self.rounding);
        1 + self.tier as u8 * 3 + place.map_or(0, |place| place as u8)
    }

    fn decode(byte: u8) -> Option<Engine> {
        let place = usize::from(byte.checked_sub(1)?);
        Some(Engine::new(
            Tier::ALL[place / 3],
            Engine::ROUNDINGS[place % 3],
        ))
    }

    /// The engine of this process: the highest tier, unless the environment
    /// lowers it, whose word at the first call counts.
    pub(crate) fn of_process() -> Engine {
        const UNKNOWN: u8 = u8::MAX;
        static WANTED: AtomicU8 = AtomicU8::new(UNKNOWN);
        let mut wanted = WANTED.load(Ordering::Relaxed);
        if wanted == UNKNOWN {
            wanted = tier_wanted() as u8;
            WANTED.store(wanted, Ordering::Relaxed);
        }
        Engine::at(Tier::ALL[usize::from(wanted)])
    }
}

/// The tier that `COLIBRI_SAMPLER_TIER` names.
fn tier_wanted() -> Tier {
    // SAFETY: the name is a C string. getenv and not std::env::var, which ends
    // the process when memory is short.
    let value = unsafe { libc::getenv(c"COLIBRI_SAMPLER_TIER".as_ptr()) };
    if value.is_null() {
        return tier_named(b"");
    }
    // SAFETY: not NULL, so a C string of the environment; it is read at once.
    tier_named(unsafe { CStr::from_ptr(value) }.to_bytes())
}

/// A name can only lower: any other text stands for the highest tier.
fn tier_named(name: &[u8]) -> Tier {
    let named = |tier: &Tier| tier.name().as_bytes() == name;
    Tier::ALL.into_iter().find(named).unwrap_or(Tier::Avx512)
}

/// What one pass over logits finds.
pub(crate) struct Scan {
    /// The maximum by strict `>` from the first value on: a NaN there stays, a
    /// later one never wins. Which of two zeros of unlike sign it is is not
    /// said: no weight and no index depends on it.
    pub(crate) max_logit: f32,
    /// A value is NaN.
    pub(crate) nan: bool,
}

/// Scans `values`, of which there is one at least.
pub(crate) fn scan(values: &[f32], kernels: &Kernels) -> Scan {
    let first = values[0];
    if first.is_nan() {
        return Scan {
            max_logit: first,
            nan: true,
        };
    }
    let blocks = rows::Blocks::new(values, usize::MAX);
    let mut maxima = [Row::splat(first); 3];
    let mut nan = false;
    for block in 0..blocks.len() {
        let out = &mut maxima[block..=block];
        nan |= kernels.column_maxima(blocks.block(block), usize::MAX, out);
    }
    Scan {
        max_logit: greatest(&maxima),
        nan,
    }
}

/// The greatest of rows without NaN.
pub(crate) fn greatest(rows: &[Row]) -> f32 {
    let mut lanes = Row::splat(f32::NEG_INFINITY).0;
    for row in rows {
        for (lane, value) in lanes.iter_mut().zip(row.0) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

/// Implements `Lanes` for a token by the free functions of the module, which
/// are compiled for the tier's instructions.
#[cfg(target_arch = "x86_64")]
macro_rules! delegate_lanes {
    (@$lanes:ident $(fn $method:ident => $function:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        $(#[inline(always)]
        fn $method(self, $($argument: $type),*) $(-> $result)? {
            // SAFETY: a token exists only where the CPU has the instructions.
            unsafe { $function($($argument),*) }
        })*
    };
    ($lanes:ident, $f32:ty, $f64:ty, $mask:ty) => {
        impl Lanes for $lanes {
            type F32 = $f32;
            type F64 = $f64;
            type Mask = $mask;

            super::delegate_lanes! { @$lanes
                fn splat => splat(value: f32) -> $f32;
                fn load => load(row: &Row) -> $f32;
                fn store => store(values: $f32, row: &mut Row);
                fn max => max(a: $f32, b: $f32) -> $f32;
                fn add => add(a: $f32, b: $f32) -> $f32;
                fn sub => sub(a: $f32, b: $f32) -> $f32;
                fn div => div(a: $f32, b: $f32) -> $f32;
                fn at_least => at_least(a: $f32, b: $f32) -> $mask;
                fn unordered => unordered(a: $f32, b: $f32) -> $mask;
                fn and => and(a: $mask, b: $mask) -> $mask;
                fn or => or(a: $mask, b: $mask) -> $mask;
                fn bits => bits(mask: $mask) -> u16;
                fn keep => keep_lanes(mask: $mask, values: $f32) -> $f32;
                fn drop => drop_lanes(mask: $mask, values: $f32) -> $f32;
                fn compress => compress(values: $f32, bits: u16, out: &mut [f32; Row::LEN]);
                fn screen_exp => screen_exp(distance: $f32, octaves: $f32) -> $f32;
                fn host_exp => host_exp(x: $f32, rounding: Rounding) -> $f32;
                fn zero_f64 => zero_f64() -> $f64;
                fn widen_add => widen_add(sums: $f64, values: $f32) -> $f64;
                fn total => total(sums: $f64) -> f64;
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
use delegate_lanes;
