//! The float64 yardstick: who is closer to the truth, eager or the candidate?
//!
//! The tolerances compare the candidate with eager, whose own rounding is part of the difference. Where a candidate
//! leaves them because it rounds less than eager does, or no worse, the yardstick shows it. It forgives rounding and
//! nothing else; `docs/yardstick.md` says when and why:
//!
//! - an element within the tolerance of the float64 result is right, whatever eager gives;
//! - so is one within a few units in the last place of the output's largest element, in float32 for half types;
//! - so is one of float32 that is off by what the last bit of the inputs moves it by;
//! - of the others there may be at each distance only so many as eager has at a part of that distance, four times
//!   counted, and none beyond a limit;
//! - a float32 output that was rounded to a half type before is judged as that type;
//! - where float64 has no number, the candidate must have what eager or float64 has.

mod triple;

use super::places::mixed;
use super::tensors::Flat;
use crate::tolerance::BASELINE;
use passnet_engine::native::{Result, Tensor};
use passnet_graph::DType;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
pub(super) use triple::Moves;
use triple::{Element, PIECE, Triple, largest, rounded_to, triples};

/// The candidate may be off so many times as often as eager.
const OFTEN: usize = 4;

/// The candidate may be off by so many times what eager is off by. The tolerance of float32 is a few units in the last
/// place, so that orders of summation show; that of a half type is about as wide as its rounding.
fn far(dtype: DType) -> f64 {
    match dtype {
        DType::BFloat16 => 1.0,
        DType::Float16 => 2.0,
        _ => 4.0,
    }
}

/// The most tolerances at the largest element of the output that any element may be off by, whatever eager's own errors
/// are: where large values cancel, what is left is only as exact as they were. Half types have wide tolerances to begin with.
fn most_tolerances(dtype: DType) -> f64 {
    match dtype {
        DType::BFloat16 => 4.0,
        DType::Float16 => 8.0,
        _ => 64.0,
    }
}

/// An element may be off by so many times what the last bit of the inputs moves it by, as by so many times what eager is
/// off by: values are rounded more than once on their way.
const MOVES: f64 = 4.0;

/// Of so many elements one may lie beyond the limit where the last bit of the inputs moves it there: a quotient whose
/// divisor cancels. Its value means nothing in any order of computing.
const UNDETERMINED_ONE_IN: usize = 64;

/// Of so many elements one may be further away than one tolerance, and not than two, where eager has none: both round by
/// chance, and one of few may be on either side.
const NEAR_ONE_IN: usize = 1 << 15;

/// So many elements of an output may be as far off as eager has one at a quarter of the distance: counts that small are
/// chance. Two sides that round alike are off at other elements.
const FEW: usize = 3;

/// Distances are counted in classes: more than 1, 2, 4, … tolerances.
const CLASSES: usize = 7;

/// Worst distance from the float64 result, in units of the tolerance at t = -5.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// The same distance for eager.
    #[serde(with = "crate::number::as_number")]
    pub eager: f64,
    /// Infinite where the candidate gives no number and the truth is one.
    #[serde(with = "crate::number::as_number")]
    pub candidate: f64,
}

/// Units in the last place of the largest element that every element may be off by.
const UNITS: f64 = 4.0;

