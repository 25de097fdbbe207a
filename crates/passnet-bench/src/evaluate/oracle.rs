//! The float64 yardstick: who is closer to the truth, eager or the candidate?
//!
//! The tolerances compare the candidate with eager, whose own rounding is part of the difference. Where a candidate
//! leaves them because it rounds less than eager does, the yardstick shows it.

use super::tensors::Flat;
use crate::tolerance::{BASELINE, Tolerance};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// A stress input may cost a candidate so many times eager's own worst error.
const STRESS_FACTOR: f64 = 4.0;

/// Worst distance from the float64 result, in units of the tolerance at t = -5.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    #[serde(with = "crate::number::as_number")]
    pub eager: f64,
    /// Infinite where the candidate gives no number and the truth is one.
    #[serde(with = "crate::number::as_number")]
    pub candidate: f64,
}

/// Elements that one thread looks at before another may take over.
const PIECE: usize = 1 << 14;
/// Elements that are widened at a time: they stay in the first-level cache.
const CHUNK: usize = 512;

/// One element of eager, of the candidate, and of the truth.
type Element = (f64, f64, f64);

/// The same elements of all three.
struct Chunk<'a> {
    eager: &'a [f64],
    candidate: &'a [f64],
    truth: &'a [f64],
}

/// Elements that are judged at once.
const LANES: usize = 8;

/// The largest distances so far of eager and of the candidate, those of every so many elements apart.
type Worst = [[f64; LANES]; 2];

impl Chunk<'_> {
    /// Eager, candidate and truth of so many elements; the last ones are filled up with zeros, which are right.
    fn lanes(&self) -> impl Iterator<Item = [[f64; LANES]; 3]> {
        (0..self.truth.len()).step_by(LANES).map(|at| {
            [self.eager, self.candidate, self.truth].map(|all| match all[at..].first_chunk() {
                Some(lanes) => *lanes,
                None => {
                    let mut lanes = [0.0; LANES];
                    lanes[..all.len() - at].copy_from_slice(&all[at..]);
                    lanes
                }
            })
        })
    }

    fn elements(&self) -> impl Iterator<Item = Element> {
        let pairs = self.eager.iter().zip(self.candidate).zip(self.truth);
        pairs.map(|((eager, candidate), truth)| (*eager, *candidate, *truth))
    }
}

/// One output of each side.
struct Triple<'a> {
    eager: &'a Flat<'a>,
    candidate: &'a Flat<'a>,
    truth: &'a Flat<'a>,
    tolerance: Tolerance,
}

