//! The cases of `tests/cases/reports.txt`, whose head explains the format, and
//! a check of one implementation against them.

#![allow(dead_code, reason = "each binary takes what it needs")]

use std::fmt::Display;
use std::iter;
use std::str::{FromStr, SplitWhitespace};

use colibri_sampler::oracle::Sampler;

use super::host::{self, Function};
use super::rand::{self, RAND_MAX, scripted};

/// One input and what is known of it.
pub struct Case {
    pub name: String,
    pub logits: Vec<f32>,
    /// The host's function that the tokens depend on to the bit.
    pub depends: Option<Function>,
    pub expectations: Vec<Expectation>,
}

impl Case {
    /// The expectations that [`check`] checks.
    pub fn draws(&self) -> usize {
        let traced = |expectation: &&Expectation| {
            matches!(
                expectation,
                Expectation::Keeps { .. } | Expectation::FallsBack { .. }
            )
        };
        let traced = self.expectations.iter().filter(traced).count();
        self.expectations.len() - traced
    }
}

/// One thing known of an input.
#[derive(Clone, Debug)]
pub enum Expectation {
    Draw {
        entry: Entry,
        temperature: f32,
        top_p: f32,
        raw: i32,
        token: i32,
    },
    Greedy {
        temperature: f32,
        token: i32,
    },
    Keeps {
        temperature: f32,
        top_p: f32,
        nucleus: usize,
    },
    FallsBack {
        temperature: f32,
        top_p: f32,
    },
    Only {
        temperature: f32,
        top_p: f32,
        tokens: Vec<i32>,
    },
}

impl Expectation {
    /// The temperature and the `top_p`, for greedy any.
    pub fn parameters(&self) -> (f32, f32) {
        match *self {
            Expectation::Draw {
                temperature, top_p, ..
            }
            | Expectation::Keeps {
                temperature, top_p, ..
            }
            | Expectation::FallsBack { temperature, top_p }
            | Expectation::Only {
                temperature, top_p, ..
            } => (temperature, top_p),
            Expectation::Greedy { temperature, .. } => (temperature, 0.9),
        }
    }
}

/// A function that draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    ServeSample,
    ServeSampleSorted,
}

impl Entry {
    pub const BOTH: [Entry; 2] = [Entry::ServeSample, Entry::ServeSampleSorted];
}

/// What is checked: the library, an oracle, or a sampler that is wrong on
/// purpose.
pub trait Subject {
    fn name(&self) -> &str;
    fn draw(&self, entry: Entry, logits: &[f32], temperature: f32, top_p: f32) -> i32;
    fn argmax_first(&self, values: &[f32]) -> i32;
}

impl Subject for Sampler {
    fn name(&self) -> &str {
        self.name
    }

    fn draw(&self, entry: Entry, logits: &[f32], temperature: f32, top_p: f32) -> i32 {
        match entry {
            Entry::ServeSample => self.serve_sample(logits, temperature, top_p),
            Entry::ServeSampleSorted => self.serve_sample_sorted(logits, temperature, top_p),
        }
    }

    fn argmax_first(&self, values: &[f32]) -> i32 {
        Sampler::argmax_first(self, values)
    }
}

/// "Whatever `top_p`".
const ANY_TOP_P: [f32; 8] = [
    0.9,
    1.0,
    0.0,
    -0.5,
    1.5,
    f32::INFINITY,
    f32::NAN,
    f32::MIN_POSITIVE,
];

/// "Whatever the draw".
fn any_raw() -> impl Iterator<Item = i32> {
    rand::spread(17).chain([RAND_MAX / 2, RAND_MAX - 1, 1])
}

/// "A few hundred spread draws".
const SPREAD: i32 = 201;

/// Every case of `tests/cases/reports.txt`.
pub fn reports() -> Vec<Case> {
    let text = include_str!("../cases/reports.txt");
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap().trim();
        let Some(keyword) = line.split_whitespace().next() else {
            continue;
        };
        if keyword == "case" {
            cases.push(Case {
                name: line["case".len()..].trim().to_owned(),
                logits: Vec::new(),
                depends: None,
                expectations: Vec::new(),
            });
            continue;
        }
        let mut line = Line {
            number: number + 1,
            words: line.split_whitespace(),
        };
        line.words.next();
        let case = cases.last_mut().expect("a case comes first");
        read_line(case, keyword, &mut line);
    }
    cases
}

fn read_line(case: &mut Case, keyword: &str, line: &mut Line<'_>) {
    match keyword {
        "depends" => {
            case.depends = Some(match line.word() {
                "expf" => Function::Expf,
                "logf" => Function::Logf,
                "qsort" => Function::Qsort,
                _ => line.fail("depends on what?"),
            });
        }
        "logits" => case.logits = line.floats(),
        "logf" => case.logits = line.floats().into_iter().map(host::logf).collect(),
        "fill" => {
            let (len, value) = (line.number(), line.float());
            case.logits = vec![value; len];
        }
        "cycle" => {
            let [len, factor, modulus]: [usize; 3] = std::array::from_fn(|_| line.number());
            let scale = line.float();
            case.logits = (0..len)
                .map(|i| ((i * factor) % modulus) as f32 * scale)
                .collect();
        }
        "ramp" => {
            let (len, step): (usize, f32) = (line.number(), line.float());
            case.logits = (0..len).map(|i| i as f32 * step).collect();
        }
        "file" => {
            let text = match line.word() {
                "fallback_683.txt" => include_str!("../cases/fallback_683.txt"),
                name => line.fail(format!("{name}: no such file")),
            };
            case.logits = text.lines().map(|word| line.as_float(word)).collect();
        }
        "set" => {
            let token: usize = line.number();
            case.logits[token] = line.float();
        }
        _ => {
            let expectations = read_expectation(keyword, line);
            case.expectations.extend(expectations);
        }
    }
}

