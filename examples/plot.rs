//! Draws the plots of docs/performance.md from what `make bench` measured:
//!
//! ```text
//! make bench ARGS='--csv target/paired.csv'
//! cargo run --example plot -- target/paired.csv docs/images
//! ```
//!
//! `time_by_vocab.svg`: time against vocabulary size for an ordinary peaked
//! draw, a broad one, one from the whole vocabulary, and greedy.
//! `ratio_by_shape.svg`: how many times as fast as the C reference each tier is,
//! by shape and setting.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::Deserialize;

/// Draws time_by_vocab.svg and ratio_by_shape.svg from the CSV of `make bench`.
#[derive(Parser)]
#[command(name = "plot")]
struct Arguments {
    /// Written by `make bench ARGS='--csv FILE'`
    csv: PathBuf,
    /// The folder that the plots go to
    folder: PathBuf,
}

/// A line of the CSV: what the plots take of it.
#[derive(Clone, Deserialize)]
struct Measurement {
    vocab: u32,
    shape: String,
    temperature: f32,
    top_p: f32,
    subject: String,
    aligned: bool,
    microseconds: f64,
    times_faster_than_c: f64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plotted = read(&arguments.csv).and_then(|measurements| {
        let folder = &arguments.folder;
        std::fs::create_dir_all(folder)?;
        time_by_vocab(&folder.join("time_by_vocab.svg"), &measurements)?;
        ratio_by_shape(&folder.join("ratio_by_shape.svg"), &measurements)
    });
    if let Err(error) = plotted {
        eprintln!("plot: {}: {error}", arguments.csv.display());
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The aligned measurements.
fn read(path: &Path) -> Result<Vec<Measurement>, Box<dyn Error>> {
    let mut measurements = Vec::new();
    for line in csv::Reader::from_path(path)?.deserialize() {
        let measurement: Measurement = line?;
        if measurement.aligned {
            measurements.push(measurement);
        }
    }
    if measurements.is_empty() {
        return Err("no measurements".into());
    }
    Ok(measurements)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const FONT: &str = "sans-serif";
const GREY: RGBColor = RGBColor(0x59, 0x63, 0x6e);
const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);

/// Who is drawn, what it is called, and its colour: told apart by lightness too.
const SERIES: [(&str, &str, RGBColor); 5] = [
    ("c", "C reference", RGBColor(0xb3, 0x26, 0x1e)),
    ("portable", "library, portable", RGBColor(0xe0, 0x9f, 0x1f)),
    ("avx2", "library, AVX2", RGBColor(0x2f, 0x7d, 0xd1)),
    ("avx512", "library, AVX-512", RGBColor(0x14, 0x3d, 0x73)),
    ("scan", "bare maximum scan", RGBColor(0x8b, 0x94, 0x9e)),
];

fn text(size: u32, colour: &RGBColor) -> TextStyle<'_> {
    (FONT, size).into_font().color(colour)
}

fn anchored<'a>(size: u32, colour: &'a RGBColor, h: HPos, v: VPos) -> TextStyle<'a> {
    text(size, colour).pos(Pos::new(h, v))
}

/// Names with their colours, from the left on, for what `present` has.
fn legend(area: &Area<'_>, at: (i32, i32), present: &[&str]) -> Result<(), Box<dyn Error>> {
    let (mut x, y) = at;
    for (subject, name, colour) in SERIES {
        if present.contains(&subject) {
            area.draw(&Rectangle::new(
                [(x, y - 5), (x + 22, y + 5)],
                colour.filled(),
            ))?;
            let style = anchored(14, &BLACK, HPos::Left, VPos::Center);
            area.draw(&Text::new(name, (x + 28, y), style))?;
            x += 48 + 8 * name.len() as i32;
        }
    }
    Ok(())
}

fn present(measurements: &[Measurement]) -> Vec<&'static str> {
    let subjects = SERIES.map(|(subject, ..)| subject);
    let is_there = |subject: &&str| measurements.iter().any(|line| line.subject == *subject);
    subjects.into_iter().filter(is_there).collect()
}

