//! The paired benchmark: in one process and in turn, on the same logits, the C
//! reference, the library at each tier, and a bare maximum scan. Every token
//! that is timed is checked against the C reference's.
//!
//! `make bench` runs it, with the C compiled as Colibri compiles its own
//! (-O3 -march=native). Absolute times are one machine's on one day; the ratios
//! are medians of pairs taken one after the other.

mod csv;
mod heap;
mod machine;
mod measure;
mod report;
mod required;
mod scan;

#[path = "../../tests/common/rand.rs"]
mod rand;
#[path = "../../tests/common/shapes.rs"]
mod shapes;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use colibri_sampler::trace;

use measure::{Cell, Cells, Key, Plan, Routes, SETTINGS, SHAPES, Subject, best_tier, median};
use report::{Format, Table, grouped, heading, short};
use required::VOCAB;

#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

/// Times the library beside the C reference and a bare maximum scan.
#[derive(Parser)]
#[command(name = "paired")]
struct Arguments {
    /// Few vectors and sizes: half a minute
    #[arg(long)]
    quick: bool,

    /// Only this shape; may be repeated
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(SHAPES))]
    shape: Vec<String>,

    /// Only this vocabulary size; may be repeated, and need not be a usual one
    #[arg(long, value_name = "V", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    vocab: Vec<u32>,

    /// Measurements per shape and setting, in place of the usual numbers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    samples: Option<u32>,

    /// All measurements, a line each
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Tables as Markdown
    #[arg(long)]
    markdown: bool,

    /// What `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

/// Vocabulary sizes with measurements per shape and setting, and how many of
/// these time the forced paths.
const FULL: [(usize, usize, usize); 13] = [
    (1, 24, 24),
    (16, 24, 24),
    (64, 24, 24),
    (256, 24, 24),
    (1_000, 24, 24),
    (1_024, 24, 0),
    (4_096, 24, 12),
    (32_000, 40, 10),
    (50_257, 20, 0),
    (128_256, 20, 0),
    (151_936, 20, 0),
    (248_320, 30, 5),
    (2_000_000, 5, 0),
];
const QUICK: [(usize, usize, usize); 5] = [
    (256, 12, 12),
    (1_000, 12, 12),
    (4_096, 12, 12),
    (32_000, 12, 4),
    (248_320, 8, 2),
];
/// Sizes with vectors per shape and draws per vector and setting.
const FULL_ROUTES: [(usize, u64, usize); 3] =
    [(4_096, 10, 400), (32_000, 5, 400), (248_320, 2, 100)];
const QUICK_ROUTES: [(usize, u64, usize); 2] = [(4_096, 4, 400), (32_000, 2, 200)];

impl Arguments {
    fn plan(&self) -> Plan {
        let usual: &[_] = if self.quick { &QUICK } else { &FULL };
        let mut sizes = Vec::new();
        if self.vocab.is_empty() {
            sizes.extend(usual);
        }
        for &vocab in &self.vocab {
            let vocab = vocab as usize;
            let like = usual.iter().rev().find(|&&(size, ..)| size <= vocab);
            let &(_, samples, forced) = like.unwrap_or(&usual[0]);
            sizes.push((vocab, samples, forced));
        }
        if let Some(samples) = self.samples {
            for size in &mut sizes {
                size.1 = samples as usize;
            }
        }
        let is_wanted = |shape: &usize| {
            self.shape.is_empty() || self.shape.iter().any(|name| name == SHAPES[*shape])
        };
        Plan {
            shapes: (0..SHAPES.len()).filter(is_wanted).collect(),
            sizes,
        }
    }

    fn routes_plan(&self) -> &[(usize, u64, usize)] {
        match (self.vocab.is_empty(), self.quick) {
            (false, _) => &[],
            (true, true) => &QUICK_ROUTES,
            (true, false) => &FULL_ROUTES,
        }
    }
}

