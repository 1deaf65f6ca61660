//! What the library has to reach, row by row, and whether it does.
//!
//! A row's figure is that of its worst place, each place being the median of
//! ratios taken pair by pair.

use std::collections::BTreeMap;

use colibri_sampler::trace::Tier;

use crate::measure::{
    BROAD, Cell, Cells, Key, PEAKED, Routes, Setting, Subject, best_tier, median,
};
use crate::report::{Format, Table, grouped, short};

/// The vocabulary that most rows are about.
pub const VOCAB: usize = 248_320;

/// What the forced paths and the exponent of growth are measured from.
const SMALL: usize = 32_000;
const HUGE: usize = 2_000_000;

enum Mark {
    Pass,
    /// Beyond what was aimed at.
    Aim,
    Short,
    NotMeasured(String),
}

struct Row {
    what: String,
    bound: String,
    figure: String,
    mark: Mark,
}

/// A bound, and beyond it an aim if there is one.
#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64, Option<f64>),
    AtMost(f64),
}

impl Bound {
    fn text(self) -> String {
        match self {
            Bound::AtLeast(bound, None) => format!("at least {bound}"),
            Bound::AtLeast(bound, Some(aim)) => format!("at least {bound}, aim {aim}"),
            Bound::AtMost(bound) => format!("at most {bound}"),
        }
    }

    fn value(self) -> f64 {
        match self {
            Bound::AtLeast(bound, _) | Bound::AtMost(bound) => bound,
        }
    }

    fn mark(self, value: f64) -> Mark {
        match self {
            Bound::AtLeast(_, Some(aim)) if value >= aim => Mark::Aim,
            Bound::AtLeast(bound, _) if value >= bound => Mark::Pass,
            Bound::AtMost(bound) if value <= bound => Mark::Pass,
            _ => Mark::Short,
        }
    }

    /// Which of two values is nearer to falling short.
    fn worse(self, a: f64, b: f64) -> bool {
        match self {
            Bound::AtLeast(..) => a < b,
            Bound::AtMost(_) => a > b,
        }
    }
}

struct Rows<'a> {
    cells: &'a Cells,
    rows: Vec<Row>,
}

fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

fn is_any_of(names: &[&str]) -> impl Fn(&Key) -> bool {
    move |key| names.contains(&key.shape())
}

impl Rows<'_> {
    fn push(&mut self, what: &str, bound: String, figure: String, mark: Mark) {
        self.rows.push(Row {
            what: what.to_owned(),
            bound,
            figure,
            mark,
        });
    }

    /// The worst of the places that `belongs` takes and `value` has a value of.
    fn worst(
        &mut self,
        what: &str,
        bound: Bound,
        belongs: impl Fn(&Key) -> bool,
        value: impl Fn(&Key, &Cell) -> Option<f64>,
    ) {
        let mut values = Vec::new();
        let mut worst: Option<(f64, &Key)> = None;
        for (key, cell) in self.cells.iter().filter(|(key, _)| belongs(key)) {
            let Some(value) = value(key, cell) else {
                continue;
            };
            values.push(value);
            if worst.is_none_or(|(worst, _)| bound.worse(value, worst)) {
                worst = Some((value, key));
            }
        }
        let Some((value, key)) = worst else {
            let why = "outside of what was asked for".to_owned();
            self.push(what, bound.text(), String::new(), Mark::NotMeasured(why));
            return;
        };
        let mark = bound.mark(value);
        let mut figure = short(value);
        // 12.01 falls short of 12.
        if matches!(mark, Mark::Short) && figure == short(bound.value()) {
            figure = format!("{value:.4}");
        }
        let middle = short(median(&values));
        let figure = format!("{figure} ({}); middle {middle}", place(key));
        self.push(what, bound.text(), figure, mark);
    }

    /// The C reference's time over the highest tier's. The bounds were set for
    /// AVX-512.
    fn against_c(
        &mut self,
        what: &str,
        bound: f64,
        aim: Option<f64>,
        belongs: impl Fn(&Key) -> bool,
    ) {
        let subject = Subject::Library(best_tier());
        let bound = Bound::AtLeast(bound, aim);
        self.worst(
            what,
            bound,
            |key| key.aligned && key.subject == subject && belongs(key),
            |_, cell| Some(cell.times_faster_than_c()),
        );
        let row = self.rows.last_mut().expect("just pushed");
        if !has_avx512() && !matches!(row.mark, Mark::NotMeasured(_)) {
            let here = match row.mark {
                Mark::Short => "falls short of it",
                _ => "reaches it",
            };
            let tier = best_tier().name();
            row.mark = Mark::NotMeasured(format!("no AVX-512 on this CPU; {tier} {here}"));
        }
    }
}

