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
mod tests {
    use super::judge as judge_moved;
    use super::*;

    /// As of a graph whose results do not depend on the last bit of its inputs.
    fn judge(eager: &[Flat<'_>], candidate: &[Flat<'_>], truth: &[Flat<'_>]) -> Judgement {
        judge_moved(eager, candidate, truth, Some(&Moves::none(truth)))
    }

    /// As of a graph without jumps: a thousandth of the last bit moves nothing.
    fn smoothly(truth: &[Flat<'_>], by_bit: Vec<Flat<'static>>) -> Moves {
        let mut moves = Moves::none(truth);
        moves.add(truth, &by_bit, truth);
        moves
    }

    /// A sum that comes back to zero is only as exact as the sums before it.
    #[test]
    fn an_element_may_be_off_by_a_few_units_of_the_largest() {
        let truth = flat(&[1e6, 100.0]);
        assert_eq!(judge(&truth, &flat(&[1e6, 100.3]), &truth), Judgement::Right);
        assert_eq!(judge(&truth, &flat(&[1e6, 101.0]), &truth), Judgement::Wrong);
    }

    /// Half types are computed in float32: so much is left where large products cancel.
    #[test]
    fn an_element_of_a_half_type_may_be_off_by_units_of_float32() {
        let half = |values: &[f32]| -> Vec<Flat<'static>> {
            let tensor = Tensor::from_slice(values, &[values.len()]).unwrap();
            let half = tensor.to_dtype(DType::Float16).unwrap();
            vec![Flat::of(Box::leak(Box::new(half))).unwrap()]
        };
        let (eager, truth) = (half(&[900.0, -0.000412]), flat(&[900.0, -0.00042]));
        assert_eq!(judge(&eager, &half(&[900.0, -0.000488]), &truth), Judgement::Right);
        assert_eq!(judge(&eager, &half(&[900.0, -0.001]), &truth), Judgement::Wrong);
    }

    /// What a half type rounded stays rounded when it is widened.
    #[test]
    fn a_widened_output_is_judged_as_the_type_it_was_rounded_to() {
        let exact: Vec<f32> = (0..64).map(|i| 1.0 + i as f32 * 0.013).collect();
        let rounded: Vec<f32> = exact.iter().map(|x| half::bf16::from_f32(*x).to_f32()).collect();
        let with_first = |value: f32| {
            let mut values = rounded.clone();
            values[0] = value;
            flat(&values)
        };
        let (eager, truth) = (flat(&rounded), flat(&exact));
        // The next value of bfloat16, and one that is three further.
        assert_eq!(judge(&eager, &with_first(1.0078125), &truth), Judgement::Right);
        assert_eq!(judge(&eager, &with_first(1.0625), &truth), Judgement::Wrong);
        // Values that are exact, such as counts, are those of float32.
        let counts = flat(&std::array::from_fn::<f32, 64, _>(|i| i as f32));
        let mut off: [f32; 64] = std::array::from_fn(|i| i as f32);
        off[40] = 40.25;
        assert_eq!(judge(&counts, &flat(&off), &counts), Judgement::Wrong);
    }

    /// Tests may leak a few bytes.
    fn flat(values: &[f32]) -> Vec<Flat<'static>> {
        let tensor = Tensor::from_slice(values, &[values.len()]).unwrap();
        vec![Flat::of(Box::leak(Box::new(tensor))).unwrap()]
    }

    #[test]
    fn a_candidate_close_to_the_truth_is_right_whatever_eager_gives() {
        let truth = flat(&[1.0, 2.0]);
        for eager in [[1.01, 2.0], [f32::INFINITY, 2.0], [f32::NAN, 2.0]] {
            assert_eq!(judge(&flat(&eager), &flat(&[1.0, 2.0]), &truth), Judgement::Right);
        }
        let eager = flat(&[1.01, 2.0]);
        assert_eq!(judge(&eager, &flat(&[1.0, 2.01]), &truth), Judgement::Wrong, "elsewhere");
        assert_eq!(judge(&eager, &flat(&[f32::NAN, 2.0]), &truth), Judgement::Wrong);
    }