fn read_expectation(keyword: &str, line: &mut Line<'_>) -> Vec<Expectation> {
    if keyword == "greedy" {
        return line
            .pairs()
            .into_iter()
            .map(|(temperature, token)| Expectation::Greedy {
                temperature: line.as_float(temperature),
                token,
            })
            .collect();
    }
    let (temperature, top_p) = (line.float(), line.float());
    let entries: &[Entry] = match keyword {
        "both" => &Entry::BOTH,
        "sorted" => &[Entry::ServeSampleSorted],
        "keeps" => {
            return vec![Expectation::Keeps {
                temperature,
                top_p,
                nucleus: line.number(),
            }];
        }
        "falls-back" => return vec![Expectation::FallsBack { temperature, top_p }],
        "only" => {
            let tokens = iter::from_fn(|| line.words.next())
                .map(|word| word.parse().expect("a token"))
                .collect();
            return vec![Expectation::Only {
                temperature,
                top_p,
                tokens,
            }];
        }
        _ => line.fail("no such line"),
    };
    let mut expectations = Vec::new();
    for (raw, token) in line.pairs() {
        let raws: Vec<i32> = match raw {
            "any" => any_raw().collect(),
            "half" => vec![RAND_MAX / 2],
            "max-1" => vec![RAND_MAX - 1],
            "max" => vec![RAND_MAX],
            number => vec![number.parse().expect("a raw value of rand()")],
        };
        for raw in raws {
            expectations.extend(entries.iter().map(|&entry| Expectation::Draw {
                entry,
                temperature,
                top_p,
                raw,
                token,
            }));
        }
    }
    expectations
}

/// A line of the file, word by word.
struct Line<'a> {
    number: usize,
    words: SplitWhitespace<'a>,
}

impl<'a> Line<'a> {
    fn fail(&self, what: impl Display) -> ! {
        panic!("tests/cases/reports.txt:{}: {what}", self.number)
    }

    fn word(&mut self) -> &'a str {
        match self.words.next() {
            Some(word) => word,
            None => self.fail("too short"),
        }
    }

    fn number<T: FromStr>(&mut self) -> T {
        let word = self.word();
        match word.parse() {
            Ok(number) => number,
            Err(_) => self.fail(format!("{word}: not a number")),
        }
    }

    fn float(&mut self) -> f32 {
        let word = self.word();
        self.as_float(word)
    }

    fn floats(&mut self) -> Vec<f32> {
        iter::from_fn(|| self.words.next())
            .map(|word| parse_float(word).expect("a float"))
            .collect()
    }

    fn as_float(&self, word: &str) -> f32 {
        match parse_float(word) {
            Some(value) => value,
            None => self.fail(format!("{word}: not a float")),
        }
    }

    /// The rest of the line: `WHAT:TOKEN` again and again.
    fn pairs(&mut self) -> Vec<(&'a str, i32)> {
        let mut pairs = Vec::new();
        while let Some(word) = self.words.next() {
            match word.split_once(':') {
                Some((what, token)) => pairs.push((what, token.parse().expect("a token"))),
                None => self.fail(format!("{word}: no colon")),
            }
        }
        pairs
    }
}

/// The float that C's strtof gives, for a hex float one that needs no rounding.
pub fn parse_float(word: &str) -> Option<f32> {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, word),
    };
    let Some(hex) = digits.strip_prefix("0x") else {
        return word.parse().ok();
    };
    let (mantissa, exponent) = hex.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let integer = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let exponent = exponent.parse::<i32>().ok()? - 4 * fraction.len() as i32;
    let value = sign * integer as f64 * 2.0_f64.powi(exponent);
    (f64::from(value as f32) == value).then_some(value as f32)
}

/// Checks `subject` against the draws and argmaxes of `case`: how many
/// expectations held, or the first that did not. What a trace has to tell is
/// not checked here.
pub fn check(case: &Case, subject: &dyn Subject) -> Result<usize, String> {
    let mut held = 0;
    for expectation in &case.expectations {
        match *expectation {
            Expectation::Draw {
                entry,
                temperature,
                top_p,
                raw,
                token,
            } => {
                let got = scripted(raw, || {
                    subject.draw(entry, &case.logits, temperature, top_p)
                });
                expect(case, subject, expectation, got == (token, 1), &got)?;
            }
            Expectation::Greedy { temperature, token } => {
                for top_p in ANY_TOP_P {
                    let got = scripted(RAND_MAX / 2, || {
                        subject.draw(Entry::ServeSample, &case.logits, temperature, top_p)
                    });
                    expect(case, subject, expectation, got == (token, 0), &got)?;
                }
                let got = scripted(0, || subject.argmax_first(&case.logits));
                expect(case, subject, expectation, got == (token, 0), &got)?;
            }
            Expectation::Only {
                temperature,
                top_p,
                ref tokens,
            } => {
                for raw in rand::spread(SPREAD) {
                    let got = scripted(raw, || {
                        subject.draw(Entry::ServeSample, &case.logits, temperature, top_p)
                    });
                    let ok = tokens.contains(&got.0) && got.1 == 1;
                    expect(case, subject, expectation, ok, &got)?;
                }
            }
            Expectation::Keeps { .. } | Expectation::FallsBack { .. } => continue,
        }
        held += 1;
    }
    Ok(held)
}

fn expect(
    case: &Case,
    subject: &dyn Subject,
    expectation: &Expectation,
    ok: bool,
    (token, calls): &(i32, usize),
) -> Result<(), String> {
    if ok {
        return Ok(());
    }
    Err(format!(
        "{}: {}: {expectation:?}, but token {token} and rand() called {calls} times",
        subject.name(),
        case.name,
    ))
}