fn place(key: &Key) -> String {
    let mut text = format!("{} {}", key.shape(), key.setting().name);
    if key.vocab != VOCAB {
        text += &format!(" V {}", grouped(key.vocab as u64));
    }
    if !key.aligned {
        text += " unaligned";
    }
    text
}

/// Prints the rows with their marks; how many fall short.
pub fn print(format: Format, cells: &Cells, routes: &BTreeMap<(usize, usize), Routes>) -> usize {
    let mut rows = Rows {
        cells,
        rows: Vec::new(),
    };
    against_c(&mut rows);
    against_scan(&mut rows);
    lower_tiers(&mut rows);
    other_sizes(&mut rows);
    forced(&mut rows, routes);
    heap(&mut rows);
    growth(&mut rows);

    let header = ["row", "bound", "worst place; middle of all", "mark"];
    let mut table = Table::new(4, header);
    let mut short = 0;
    for row in rows.rows {
        let mark = match row.mark {
            Mark::Pass => "pass".to_owned(),
            Mark::Aim => "pass, aim reached".to_owned(),
            Mark::Short => {
                short += 1;
                "falls short".to_owned()
            }
            Mark::NotMeasured(why) => format!("not measured: {why}"),
        };
        table.row([row.what, row.bound, row.figure, mark]);
    }
    table.print(format);
    short
}

fn against_c(rows: &mut Rows<'_>) {
    let here = |key: &Key| key.vocab == VOCAB;
    let peaked = is_any_of(&PEAKED);
    let broad = is_any_of(&BROAD);
    let cool = |setting: Setting| setting.is_cut() && setting.temperature <= 0.7;
    let cut = |key: &Key| key.setting().is_cut();
    rows.against_c(
        "peaked, 0.7/0.9 0.6/0.95 0.7/0.8",
        80.0,
        Some(150.0),
        |key| here(key) && peaked(key) && cool(key.setting()),
    );
    rows.against_c("peaked, 1.0/0.95", 33.0, Some(90.0), |key| {
        here(key) && peaked(key) && cut(key) && !cool(key.setting())
    });
    rows.against_c("broad, 0 < top_p < 1", 22.0, Some(40.0), |key| {
        here(key) && broad(key) && cut(key)
    });
    rows.against_c("flat, 0 < top_p < 1", 130.0, Some(300.0), |key| {
        here(key) && key.shape() == "flat" && cut(key)
    });
    rows.against_c("all, top_p 1", 90.0, Some(200.0), |key| {
        here(key) && key.setting().is_whole()
    });
    rows.against_c("gumbel and normal, top_p 1", 220.0, Some(600.0), |key| {
        let wanted = ["gumbel", "normal", "normal-raised"].contains(&key.shape());
        here(key) && wanted && key.setting().is_whole()
    });
}