fn main() -> ExitCode {
    // Before anything else draws.
    let first = measure::first_call();
    let start = Instant::now();
    let arguments = Arguments::parse();
    let plan = arguments.plan();
    let format = if arguments.markdown {
        Format::Markdown
    } else {
        Format::Plain
    };
    // Now, and not when everything has been measured.
    let file = match arguments.csv.as_ref().map(File::create).transpose() {
        Ok(file) => file,
        Err(error) => return refuse(&arguments, &error),
    };
    let mut facts = machine::describe();
    let tiers: Vec<_> = trace::tiers().iter().map(|tier| tier.name()).collect();
    facts.add("tiers", tiers.join(", "));
    let second = measure::first_call();
    facts.add(
        "first call",
        format!(
            "{} us, the second {} us (gumbel 0.7/0.9, in no other figure)",
            short(first),
            short(second)
        ),
    );
    heading(format, "Machine", "");
    facts.print(format);

    let cells = measure::run(&plan);
    let routes = measure::routes(arguments.routes_plan(), &plan.shapes);
    let vocab = plan.sizes.iter().map(|size| size.0);
    let vocab = vocab.clone().find(|&size| size == VOCAB).or(vocab.max());
    print_times(format, &cells, vocab.expect("a size"));
    print_sizes(format, &cells);
    print_forced(format, &cells);
    print_routes(format, &routes);
    heading(
        format,
        "Must reach",
        "the worst place of each row decides; a ratio is the median of pairs; V 248,320 where nothing is said",
    );
    let falls_short = required::print(format, &cells, &routes);
    heading(
        format,
        &match falls_short {
            0 => "No row falls short".to_owned(),
            1 => "1 row falls short".to_owned(),
            _ => format!("{falls_short} rows fall short"),
        },
        &format!(
            "every token equalled the C reference's; {:.0} s in all",
            start.elapsed().as_secs_f64()
        ),
    );
    if let Some(file) = file
        && let Err(error) = csv::write(file, &cells)
    {
        return refuse(&arguments, &*error);
    }
    ExitCode::SUCCESS
}

/// The CSV cannot be written.
fn refuse(arguments: &Arguments, error: &dyn Error) -> ExitCode {
    let path = arguments.csv.as_deref().unwrap_or(Path::new("CSV"));
    eprintln!("paired: {}: {error}", path.display());
    ExitCode::FAILURE
}

fn cell(
    cells: &Cells,
    vocab: usize,
    shape: usize,
    setting: usize,
    subject: Subject,
    aligned: bool,
) -> Option<&Cell> {
    cells.get(&Key {
        vocab,
        shape,
        setting,
        subject,
        aligned,
    })
}

/// A table per subject: shapes by settings.
fn print_times(format: Format, cells: &Cells, vocab: usize) {
    let mut subjects: Vec<_> = trace::tiers()
        .into_iter()
        .rev()
        .map(Subject::Library)
        .collect();
    subjects.push(Subject::C);
    for subject in subjects {
        let name = match subject {
            Subject::C => "C reference".to_owned(),
            _ => format!("{} tier", subject.name()),
        };
        let explanation = match subject {
            Subject::C => "median us a draw",
            _ => {
                "median us a draw; how many times as fast as C; how many times the bare aligned scan"
            }
        };
        let title = format!("{name}, V = {}", grouped(vocab as u64));
        heading(format, &title, explanation);
        let header = ["shape"]
            .into_iter()
            .chain(SETTINGS.map(|setting| setting.name));
        let mut table = Table::new(1, header);
        for (shape, name) in SHAPES.into_iter().enumerate() {
            let text = |setting| {
                let cell = cell(cells, vocab, shape, setting, subject, true)?;
                let time = short(cell.microseconds());
                Some(match subject {
                    Subject::C => time,
                    _ => {
                        let ratio = short(cell.times_faster_than_c());
                        let over_scan = format!("{:.1}", cell.over_scan());
                        match format {
                            Format::Plain => format!("{time} {ratio:>5}x {over_scan:>4}"),
                            Format::Markdown => format!("{time} / {ratio}x / {over_scan}"),
                        }
                    }
                })
            };
            let row: Option<Vec<String>> = (0..SETTINGS.len()).map(text).collect();
            if let Some(row) = row {
                table.row([name.to_owned()].into_iter().chain(row));
            }
        }
        table.print(format);
    }
}

