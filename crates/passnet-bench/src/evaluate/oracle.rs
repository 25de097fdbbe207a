//! The float64 yardstick: who is closer to the truth, eager or the candidate?
//!
//! The tolerances compare the candidate with eager, whose own rounding is part of the difference. Where a candidate
//! leaves them because it rounds less than eager does, the yardstick shows it.

use super::tensors::Flat;
use crate::tolerance::{BASELINE, Tolerance};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

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
const PIECE: usize = 1 << 12;

/// One element of eager, of the candidate, and of the truth.
type Element = (f64, f64, f64);

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

    /// What `of` makes of each piece of the elements, pieces on several threads.
    fn pieces<R: Send>(
        &self,
        of: impl Fn(&mut dyn Iterator<Item = Element>) -> R + Send + Sync,
    ) -> impl ParallelIterator<Item = R> {
        let length = self.truth.len();
        (0..length.div_ceil(PIECE)).into_par_iter().map(move |piece| {
            let range = piece * PIECE..length.min((piece + 1) * PIECE);
            let eager = self.eager.reals(range.clone());
            let candidate = self.candidate.reals(range.clone());
            let truth = self.truth.reals(range);
            let pairs = eager.iter().zip(&candidate).zip(&truth);
            of(&mut pairs.map(|((eager, candidate), truth)| (*eager, *candidate, *truth)))
        })
    }

    /// The largest finite distance of eager and of the candidate.
    fn worst(&self) -> (f64, f64) {
        let larger = |one: (f64, f64), two: (f64, f64)| (one.0.max(two.0), one.1.max(two.1));
        let worst = self.pieces(|elements| {
            let finite = elements.filter(|(.., truth)| truth.is_finite());
            finite.fold((0.0f64, 0.0f64), |worst, (eager, candidate, truth)| {
                let unit = self.allowed(truth);
                let distance = |x: f64| Some((x - truth).abs() / unit).filter(|d| d.is_finite());
                let eager = distance(eager).unwrap_or(0.0);
                larger(worst, (eager, distance(candidate).unwrap_or(f64::INFINITY)))
            })
        });
        worst.reduce(|| (0.0, 0.0), larger)
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
    let worst = triples.iter().map(Triple::worst);
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
    judge(eager, candidate, truth, |triple, (eager, candidate, truth)| {
        let allowed = triple.allowed(truth);
        (candidate - truth).abs() <= (eager - truth).abs() + allowed
    })
}

/// Whether the candidate stays within a few times eager's own worst error, where inputs are extreme.
pub(super) fn survives_stress(
    eager: &[Flat<'_>],
    candidate: &[Flat<'_>],
    truth: &[Flat<'_>],
) -> bool {
    let Some(worst) = triples(eager, candidate, truth) else { return false };
    let factors: Vec<f64> =
        worst.iter().map(|triple| (STRESS_FACTOR * triple.worst().0).max(1.0)).collect();
    let factor = factors.into_iter().fold(1.0, f64::max);
    judge(eager, candidate, truth, |triple, (_, candidate, truth)| {
        !truth.is_finite() || (candidate - truth).abs() <= factor * triple.allowed(truth)
    })
}

/// Asks `right` about every float element; other types must be equal.
fn judge(
    eager: &[Flat<'_>],
    candidate: &[Flat<'_>],
    truth: &[Flat<'_>],
    right: impl Fn(&Triple<'_>, Element) -> bool + Send + Sync,
) -> bool {
    if eager.len() != candidate.len() || eager.len() != truth.len() {
        return false;
    }
    eager.iter().zip(candidate).zip(truth).all(|((eager, candidate), truth)| {
        if eager.dtype() != candidate.dtype() || eager.shape() != candidate.shape() {
            return false;
        }
        match Triple::of(eager, candidate, truth) {
            Some(triple) => triple
                .pieces(|elements| {
                    let mut elements = elements;
                    Iterator::all(&mut elements, |element| {
                        let (eager, candidate, _) = element;
                        eager == candidate
                            || (eager.is_nan() && candidate.is_nan())
                            || right(&triple, element)
                    })
                })
                .all(|is_right| is_right),
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