fn against_scan(rows: &mut Rows<'_>) {
    let best = Subject::Library(best_tier());
    let over_scan = |_: &Key, cell: &Cell| Some(cell.over_scan());
    let greedy = |key: &Key| key.subject == best && key.vocab >= SMALL && key.setting().is_greedy();
    rows.worst(
        "greedy over the aligned scan, V >= 32,000",
        Bound::AtMost(1.4),
        greedy,
        over_scan,
    );
    rows.worst(
        "argminmax's argmax over greedy, V >= 32,000",
        Bound::AtLeast(1.5, None),
        |key| greedy(key) && key.aligned,
        |_, cell| cell.times_faster_than_argminmax(),
    );
    let peaked = is_any_of(&PEAKED);
    let drawn = |key: &Key| {
        key.subject == best && key.vocab == VOCAB && peaked(key) && key.setting().is_cut()
    };
    rows.worst(
        "peaked over the aligned scan",
        Bound::AtMost(9.0),
        drawn,
        over_scan,
    );
    rows.worst(
        "the same at temperature 0.7 and below",
        Bound::AtMost(4.0),
        |key| drawn(key) && key.setting().temperature <= 0.7,
        over_scan,
    );
}

fn lower_tiers(rows: &mut Rows<'_>) {
    let bounds = [("avx2", [18.0, 10.0, 40.0]), ("portable", [8.0, 4.0, 20.0])];
    for (name, bounds) in bounds {
        let tier = Tier::ALL.into_iter().find(|tier| tier.name() == name);
        for (group, bound) in GROUPS.into_iter().zip(bounds) {
            rows.worst(
                &format!("{name} tier, {}", group.name()),
                Bound::AtLeast(bound, None),
                |key| {
                    let subject = tier.map(Subject::Library);
                    Some(key.subject) == subject
                        && key.vocab == VOCAB
                        && key.aligned
                        && group.takes(key)
                },
                |_, cell| Some(cell.times_faster_than_c()),
            );
        }
    }
}

/// How the rows of other tiers and sizes are divided.
#[derive(Clone, Copy)]
enum Group {
    Peaked,
    Broad,
    Whole,
}

const GROUPS: [Group; 3] = [Group::Peaked, Group::Broad, Group::Whole];

impl Group {
    fn name(self) -> &'static str {
        match self {
            Group::Peaked => "peaked",
            Group::Broad => "broad",
            Group::Whole => "top_p 1",
        }
    }

    fn takes(self, key: &Key) -> bool {
        let setting = key.setting();
        match self {
            Group::Peaked => setting.is_cut() && PEAKED.contains(&key.shape()),
            Group::Broad => setting.is_cut() && BROAD.contains(&key.shape()),
            Group::Whole => setting.is_whole(),
        }
    }
}

fn other_sizes(rows: &mut Rows<'_>) {
    for (group, bound) in GROUPS.into_iter().zip([24.0, 16.0, 60.0]) {
        let what = format!("V 32,000 to 151,936, {}", group.name());
        rows.against_c(&what, bound, None, |key| {
            (SMALL..=151_936).contains(&key.vocab) && group.takes(key)
        });
    }
    let best = Subject::Library(best_tier());
    let mut small = |what: &str, bound, sizes: &dyn Fn(usize) -> bool| {
        rows.worst(
            what,
            Bound::AtLeast(bound, None),
            |key| key.subject == best && key.aligned && sizes(key.vocab),
            |_, cell| Some(cell.times_faster_than_c()),
        );
    };
    small("V 1,000 and 4,096, any", 3.5, &|vocab| {
        vocab == 1_000 || vocab == 4_096
    });
    small("V <= 256, any: never slower", 1.0, &|vocab| vocab <= 256);
    small("V 256, any", 2.0, &|vocab| vocab == 256);
}

