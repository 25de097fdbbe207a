//! Are two sets of outputs the same, and if not, where and by how much?
//!
//! One pass over each output finds the whole tolerance ladder and the evidence. Nothing here knows an engine:
//! tensors come in as shapes and row-major slices, so that judging stays independent of whatever computed them.

mod element;
mod tensor;

pub use tensor::{MalformedTensor, TensorData, TensorView};

use crate::number::Number;
use crate::tolerance::{BASELINE, FLOAT_TYPES, LEVELS, LOWEST, Ladder, Tolerance, levels};
use crate::verdict::{ElementPair, Evidence, ValueEvidence, Verdict, VerdictKind, WorstError};
use element::{BLOCK, Element};
use passnet_graph::DType;
use rayon::prelude::*;
use tensor::{dispatch_pair, index_of};

/// How values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// Exact arithmetic; NaN is right where NaN is expected and nowhere else.
    Strict,
    /// As `torch.allclose` has it: arithmetic rounds to the type of the tensors, NaN is never right.
    Reference,
}

/// What comparing all outputs of a graph showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// `correct` where every output is right at the baseline.
    pub verdict: Verdict,
    /// The levels at which every output is right.
    pub ladder: Ladder,
    /// One report per output, when the outputs could be compared number by number.
    pub outputs: Vec<OutputReport>,
}

/// What comparing one output showed.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputReport {
    /// That of the expected output.
    pub dtype: DType,
    /// The levels at which every element is right.
    pub ladder: Ladder,
    /// Of the whole output.
    pub elements: usize,
    /// Elements that are not equal.
    pub unequal: usize,
    /// Elements outside the baseline tolerance.
    pub wrong: usize,
    /// The first element outside the baseline tolerance.
    pub first_wrong: Option<ElementPair>,
    /// The largest difference.
    pub worst_absolute: Option<WorstError>,
    /// The largest difference, as a multiple of what was expected.
    pub worst_relative: Option<WorstError>,
    /// Mean of the absolute errors; NaN if an error is.
    pub mean_error: f64,
    /// NaNs of the expected output.
    pub nan_expected: usize,
    /// NaNs of the other one.
    pub nan_actual: usize,
}

/// Beyond this many mismatching outputs more evidence teaches nothing.
const MAX_EVIDENCE: usize = 8;