/// 248320 as 248,320.
fn grouped(n: u32) -> String {
    match n {
        0..1_000 => n.to_string(),
        _ => format!("{},{:03}", grouped(n / 1_000), n % 1_000),
    }
}

/// Microseconds in the unit that makes them short.
fn duration(microseconds: &f64) -> String {
    match *microseconds {
        ..1.0 => format!("{:.0} ns", microseconds * 1e3),
        1.0..1e3 => format!("{microseconds:.0} µs"),
        _ => format!("{:.0} ms", microseconds / 1e3),
    }
}

/// Four panels with the same axes, both logarithmic.
fn time_by_vocab(path: &Path, measurements: &[Measurement]) -> Result<(), Box<dyn Error>> {
    const SMALLEST: u32 = 256;
    let panels = [
        (
            "A peaked draw: Gumbel tail + 25 raised, 0.7/0.9",
            "gumbel",
            0.7,
            0.9,
        ),
        ("A broad draw: normal, 1.0/0.95", "normal", 1.0, 0.95),
        ("The whole vocabulary: normal, top_p 1", "normal", 1.0, 1.0),
        ("Greedy: normal", "normal", 0.0, 1.0),
    ];
    let lines: Vec<_> = measurements
        .iter()
        .filter(|line| line.vocab >= SMALLEST)
        .collect();
    let sizes = lines.iter().map(|line| line.vocab);
    let (least, most) = (sizes.clone().min(), sizes.max());
    let (Some(least), Some(most)) = (least, most) else {
        return Err("no vocabulary of 256 or more".into());
    };
    let times = || {
        let drawn = lines.iter().filter(|line| {
            let shown = |&(_, shape, temperature, top_p): &(_, &str, f32, f32)| {
                (line.shape.as_str(), line.temperature, line.top_p) == (shape, temperature, top_p)
            };
            panels.iter().any(shown) && present(measurements).contains(&line.subject.as_str())
        });
        drawn.map(|line| line.microseconds)
    };
    let fastest = times().fold(f64::INFINITY, f64::min);
    let slowest = times().fold(0.0, f64::max);

    let root = SVGBackend::new(path, (1000, 800)).into_drawing_area();
    root.fill(&WHITE)?;
    let title = "Time of one draw against the size of the vocabulary";
    root.draw(&Text::new(title, (20, 16), text(22, &BLACK)))?;
    legend(&root, (20, 60), &present(measurements))?;
    let (_, below) = root.split_vertically(78);
    for (area, (title, shape, temperature, top_p)) in below.split_evenly((2, 2)).iter().zip(panels)
    {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .caption(title, text(16, &BLACK))
            .x_label_area_size(42)
            .y_label_area_size(62)
            .build_cartesian_2d(
                (f64::from(least) * 0.9..f64::from(most) * 1.1).log_scale(),
                (fastest * 0.7..slowest * 1.4).log_scale(),
            )?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .axis_style(GREY)
            .label_style(text(13, &BLACK))
            .x_labels(6)
            .y_labels(8)
            .x_label_formatter(&|vocab| grouped(vocab.round() as u32))
            .y_label_formatter(&duration)
            .x_desc("tokens in the vocabulary")
            .draw()?;
        for (subject, _, colour) in SERIES {
            let points: BTreeMap<u32, f64> = lines
                .iter()
                .filter(|line| line.subject == subject && line.shape == shape)
                .filter(|line| (line.temperature, line.top_p) == (temperature, top_p))
                .map(|line| (line.vocab, line.microseconds))
                .collect();
            let points: Vec<_> = points
                .iter()
                .map(|(&v, &time)| (f64::from(v), time))
                .collect();
            let style = colour.stroke_width(2);
            chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
            let dots = points
                .iter()
                .map(|&point| Circle::new(point, 3, colour.filled()));
            chart.draw_series(dots)?;
        }
    }
    root.present()?;
    Ok(())
}

