//! Times everything in turn on the same logits and checks every token.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::hint::black_box;
use std::time::Instant;

use argminmax::ArgMinMax;
use colibri_sampler::trace::{self, Report, Route, Settings, Tier};
use colibri_sampler::{Request, oracle};

use crate::heap;
use crate::rand::{RAND_MAX, scripted};
use crate::scan::{self, Line};
use crate::shapes::{self, Shape};

/// A temperature and a `top_p`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    pub name: &'static str,
    pub temperature: f32,
    pub top_p: f32,
}

impl Setting {
    const fn new(name: &'static str, temperature: f32, top_p: f32) -> Self {
        Setting {
            name,
            temperature,
            top_p,
        }
    }

    pub fn is_greedy(&self) -> bool {
        self.temperature <= 0.0
    }

    /// Draws, and cuts the tail.
    pub fn is_cut(&self) -> bool {
        !self.is_greedy() && self.top_p < 1.0
    }

    /// Draws from the whole vocabulary.
    pub fn is_whole(&self) -> bool {
        !self.is_greedy() && self.top_p >= 1.0
    }
}

pub const SETTINGS: [Setting; 6] = [
    Setting::new("0.7/0.9", 0.7, 0.9),
    Setting::new("0.7/0.8", 0.7, 0.8),
    Setting::new("0.6/0.95", 0.6, 0.95),
    Setting::new("1.0/0.95", 1.0, 0.95),
    Setting::new("1.0/1.0", 1.0, 1.0),
    Setting::new("greedy", 0.0, 1.0),
];

/// The shapes, by their names in `tests/common/shapes.rs`.
pub const SHAPES: [&str; 10] = [
    "spike",
    "plateau",
    "gumbel",
    "normal-raised",
    "half-masked",
    "normal",
    "tail",
    "bf16",
    "int8",
    "flat",
];
/// A few tokens hold nearly all the mass.
pub const PEAKED: [&str; 5] = ["spike", "plateau", "gumbel", "normal-raised", "half-masked"];
/// Many tokens share it.
pub const BROAD: [&str; 4] = ["normal", "tail", "bf16", "int8"];

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The C reference.
    C,
    /// The bare maximum scan.
    Scan,
    /// The argminmax crate's argmax.
    Argminmax,
    /// The library at a tier.
    Library(Tier),
    /// The library without its certified path.
    LastResort,
    /// The library as on a host whose expf its kernels cannot compute.
    TwinRefused,
}

impl Subject {
    pub fn name(self) -> &'static str {
        match self {
            Subject::C => "c",
            Subject::Scan => "scan",
            Subject::Argminmax => "argminmax",
            Subject::Library(tier) => tier.name(),
            Subject::LastResort => "last-resort",
            Subject::TwinRefused => "twin-refused",
        }
    }
}

/// The highest tier that this CPU has.
pub fn best_tier() -> Tier {
    *trace::tiers().last().expect("the portable tier")
}

fn settings_of(subject: Subject) -> Settings {
    let plain = Settings {
        tier: best_tier(),
        certify: true,
        twin: true,
    };
    match subject {
        Subject::Library(tier) => Settings { tier, ..plain },
        Subject::LastResort => Settings {
            certify: false,
            ..plain
        },
        Subject::TwinRefused => Settings {
            twin: false,
            ..plain
        },
        Subject::C | Subject::Scan | Subject::Argminmax => plain,
    }
}

fn uniform(raw: c_int) -> f64 {
    f64::from(raw) / f64::from(RAND_MAX)
}

fn draw(logits: &[f32], setting: Setting, raw: c_int, settings: Settings) -> Report {
    let request = Request::new(logits, setting.temperature, setting.top_p).expect("some logits");
    trace::sample_with(&request, uniform(raw), settings).expect("memory for a draw")
}

/// What one call gave: a token, or a maximum for the scan.
#[derive(Clone, Copy)]
enum Answer {
    Token(i32, Option<Route>),
    Maximum(f32),
}

fn answer(subject: Subject, logits: &[f32], setting: Setting, raw: c_int) -> Answer {
    match subject {
        Subject::C => {
            let call =
                || oracle::REFERENCE.serve_sample(logits, setting.temperature, setting.top_p);
            Answer::Token(scripted(raw, call).0, None)
        }
        Subject::Scan => Answer::Maximum(scan::maximum(logits)),
        Subject::Argminmax => Answer::Token(logits.argmax() as i32, None),
        Subject::Library(_) | Subject::LastResort | Subject::TwinRefused => {
            let report = draw(logits, setting, raw, settings_of(subject));
            Answer::Token(report.token, Some(report.route))
        }
    }
}

