//! The bounds, one by one, as docs/exactness.md states them. What they are good
//! for together is tested in tests/boundary.rs; but most of them are far wider
//! than real rounding errors, so that a narrower one could pass there.

use super::*;
use crate::kernels::Tier;
use crate::weight;

fn engine() -> Engine {
    Engine::at(Tier::Portable)
}

/// The path's state behind the scan; None where the host's expf is unknown.
fn scanned<'a>(request: &'a Request<'a>, uniform: f64) -> Option<Sampler<'a>> {
    let Engine {
        kernels, rounding, ..
    } = engine();
    Sampler::scan(request, uniform, kernels, rounding?).expect("memory for a test")
}

/// Logits that fall off slowly, in a scattered order.
fn falling(vocab_size: usize) -> Vec<f32> {
    let place = |id: usize| (id * 7_919) % vocab_size;
    (0..vocab_size)
        .map(|id| -(place(id) as f32) / 300.0)
        .collect()
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-13 * a.abs().max(b.abs())
}

#[test]
fn intervals_widen_and_add() {
    let interval = Interval {
        low: 2.0,
        high: 3.0,
    };
    let wide = interval.within(0.25);
    assert_eq!((wide.low, wide.high), (1.5, 3.75));
    let sum = interval.plus(Interval::point(0.5)).plus(wide);
    assert_eq!((sum.low, sum.high), (4.0, 7.25));
    assert_eq!(sum.width(), 3.25);
    assert_eq!(Interval::ZERO, Interval::point(0.0));
}

/// Each condition of docs/exactness.md by itself.
#[test]
fn what_is_out_of_range_is_left_to_others() {
    let logits = falling(700);
    let is_taken = |temperature: f32, uniform: f64| {
        let request = Request::new(&logits, temperature, 0.9).expect("logits");
        sample(&request, uniform, engine())
            .expect("memory")
            .is_some()
    };
    let has_twin = engine().rounding.is_some();
    for temperature in [1e-18, 1.0, 1e18] {
        assert_eq!(is_taken(temperature, 0.5), has_twin, "{temperature}");
    }
    for temperature in [0.9e-18, 1.1e18, f32::INFINITY, f32::NAN, -1.0] {
        assert!(!is_taken(temperature, 0.5), "{temperature}");
    }
    for uniform in [-1e-9, 1.0 + 1e-9, f64::NAN, -1.0] {
        assert!(!is_taken(1.0, uniform), "{uniform}");
    }
}

/// A NaN or +inf at either end, in the ragged rows and between.
#[test]
fn what_has_no_finite_weights_is_left_to_others() {
    let mut logits = falling(5_001);
    for place in [0, 1, 17, 2_500, 4_983, 4_999, 5_000] {
        let before = logits[place];
        for value in [f32::NAN, f32::INFINITY] {
            logits[place] = value;
            for logits in [&logits[..], &logits[1..]] {
                let request = Request::new(logits, 1.0, 0.9).expect("logits");
                let spared = place == 0 && logits.len() == 5_000;
                let has_twin = engine().rounding.is_some();
                assert_eq!(
                    scanned(&request, 0.5).is_some(),
                    spared && has_twin,
                    "{place}"
                );
            }
        }
        logits[place] = before;
    }
}

/// Bound 5: V - 1 additions, and 64 roundings of the bounds themselves.
#[test]
fn the_error_of_an_order_covers_its_additions() {
    for vocab_size in [513, 700, 5_000, 100_000] {
        let logits = falling(vocab_size);
        let request = Request::new(&logits, 1.0, 0.9).expect("logits");
        let Some(sampler) = scanned(&request, 0.5) else {
            return;
        };
        let roundings = vocab_size as f64 + 64.0;
        let unit = 2.0_f64.powi(-53);
        // gamma_n = n u / (1 - n u), and little above it.
        let least = roundings * unit / (1.0 - roundings * unit);
        assert!(sampler.order_error >= least);
        assert!(sampler.order_error <= 1.02 * least);
    }
}

