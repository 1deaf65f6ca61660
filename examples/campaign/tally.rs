//! What was compared, and the summary of it.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

use colibri_sampler::trace::Route;

use crate::ask::{Ask, Asks, Entry};
use crate::plan::{CLASSES, Edge, Plan};
use crate::shapes::{Kind, SHAPES};
use crate::table::grouped;

const PATHS: [&str; 8] = [
    "certified",
    "refined",
    "exact",
    "buckets",
    "fell back",
    "full sort",
    "greedy",
    "not told",
];

fn path(route: Option<Route>) -> usize {
    match route {
        Some(Route::Certified) => 0,
        Some(Route::Refined) => 1,
        Some(Route::Exact) => 2,
        Some(Route::Buckets) => 3,
        Some(Route::FellBack) => 4,
        Some(Route::FullSort) => 5,
        Some(Route::Greedy) => 6,
        None => 7,
    }
}

/// Cases, and draws by path.
#[derive(Clone, Copy, Default)]
struct Row {
    cases: u64,
    paths: [u64; PATHS.len()],
}

impl Row {
    fn draws(&self) -> u64 {
        self.paths.iter().sum()
    }

    fn add(&mut self, other: &Row) {
        self.cases += other.cases;
        for (count, others) in self.paths.iter_mut().zip(other.paths) {
            *count += others;
        }
    }
}

/// How near the cases built for an edge came.
#[derive(Clone, Copy, Default)]
struct Near {
    within_4_ulp: u64,
    /// Of what a sum in another order may be off by.
    within_error: u64,
}

/// Draws by the certified ways of vocabularies that they take.
#[derive(Clone, Copy, Default)]
struct Tried {
    draws: u64,
    refined: u64,
    exact: u64,
}

/// A draw that was compared.
pub struct Drawn {
    pub entry: Entry,
    /// The raw value is any, and not one beside a border.
    pub any: bool,
    pub route: Option<Route>,
}

pub struct Tally {
    shapes: [Row; SHAPES.len()],
    classes: [(Row, Duration); CLASSES.len()],
    edges: [(Row, Near); Edge::ALL.len()],
    entries: [u64; 2],
    asks: Vec<u64>,
    /// Any draw of what models produce, any of hard logits, and those at borders.
    tried: [Tried; 3],
    plain: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub fn new(asks: &Asks) -> Self {
        Tally {
            shapes: [Row::default(); _],
            classes: [Default::default(); _],
            edges: [Default::default(); _],
            entries: [0; _],
            asks: vec![0; asks.all.len()],
            tried: [Tried::default(); _],
            plain: BTreeMap::new(),
        }
    }

    pub fn case(&mut self, plan: &Plan, nearness: Option<f64>) {
        self.shapes[plan.shape].cases += 1;
        self.classes[plan.class].0.cases += 1;
        let (row, near) = &mut self.edges[plan.edge as usize];
        row.cases += 1;
        if let Some(ulps) = nearness {
            near.within_4_ulp += u64::from(ulps <= 4.0);
            near.within_error += u64::from(ulps <= plan.vocab_size as f64);
        }
    }

    pub fn draw(&mut self, plan: &Plan, chosen: usize, ask: &Ask, drawn: Drawn) {
        let Drawn { entry, any, route } = drawn;
        let path = path(route);
        self.shapes[plan.shape].paths[path] += 1;
        self.classes[plan.class].0.paths[path] += 1;
        self.edges[plan.edge as usize].0.paths[path] += 1;
        self.entries[usize::from(entry == Entry::ServeSampleSorted)] += 1;
        self.asks[chosen] += 1;
        let kind = plan.shape().kind;
        if ask.certifies()
            && plan.vocab_size > 512
            && kind != Kind::NotFinite
            && (1e-18..=1e18).contains(&plan.temperature)
        {
            let tried = match (kind, plan.edge, any) {
                (Kind::Model, Edge::None, true) => 0,
                (_, Edge::None, true) => 1,
                _ => 2,
            };
            let tried = &mut self.tried[tried];
            tried.draws += 1;
            tried.refined += u64::from(route == Some(Route::Refined));
            tried.exact += u64::from(route == Some(Route::Exact));
        }
    }

    pub fn plain(&mut self, name: &'static str) {
        *self.plain.entry(name).or_default() += 1;
    }

    pub fn time(&mut self, class: usize, time: Duration) {
        self.classes[class].1 += time;
    }

    pub fn add(&mut self, other: &Tally) {
        for (row, others) in self.shapes.iter_mut().zip(&other.shapes) {
            row.add(others);
        }
        for ((row, time), others) in self.classes.iter_mut().zip(&other.classes) {
            row.add(&others.0);
            *time += others.1;
        }
        for ((row, near), others) in self.edges.iter_mut().zip(&other.edges) {
            row.add(&others.0);
            near.within_4_ulp += others.1.within_4_ulp;
            near.within_error += others.1.within_error;
        }
        for (count, others) in self.entries.iter_mut().zip(other.entries) {
            *count += others;
        }
        for (count, others) in self.asks.iter_mut().zip(&other.asks) {
            *count += others;
        }
        for (tried, others) in self.tried.iter_mut().zip(other.tried) {
            tried.draws += others.draws;
            tried.refined += others.refined;
            tried.exact += others.exact;
        }
        for (name, count) in &other.plain {
            *self.plain.entry(name).or_default() += count;
        }
    }

    fn total(&self) -> Row {
        let mut total = Row::default();
        for row in &self.shapes {
            total.add(row);
        }
        total
    }