/// How many draws the certified path answered at once, after looking closer, or
/// not at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Routes {
    pub certified: usize,
    pub refined: usize,
    pub exact: usize,
}

impl Routes {
    pub fn add(&mut self, route: Route) {
        match route {
            Route::Certified | Route::Greedy => self.certified += 1,
            Route::Refined => self.refined += 1,
            _ => self.exact += 1,
        }
    }

    pub fn merge(&mut self, other: Routes) {
        self.certified += other.certified;
        self.refined += other.refined;
        self.exact += other.exact;
    }

    pub fn total(&self) -> usize {
        self.certified + self.refined + self.exact
    }
}

/// One place in the table of all measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub vocab: usize,
    /// Into SHAPES.
    pub shape: usize,
    /// Into SETTINGS.
    pub setting: usize,
    pub subject: Subject,
    /// The logits start at a cache line.
    pub aligned: bool,
}

impl Key {
    pub fn shape(&self) -> &'static str {
        SHAPES[self.shape]
    }

    pub fn setting(&self) -> Setting {
        SETTINGS[self.setting]
    }
}

/// The measurements of one place.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    nanoseconds: Vec<f64>,
    /// The C reference's time over this one's, pair by pair.
    times_faster_than_c: Vec<f64>,
    /// This time over the aligned scan's, pair by pair.
    over_scan: Vec<f64>,
    /// This time over argminmax's, pair by pair, where that was timed.
    over_argminmax: Vec<f64>,
    pub routes: Routes,
    /// Heap held at the peak of a call, in bytes.
    pub heap: usize,
}

impl Cell {
    pub fn samples(&self) -> usize {
        self.nanoseconds.len()
    }

    pub fn microseconds(&self) -> f64 {
        median(&self.nanoseconds) / 1e3
    }

    pub fn times_faster_than_c(&self) -> f64 {
        median(&self.times_faster_than_c)
    }

    pub fn over_scan(&self) -> f64 {
        median(&self.over_scan)
    }

    pub fn times_faster_than_argminmax(&self) -> Option<f64> {
        (!self.over_argminmax.is_empty()).then(|| 1.0 / median(&self.over_argminmax))
    }
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// All that was measured.
pub type Cells = BTreeMap<Key, Cell>;

/// A vector of logits, at a cache line and four bytes behind one.
struct Vector {
    lines: Vec<Line>,
    vocab: usize,
    aligned: bool,
}

impl Vector {
    fn zeroed(vocab: usize, aligned: bool) -> Self {
        Vector {
            lines: vec![Line([0.0; Line::LEN]); (vocab + 1).div_ceil(Line::LEN)],
            vocab,
            aligned,
        }
    }

    fn logits_mut(&mut self) -> &mut [f32] {
        let first = usize::from(!self.aligned);
        // SAFETY: a Line is sixteen floats without padding, so the lines are
        // these many floats in a row.
        let floats = unsafe {
            let len = self.lines.len() * Line::LEN;
            std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast::<f32>(), len)
        };
        &mut floats[first..first + self.vocab]
    }

    fn logits(&self) -> &[f32] {
        let first = usize::from(!self.aligned);
        // SAFETY: as in `logits_mut`.
        let floats = unsafe {
            let len = self.lines.len() * Line::LEN;
            std::slice::from_raw_parts(self.lines.as_ptr().cast::<f32>(), len)
        };
        &floats[first..first + self.vocab]
    }
}

/// Fresh vectors of one shape, drawn from together: a clock is too coarse for
/// one draw from a small vocabulary.
struct Batch {
    aligned: Vec<Vector>,
    shifted: Vec<Vector>,
}

impl Batch {
    fn new(shape: &Shape, vocab: usize, seeds: &[u64]) -> Self {
        let aligned: Vec<_> = seeds
            .iter()
            .map(|&seed| {
                let mut vector = Vector::zeroed(vocab, true);
                shape.fill(seed, vector.logits_mut());
                vector
            })
            .collect();
        let shifted = aligned.iter().map(|vector| {
            let mut copy = Vector::zeroed(vocab, false);
            copy.logits_mut().copy_from_slice(vector.logits());
            copy
        });
        Batch {
            shifted: shifted.collect(),
            aligned,
        }
    }

    fn vectors(&self, aligned: bool) -> &[Vector] {
        if aligned {
            &self.aligned
        } else {
            &self.shifted
        }
    }
}