/// Bound 4.
#[test]
fn screened_sums_have_their_errors() {
    let logits = falling(5_000);
    let request = Request::new(&logits, 1.0, 0.9).expect("logits");
    let Some(sampler) = scanned(&request, 0.5) else {
        return;
    };
    for (sum, tokens) in [(0.0, 40), (1e-30, 1), (1e-3, 900), (37.5, 5_000)] {
        let found = sampler.screened(sum, tokens);
        let error = screen::ERROR + 2.4e-7 + sampler.order_error;
        let far = tokens as f64 * screen::FAR;
        assert!(found.low <= (sum * (1.0 - error) - far).max(0.0));
        assert!(is_close(found.low, (sum * (1.0 - error) - far).max(0.0)));
        assert!(found.high >= sum / (1.0 - error) + far);
        assert!(found.high <= sum * (1.0 + 1.02 * error) + 1.01 * far);
    }
}

/// A tail by exact weights, by the column maxima, and by screening: each has the
/// true mass within its bounds, and counts what it weighed.
#[test]
fn the_tail_is_within_its_bounds() {
    for (vocab_size, temperature) in [(700, 1.0), (5_003, 0.7), (5_003, 3.0)] {
        let logits = falling(vocab_size);
        let request = Request::new(&logits, temperature, 0.9).expect("logits");
        for threshold in [-0.4_f32, -1.0, -2.2] {
            let Some(mut sampler) = scanned(&request, 0.5) else {
                return;
            };
            let left_out = |low: f32| {
                let tail = logits
                    .iter()
                    .filter(|&&logit| low <= logit && logit < threshold);
                let weights = tail.map(|&logit| f64::from(weight::weight(logit, sampler.scale)));
                weights.sum::<f64>()
            };
            let mass = left_out(f32::MIN);
            let deep_mass = left_out(-2.0 * threshold.abs());
            let heaviest = weight::weight(threshold.next_down(), sampler.scale);
            let candidates = logits.iter().filter(|&&logit| logit >= threshold).count();
            let what = format!("{vocab_size}, {temperature}, {threshold}");

            let tail = sampler.gather(threshold).expect("memory");
            assert_eq!(sampler.candidates.len(), candidates, "{what}");
            assert!(
                tail.mass.low <= mass && mass <= tail.mass.high,
                "{what}: {tail:?}"
            );
            assert!(tail.mass.low > 0.0 || mass < 1e-3, "{what}: {tail:?}");
            assert_eq!(tail.heaviest, heaviest, "{what}");

            sampler.candidates.clear();
            let thresholds = Thresholds {
                candidates: threshold,
                deep: -2.0 * threshold.abs(),
            };
            let tail = sampler.screen(thresholds).expect("memory");
            let error = screen::ERROR + 2.4e-7 + sampler.order_error;
            assert_eq!(sampler.candidates.len(), candidates, "{what}");
            assert!(
                tail.mass.low <= mass && mass <= tail.mass.high,
                "{what}: {tail:?}"
            );
            assert!(
                tail.mass.width() <= 2.1 * error * mass + 1e-9,
                "{what}: {tail:?}"
            );
            assert_eq!(tail.heaviest, heaviest, "{what}");
            let (deep, lighter) = tail.deep.expect("told apart");
            assert!(
                deep.low <= deep_mass && deep_mass <= deep.high,
                "{what}: {deep:?}"
            );
            let below = weight::weight((-2.0 * threshold.abs()).next_down(), sampler.scale);
            assert_eq!(lighter, below, "{what}");

            let exact = sampler.weigh_tail(threshold);
            let order_error = sampler.order_error;
            assert!(exact.low <= mass * (1.0 - 0.99 * order_error), "{what}");
            assert!(exact.high >= mass * (1.0 + 0.99 * order_error), "{what}");
            assert!(exact.width() <= 2.02 * order_error * mass, "{what}");
            assert_eq!(sampler.weighed, vocab_size - candidates, "{what}");
        }
    }
}

