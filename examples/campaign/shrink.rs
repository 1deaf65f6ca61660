//! The smallest case that still differs, for a person to look at.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use colibri_sampler::oracle::{ORIGINAL, Prepared, REFERENCE};

use crate::ask::{Asks, Draw};
use crate::case::Difference;

/// How long to look for a smaller one.
const PATIENCE: Duration = Duration::from_secs(20);

impl Difference {
    fn draw<'a>(&self, logits: &'a [f32]) -> Draw<'a> {
        Draw {
            logits,
            temperature: self.plan.temperature,
            top_p: self.plan.top_p,
            raw: self.raw,
            entry: self.entry,
        }
    }

    /// Whether the same two sides differ on these logits.
    fn remains(&self, logits: &[f32], asks: &Asks) -> bool {
        let draw = self.draw(logits);
        let expected = if draw.is_greedy() {
            (REFERENCE.argmax_first(logits), 0)
        } else {
            let prepared = Prepared::new(logits, draw.temperature, draw.top_p);
            (prepared.pick(draw.raw), 1)
        };
        let differs =
            |token, calls: Option<usize>| (token, calls.unwrap_or(expected.1)) != expected;
        match self.ask {
            Some(ask) => {
                let answer = asks.all[ask].answer(&draw);
                differs(answer.token, answer.calls)
            }
            None => [REFERENCE].iter().chain(&ORIGINAL).any(|side| {
                let (token, calls) = draw.of(side);
                differs(token, Some(calls))
            }),
        }
    }

    /// Leaves out tokens, ever fewer at once, while a difference remains.
    pub fn shrunk(&self, asks: &Asks) -> Vec<f32> {
        let until = Instant::now() + PATIENCE;
        let mut logits = self.logits.clone();
        let mut chunk = logits.len() / 2;
        while chunk > 0 {
            let mut start = 0;
            let mut removed = false;
            while start < logits.len() && logits.len() > chunk {
                if Instant::now() > until {
                    return logits;
                }
                let mut fewer = logits.clone();
                fewer.drain(start..(start + chunk).min(logits.len()));
                if !fewer.is_empty() && self.remains(&fewer, asks) {
                    logits = fewer;
                    removed = true;
                } else {
                    start += chunk;
                }
            }
            if !(removed && chunk == 1) {
                chunk /= 2;
            }
        }
        logits
    }

    /// Writes logits as `make replay` reads them.
    pub fn write(&self, seed: u64, logits: &[f32], folder: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let name = format!("seed-{seed}-case-{}-V-{}.f32", self.plan.case, logits.len());
        let path = folder.join(name);
        let bytes: Vec<u8> = logits
            .iter()
            .flat_map(|logit| logit.to_le_bytes())
            .collect();
        fs::write(&path, bytes)?;
        Ok(path)
    }

    /// The line that replays a file.
    pub fn replay_line(&self, file: &Path, vocab_size: usize) -> String {
        format!(
            "make replay ARGS='{} --vocab {vocab_size} --temperature={:?} --top-p={:?} --raw={}'",
            file.display(),
            self.plan.temperature,
            self.plan.top_p,
            self.raw,
        )
    }

    /// What differs, in full.
    pub fn tell(&self) -> String {
        let plan = &self.plan;
        let logit = |token: i32| {
            let logit = usize::try_from(token)
                .ok()
                .and_then(|id| self.logits.get(id));
            match logit {
                Some(logit) => format!("logit {logit:?}, bits {:#010x}", logit.to_bits()),
                None => "no such token".to_owned(),
            }
        };
        let calls = match self.got.1 {
            Some(calls) => format!(", {calls} calls of rand()"),
            None => String::new(),
        };
        format!(
            "DIFFERENCE in case {}: {} by {}\n\
             {}, {} tokens, offset {}, built around: {}\n\
             temperature {:?} (bits {:#010x}), top_p {:?} (bits {:#010x}), rand() {}\n\
             {}: token {} ({}){calls}\n\
             C reference: token {} ({}), {} calls of rand()",
            plan.case,
            self.entry.name(),
            self.who,
            plan.shape().name,
            plan.vocab_size,
            plan.offset,
            plan.edge.name(),
            plan.temperature,
            plan.temperature.to_bits(),
            plan.top_p,
            plan.top_p.to_bits(),
            self.raw,
            self.who,
            self.got.0,
            logit(self.got.0),
            self.expected.0,
            logit(self.expected.0),
            self.expected.1,
        )
    }
}
