//! One output of eager, of the candidate and of the truth, element by element.

use super::super::tensors::Flat;
use crate::tolerance::{BASELINE, Tolerance};
use half::{bf16, f16};
use passnet_graph::DType;
use rayon::prelude::*;

/// Elements that one thread looks at before another may take over.
pub(super) const PIECE: usize = 1 << 14;
/// Elements that are widened at a time: they stay in the first-level cache.
const CHUNK: usize = 512;

/// Of elements that do not move.
const NO_MOVES: [f64; CHUNK] = [0.0; CHUNK];

/// One element of eager, of the candidate and of the truth, and how far the truth moves with the last bit of the inputs.
pub(super) type Element = (f64, f64, f64, f64);

/// How far the float64 result moves with the last bit of the inputs: of every output, of every element. Moves are taken in
/// one after the other, so that the results of one of them are held at a time.
#[derive(Debug)]
pub(in super::super) struct Moves(Vec<Vec<f64>>);

impl Moves {
    pub(in super::super) fn none(truth: &[Flat<'_>]) -> Moves {
        Moves(truth.iter().map(|output| vec![0.0; output.len()]).collect())
    }

    /// Takes in the results of inputs that were moved by their last bit, and by a thousandth of it. What the latter moves
    /// almost as far is no rounding: the inputs sit on a jump, such as a comparison with the very number, and which side
    /// they are on is certain.
    pub(in super::super) fn add(
        &mut self,
        truth: &[Flat<'_>],
        by_bit: &[Flat<'_>],
        by_less: &[Flat<'_>],
    ) {
        let outputs = self.0.iter_mut().zip(truth).zip(by_bit.iter().zip(by_less));
        for ((moves, truth), (by_bit, by_less)) in outputs {
            let is_alike = |flat: &Flat<'_>| flat.is_real() && flat.len() == moves.len();
            if ![truth, by_bit, by_less].into_iter().all(is_alike) {
                continue;
            }
            let mut room = [[0.0; CHUNK]; 3];
            for (piece, moves) in moves.chunks_mut(CHUNK).enumerate() {
                let [truths, by_bits, by_lesses] = room.each_mut().map(|r| &mut r[..moves.len()]);
                truth.write_reals(piece * CHUNK, truths);
                by_bit.write_reals(piece * CHUNK, by_bits);
                by_less.write_reals(piece * CHUNK, by_lesses);
                for (at, moves) in moves.iter_mut().enumerate() {
                    let by = (by_bits[at] - truths[at]).abs();
                    let jump = (by_lesses[at] - truths[at]).abs();
                    let counts = (by > *moves) & by.is_finite() & (jump <= by / 16.0);
                    *moves = if counts { by } else { *moves };
                }
            }
        }
    }

    pub(super) fn of_output(&self, output: usize) -> Option<&[f64]> {
        self.0.get(output).map(Vec::as_slice)
    }
}

/// The same elements of all.
pub(super) struct Chunk<'a> {
    pub(super) eager: &'a [f64],
    pub(super) candidate: &'a [f64],
    pub(super) truth: &'a [f64],
    /// How far the truth moves with the last bit of the inputs; zero where that was not asked.
    pub(super) moves: &'a [f64],
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

    pub(super) fn elements(&self) -> impl Iterator<Item = Element> {
        let all = self.eager.iter().zip(self.candidate).zip(self.truth).zip(self.moves);
        all.map(|(((eager, candidate), truth), moves)| (*eager, *candidate, *truth, *moves))
    }
}

/// One output of each side.
pub(super) struct Triple<'a> {
    pub(super) eager: &'a Flat<'a>,
    pub(super) candidate: &'a Flat<'a>,
    pub(super) truth: &'a Flat<'a>,
    /// How far each element of the truth moves with the last bit of the inputs, where that was asked.
    pub(super) moves: Option<&'a [f64]>,
    pub(super) tolerance: Tolerance,
    dtype: DType,
}

/// The largest magnitude of an output.
pub(super) fn largest(truth: &Flat<'_>) -> f64 {
    let mut room = [0.0; CHUNK];
    let mut largest = 0.0f64;
    for at in (0..truth.len()).step_by(CHUNK) {
        let chunk = &mut room[..CHUNK.min(truth.len() - at)];
        truth.write_reals(at, chunk);
        let finite = chunk.iter().map(|value| value.abs()).filter(|value| value.is_finite());
        largest = finite.fold(largest, f64::max);
    }
    largest
}

/// The type that an output was rounded to last. A float32 output that holds nothing but values of a half type, a good part of
/// them away from the truth, is a result in that type which was widened afterwards. Exact values, such as counts and masks, are
/// those of float32.
pub(super) fn rounded_to(eager: &Flat<'_>, truth: &Flat<'_>) -> DType {
    let dtype = eager.dtype();
    let Some(tolerance) = Tolerance::of(dtype, BASELINE) else { return dtype };
    if dtype != DType::Float32 || !truth.is_real() || truth.len() != eager.len() {
        return dtype;
    }
    let (mut is_bf16, mut is_f16, mut away) = (true, true, 0);
    let mut room = [[0.0; CHUNK]; 2];
    for at in (0..eager.len()).step_by(CHUNK) {
        let [values, truths] = room.each_mut().map(|r| &mut r[..CHUNK.min(eager.len() - at)]);
        eager.write_reals(at, values);
        truth.write_reals(at, truths);
        for (value, truth) in values.iter().zip(&*truths).filter(|(value, _)| value.is_finite()) {
            is_bf16 &= bf16::from_f64(*value).to_f64() == *value;
            is_f16 &= f16::from_f64(*value).to_f64() == *value;
            away +=
                usize::from((value - truth).abs() > tolerance.atol + tolerance.rtol * truth.abs());
        }
        if !is_bf16 && !is_f16 {
            return dtype;
        }
    }
    match away >= (eager.len() / 4).max(1) {
        // Most values of bfloat16 are values of float16, too.
        true if is_bf16 => DType::BFloat16,
        true => DType::Float16,
        false => dtype,
    }
}

impl<'a> Triple<'a> {
    /// Of an output in a type. `None` where that is no float, or the three do not correspond.
    pub(super) fn of(
        eager: &'a Flat<'a>,
        candidate: &'a Flat<'a>,
        truth: &'a Flat,
        dtype: DType,
    ) -> Option<Triple<'a>> {
        let tolerance = Tolerance::of(dtype, BASELINE)?;
        let are_real = eager.is_real() && candidate.is_real() && truth.is_real();
        let same = eager.len() == truth.len() && candidate.len() == truth.len();
        (are_real && same).then_some(Triple {
            eager,
            candidate,
            truth,
            moves: None,
            tolerance,
            dtype,
        })
    }

    /// Knows, too, how far the truth moves with the last bit of the inputs. Only float32 is judged by that: half types have
    /// wide tolerances to begin with, and float64 is the truth itself.
    pub(super) fn with_moves(mut self, moves: Option<&'a [f64]>) -> Triple<'a> {
        if self.dtype == DType::Float32 {
            self.moves = moves.filter(|moves| moves.len() == self.truth.len());
        }
        self
    }

    pub(super) fn allowed(&self, truth: f64) -> f64 {
        self.tolerance.atol + self.tolerance.rtol * truth.abs()
    }

    /// What `add` makes of the chunks of each piece, from `start` on; pieces on several threads.
    pub(super) fn pieces<R: Send + Sync + Copy>(
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
                let none = &NO_MOVES[..truth.len()];
                let moves = self.moves.map_or(none, |moves| &moves[at..at + truth.len()]);
                add(sum, Chunk { eager, candidate, truth, moves })
            })
        })
    }

    /// The largest finite distance of eager, and the largest of the candidate.
    pub(super) fn worst(&self) -> (f64, f64) {
        let larger = |one: f64, two: f64| if two > one { two } else { one };
        let both = |one: Worst, two: Worst| -> Worst {
            std::array::from_fn(|side| std::array::from_fn(|i| larger(one[side][i], two[side][i])))
        };
        let distances = |eager: f64, candidate: f64, truth: f64| {
            let unit = self.allowed(truth);
            let finite = |x: f64, otherwise: f64| if x.is_finite() { x } else { otherwise };
            let distance = |x: f64| (x - truth).abs() / unit;
            let candidate = finite(distance(candidate), f64::INFINITY);
            [finite(distance(eager), 0.0), if truth.is_finite() { candidate } else { 0.0 }]
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
pub(super) fn triples<'a>(
    eager: &'a [Flat<'_>],
    candidate: &'a [Flat<'_>],
    truth: &'a [Flat<'_>],
) -> Option<Vec<Triple<'a>>> {
    if eager.len() != candidate.len() || eager.len() != truth.len() {
        return None;
    }
    let all = eager.iter().zip(candidate).zip(truth);
    Some(
        all.filter_map(|((eager, candidate), truth)| {
            Triple::of(eager, candidate, truth, eager.dtype())
        })
        .collect(),
    )
}