/// What is too light to be screened is allowed for by the token.
#[test]
fn a_tail_of_the_lightest_tokens_is_allowed_for() {
    let mut logits = vec![-1_000.0; 5_000];
    logits[77] = 0.0;
    let request = Request::new(&logits, 1.0, 0.9).expect("logits");
    let Some(mut sampler) = scanned(&request, 0.5) else {
        return;
    };
    let columns = sampler.maxima.len() * Row::LEN;
    let rows = sampler.blocks.rows_per_block();
    let tail = sampler.gather(-103.0).expect("memory");
    assert!(tail.heaviest > 0.0 && tail.heaviest < 1e-44);
    let allowed = (columns * rows) as f64 * screen::FAR;
    assert_eq!(tail.mass.low, 0.0);
    assert!(tail.mass.high >= allowed && tail.mass.high <= 1.01 * allowed);
}

/// Blocks without a candidate are not read.
#[test]
fn a_block_is_hot_from_its_maximum_on() {
    let logits = falling(5_000);
    let request = Request::new(&logits, 1.0, 0.9).expect("logits");
    let Some(sampler) = scanned(&request, 0.5) else {
        return;
    };
    for block in 0..sampler.blocks.len() {
        let max = kernels::greatest(&sampler.maxima[block..=block]);
        assert!(sampler.is_hot(block, max));
        assert!(!sampler.is_hot(block, max.next_up()));
    }
}

/// Bound 6: with the error of an order to spare.
#[test]
fn a_sum_falls_short_by_more_than_its_error() {
    let mass = Interval {
        low: 1.0,
        high: 2.0,
    };
    let cutoff = |low| Interval { low, high: 9.0 };
    let error = 1e-3;
    assert!(falls_short(mass, cutoff(2.0 * (1.0 + 1.1 * error)), error));
    assert!(!falls_short(mass, cutoff(2.0 * (1.0 + error)), error));
    assert!(!falls_short(mass, cutoff(2.0), error));
    assert!(!falls_short(mass, cutoff(1.5), error));
}

/// Bound 5: below 2^30 times the power of two at or below the smallest weight.
#[test]
fn exact_sums_are_told_by_their_size() {
    for least in [1.0_f32, 0.75, 0.5, 1e-3, 1.5e-38, 1e-44] {
        let power = 2.0_f64.powi(f64::from(least).log2().floor() as i32);
        let limit = power * 1_073_741_824.0;
        assert!(fits(limit.next_down(), least), "{least}");
        assert!(!fits(limit, least), "{least}");
        assert!(fits(0.0, least));
    }
}

/// Bound 7 among few: certain when every value within the bounds agrees, with
/// three errors to each sum.
#[test]
fn a_place_among_few_is_certain_or_not() {
    let weights = [0.25_f32, 1.0, 0.5, 0.25, 0.5];
    let at = |low: f64, high: f64, error: f64| {
        locate_few(
            &weights,
            Interval::point(2.0),
            Interval { low, high },
            error,
        )
    };
    let pick = |place: Option<Place>| place.expect("reached").pick;
    let heaviest = Pick {
        weight: 1.0,
        rank: 0,
    };
    assert_eq!(pick(at(2.5, 2.75, 0.0)), Some(heaviest));
    assert_eq!(pick(at(3.0, 3.0, 0.0)), Some(heaviest));
    let second = Pick {
        weight: 0.5,
        rank: 1,
    };
    assert_eq!(pick(at(3.75, 4.0, 0.0)), Some(second));
    // From one token into the next.
    assert_eq!(pick(at(3.0, 3.1, 0.0)), None);
    let place = at(3.0, 3.6, 0.0).expect("reached");
    assert_eq!((place.mass.low, place.mass.high), (3.0, 4.0));
    assert!(at(4.5, 4.6, 0.0).is_none(), "beyond all");
    // Within three errors of a sum nothing is certain; further off it is.
    let error = 1e-3;
    for (off, is_certain) in [(2.9, false), (3.1, true)] {
        let target = 3.0 - off * error * 3.0;
        assert_eq!(
            pick(at(target, target, error)).is_some(),
            is_certain,
            "{off} below"
        );
        let target = 3.0 + off * error * 3.0;
        assert_eq!(
            pick(at(target, target, error)).is_some(),
            is_certain,
            "{off} above"
        );
    }
}