    /// An eager result that overflowed must not excuse whatever the candidate gives there.
    #[test]
    fn what_eager_has_no_number_for_forgives_nothing() {
        let truth = flat(&[1.0, 2.0]);
        for eager in [f32::INFINITY, f32::NAN] {
            let eager = flat(&[eager, 2.00005]);
            assert_eq!(judge(&eager, &flat(&[1.00002, 2.0]), &truth), Judgement::Wrong);
            assert_eq!(judge(&eager, &flat(&[7.0, 2.0]), &truth), Judgement::Wrong);
        }
        let nowhere = flat(&[f32::NAN, f32::INFINITY]);
        assert_eq!(judge(&nowhere, &flat(&[0.0, f32::INFINITY]), &nowhere), Judgement::Wrong);
        assert_eq!(judge(&nowhere, &flat(&[f32::NAN, 1e30]), &nowhere), Judgement::Wrong);
        assert_eq!(judge(&nowhere, &nowhere, &nowhere), Judgement::Right);
    }

    /// One tolerance of float32 at 1000 is 1.31e-3.
    #[test]
    fn rounding_is_forgiven_as_often_and_as_far_as_eager_rounds() {
        let truth = flat(&[1000.0; 100]);
        let off = |count: usize, by: f32| {
            flat(&std::array::from_fn::<f32, 100, _>(
                |i| if i < count { 1000.0 + by } else { 1000.0 },
            ))
        };
        // Eager is off by two tolerances at ten elements, on the other side.
        let eager = off(10, -2.62e-3);
        let found = judge(&eager, &off(10, 5.2e-3), &truth);
        assert!(matches!(found, Judgement::Forgiven { elements: 10, .. }), "{found:?}");
        assert_eq!(judge(&eager, &off(10, 0.2), &truth), Judgement::Wrong, "too far");
        assert_eq!(judge(&eager, &off(90, 5.2e-3), &truth), Judgement::Wrong, "too often");
        assert_eq!(judge(&truth, &off(1, 2.7e-3), &truth), Judgement::Wrong, "eager is exact");
        // However far eager is off, there is a limit.
        assert_eq!(judge(&off(100, -5.01), &off(100, 0.2), &truth), Judgement::Wrong);
    }

    /// An exponential of 50 moves by six millionths with the last bit of 50.
    #[test]
    fn an_element_may_be_as_far_off_as_the_last_bit_of_the_inputs_moves_it() {
        let truth = flat(&[1.0, 2.0]);
        let candidate = flat(&[1.0, 2.0 + 2e-5]);
        let judge = |moved: &[f32], candidate| {
            judge_moved(&truth, candidate, &truth, Some(&smoothly(&truth, flat(moved))))
        };
        assert_eq!(judge_moved(&truth, &candidate, &truth, None), Judgement::Unexplained);
        assert_eq!(judge(&[1.0, 2.0], &candidate), Judgement::Wrong);
        assert_eq!(judge(&[1.1, 2.0], &candidate), Judgement::Wrong, "another element moves");
        assert_eq!(judge(&[1.0, 2.0 - 3e-5], &candidate), Judgement::Right);
        assert_eq!(judge(&[1.0, f32::INFINITY], &candidate), Judgement::Wrong);
    }

