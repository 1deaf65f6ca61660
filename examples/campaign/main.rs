//! Random draws by the million, each compared with the C reference and, if it
//! is in vendor/, with the original.
//!
//! A case is a vector of logits, its parameters and some draws; it depends on
//! the seed and its number only, so that any case can be run again alone. The
//! campaign stops at the first difference, writes the shrunk case to a file and
//! prints the line by which `make replay` shows it.
//!
//! Exit status 0 when nothing differs, 1 when something does, 2 for an argument
//! that makes no sense, 130 when interrupted.

mod ask;
mod case;
mod edge;
mod machine;
mod plan;
mod shrink;
mod tally;

#[path = "../../tests/common/host.rs"]
mod host;
#[path = "../../tests/common/rand.rs"]
mod rand;
#[path = "../../tests/common/shapes.rs"]
mod shapes;
#[path = "../replay/table.rs"]
#[allow(dead_code, reason = "only the grouped digits")]
mod table;

use std::cell::Cell;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use colibri_sampler::oracle::ORIGINAL;
use colibri_sampler::trace::{self, Settings, Tier};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};

use ask::Asks;
use case::{Difference, Memory};
use plan::Plan;
use table::grouped;
use tally::Tally;

/// Compares random draws with the C code.
#[derive(Parser)]
#[command(name = "campaign")]
struct Arguments {
    /// Draws to compare
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    draws: u64,

    /// Seed of all cases
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Only this tier, instead of all that the CPU has
    #[arg(long)]
    tier: Option<String>,

    /// The first case's number, to go on where a campaign was interrupted
    #[arg(long, value_name = "CASE", default_value_t = 0)]
    from: u64,

    /// One case alone, by its number
    #[arg(long, conflicts_with_all = ["draws", "from"])]
    case: Option<u64>,

    /// Worker threads, instead of one a core
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    threads: Option<u64>,

    /// Writes the summary to FILE, in Markdown
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,

    /// Where the shrunk case of a difference goes
    #[arg(long, value_name = "DIR", default_value = "target/campaign")]
    cases: PathBuf,

    /// Makes the library wrong, to see that it is found
    #[arg(long, hide = true)]
    plant: bool,
}

thread_local! {
    /// What a thread is at, for the case that it panics.
    static RUNNING: Cell<Option<u64>> = const { Cell::new(None) };
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let tiers = match tiers(arguments.tier.as_deref()) {
        Ok(tiers) => tiers,
        Err(line) => {
            eprintln!("campaign: {line}");
            return ExitCode::from(2);
        }
    };
    let seed = arguments.seed;
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if let Some(case) = RUNNING.get() {
            eprintln!("campaign: a panic in this case: make campaign SEED={seed} CASE={case}");
        }
        default_hook(info);
    }));

    let asks = Asks::new(&tiers, arguments.plant);
    let campaign = Campaign::new(&arguments, asks);
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&campaign.interrupted))
            .expect("a handler for an ordinary signal");
    }
    let outcome = campaign.run();
    let summary = Summary {
        arguments: &arguments,
        tiers: &tiers,
        campaign: &campaign,
        outcome: &outcome,
    };
    let text = summary.to_string();
    print!("{text}");
    if let Some(file) = &arguments.summary
        && let Err(error) = std::fs::write(file, text)
    {
        eprintln!("campaign: --summary {}: {error}", file.display());
        return ExitCode::from(2);
    }
    if let Some(difference) = &outcome.difference {
        campaign.report(difference, &arguments);
        return ExitCode::FAILURE;
    }
    if outcome.is_complete() {
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "campaign: interrupted after {} of {} draws, cases {} to {}: 0 different; FROM={} goes on",
        grouped(outcome.tally.draws()),
        grouped(outcome.wanted),
        campaign.from,
        outcome.end.saturating_sub(1),
        outcome.end,
    );
    ExitCode::from(130)
}

/// The tiers to compare: all, or the one that was asked for.
fn tiers(wanted: Option<&str>) -> Result<Vec<Tier>, String> {
    let all = trace::tiers();
    let Some(wanted) = wanted else {
        return Ok(all);
    };
    let tiers: Vec<Tier> = all
        .iter()
        .copied()
        .filter(|tier| tier.name() == wanted)
        .collect();
    if tiers.is_empty() {
        let names: Vec<&str> = all.iter().map(|tier| tier.name()).collect();
        let names = names.join(", ");
        return Err(format!("--tier {wanted}: this CPU has {names}"));
    }
    Ok(tiers)
}