/// How costs grow with the vocabulary, and what alignment does.
fn print_sizes(format: Format, cells: &Cells) {
    heading(
        format,
        "By vocabulary size",
        "median us over all shapes, and in brackets how many times as fast as C, the middle of all shapes; \
         the last columns are unaligned time over aligned, the middle of all places",
    );
    let sizes: BTreeSet<usize> = cells.keys().map(|key| key.vocab).collect();
    let best = Subject::Library(best_tier());
    let header = ["V", "scan"]
        .into_iter()
        .chain(SETTINGS.map(|setting| setting.name))
        .chain(["scan unaligned", "library unaligned"]);
    let mut table = Table::new(0, header);
    for vocab in sizes {
        let over = |wanted: &dyn Fn(&Key) -> bool, value: &dyn Fn(&Key, &Cell) -> f64| {
            let values: Vec<f64> = cells
                .iter()
                .filter(|(key, _)| key.vocab == vocab && wanted(key))
                .map(|(key, cell)| value(key, cell))
                .collect();
            median(&values)
        };
        let unaligned = |subject| {
            over(
                &|key| key.subject == subject && !key.aligned,
                &|key, cell| {
                    let aligned = Key {
                        aligned: true,
                        ..*key
                    };
                    cell.microseconds() / cells[&aligned].microseconds()
                },
            )
        };
        let scan = over(
            &|key| key.subject == Subject::Scan && key.aligned,
            &|_, cell| cell.microseconds(),
        );
        let mut row = vec![grouped(vocab as u64), short(scan)];
        for setting in 0..SETTINGS.len() {
            let wanted = |key: &Key| key.subject == best && key.aligned && key.setting == setting;
            let time = over(&wanted, &|_, cell| cell.microseconds());
            let ratio = over(&wanted, &|_, cell| cell.times_faster_than_c());
            row.push(format!("{} ({})", short(time), short(ratio)));
        }
        row.extend([unaligned(Subject::Scan), unaligned(best)].map(short));
        table.row(row);
    }
    table.print(format);
}

/// The paths that are seldom taken.
fn print_forced(format: Format, cells: &Cells) {
    heading(
        format,
        "Forced paths",
        "times as fast as C: least, middle and most of all shapes and draws that are not greedy",
    );
    let mut table = Table::new(1, ["path", "V", "least", "middle", "most"]);
    for subject in [Subject::LastResort, Subject::TwinRefused] {
        let sizes: BTreeSet<usize> = cells
            .keys()
            .filter(|key| key.subject == subject)
            .map(|key| key.vocab)
            .collect();
        for vocab in sizes {
            let mut ratios: Vec<f64> = cells
                .iter()
                .filter(|(key, _)| key.subject == subject && key.vocab == vocab)
                .map(|(_, cell)| cell.times_faster_than_c())
                .collect();
            ratios.sort_by(f64::total_cmp);
            let figures = [ratios[0], median(&ratios), ratios[ratios.len() - 1]].map(short);
            let names = [subject.name().to_owned(), grouped(vocab as u64)];
            table.row(names.into_iter().chain(figures));
        }
    }
    table.print(format);
}

/// Which route answered random draws.
fn print_routes(format: Format, routes: &BTreeMap<(usize, usize), Routes>) {
    if routes.is_empty() {
        return;
    }
    heading(
        format,
        "Routes",
        "random draws at the five settings that draw, each checked, by what answered them",
    );
    let header = [
        "shape",
        "V",
        "draws",
        "certified at once",
        "refined",
        "last resort",
    ];
    let mut table = Table::new(1, header);
    for (&(vocab, shape), routes) in routes {
        let share = |count: usize| format!("{:.3} %", 100.0 * count as f64 / routes.total() as f64);
        table.row([
            SHAPES[shape].to_owned(),
            grouped(vocab as u64),
            grouped(routes.total() as u64),
            share(routes.certified),
            share(routes.refined),
            grouped(routes.exact as u64),
        ]);
    }
    table.print(format);
}