    pub fn draws(&self) -> u64 {
        self.total().draws()
    }

    pub fn cases(&self) -> u64 {
        self.total().cases
    }

    pub fn cpu_time(&self) -> Duration {
        self.classes.iter().map(|(_, time)| *time).sum()
    }

    /// The tables, in Markdown.
    pub fn tables(&self, asks: &Asks) -> String {
        let mut text = String::new();
        self.write(asks, &mut text)
            .expect("writing to a String does not fail");
        text
    }

    fn write(&self, asks: &Asks, out: &mut String) -> fmt::Result {
        let total = self.total();
        let draws = total.draws().max(1);

        let mut table = Table::new("path", &["draws", "%"]);
        for (name, count) in PATHS.iter().zip(total.paths) {
            table.row(*name, [grouped(count), percent(count, draws)]);
        }
        table.row("all", [grouped(total.draws()), percent(draws, draws)]);
        writeln!(
            out,
            "\"Exact\" is the last resort, and the only path up to 512 tokens; \"not told\" are \
             calls of the C\nfunctions, which keep no record.\n\n{table}"
        )?;

        let mut table = Table::new("way", &["draws"]);
        for (ask, count) in asks.all.iter().zip(&self.asks) {
            table.row(&ask.name, [grouped(count)]);
        }
        writeln!(out, "{table}")?;
        for (entry, count) in [Entry::ServeSample, Entry::ServeSampleSorted]
            .iter()
            .zip(self.entries)
        {
            writeln!(out, "{}: {} draws.", entry.name(), grouped(count))?;
        }
        for (name, count) in &self.plain {
            writeln!(
                out,
                "Answers of the prepared reference compared with calls of the {name} itself: {}.",
                grouped(count)
            )?;
        }

        writeln!(out, "\n## By shape\n")?;
        let mut table = Table::by_path("shape", &[]);
        for (shape, row) in SHAPES.iter().zip(&self.shapes) {
            table.paths(shape.name, row, []);
        }
        table.paths("all", &total, []);
        writeln!(out, "{table}")?;

        writeln!(out, "## By vocabulary size\n")?;
        let mut table = Table::by_path("tokens", &["CPU s", "% of time"]);
        let time = self.cpu_time().as_secs_f64();
        for (class, (row, cpu)) in CLASSES.iter().zip(&self.classes) {
            let cpu = cpu.as_secs_f64();
            let share = format!("{:.1}", 100.0 * cpu / time);
            table.paths(class.name, row, [format!("{cpu:.1}"), share]);
        }
        writeln!(out, "{table}")?;

        writeln!(
            out,
            "## By what a case was built around\n\n\
             Counts of cases in which the value came within 4 ulp (of a double) of the nearest \
             cumulative sum, and\nwithin what a sum in another order may be off by.\n"
        )?;
        let mut table = Table::by_path("edge", &["4 ulp", "error"]);
        for (edge, (row, near)) in Edge::ALL.iter().zip(&self.edges) {
            table.paths(
                edge.name(),
                row,
                [near.within_4_ulp, near.within_error].map(grouped),
            );
        }
        writeln!(out, "{table}")?;

        writeln!(
            out,
            "## How often certainty took a second look\n\n\
             Draws by the certified ways of more than 512 tokens, finite, at temperatures from \
             1e-18 to 1e18. Draws at a\nborder are at both ends of rand(), beside a cumulative sum, or \
             from a case that was built around one.\n"
        )?;
        let columns = ["draws", "refined", "%", "last resort", "%"];
        let mut table = Table::new("logits", &columns);
        for (name, tried) in [
            "any draw, as models give them",
            "any draw, hard logits",
            "at a border",
        ]
        .iter()
        .zip(self.tried)
        {
            let all = tried.draws.max(1);
            table.row(
                *name,
                [
                    grouped(tried.draws),
                    grouped(tried.refined),
                    percent(tried.refined, all),
                    grouped(tried.exact),
                    percent(tried.exact, all),
                ],
            );
        }
        write!(out, "{table}")
    }
}

fn percent(count: u64, all: u64) -> String {
    format!("{:.4}", 100.0 * count as f64 / all as f64)
}

/// A Markdown table that can be read as it is.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(first: &str, columns: &[&str]) -> Self {
        let titles = std::iter::once(&first)
            .chain(columns)
            .map(|&title| title.to_owned());
        Table {
            rows: vec![titles.collect()],
        }
    }

    fn by_path(first: &str, more: &[&str]) -> Self {
        let columns: Vec<&str> = ["cases", "draws"]
            .iter()
            .chain(more)
            .chain(&PATHS)
            .copied()
            .collect();
        Table::new(first, &columns)
    }

    fn row(&mut self, first: impl Into<String>, cells: impl IntoIterator<Item = String>) {
        self.rows
            .push([first.into()].into_iter().chain(cells).collect());
    }

    fn paths(&mut self, first: &str, row: &Row, more: impl IntoIterator<Item = String>) {
        let counts = [grouped(row.cases), grouped(row.draws())].into_iter();
        self.row(first, counts.chain(more).chain(row.paths.map(grouped)));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].len()).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        for (r, row) in self.rows.iter().enumerate() {
            for (c, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                match c {
                    0 => write!(f, "| {cell:<width$} |")?,
                    _ => write!(f, " {cell:>width$} |")?,
                }
            }
            writeln!(f)?;
            if r == 0 {
                for (c, &width) in widths.iter().enumerate() {
                    match c {
                        0 => write!(f, "| {:-<width$} |", "")?,
                        _ => write!(f, " {:->1$} |", ":", width)?,
                    }
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}