impl<'a> Triple<'a> {
    /// `None` where the output is no float, or the three do not correspond.
    fn of(eager: &'a Flat<'a>, candidate: &'a Flat<'a>, truth: &'a Flat) -> Option<Triple<'a>> {
        let tolerance = Tolerance::of(eager.dtype(), BASELINE)?;
        let are_real = eager.is_real() && candidate.is_real() && truth.is_real();
        let same = eager.len() == truth.len() && candidate.len() == truth.len();
        (are_real && same).then_some(Triple { eager, candidate, truth, tolerance })
    }

    fn allowed(&self, truth: f64) -> f64 {
        self.tolerance.atol + self.tolerance.rtol * truth.abs()
    }

    /// What `add` makes of the chunks of each piece, from `start` on; pieces on several threads.
    fn pieces<R: Send + Sync + Copy>(
        &self,
        start: R,
        add: impl Fn(R, Chunk<'_>) -> R + Send + Sync,
    ) -> impl ParallelIterator<Item = R> {
        let length = self.truth.len();
        (0..length.div_ceil(PIECE)).into_par_iter().map(move |piece| {
            let end = length.min((piece + 1) * PIECE);
            let mut room = [[0.0; CHUNK]; 3];
            (piece * PIECE..end).step_by(CHUNK).fold(start, |sum, at| {
                let [eager, candidate, truth] =
                    room.each_mut().map(|r| &mut r[..CHUNK.min(end - at)]);
                self.eager.write_reals(at, eager);
                self.candidate.write_reals(at, candidate);
                self.truth.write_reals(at, truth);
                add(sum, Chunk { eager, candidate, truth })
            })
        })
    }

    /// The largest finite distance of eager, and of the candidate where it `counts`.
    fn worst(&self, counts: impl Fn(f64, f64) -> bool + Send + Sync) -> (f64, f64) {
        let larger = |one: f64, two: f64| if two > one { two } else { one };
        let both = |one: Worst, two: Worst| -> Worst {
            std::array::from_fn(|side| std::array::from_fn(|i| larger(one[side][i], two[side][i])))
        };
        let distances = |eager: f64, candidate: f64, truth: f64| {
            let unit = self.allowed(truth);
            let finite = |x: f64, otherwise: f64| if x.is_finite() { x } else { otherwise };
            let distance = |x: f64| (x - truth).abs() / unit;
            let counts = truth.is_finite() & counts(eager, candidate);
            let candidate = finite(distance(candidate), f64::INFINITY);
            [finite(distance(eager), 0.0), if counts { candidate } else { 0.0 }]
        };
        let pieces = self.pieces(Worst::default(), |worst, chunk| {
            chunk.lanes().fold(worst, |worst, [eager, candidate, truth]| {
                let found: [[f64; 2]; LANES] =
                    std::array::from_fn(|i| distances(eager[i], candidate[i], truth[i]));
                both(worst, std::array::from_fn(|side| std::array::from_fn(|i| found[i][side])))
            })
        });
        let worst = pieces.reduce(Worst::default, both);
        let [eager, candidate] = worst.map(|lanes| lanes.into_iter().fold(0.0, larger));
        (eager, candidate)
    }
}

/// All outputs of the three, or nothing where they do not correspond.
fn triples<'a>(
    eager: &'a [Flat<'_>],
    candidate: &'a [Flat<'_>],
    truth: &'a [Flat<'_>],
) -> Option<Vec<Triple<'a>>> {
    if eager.len() != candidate.len() || eager.len() != truth.len() {
        return None;
    }
    let all = eager.iter().zip(candidate).zip(truth);
    Some(
        all.filter_map(|((eager, candidate), truth)| Triple::of(eager, candidate, truth)).collect(),
    )
}