/// Calls in one measurement: some 16,000 tokens, and one call from there on.
fn calls(vocab: usize) -> usize {
    (16_384 / vocab.max(1)).clamp(1, 64)
}

/// How much to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    pub shapes: Vec<usize>,
    /// Vocabulary sizes, with the measurements per shape and setting, and how
    /// many of them time the forced paths too.
    pub sizes: Vec<(usize, usize, usize)>,
}

/// Runs the plan.
pub fn run(plan: &Plan) -> Cells {
    let mut cells = Cells::new();
    for &(vocab, samples, forced) in &plan.sizes {
        let start = Instant::now();
        for &shape in &plan.shapes {
            for sample in 0..samples {
                measure(&mut cells, vocab, shape, sample, sample < forced);
            }
        }
        eprintln!(
            "  V = {vocab}: {samples} x {} fresh vectors a shape, {:.1} s",
            calls(vocab),
            start.elapsed().as_secs_f64()
        );
    }
    cells
}

fn subjects(setting: Setting, forced: bool) -> Vec<(Subject, bool)> {
    let mut subjects = vec![(Subject::C, true), (Subject::Scan, true)];
    for tier in trace::tiers() {
        subjects.extend([
            (Subject::Library(tier), true),
            (Subject::Library(tier), false),
        ]);
    }
    subjects.push((Subject::Scan, false));
    if setting.is_greedy() {
        subjects.push((Subject::Argminmax, true));
    } else if forced {
        subjects.extend([(Subject::LastResort, true), (Subject::TwinRefused, true)]);
    }
    subjects
}

/// One batch of fresh vectors: every setting, every subject in turn.
fn measure(cells: &mut Cells, vocab: usize, shape: usize, sample: usize, forced: bool) {
    let calls = calls(vocab);
    // In steps of 7, so that a few of them already raise tokens to small and to
    // great heights, which go by the seed modulo 11.
    let numbers = sample * calls..(sample + 1) * calls;
    let seeds: Vec<u64> = numbers.map(|number| 7 * number as u64 + 5).collect();
    let family = shapes::find(SHAPES[shape]).expect("a shape of tests/common/shapes.rs");
    let batch = Batch::new(family, vocab, &seeds);
    let mut random = fastrand::Rng::with_seed(seeds[0] ^ (vocab as u64) << 20);

    for (setting_index, setting) in SETTINGS.into_iter().enumerate() {
        let raws: Vec<c_int> = (0..calls).map(|_| random.i32(0..=RAND_MAX)).collect();
        let mut subjects = subjects(setting, forced);
        let turn = sample % subjects.len();
        subjects.rotate_left(turn);

        let runs: Vec<_> = subjects
            .iter()
            .map(|&(subject, aligned)| time(subject, batch.vectors(aligned), setting, &raws))
            .collect();
        let of = |wanted| {
            let position = subjects.iter().position(|&subject| subject == wanted);
            position.map(|position| &runs[position])
        };
        let c = of((Subject::C, true)).expect("timed each time");
        let scan = of((Subject::Scan, true)).expect("timed each time");
        let argminmax = of((Subject::Argminmax, true));

        for (&(subject, aligned), run) in subjects.iter().zip(&runs) {
            let place = Key {
                vocab,
                shape,
                setting: setting_index,
                subject,
                aligned,
            };
            let cell = cells.entry(place).or_default();
            for call in 0..calls {
                let vector = &batch.aligned[call];
                check(place, seeds[call], raws[call], vector, c, run, call);
                if let Answer::Token(_, Some(route)) = run.answers[call] {
                    cell.routes.add(route);
                }
            }
            cell.nanoseconds.push(run.nanoseconds);
            cell.times_faster_than_c
                .push(c.nanoseconds / run.nanoseconds);
            cell.over_scan.push(run.nanoseconds / scan.nanoseconds);
            if let Some(argminmax) = argminmax {
                cell.over_argminmax
                    .push(run.nanoseconds / argminmax.nanoseconds);
            }
            // One call more, counting: not while the clock runs.
            if sample < 4 && !matches!(subject, Subject::C | Subject::Scan | Subject::Argminmax) {
                let logits = batch.vectors(aligned)[0].logits();
                let call = || draw(logits, setting, raws[0], settings_of(subject));
                cell.heap = cell.heap.max(heap::peak(call));
            }
        }
    }
}

/// Wall time or this thread's processor time, whichever is less: the latter
/// leaves out the pauses in which another program had the core, which would
/// hit the slowest the most, and the former is the finer one.
struct Clock {
    processor: u64,
    wall: Instant,
}

