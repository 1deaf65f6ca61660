//! Replays draws on real calls of the library, with rand() scripted, and says
//! whether each equals the C reference and, if it is in vendor/, the original.
//!
//! Without a file: what is published of the original's sampler. With one: the
//! logits in it, so that an engine's own dump can be looked at.
//!
//! Exit status 0 when all is equal, 1 when something differs, 2 for an argument
//! that makes no sense.

mod dump;
mod equal;
mod page;
mod published;
mod table;

#[path = "../../tests/common/rand.rs"]
mod rand;
#[path = "../../tests/common/shapes.rs"]
mod shapes;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use colibri_sampler::trace::{self, Report};
use colibri_sampler::{Request, oracle};
use serde::Serialize;

/// Replays draws of the sampler and compares each with the C code.
///
/// Without FILE: what is published of the original's sampler.
#[derive(Parser)]
#[command(name = "replay")]
struct Arguments {
    /// Raw little-endian 32-bit float logits: one or many vectors of V
    #[arg(requires_all = ["vocab", "temperature", "top_p"])]
    file: Option<PathBuf>,

    /// Tokens in a vector
    #[arg(long, value_name = "V", requires = "file")]
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    vocab: Option<i32>,

    /// Temperature; 0 and below is greedy
    #[arg(long, value_name = "T", requires = "file", allow_hyphen_values = true)]
    temperature: Option<f32>,

    /// Share of the mass to keep; 1 keeps the whole vocabulary
    #[arg(long, value_name = "P", requires = "file", allow_hyphen_values = true)]
    top_p: Option<f32>,

    /// Random draws a vector, beside 0, RAND_MAX / 2 and RAND_MAX
    #[arg(long, value_name = "N", default_value_t = 5)]
    draws: u32,

    /// Seed of the random draws
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// One more draw, by its raw value: by every path, and by the full sort's
    /// function too
    #[arg(long, value_name = "R", requires = "file", allow_hyphen_values = true)]
    raw: Option<i32>,

    /// One vector as a page for a browser, with its picks behind a slider;
    /// needs a temperature above 0
    #[arg(long, value_name = "PAGE", requires = "file")]
    html: Option<PathBuf>,

    /// Which vector of FILE the page shows, from 0
    #[arg(long, value_name = "K", default_value_t = 0, requires = "html")]
    vector: usize,

    /// For machines: everything, as one JSON object
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if !error.use_stderr() => error.exit(), // --help
        Err(error) => return refuse(&first_paragraph(&error.to_string())),
    };
    let json = arguments.json;
    let Arguments {
        file: Some(file),
        vocab: Some(vocab),
        temperature: Some(temperature),
        top_p: Some(top_p),
        ..
    } = arguments
    else {
        let published = published::Published::replay();
        return report(&published, published.ok(), json, published.text());
    };
    if arguments.html.is_some() && temperature <= 0.0 {
        return refuse("--html: greedy draws nothing; give a temperature above 0");
    }
    let setting = dump::Setting {
        file,
        vocab_size: vocab as usize,
        temperature,
        top_p,
        draws: arguments.draws,
        seed: arguments.seed,
        raw: arguments.raw,
        html: arguments.html.map(|path| page::Wanted {
            path,
            vector: arguments.vector,
        }),
    };
    match dump::Dump::replay(setting) {
        Ok(dump) => report(&dump, dump.ok(), json, dump.text()),
        Err(line) => refuse(&line),
    }
}

/// What clap found wrong, without its page of usage and on one line.
fn first_paragraph(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.is_empty());
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ").replacen("error: ", "", 1)
}

fn refuse(line: &str) -> ExitCode {
    eprintln!("replay: {line}");
    ExitCode::from(2)
}

fn report(value: &impl Serialize, ok: bool, json: bool, text: String) -> ExitCode {
    let text = if json {
        serde_json::to_string(value).expect("plain data has a JSON form") + "\n"
    } else {
        text
    };
    // A reader that has seen enough, as in `| head`, is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::from(u8::from(!ok))
}

/// Candidates and nucleus of `request`, as the path counts them that the
/// original takes; the library itself may answer by a faster one.
fn count(request: &Request<'_>) -> Report {
    let report = if request.is_greedy() {
        trace::sample(request, 0.0)
    } else if request.is_cut() {
        trace::by_buckets(request, 0.0)
    } else {
        trace::by_full_sort(request, 0.0)
    };
    report.expect("memory for one vector")
}

/// The same counts of the C reference.
fn reference_counts(request: &Request<'_>) -> (usize, usize) {
    let (logits, temperature, top_p) = (request.logits(), request.temperature(), request.top_p());
    let traced = rand::scripted(0, || oracle::reference_trace(logits, temperature, top_p));
    let trace = traced.0.1;
    (trace.candidates as usize, trace.nucleus as usize)
}