/// How far each side is from the truth.
pub(super) fn accuracy(
    eager: &[Flat<'_>],
    candidate: &[Flat<'_>],
    truth: &[Flat<'_>],
) -> Option<Accuracy> {
    let triples = triples(eager, candidate, truth).filter(|triples| !triples.is_empty())?;
    let worst = triples.iter().map(|triple| triple.worst(|_, _| true));
    let (eager, candidate) =
        worst.fold((0.0f64, 0.0f64), |all, one| (all.0.max(one.0), all.1.max(one.1)));
    Some(Accuracy { eager, candidate })
}

/// Whether every element of the candidate is as close to the truth as eager's, within the tolerance.
pub(super) fn as_accurate_as_eager(
    eager: &[Flat<'_>],
    candidate: &[Flat<'_>],
    truth: &[Flat<'_>],
) -> bool {
    judge(eager, candidate, truth, |triple| {
        let is_right = |(eager, candidate, truth): Element| {
            let allowed = triple.allowed(truth);
            !differ(eager, candidate)
                | ((candidate - truth).abs() <= (eager - truth).abs() + allowed)
        };
        // Without branches, for vectors.
        let pieces = triple.pieces(true, |are_right, chunk| {
            are_right && chunk.elements().fold(true, |all, element| all & is_right(element))
        });
        pieces.all(|are_right| are_right)
    })
}

/// Whether the candidate stays within a few times eager's own worst error, where inputs are extreme.
pub(super) fn survives_stress(
    eager: &[Flat<'_>],
    candidate: &[Flat<'_>],
    truth: &[Flat<'_>],
) -> bool {
    let worst = Cell::new((0.0f64, 0.0f64));
    let are_comparable = judge(eager, candidate, truth, |triple| {
        let (eager, candidate) = triple.worst(differ);
        worst.update(|worst| (worst.0.max(eager), worst.1.max(candidate)));
        true
    });
    let (eager, candidate) = worst.get();
    are_comparable && candidate <= (STRESS_FACTOR * eager).max(1.0)
}

/// Whether two elements are neither equal nor both no number.
fn differ(eager: f64, candidate: f64) -> bool {
    (eager != candidate) & !(eager.is_nan() & candidate.is_nan())
}

/// Asks `right` about every float output; others must be equal.
fn judge(
    eager: &[Flat<'_>],
    candidate: &[Flat<'_>],
    truth: &[Flat<'_>],
    right: impl Fn(&Triple<'_>) -> bool,
) -> bool {
    if eager.len() != candidate.len() || eager.len() != truth.len() {
        return false;
    }
    eager.iter().zip(candidate).zip(truth).all(|((eager, candidate), truth)| {
        if eager.dtype() != candidate.dtype() || eager.shape() != candidate.shape() {
            return false;
        }
        match Triple::of(eager, candidate, truth) {
            Some(triple) => right(&triple),
            None => crate::verify::compare(
                &[eager.view()],
                &[candidate.view()],
                crate::verify::Rules::Strict,
            )
            .is_ok_and(|comparison| comparison.outputs.iter().all(|output| output.is_equal())),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_engine::native::Tensor;

    /// Tests may leak a few bytes.
    fn flat(values: &[f32]) -> Vec<Flat<'static>> {
        let tensor = Tensor::from_slice(values, &[values.len()]).unwrap();
        vec![Flat::of(Box::leak(Box::new(tensor))).unwrap()]
    }

    #[test]
    fn a_candidate_closer_to_the_truth_than_eager_is_accurate() {
        let truth = flat(&[1.0, 2.0]);
        let eager = flat(&[1.01, 2.0]);
        assert!(as_accurate_as_eager(&eager, &flat(&[1.0, 2.0]), &truth));
        assert!(as_accurate_as_eager(&eager, &flat(&[0.995, 2.0]), &truth));
        assert!(!as_accurate_as_eager(&eager, &flat(&[1.0, 2.01]), &truth), "wrong elsewhere");
        assert!(!as_accurate_as_eager(&eager, &flat(&[f32::NAN, 2.0]), &truth));
    }

    #[test]
    fn stress_allows_a_few_times_eagers_own_error_and_no_more() {
        let truth = flat(&[1.0, 1000.0]);
        let eager = flat(&[1.0, 1000.1]);
        assert!(survives_stress(&eager, &flat(&[1.0, 999.8]), &truth));
        assert!(!survives_stress(&eager, &flat(&[1.0, 998.0]), &truth));
        assert!(!survives_stress(&eager, &flat(&[1.0, f32::INFINITY]), &truth));
        let overflown = flat(&[f32::INFINITY, 1000.0]);
        assert!(survives_stress(&overflown, &flat(&[1.0, 1000.0]), &truth), "eager overflows");
    }

    #[test]
    fn accuracy_is_in_units_of_the_tolerance() {
        let found = accuracy(&flat(&[1.0]), &flat(&[1.0 + 11.3e-6]), &flat(&[1.0])).unwrap();
        assert_eq!(found.eager, 0.0);
        assert!((found.candidate - 1.0).abs() < 0.02, "{found:?}");
    }

    /// JSON has no infinity: a stored run must still be readable.
    #[test]
    fn an_infinite_distance_is_read_back() {
        let found = accuracy(&flat(&[1.0]), &flat(&[f32::NAN]), &flat(&[1.0])).unwrap();
        assert_eq!(found.candidate, f64::INFINITY);
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Accuracy>(&json).unwrap(), found);
    }
}