/// A panel per setting, a group of bars per shape, a bar per tier.
fn ratio_by_shape(path: &Path, measurements: &[Measurement]) -> Result<(), Box<dyn Error>> {
    // In the order of the file, which is the bench's.
    let mut shapes: Vec<&str> = Vec::new();
    for line in measurements {
        if !shapes.contains(&line.shape.as_str()) {
            shapes.push(&line.shape);
        }
    }
    let settings = [(0.7_f32, 0.9_f32), (1.0, 0.95), (1.0, 1.0)];
    // Qwen3.6's, or the largest that was measured.
    let sizes = || measurements.iter().map(|line| line.vocab);
    let vocab = sizes().find(|&vocab| vocab == 248_320).or(sizes().max());
    let vocab = vocab.expect("there are measurements");
    let tiers: Vec<_> = SERIES
        .into_iter()
        .filter(|(subject, ..)| present(measurements).contains(subject))
        .filter(|(subject, ..)| !["c", "scan"].contains(subject))
        .collect();
    let names: Vec<_> = tiers.iter().map(|(subject, ..)| *subject).collect();
    let ratio = |shape: &str, (temperature, top_p): (f32, f32), subject: &str| {
        let line = measurements.iter().find(|line| {
            (line.vocab, line.shape.as_str(), line.subject.as_str()) == (vocab, shape, subject)
                && (line.temperature, line.top_p) == (temperature, top_p)
        })?;
        Some(line.times_faster_than_c)
    };

    let root = SVGBackend::new(path, (1000, 900)).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!("Times as fast as the C reference, V = {}", grouped(vocab));
    root.draw(&Text::new(title, (20, 16), text(22, &BLACK)))?;
    legend(&root, (20, 60), &names)?;
    let (_, below) = root.split_vertically(78);
    for (area, setting) in below.split_evenly((settings.len(), 1)).iter().zip(settings) {
        let (temperature, top_p) = setting;
        let bars = || {
            let of_shape = |shape| {
                tiers
                    .iter()
                    .filter_map(move |tier| ratio(shape, setting, tier.0))
            };
            shapes.iter().copied().flat_map(of_shape)
        };
        let highest = bars().fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .caption(
                format!("temperature {temperature:?}, top_p {top_p:?}"),
                text(16, &BLACK),
            )
            .x_label_area_size(26)
            .y_label_area_size(50)
            .build_cartesian_2d(0.0..shapes.len() as f64, (1.0..highest * 1.9).log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .axis_style(GREY)
            .label_style(text(13, &BLACK))
            .y_labels(5)
            .y_label_formatter(&|ratio| format!("{ratio:.0}x"))
            .draw()?;
        let width = 0.8 / tiers.len() as f64;
        for (position, shape) in shapes.iter().copied().enumerate() {
            let left = position as f64 + 0.1;
            for (number, (subject, _, colour)) in tiers.iter().enumerate() {
                let Some(ratio) = ratio(shape, setting, subject) else {
                    continue;
                };
                let left = left + number as f64 * width;
                let corners = [(left + 0.01, 1.0), (left + width - 0.01, ratio.max(1.0))];
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                let style = anchored(12, &BLACK, HPos::Center, VPos::Bottom);
                let place = (left + width / 2.0, ratio.max(1.0) * 1.04);
                let label = match ratio {
                    ..10.0 => format!("{ratio:.1}"),
                    _ => format!("{ratio:.0}"),
                };
                chart.draw_series([Text::new(label, place, style)])?;
            }
            let (x, y) = chart.backend_coord(&(position as f64 + 0.5, 1.0));
            let style = anchored(14, &BLACK, HPos::Center, VPos::Top);
            root.draw(&Text::new(shape, (x, y + 8), style))?;
        }
    }
    root.present()?;
    Ok(())
}