impl Clock {
    fn start() -> Self {
        Clock {
            processor: processor_time(),
            wall: Instant::now(),
        }
    }

    /// Nanoseconds since the start.
    fn stop(self) -> f64 {
        let wall = self.wall.elapsed().as_nanos() as u64;
        wall.min(processor_time() - self.processor) as f64
    }
}

/// Nanoseconds that this thread has run for.
fn processor_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to the timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "a clock that POSIX systems have");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

struct Run {
    /// Per call.
    nanoseconds: f64,
    answers: Vec<Answer>,
}

fn time(subject: Subject, vectors: &[Vector], setting: Setting, raws: &[c_int]) -> Run {
    let mut answers = Vec::with_capacity(raws.len());
    // Everyone finds the logits in the same cache: as they were just read.
    for vector in vectors {
        black_box(scan::maximum(vector.logits()));
    }
    let clock = Clock::start();
    for (vector, &raw) in vectors.iter().zip(raws) {
        let logits = black_box(vector.logits());
        answers.push(black_box(answer(subject, logits, setting, raw)));
    }
    let nanoseconds = clock.stop();
    Run {
        nanoseconds: nanoseconds / raws.len() as f64,
        answers,
    }
}

/// The token is the C reference's; the scan's maximum is the greedy token's.
fn check(place: Key, seed: u64, raw: c_int, vector: &Vector, c: &Run, run: &Run, call: usize) {
    let Answer::Token(expected, _) = c.answers[call] else {
        unreachable!("the C reference gives a token")
    };
    match run.answers[call] {
        Answer::Token(token, _) => assert_eq!(
            token, expected,
            "{place:?} seed {seed} raw {raw}: not the C reference's token"
        ),
        Answer::Maximum(maximum) if place.setting().is_greedy() => {
            assert_eq!(
                maximum,
                vector.logits()[expected as usize],
                "{place:?} seed {seed}"
            );
        }
        Answer::Maximum(_) => {}
    }
}

/// Time of the very first draw of the process, in microseconds: it detects the
/// CPU, probes the host's expf and touches new memory.
pub fn first_call() -> f64 {
    let mut vector = Vector::zeroed(248_320, true);
    let shape = shapes::find("gumbel").expect("a shape of tests/common/shapes.rs");
    shape.fill(0, vector.logits_mut());
    let logits = vector.logits();
    let clock = Clock::start();
    let call = || oracle::LIBRARY.serve_sample(logits, 0.7, 0.9);
    black_box(scripted(RAND_MAX / 2, call));
    clock.stop() / 1e3
}

/// Many random draws at each size, untimed, each checked against a full sort:
/// which route answered. By size and shape.
pub fn routes(plan: &[(usize, u64, usize)], shapes: &[usize]) -> BTreeMap<(usize, usize), Routes> {
    let mut routes = BTreeMap::<_, Routes>::new();
    let mut random = fastrand::Rng::with_seed(1);
    for &(vocab, vectors, draws) in plan {
        let start = Instant::now();
        let mut logits = vec![0.0; vocab];
        for (&shape, seed) in shapes
            .iter()
            .flat_map(|shape| (0..vectors).map(move |v| (shape, v)))
        {
            let family = shapes::find(SHAPES[shape]).expect("a shape of tests/common/shapes.rs");
            // Seeds that the timing does not use.
            family.fill(1_000_000 + seed, &mut logits);
            for setting in SETTINGS.into_iter().filter(|setting| !setting.is_greedy()) {
                let prepared = oracle::Prepared::new(&logits, setting.temperature, setting.top_p);
                for _ in 0..draws {
                    let raw = random.i32(0..=RAND_MAX);
                    let report = draw(
                        &logits,
                        setting,
                        raw,
                        settings_of(Subject::Library(best_tier())),
                    );
                    assert_eq!(
                        report.token,
                        prepared.pick(raw),
                        "{} seed {seed}",
                        SHAPES[shape]
                    );
                    if !matches!(report.route, Route::Certified | Route::Refined) && vocab >= 1_000
                    {
                        eprintln!(
                            "  last resort: {} seed {} V {vocab} {} rand() {raw}",
                            SHAPES[shape],
                            1_000_000 + seed,
                            setting.name
                        );
                    }
                    routes.entry((vocab, shape)).or_default().add(report.route);
                }
            }
        }
        eprintln!(
            "  routes at V = {vocab}: {:.1} s",
            start.elapsed().as_secs_f64()
        );
    }
    routes
}