/// The cases that nobody has taken yet.
struct Left {
    next: u64,
    draws: u64,
}

struct Campaign {
    seed: u64,
    from: u64,
    wanted: u64,
    threads: usize,
    asks: Asks,
    left: Mutex<Left>,
    done: AtomicU64,
    /// A difference was found.
    found: AtomicBool,
    interrupted: Arc<AtomicBool>,
}

struct Outcome {
    tally: Tally,
    /// The one of the lowest case.
    difference: Option<Box<Difference>>,
    /// The case behind the last one that was run.
    end: u64,
    wanted: u64,
    elapsed: Duration,
}

impl Outcome {
    fn is_complete(&self) -> bool {
        self.tally.draws() == self.wanted
    }
}

impl Campaign {
    fn new(arguments: &Arguments, asks: Asks) -> Self {
        let seed = arguments.seed;
        let (from, wanted) = match arguments.case {
            Some(case) => (
                case,
                u64::from(Plan::new(case, &mut plan::random(seed, case)).draws),
            ),
            None => (arguments.from, arguments.draws),
        };
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        Campaign {
            seed,
            from,
            wanted,
            threads: arguments.threads.map_or_else(cores, |n| n as usize),
            asks,
            left: Mutex::new(Left {
                next: from,
                draws: wanted,
            }),
            done: AtomicU64::new(0),
            found: AtomicBool::new(false),
            interrupted: Arc::default(),
        }
    }

    /// The next case and how many of its draws to make.
    fn take(&self) -> Option<(u64, u64)> {
        if self.found.load(Ordering::Relaxed) || self.interrupted.load(Ordering::Relaxed) {
            return None;
        }
        let mut left = self.left.lock().expect("no worker panics here");
        if left.draws == 0 {
            return None;
        }
        let case = left.next;
        let plan = Plan::new(case, &mut plan::random(self.seed, case));
        let draws = u64::from(plan.draws).min(left.draws);
        left.next += 1;
        left.draws -= draws;
        Some((case, draws))
    }

    fn work(&self) -> (Tally, Option<Box<Difference>>) {
        let mut tally = Tally::new(&self.asks);
        let mut memory = Memory::default();
        while let Some((case, draws)) = self.take() {
            RUNNING.set(Some(case));
            let ran = case::run(self.seed, case, draws, &self.asks, &mut memory, &mut tally);
            RUNNING.set(None);
            if let Err(difference) = ran {
                self.found.store(true, Ordering::Relaxed);
                return (tally, Some(difference));
            }
            self.done.fetch_add(draws, Ordering::Relaxed);
        }
        (tally, None)
    }

    fn run(&self) -> Outcome {
        let start = Instant::now();
        let mut tally = Tally::new(&self.asks);
        let mut difference: Option<Box<Difference>> = None;
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads)
                .map(|_| scope.spawn(|| self.work()))
                .collect();
            let mut progress = Progress::new(self.wanted, start);
            while workers.iter().any(|worker| !worker.is_finished()) {
                let found = self.found.load(Ordering::Relaxed);
                progress.show(self.done.load(Ordering::Relaxed), found);
                thread::sleep(Duration::from_millis(100));
            }
            progress.end();
            for worker in workers {
                let (done, found) = worker.join().expect("the hook has told of the panic");
                tally.add(&done);
                let Some(found) = found else { continue };
                let first = difference
                    .as_ref()
                    .is_none_or(|known| found.plan.case < known.plan.case);
                if first {
                    difference = Some(found);
                }
            }
        });
        Outcome {
            tally,
            difference,
            end: self.left.lock().expect("no worker panicked").next,
            wanted: self.wanted,
            elapsed: start.elapsed(),
        }
    }

    /// Shrinks, writes and tells a difference.
    fn report(&self, difference: &Difference, arguments: &Arguments) {
        let tier = arguments.tier.as_ref();
        let tier = tier.map_or(String::new(), |tier| format!(" TIER={tier}"));
        println!("\n{}", difference.tell());
        println!(
            "all of it again: make campaign SEED={} CASE={}{tier}",
            self.seed, difference.plan.case
        );
        for (what, logits) in [
            ("as found", difference.logits.clone()),
            ("shrunk", difference.shrunk(&self.asks)),
        ] {
            match difference.write(self.seed, &logits, &arguments.cases) {
                Ok(file) => println!("{what}: {}", difference.replay_line(&file, logits.len())),
                Err(error) => eprintln!("campaign: --cases {}: {error}", arguments.cases.display()),
            }
        }
    }
}

