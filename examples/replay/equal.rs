//! The library beside the C code, with the same draw.

use colibri_sampler::oracle::{ORIGINAL, REFERENCE, Sampler};
use serde::Serialize;

use crate::rand::scripted;

/// A token and how often rand() was called for it: both have to be the same on
/// every side.
pub type Drawn = (i32, usize);

/// `sampler`'s token when rand() gives `raw`.
pub fn draw(sampler: &Sampler, logits: &[f32], temperature: f32, top_p: f32, raw: i32) -> Drawn {
    scripted(raw, || sampler.serve_sample(logits, temperature, top_p))
}

/// Whether the C code gave the same as the library.
#[derive(Clone, Copy, Serialize)]
pub struct Equal {
    pub reference: bool,
    /// None: the original is not in vendor/.
    pub original: Option<bool>,
}

/// The columns of the C code that is compiled in.
pub const HEADER: &[&str] = if ORIGINAL.is_some() {
    &["C reference", "original"]
} else {
    &["C reference"]
};

impl Equal {
    /// Asks all of the C code that is compiled in.
    pub fn of(same: impl Fn(&Sampler) -> bool) -> Self {
        Equal {
            reference: same(&REFERENCE),
            original: ORIGINAL.as_ref().map(same),
        }
    }

    pub fn all(self) -> bool {
        self.reference && self.original != Some(false)
    }

    /// A cell for each column of `HEADER`.
    pub fn cells(self) -> impl Iterator<Item = String> {
        let sides = [Some(self.reference), self.original];
        sides.into_iter().flatten().map(word)
    }
}

pub fn word(same: bool) -> String {
    if same { "equal" } else { "DIFFERS" }.to_owned()
}

/// "36 of 36" for each column of `HEADER`.
pub fn counts<'a>(all: impl Iterator<Item = &'a Equal> + Clone) -> impl Iterator<Item = String> {
    let count = |same: fn(&Equal) -> bool| {
        let total = all.clone().count();
        tally(all.clone().filter(|equal| same(equal)).count(), total)
    };
    let reference = count(|equal| equal.reference);
    let original = count(|equal| equal.original == Some(true));
    [reference, original].into_iter().take(HEADER.len())
}

pub fn tally(count: usize, total: usize) -> String {
    use crate::table::grouped;
    format!("{} of {}", grouped(count), grouped(total))
}

/// The last lines of a replay.
pub fn summary<'a>(all: impl Iterator<Item = &'a Equal> + Clone, ok: bool) -> String {
    let mut lines = String::new();
    for (side, count) in HEADER.iter().zip(counts(all)) {
        lines += &format!("{count} draws equal to the {side}\n");
    }
    if ORIGINAL.is_none() {
        lines += "original: not in vendor/ (make vendor COLIBRI=PATH brings it), not compared\n";
    }
    lines
        + if ok {
            "all equal\n"
        } else {
            "SOMETHING DIFFERS\n"
        }
}