/// Bound 7 among many: a target whose bounds begin on the mass above the pivots
/// may belong to the token that ends there.
#[test]
fn a_place_on_the_edge_of_the_pivots_is_not_certain() {
    let logits = falling(5_000);
    let request = Request::new(&logits, 1.0, 0.9).expect("logits");
    let Some(mut sampler) = scanned(&request, 0.5) else {
        return;
    };
    // The pivots are guessed from every fifth weight, and those are equal.
    let (few, many) = (0.5_f32, 1.0_f32);
    let weights: Vec<f32> = (0..1_200)
        .map(|index| {
            if index % 5 != 0 && index < 750 {
                many
            } else {
                few
            }
        })
        .collect();
    for chunk in weights.chunks(Row::LEN) {
        sampler.candidates.reserve(Row::LEN).expect("memory");
        sampler.candidates.spare()[..chunk.len()].copy_from_slice(chunk);
        sampler.candidates.grow(chunk.len());
    }
    sampler.sum = weights.iter().map(|&weight| f64::from(weight)).sum();
    assert_eq!(sampler.sum, 600.0 + 300.0);
    let mut pick = |low: f64, high: f64| {
        let found = sampler
            .locate(Interval { low, high }, few, 0.0)
            .expect("memory");
        found.expect("reached").pick
    };
    let first_of_few = Some(Pick {
        weight: few,
        rank: 0,
    });
    assert_eq!(pick(600.0_f64.next_up(), 600.25), first_of_few);
    assert_eq!(pick(600.0, 600.25), None);
    let last_of_many = Some(Pick {
        weight: many,
        rank: 599,
    });
    assert_eq!(pick(600.0, 600.0), last_of_many);
}

/// The same among tokens of one weight.
#[test]
fn a_place_in_a_tie_is_certain_or_not() {
    let at = |low: f64, high: f64, error: f64| {
        locate_tie(0.25, 8, Interval::point(1.0), Interval { low, high }, error)
    };
    for rank in 0..8 {
        let sum = 1.25 + 0.25 * rank as f64;
        for target in [sum - 0.2, sum] {
            let place = at(target, target, 0.0);
            assert_eq!(place.pick, Some(Pick { weight: 0.25, rank }), "{target}");
            assert_eq!((place.mass.low, place.mass.high), (sum, sum));
        }
    }
    assert_eq!(at(1.25, 1.3, 0.0).pick, None);
    let place = at(1.25, 1.8, 0.0);
    assert_eq!((place.mass.low, place.mass.high), (1.25, 2.0));
    let error = 1e-3;
    for (off, is_certain) in [(2.9, false), (3.1, true)] {
        for target in [2.0 - off * error * 2.0, 2.0 + off * error * 2.0] {
            assert_eq!(
                at(target, target, error).pick.is_some(),
                is_certain,
                "{target}"
            );
        }
    }
}

/// Else each token of a crowd would be asked.
#[test]
fn a_rank_is_guessed_at_once() {
    for rank in [0, 1, 7, 200_000] {
        let target = 3.0 + 0.25 * (rank as f64 + 0.5);
        assert_eq!(guess_rank(target, 3.0, 0.25), rank);
    }
    assert_eq!(guess_rank(2.0, 3.0, 0.25), 0);
}

#[test]
fn guesses_make_room_for_what_they_expect() {
    let guess = |pick, end| Guess {
        pick,
        end,
        tokens: std::array::from_fn(|level| 100 * level),
    };
    // Two levels below the end, then six more at each try.
    assert_eq!(
        [0, 1, 2].map(|attempt| guess(9, 10).level(attempt)),
        [12, 18, 24]
    );
    assert_eq!(guess(94, 94).level(0), Levels::LEN - 1);
    // A shallow pick first, without the end.
    assert_eq!(
        [0, 1, 2].map(|attempt| guess(10, 18).level(attempt)),
        [12, 20, 26]
    );
    // To the lower edge of the level above, and a sixteenth to spare.
    assert_eq!(guess(10, 10).tokens(0), 1_100 + 68);
}