/// How far an element may be off whatever eager gives. Where large values cancel, in a running sum or between terms that a
/// pass adds in another order, what is left is only as exact as they were. Half types are computed in float32.
fn allowance(largest: f64, dtype: DType) -> f64 {
    let epsilon = match dtype {
        DType::Float64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    UNITS * epsilon * largest
}

/// How far each side is from the truth.
pub(super) fn accuracy(
    eager: &[Flat<'_>],
    candidate: &[Flat<'_>],
    truth: &[Flat<'_>],
) -> Option<Accuracy> {
    let triples = triples(eager, candidate, truth).filter(|triples| !triples.is_empty())?;
    let worst = triples.iter().map(|triple| triple.worst());
    let (eager, candidate) =
        worst.fold((0.0f64, 0.0f64), |all, one| (all.0.max(one.0), all.1.max(one.1)));
    Some(Accuracy { eager, candidate })
}

/// What the yardstick says of a candidate that leaves eager's tolerance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Judgement {
    /// Every element is within the tolerance of eager or of the float64 result.
    Right,
    /// So many elements are not, but rounding explains it: eager is as often as far off. The largest distance is in
    /// units of the tolerance.
    Forgiven {
        elements: usize,
        worst: f64,
    },
    /// Wrong, unless the last bit of the inputs explains it, which was not asked.
    Unexplained,
    Wrong,
}

impl Judgement {
    fn and(self, other: Judgement) -> Judgement {
        use Judgement::{Forgiven, Right, Unexplained, Wrong};
        match (self, other) {
            (Wrong, _) | (_, Wrong) => Wrong,
            (Unexplained, _) | (_, Unexplained) => Unexplained,
            (Right, other) | (other, Right) => other,
            (Forgiven { elements, worst }, Forgiven { elements: more, worst: other }) => {
                Forgiven { elements: elements + more, worst: worst.max(other) }
            }
        }
    }
}

/// Errors of one output, counted.
#[derive(Debug, Clone, Copy, Default)]
struct Errors {
    /// Elements of eager that are off by more than a quarter of 1, 2, 4, … tolerances.
    eager: [usize; CLASSES],
    /// The same of a quarter, whatever the type.
    quarter: [usize; CLASSES],
    /// Elements of the candidate that need to be forgiven and are off by more than 1, 2, 4, … tolerances.
    candidate: [usize; CLASSES],
    worst: f64,
    /// Elements of the candidate beyond the limit that the last bit of the inputs explains, and those that nothing does.
    undetermined: usize,
    beyond: usize,
    /// Whether rounding cannot explain an element.
    is_wrong: bool,
}

impl Errors {
    fn add(self, other: Errors) -> Errors {
        let sum = |one: [usize; CLASSES], two: [usize; CLASSES]| {
            std::array::from_fn(|class| one[class] + two[class])
        };
        Errors {
            eager: sum(self.eager, other.eager),
            quarter: sum(self.quarter, other.quarter),
            candidate: sum(self.candidate, other.candidate),
            worst: self.worst.max(other.worst),
            undetermined: self.undetermined + other.undetermined,
            beyond: self.beyond + other.beyond,
            is_wrong: self.is_wrong | other.is_wrong,
        }
    }

    fn element(&mut self, triple: &Triple<'_>, limits: Limits, element: Element) {
        let (eager, candidate, truth, moves) = element;
        if !truth.is_finite() {
            self.is_wrong |= differ(eager, candidate) & differ(truth, candidate);
            return;
        }
        let unit = triple.allowed(truth);
        let [eager_error, error] = [eager, candidate].map(|value| (value - truth).abs() / unit);
        if eager_error.is_finite() {
            self.eager = counted(self.eager, limits.far * eager_error);
            self.quarter = counted(self.quarter, 4.0 * eager_error);
        }
        let tolerance = triple.tolerance.atol + triple.tolerance.rtol * eager.abs();
        let is_close = eager.is_finite() & ((candidate - eager).abs() <= tolerance);
        let distance = (candidate - truth).abs();
        let is_explained = distance <= MOVES * moves;
        let is_within = distance <= limits.most;
        let is_right = (error <= 1.0) | (distance <= limits.always) | (is_explained & is_within);
        if !differ(eager, candidate) | is_close | is_right {
            return;
        }
        // An eager result that is no number explains nothing. Neither does a candidate that is none: its distance is no
        // number, and not within any limit.
        self.is_wrong |= !eager.is_finite() | !candidate.is_finite();
        if !is_within {
            self.undetermined += usize::from(is_explained);
            self.beyond += usize::from(!is_explained);
            return;
        }
        self.candidate = counted(self.candidate, error);
        self.worst = self.worst.max(error);
    }

    /// `may_move` where the last bit of the inputs can explain more than was asked.
    fn judge(&self, elements: usize, may_move: bool) -> Judgement {
        let near = |class| if class == 0 { elements / NEAR_ONE_IN } else { 0 };
        let most = |class: usize| {
            let few = FEW.min(self.quarter[class]);
            (OFTEN * self.eager[class]).max(few) + near(class)
        };
        let is_too_often = (0..CLASSES).any(|class| self.candidate[class] > most(class));
        let few = (elements / UNDETERMINED_ONE_IN).max(1);
        if self.is_wrong || self.undetermined + self.beyond > few {
            return Judgement::Wrong;
        }
        if self.beyond > 0 || is_too_often {
            return if may_move { Judgement::Unexplained } else { Judgement::Wrong };
        }
        match self.candidate[0] + self.undetermined {
            0 => Judgement::Right,
            elements => Judgement::Forgiven { elements, worst: self.worst },
        }
    }
}

/// How far an element may be off.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Whatever eager gives.
    always: f64,
    /// Where eager is as far off as often.
    most: f64,
    /// How many times as far off as eager.
    far: f64,
}

/// Counts an error in every class that it exceeds.
fn counted(mut classes: [usize; CLASSES], error: f64) -> [usize; CLASSES] {
    let mut bound = 1.0;
    for class in &mut classes {
        *class += usize::from(error > bound);
        bound *= 2.0;
    }
    classes
}

/// What float64 says of outputs that are not all within eager's tolerance. `moves` says how far its results move with the
/// last bit of the inputs, where that was asked.
pub(super) fn judge(
    eager: &[Flat<'_>],
    candidate: &[Flat<'_>],
    truth: &[Flat<'_>],
    moves: Option<&Moves>,
) -> Judgement {
    if eager.len() != candidate.len() || eager.len() != truth.len() {
        return Judgement::Wrong;
    }
    let outputs = eager.iter().zip(candidate).zip(truth).enumerate();
    outputs.fold(Judgement::Right, |all, (output, ((eager, candidate), truth))| {
        let moves = moves.and_then(|moves| moves.of_output(output));
        all.and(judge_output(eager, candidate, truth, moves))
    })
}

/// How far inputs are moved: by the last bit of float32, or by a thousandth of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Move {
    Bit,
    Less,
}

/// Wide values that were moved: all larger, or each larger or smaller by the key.
pub(super) fn moved(wide: &Tensor, by: Move, key: Option<u64>) -> Result<Tensor> {
    let bit = f64::from(f32::EPSILON);
    let by = match by {
        Move::Bit => bit,
        Move::Less => bit / 1024.0,
    };
    wide.changed::<f64>(PIECE, |at, piece| {
        for (element, value) in piece.iter_mut().enumerate() {
            let is_less = key.is_some_and(|key| mixed(key, at + element) & 1 == 1);
            *value *= if is_less { 1.0 - by } else { 1.0 + by };
        }
    })
}

fn judge_output<'a>(
    eager: &'a Flat<'a>,
    candidate: &'a Flat<'a>,
    truth: &'a Flat<'a>,
    moves: Option<&'a [f64]>,
) -> Judgement {
    if eager.dtype() != candidate.dtype() || eager.shape() != candidate.shape() {
        return Judgement::Wrong;
    }
    let dtype = rounded_to(eager, truth);
    let Some(triple) = Triple::of(eager, candidate, truth, dtype) else {
        // What is no float must be equal.
        let rules = crate::compare::Rules::Strict;
        let found = crate::compare::ladder(&[eager.view()], &[candidate.view()], rules);
        let is_equal = matches!(found, Ok(Some(ladder)) if ladder.is_right_at(BASELINE));
        return if is_equal { Judgement::Right } else { Judgement::Wrong };
    };
    let triple = triple.with_moves(moves);
    let largest = largest(truth);
    let limits = Limits {
        always: allowance(largest, dtype),
        most: most_tolerances(dtype) * triple.allowed(largest),
        far: far(dtype),
    };
    let pieces = triple.pieces(Errors::default(), |mut errors, chunk| {
        chunk.elements().for_each(|element| errors.element(&triple, limits, element));
        errors
    });
    let may_move = dtype == DType::Float32 && triple.moves.is_none();
    pieces.reduce(Errors::default, Errors::add).judge(truth.len(), may_move)
}

/// Whether two elements are neither equal nor both no number.
fn differ(one: f64, two: f64) -> bool {
    (one != two) & !(one.is_nan() & two.is_nan())
}

#[cfg(test)]
mod tests;