fn forced(rows: &mut Rows<'_>, routes: &BTreeMap<(usize, usize), Routes>) {
    for (what, subject, bound) in [
        ("last resort, forced, V >= 256", Subject::LastResort, 3.0),
        (
            "host's expf, forced, V >= 256",
            Subject::TwinRefused,
            1.0 / 1.1,
        ),
    ] {
        rows.worst(
            what,
            Bound::AtLeast((bound * 1000.0_f64).round() / 1000.0, None),
            |key| key.subject == subject && key.vocab >= 256,
            |_, cell| Some(cell.times_faster_than_c()),
        );
    }
    let mut all = Routes::default();
    for (&(vocab, _), &routes) in routes {
        // Smaller vocabularies are not meant to be certified.
        if vocab >= 4_096 {
            all.merge(routes);
        }
    }
    let figure = format!("{} of {} draws", all.exact, grouped(all.total() as u64));
    let mark = if all.total() < 100_000 {
        Mark::NotMeasured("too few draws to tell".to_owned())
    } else if all.exact * 100_000 < all.total() {
        Mark::Pass
    } else {
        Mark::Short
    };
    rows.push(
        "last resort taken",
        "under 1 of 100,000".to_owned(),
        figure,
        mark,
    );
}

fn heap(rows: &mut Rows<'_>) {
    let ours = |key: &Key| matches!(key.subject, Subject::Library(_));
    let peaked = is_any_of(&PEAKED);
    rows.worst(
        "heap of a peaked draw, KiB",
        Bound::AtMost(64.0),
        |key| ours(key) && key.vocab == VOCAB && peaked(key) && key.setting().is_cut(),
        |_, cell| Some(cell.heap as f64 / 1024.0),
    );
    rows.worst(
        "heap of any draw, bytes a token, V >= 1,000",
        Bound::AtMost(12.0),
        |key| {
            let is_c_or_less =
                matches!(key.subject, Subject::C | Subject::Scan | Subject::Argminmax);
            key.vocab >= 1_000 && !is_c_or_less
        },
        |key, cell| Some(cell.heap as f64 / key.vocab as f64),
    );
}

/// Growth from one vocabulary to the larger: 1 is linear.
fn exponent(from: (usize, &Cell), to: (usize, &Cell)) -> f64 {
    let times = to.1.microseconds() / from.1.microseconds();
    times.ln() / (to.0 as f64 / from.0 as f64).ln()
}

fn growth(rows: &mut Rows<'_>) {
    let cells = rows.cells;
    let best = Subject::Library(best_tier());
    let from_small = |key: &Key, cell: &Cell| {
        let small = Key {
            vocab: SMALL,
            ..*key
        };
        Some(exponent((SMALL, cells.get(&small)?), (VOCAB, cell)))
    };
    // Not below the scan's own: from one cache into the next it is above 1.
    let scans: Vec<f64> = cells
        .iter()
        .filter(|(key, _)| key.subject == Subject::Scan && key.vocab == VOCAB && key.aligned)
        .filter_map(|(key, cell)| from_small(key, cell))
        .collect();
    let scan = median(&scans);
    rows.worst(
        "exponent of growth, V 32,000 to 248,320",
        Bound::AtMost(1.1),
        |key| key.subject == best && key.vocab == VOCAB && key.aligned,
        from_small,
    );
    let row = rows.rows.last_mut().expect("just pushed");
    if scan.is_finite() {
        row.figure += &format!("; the scan's own {}", short(scan));
    }
    let huge = |key: &Key| {
        key.subject == best && key.vocab == HUGE && key.aligned && !key.setting().is_greedy()
    };
    let mut worst: Vec<f64> = Vec::new();
    for (_, cell) in cells.iter().filter(|(key, _)| huge(key)) {
        worst.push(cell.over_scan());
    }
    let (figure, mark) = if worst.is_empty() {
        (
            String::new(),
            Mark::NotMeasured("outside of what was asked for".to_owned()),
        )
    } else {
        let least = worst.iter().copied().fold(f64::INFINITY, f64::min);
        let most = worst.iter().copied().fold(0.0, f64::max);
        let figure = format!(
            "{} to {}; middle {}",
            short(least),
            short(most),
            short(median(&worst))
        );
        (figure, Mark::Pass)
    };
    rows.push(
        "cost over the scan at V 2,000,000",
        "printed".to_owned(),
        figure,
        mark,
    );
}