/// A bar where someone looks, a line a minute where not.
struct Progress {
    bar: ProgressBar,
    wanted: u64,
    start: Instant,
    told: Instant,
}

impl Progress {
    fn new(wanted: u64, start: Instant) -> Self {
        let style = ProgressStyle::with_template(
            "{bar:30} {human_pos}/{human_len} draws, {per_sec}, {eta} left, {msg} different",
        );
        let bar = ProgressBar::new(wanted).with_style(style.expect("a valid template"));
        Progress {
            bar,
            wanted,
            start,
            told: start,
        }
    }

    fn show(&mut self, done: u64, found: bool) {
        self.bar.set_message(if found { "1" } else { "0" });
        self.bar.set_position(done);
        if self.bar.is_hidden() && self.told.elapsed() > Duration::from_secs(60) {
            self.told = Instant::now();
            let rate = done as f64 / self.start.elapsed().as_secs_f64();
            let left = (self.wanted - done) as f64 / rate.max(1.0);
            eprintln!(
                "campaign: {} of {} draws, {rate:.0} a second, {left:.0} s left, {} different",
                grouped(done),
                grouped(self.wanted),
                u8::from(found),
            );
        }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

struct Summary<'a> {
    arguments: &'a Arguments,
    tiers: &'a [Tier],
    campaign: &'a Campaign,
    outcome: &'a Outcome,
}

impl Summary<'_> {
    /// The command that makes the same draws.
    fn command(&self) -> String {
        let Arguments { seed, tier, .. } = self.arguments;
        let mut command = match self.arguments.case {
            Some(case) => format!("make campaign SEED={seed} CASE={case}"),
            None => format!("make campaign N={} SEED={seed}", self.arguments.draws),
        };
        if self.arguments.from > 0 {
            command += &format!(" FROM={}", self.arguments.from);
        }
        if let Some(tier) = tier {
            command += &format!(" TIER={tier}");
        }
        command
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { tally, elapsed, .. } = self.outcome;
        let draws = tally.draws();
        let seconds = elapsed.as_secs_f64();
        let cpu = tally.cpu_time().as_secs_f64();
        let threads = self.campaign.threads;
        let original = match ORIGINAL {
            Some(_) => "compared too, on every call of plain C",
            None => "not in vendor/, not compared",
        };
        let twin = match Settings::default().twin {
            true => "in use",
            false => "refused on this host: no certified path",
        };
        let tiers: Vec<&str> = self.tiers.iter().map(|tier| tier.name()).collect();
        writeln!(f, "# A campaign of random draws\n")?;
        writeln!(
            f,
            "{} draws of {} random vectors compared with the C reference: {} different.{}\n",
            grouped(draws),
            grouped(tally.cases()),
            u8::from(self.outcome.difference.is_some()),
            match (&self.outcome.difference, self.outcome.is_complete()) {
                (None, true) => String::new(),
                (Some(_), _) => " It stopped there.".to_owned(),
                (None, false) => format!(" Interrupted before {}.", grouped(self.outcome.wanted)),
            },
        )?;
        writeln!(f, "- again: `{}`", self.command())?;
        writeln!(f, "- commit: {}", machine::commit())?;
        writeln!(f, "- machine: {}", machine::describe())?;
        writeln!(
            f,
            "- tiers: {}; twin of the host's expf: {twin}",
            tiers.join(", ")
        )?;
        writeln!(f, "- original: {original}")?;
        writeln!(
            f,
            "- time: {seconds:.0} s on {threads} threads, {:.0} draws a second; {cpu:.0} s of CPU, \
             that is {:.0} draws a second\n  where the threads have {threads} cores for themselves\n",
            draws as f64 / seconds,
            draws as f64 / cpu * threads as f64,
        )?;
        f.write_str(&tally.tables(&self.campaign.asks))
    }
}