    /// Two sides that round alike are off at other elements.
    #[test]
    fn few_elements_may_be_off_where_eager_is_a_quarter_as_far_off() {
        let half = |values: &[f32]| -> Vec<Flat<'static>> {
            let tensor = Tensor::from_slice(values, &[values.len()]).unwrap();
            let half = tensor.to_dtype(DType::BFloat16).unwrap();
            vec![Flat::of(Box::leak(Box::new(half))).unwrap()]
        };
        let off = |count: usize, by: f32| {
            half(&[0, 1, 2, 3, 4, 5].map(|i| if i < count { 100.0 + by } else { 100.0 }))
        };
        let truth = flat(&[100.0; 6]);
        // One tolerance is 1.6: eager is off by a good half, the candidate by two and a half.
        let eager = off(3, 1.0);
        let found = judge(&eager, &off(3, -4.0), &truth);
        assert!(matches!(found, Judgement::Forgiven { elements: 3, .. }), "{found:?}");
        assert_eq!(judge(&eager, &off(4, -4.0), &truth), Judgement::Wrong, "more than few");
        assert_eq!(judge(&off(1, 1.0), &off(2, -4.0), &truth), Judgement::Wrong, "more than eager");
        assert_eq!(judge(&off(0, 0.0), &off(1, -4.0), &truth), Judgement::Wrong, "eager is exact");
        assert_eq!(judge(&eager, &off(1, -8.0), &truth), Judgement::Wrong, "beyond the limit");
    }

    #[test]
    fn one_of_many_elements_may_be_two_tolerances_off() {
        let off = |count: usize, by: f32| {
            let value = |i| if i < count { 1000.0 + by } else { 1000.0 };
            flat(&(0..2 * NEAR_ONE_IN).map(value).collect::<Vec<_>>())
        };
        let truth = off(0, 0.0);
        let found = judge(&truth, &off(2, 2e-3), &truth);
        assert!(matches!(found, Judgement::Forgiven { elements: 2, .. }), "{found:?}");
        assert_eq!(judge(&truth, &off(3, 2e-3), &truth), Judgement::Wrong, "too many");
        assert_eq!(judge(&truth, &off(1, 3e-3), &truth), Judgement::Wrong, "too far");
    }

    /// A quotient whose divisor cancels may be anything; a whole output of them is no result of the graph.
    #[test]
    fn few_elements_may_be_undetermined() {
        let values = |count: usize, value: f32| {
            flat(&std::array::from_fn::<f32, 128, _>(|i| if i < count { value } else { 1.0 }))
        };
        let truth = values(2, 1000.0);
        let judge = |count, value, moved: Option<&Moves>| {
            judge_moved(&truth, &values(count, value), &truth, moved)
        };
        let moved = smoothly(&truth, values(2, 1010.0));
        let found = judge(2, 1015.0, Some(&moved));
        assert!(matches!(found, Judgement::Forgiven { elements: 2, .. }), "{found:?}");
        assert_eq!(judge(2, 1015.0, None), Judgement::Unexplained, "to be asked");
        assert_eq!(judge(2, 1050.0, Some(&moved)), Judgement::Wrong, "further than it moves");
        assert_eq!(
            judge(3, 1015.0, Some(&moved)),
            Judgement::Wrong,
            "an element that does not move"
        );
        let moved = smoothly(&truth, values(128, 2000.0));
        assert_eq!(judge(3, 1015.0, Some(&moved)), Judgement::Wrong, "too many of them");
        assert_eq!(judge(2, f32::NAN, Some(&moved)), Judgement::Wrong);
    }

    /// A value that is compared with the very number it holds is on one side, however little moves it to the other.
    #[test]
    fn a_jump_explains_nothing() {
        let (truth, other) = (flat(&[0.0; 64]), flat(&[0.3; 64]));
        let one =
            |value| flat(&std::array::from_fn::<f32, 64, _>(|i| if i == 5 { value } else { 0.0 }));
        let moves = |by_less: &[Flat<'_>]| {
            let mut moves = Moves::none(&truth);
            moves.add(&truth, &other, by_less);
            moves
        };
        let judge = |moves| judge_moved(&truth, &one(0.3), &truth, Some(&moves));
        assert_eq!(judge(moves(&other)), Judgement::Wrong);
        let found = judge(moves(&flat(&[0.0003; 64])));
        assert!(matches!(found, Judgement::Forgiven { elements: 1, .. }), "{found:?}");
    }

    #[test]
    fn moved_values_differ_in_their_last_bit() {
        let wide =
            Tensor::from_slice(&[1.0f64, -3.0, 0.0, 5.0, 7.0, 9.0, 11.0, 13.0], &[8]).unwrap();
        let values = wide.to_vec::<f64>().unwrap();
        let found = |key| moved(&wide, Move::Bit, key).unwrap().to_vec::<f64>().unwrap();
        let is_close = |(one, two): (&f64, &f64)| (one - two).abs() <= two.abs() * 1.2e-7;
        assert!(found(None).iter().zip(&values).all(is_close));
        assert!(found(Some(3)).iter().zip(&values).all(is_close));
        assert_ne!(found(None), values);
        assert_ne!(found(Some(3)), found(None));
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
