//! Draws docs/images/candidates.svg: how many tokens the exponent buckets let
//! through, and how many the nucleus keeps, for several shapes of logits.
//!
//! ```text
//! cargo run --profile test --example figure -- docs/images/candidates.svg
//! ```

#[path = "../tests/common/shapes.rs"]
mod shapes;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use colibri_sampler::trace::{self, Report};
use colibri_sampler::{Request, oracle};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Draws candidates and nucleus for several shapes of logits.
#[derive(Parser)]
#[command(name = "figure")]
struct Arguments {
    /// The SVG file to write
    path: PathBuf,
}

/// Qwen3.6's.
const VOCAB_SIZE: usize = 248_320;
const TOP_P: f32 = 0.9;
const TEMPERATURES: [f32; 2] = [0.7, 1.0];

/// From the narrowest to the broadest.
const SHAPES: [(&str, &str); 10] = [
    ("spike", "one token stands out"),
    ("plateau", "fifty share the top"),
    ("gumbel", "Gumbel tail, 25 raised"),
    ("half-masked", "the same, half masked"),
    ("normal-raised", "normal, 25 raised"),
    ("normal", "normal"),
    ("bf16", "normal, rounded to bf16"),
    ("int8", "normal, in 255 steps"),
    ("tail", "83 values again and again"),
    ("flat", "all equal"),
];

fn main() -> ExitCode {
    let path = Arguments::parse().path;
    if let Err(error) = figure(&path) {
        eprintln!("figure: {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// What the exponent buckets do, and that the C reference counts the same.
fn count(shape: &str, temperature: f32) -> Result<Report, Box<dyn Error>> {
    let shape = shapes::find(shape).ok_or("no such shape")?;
    let logits = shape.logits(1, VOCAB_SIZE);
    let request = Request::new(&logits, temperature, TOP_P).map_err(|e| e.to_string())?;
    let report = trace::by_buckets(&request, 0.0).map_err(|e| e.to_string())?;
    let (_, reference) = oracle::reference_trace(&logits, temperature, TOP_P);
    let counted = (reference.candidates as usize, reference.nucleus as usize);
    if counted != (report.candidates, report.nucleus) {
        return Err(format!("{}: the C reference counts {counted:?}", shape.name).into());
    }
    Ok(report)
}

const GREY: RGBColor = RGBColor(0x59, 0x63, 0x6e);
const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);
/// Told apart by lightness too.
const CANDIDATES: RGBColor = RGBColor(0xe0, 0x9f, 0x1f);
const NUCLEUS: RGBColor = RGBColor(0x14, 0x3d, 0x73);

const SIZE: (u32, u32) = (1000, 640);
const TOP: i32 = 116;
const ROW: i32 = 48;
const BAR: i32 = 15;
/// Where the bars of each temperature begin, and how long the longest is.
const LEFT: [i32; 2] = [206, 612];
const LENGTH: f64 = 310.0;

fn styled(size: u32, colour: &RGBColor, h: HPos) -> TextStyle<'_> {
    let style = ("sans-serif", size).into_font().color(colour);
    style.pos(Pos::new(h, VPos::Center))
}

/// 248320 as 248,320.
fn grouped(n: usize) -> String {
    match n {
        0..1_000 => n.to_string(),
        _ => format!("{},{:03}", grouped(n / 1_000), n % 1_000),
    }
}

/// The length of a bar: logarithmic, and something for a single token.
fn length(tokens: usize) -> i32 {
    let half = 0.5_f64.ln();
    let share = ((tokens as f64).ln() - half) / ((VOCAB_SIZE as f64).ln() - half);
    (LENGTH * share) as i32
}

fn figure(path: &Path) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let write = |text: &str, at: (i32, i32), style: TextStyle<'_>| {
        root.draw(&Text::new(text.to_owned(), at, style))
    };
    let bar = |(x, y): (i32, i32), (width, height): (i32, i32), colour: &RGBColor| {
        root.draw(&Rectangle::new(
            [(x, y), (x + width, y + height)],
            colour.filled(),
        ))
    };

    let title = format!(
        "Tokens of {} that are left at top_p {TOP_P}, logarithmic",
        grouped(VOCAB_SIZE)
    );
    write(&title, (20, 28), styled(22, &BLACK, HPos::Left))?;
    let legend = [
        (20, CANDIDATES, "by the exponent buckets: the candidates"),
        (350, NUCLEUS, "by the cut: the nucleus"),
    ];
    for (x, colour, name) in legend {
        bar((x, 55), (22, 12), &colour)?;
        write(name, (x + 30, 61), styled(14, &BLACK, HPos::Left))?;
    }

    let rows = SHAPES.len() as i32;
    let bottom = TOP + rows * ROW;
    for (left, temperature) in LEFT.into_iter().zip(TEMPERATURES) {
        let title = format!("temperature {temperature:?}");
        write(&title, (left, TOP - 20), styled(16, &BLACK, HPos::Left))?;
        for tokens in [1, 10, 100, 1_000, 10_000, 100_000] {
            let x = left + length(tokens);
            root.draw(&PathElement::new([(x, TOP - 4), (x, bottom)], GRID))?;
            let label = grouped(tokens);
            write(&label, (x, bottom + 14), styled(12, &GREY, HPos::Center))?;
        }
        root.draw(&PathElement::new([(left, TOP - 4), (left, bottom)], GREY))?;
    }
    for (row, (shape, meaning)) in (0..).zip(SHAPES) {
        let y = TOP + row * ROW;
        write(shape, (20, y + 12), styled(15, &BLACK, HPos::Left))?;
        write(meaning, (20, y + 29), styled(12, &GREY, HPos::Left))?;
        for (left, temperature) in LEFT.into_iter().zip(TEMPERATURES) {
            let counts = count(shape, temperature)?;
            let bars = [(counts.candidates, CANDIDATES), (counts.nucleus, NUCLEUS)];
            for (y, (tokens, colour)) in [y + 4, y + 4 + BAR + 2].into_iter().zip(bars) {
                bar((left, y), (length(tokens), BAR), &colour)?;
                let end = (left + length(tokens) + 6, y + BAR / 2 + 1);
                write(&grouped(tokens), end, styled(13, &BLACK, HPos::Left))?;
            }
        }
    }
    root.present()?;
    Ok(())
}