/// Compares what was computed with what eager computed. Counts, types and shapes must be equal; nothing broadcasts.
pub fn compare(
    expected: &[TensorView<'_>],
    actual: &[TensorView<'_>],
    rules: Rules,
) -> Result<Comparison, MalformedTensor> {
    for tensor in expected.iter().chain(actual) {
        tensor.check()?;
    }
    if let Some(verdict) = structural_mismatch(expected, actual) {
        return Ok(Comparison { verdict, ladder: Ladder::NONE, outputs: Vec::new() });
    }
    let outputs: Vec<OutputReport> =
        expected.iter().zip(actual).filter_map(|(e, a)| compare_output(e, a, rules)).collect();
    let ladder = outputs.iter().fold(Ladder::ALL, |ladder, o| ladder.and(o.ladder));
    let verdict = if ladder.is_right_at(BASELINE) {
        Verdict::new(VerdictKind::Correct)
    } else {
        let wrong = outputs.iter().enumerate().filter(|(_, o)| !o.ladder.is_right_at(BASELINE));
        wrong.take(MAX_EVIDENCE).fold(Verdict::new(VerdictKind::Accuracy), |verdict, (i, o)| {
            verdict.with(Evidence::Values(Box::new(o.evidence(i))))
        })
    };
    Ok(Comparison { verdict, ladder, outputs })
}

fn structural_mismatch(expected: &[TensorView<'_>], actual: &[TensorView<'_>]) -> Option<Verdict> {
    if expected.len() != actual.len() {
        let (expected, actual) = (expected.len(), actual.len());
        let evidence = Evidence::OutputCount { expected, actual };
        return Some(Verdict::new(VerdictKind::ShapeMismatch).with(evidence));
    }
    let pairs = || expected.iter().zip(actual).enumerate();
    let dtypes: Vec<Evidence> = pairs()
        .filter(|(_, (e, a))| e.data.dtype() != a.data.dtype())
        .map(|(output, (e, a))| Evidence::Dtype {
            output,
            expected: e.data.dtype().name().into(),
            actual: a.data.dtype().name().into(),
        })
        .take(MAX_EVIDENCE)
        .collect();
    if !dtypes.is_empty() {
        return Some(Verdict { kind: VerdictKind::DtypeMismatch, evidence: dtypes });
    }
    let shapes: Vec<Evidence> = pairs()
        .filter(|(_, (e, a))| e.shape != a.shape)
        .map(|(output, (e, a))| Evidence::Shape {
            output,
            expected: e.shape.to_vec(),
            actual: a.shape.to_vec(),
        })
        .take(MAX_EVIDENCE)
        .collect();
    (!shapes.is_empty()).then_some(Verdict { kind: VerdictKind::ShapeMismatch, evidence: shapes })
}

/// `None` if the types differ.
fn compare_output(
    expected: &TensorView<'_>,
    actual: &TensorView<'_>,
    rules: Rules,
) -> Option<OutputReport> {
    let dtype = expected.data.dtype();
    let ladder = tolerances(dtype);
    dispatch_pair!(expected.data, actual.data, |e, a| {
        let scan = Scan::run(e, a, ladder.as_ref(), rules);
        scan.report(dtype, e, a, expected.shape)
    })
}

/// The ladder that one pair of outputs reaches with the tolerances of each float type in turn, whatever its own
/// type: a reference log lists all four.
pub fn ladders_by_format(
    expected: &TensorView<'_>,
    actual: &TensorView<'_>,
    rules: Rules,
) -> Option<[Ladder; 4]> {
    if expected.check().is_err() || actual.check().is_err() || expected.shape != actual.shape {
        return None;
    }
    dispatch_pair!(expected.data, actual.data, |e, a| {
        let mut blocks = e.chunks(BLOCK).zip(a.chunks(BLOCK));
        if blocks.all(|(e, a)| Element::all_plainly_equal(e, a)) {
            return Some([Ladder::ALL; 4]);
        }
        FLOAT_TYPES.map(|format| {
            let level = lowest_level(e, a, tolerances(format).as_ref(), rules);
            Ladder::right_from(LOWEST + level as i32)
        })
    })
}

/// Only the ladder, several times faster than `compare`: for outputs of timed calls, all of which are checked.
/// `None` if counts, types or shapes differ.
pub fn ladder(
    expected: &[TensorView<'_>],
    actual: &[TensorView<'_>],
    rules: Rules,
) -> Result<Option<Ladder>, MalformedTensor> {
    for tensor in expected.iter().chain(actual) {
        tensor.check()?;
    }
    if structural_mismatch(expected, actual).is_some() {
        return Ok(None);
    }
    let ladders = expected.iter().zip(actual).map(|(expected, actual)| {
        let ladder = tolerances(expected.data.dtype());
        dispatch_pair!(expected.data, actual.data, |e, a| lowest_level(
            e,
            a,
            ladder.as_ref(),
            rules
        ))
    });
    let level = ladders.flatten().max().unwrap_or(0);
    Ok(Some(Ladder::right_from(LOWEST + level as i32)))
}

/// Elements that one thread looks at before another may take over.
const PIECE: usize = 1 << 15;

/// The lowest level that accepts all elements.
fn lowest_level<T: Element>(
    expected: &[T],
    actual: &[T],
    ladder: Option<&[Tolerance; LEVELS]>,
    rules: Rules,
) -> usize {
    let pieces = expected.par_chunks(PIECE).zip(actual.par_chunks(PIECE));
    pieces.map(|(e, a)| lowest_level_of_piece(e, a, ladder, rules)).max().unwrap_or(0)
}

/// Found block by block: whole blocks are tested at the level reached so far, in loops that vectorise.
fn lowest_level_of_piece<T: Element>(
    expected: &[T],
    actual: &[T],
    ladder: Option<&[Tolerance; LEVELS]>,
    rules: Rules,
) -> usize {
    let mut level = 0;
    for (e, a) in expected.chunks(BLOCK).zip(actual.chunks(BLOCK)) {
        if T::all_plainly_equal(e, a) {
            continue;
        }
        let right_at = |level: usize| match ladder {
            Some(ladder) => T::all_close(e, a, ladder[level], rules),
            None => T::all_same(e, a, rules),
        };
        while level < LEVELS && !right_at(level) {
            level += 1;
        }
        if level == LEVELS {
            break;
        }
    }
    level
}

/// The tolerances of a type at all levels; `None` where only equal values are right.
fn tolerances(dtype: DType) -> Option<[Tolerance; LEVELS]> {
    let mut table = [Tolerance { rtol: 0.0, atol: 0.0 }; LEVELS];
    for (slot, t) in table.iter_mut().zip(levels()) {
        *slot = Tolerance::of(dtype, t)?;
    }
    Some(table)
}

const BASELINE_LEVEL: usize = (BASELINE - LOWEST) as usize;

/// The state of one pass. Tolerances only grow, so one number says which levels still hold: the lowest level that
/// accepts everything seen so far.
#[derive(Default)]
struct Scan {
    level: usize,
    elements: usize,
    unequal: usize,
    wrong: usize,
    first_wrong: Option<usize>,
    worst_absolute: Option<(f64, usize)>,
    worst_relative: Option<(f64, usize)>,
    error_sum: f64,
    nan_expected: usize,
    nan_actual: usize,
}

impl Scan {
    fn run<T: Element>(
        expected: &[T],
        actual: &[T],
        ladder: Option<&[Tolerance; LEVELS]>,
        rules: Rules,
    ) -> Self {
        let mut scan = Scan { elements: expected.len(), ..Scan::default() };
        let blocks = expected.chunks(BLOCK).zip(actual.chunks(BLOCK));
        for (number, (e, a)) in blocks.enumerate() {
            let start = number * BLOCK;
            // Most blocks are equal or right, and both tests vectorise; the rest does not.
            if T::all_plainly_equal(e, a) || scan.right_block(start, e, a, ladder, rules) {
                continue;
            }
            for (i, (e, a)) in e.iter().zip(a).enumerate() {
                scan.element(start + i, *e, *a, ladder, rules);
            }
        }
        scan
    }

    /// Takes in a whole block of floats that are right at the baseline; takes in nothing and says so where some are not, or
    /// are not finite.
    fn right_block<T: Element>(
        &mut self,
        start: usize,
        expected: &[T],
        actual: &[T],
        ladder: Option<&[Tolerance; LEVELS]>,
        rules: Rules,
    ) -> bool {
        let (mut wide_expected, mut wide_actual) = ([0.0; BLOCK], [0.0; BLOCK]);
        let Some(ladder) = ladder else { return false };
        if !T::widen(expected, &mut wide_expected) || !T::widen(actual, &mut wide_actual) {
            return false;
        }
        // Behind the last element all is zero: equal, and without an error.
        let mut errors = [[0.0; BLOCK]; 2];
        let [absolute, relative] = &mut errors;
        let (mut are_finite, mut unequal) = (true, 0);
        for i in 0..BLOCK {
            let (expected, actual) = (wide_expected[i], wide_actual[i]);
            let error = (expected - actual).abs();
            are_finite &= error.is_finite();
            unequal += u32::from(expected != actual);
            absolute[i] = error;
            relative[i] = if error == 0.0 { 0.0 } else { error / expected.abs() };
        }
        if !are_finite {
            return false;
        }
        let mut levels = self.level..=BASELINE_LEVEL;
        let is_right = |level: &usize| T::all_close(expected, actual, ladder[*level], rules);
        let Some(level) = levels.find(is_right) else { return false };
        self.level = level;
        self.unequal += unequal as usize;
        self.error_sum += in_lanes(absolute, |sum, error| sum + error);
        for (worst, errors) in
            [(&mut self.worst_absolute, &*absolute), (&mut self.worst_relative, &*relative)]
        {
            let largest = in_lanes(errors, |one, two| if two > one { two } else { one });
            if largest > worst.map_or(0.0, |(old, _)| old)
                && let Some(at) = errors.iter().position(|error| *error == largest)
            {
                *worst = Some((largest, start + at));
            }
        }
        true
    }

    fn element<T: Element>(
        &mut self,
        position: usize,
        expected: T,
        actual: T,
        ladder: Option<&[Tolerance; LEVELS]>,
        rules: Rules,
    ) {
        self.nan_expected += usize::from(expected.is_nan());
        self.nan_actual += usize::from(actual.is_nan());
        if expected.equal_by(actual, rules) {
            return;
        }
        self.unequal += 1;
        let close_at = |level: usize| {
            ladder.and_then(|l| l.get(level)).is_some_and(|t| expected.close(actual, *t, rules))
        };
        while self.level < LEVELS && !close_at(self.level) {
            self.level += 1;
        }
        // If the whole prefix is already right at the baseline, so is this element.
        if self.level > BASELINE_LEVEL && !close_at(BASELINE_LEVEL) {
            self.wrong += 1;
            self.first_wrong.get_or_insert(position);
        }
        let error = expected.error(actual);
        self.error_sum += error;
        keep_worst(&mut self.worst_absolute, error, position);
        keep_worst(&mut self.worst_relative, error / expected.magnitude(), position);
    }

    fn ladder(&self) -> Ladder {
        Ladder::right_from(LOWEST + self.level as i32)
    }

    fn report<T: Element>(
        &self,
        dtype: DType,
        expected: &[T],
        actual: &[T],
        shape: &[usize],
    ) -> OutputReport {
        let pair = |position: usize| ElementPair {
            index: index_of(position, shape),
            expected: expected.get(position).map(|x| x.text()).unwrap_or_default(),
            actual: actual.get(position).map(|x| x.text()).unwrap_or_default(),
        };
        let worst = |found: Option<(f64, usize)>| {
            found.map(|(error, position)| WorstError { error: Number(error), at: pair(position) })
        };
        OutputReport {
            dtype,
            ladder: self.ladder(),
            elements: self.elements,
            unequal: self.unequal,
            wrong: self.wrong,
            first_wrong: self.first_wrong.map(pair),
            worst_absolute: worst(self.worst_absolute),
            worst_relative: worst(self.worst_relative),
            mean_error: self.error_sum / self.elements.max(1) as f64,
            nan_expected: self.nan_expected,
            nan_actual: self.nan_actual,
        }
    }
}

/// Folds positive numbers so many lanes at a time, beginning with zero.
fn in_lanes(values: &[f64; BLOCK], fold: impl Fn(f64, f64) -> f64) -> f64 {
    const LANES: usize = 8;
    let mut lanes = [0.0; LANES];
    for values in values.as_chunks::<LANES>().0 {
        lanes = std::array::from_fn(|i| fold(lanes[i], values[i]));
    }
    lanes.into_iter().fold(0.0, fold)
}

/// NaN is worse than any number; the first of equals stays.
fn keep_worst(worst: &mut Option<(f64, usize)>, error: f64, position: usize) {
    let worse = match worst {
        None => true,
        Some((old, _)) => !old.is_nan() && (error.is_nan() || error > *old),
    };
    if worse {
        *worst = Some((error, position));
    }
}

impl OutputReport {
    fn evidence(&self, output: usize) -> ValueEvidence {
        ValueEvidence {
            output,
            dtype: self.dtype.name().into(),
            elements: self.elements,
            unequal: self.unequal,
            wrong: self.wrong,
            first_wrong: self.first_wrong.clone(),
            worst_absolute: self.worst_absolute.clone(),
            worst_relative: self.worst_relative.clone(),
            nan_expected: self.nan_expected,
            nan_actual: self.nan_actual,
        }
    }

    /// Are all elements equal (`torch.equal`)?
    pub fn is_equal(&self) -> bool {
        self.unequal == 0
    }

    /// The largest absolute error; 0 if all elements are equal.
    pub fn max_error(&self) -> f64 {
        self.worst_absolute.as_ref().map_or(0.0, |w| w.error.0)
    }
}
