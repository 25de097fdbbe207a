//! How a kernel's work is cut into programs: what tuning tries, and what is taken where nothing is measured.

use super::Draft;
use super::shape::Shape;
use crate::analysis::body::Code;
use crate::analysis::index::AxisId;
use crate::analysis::product;
use crate::expression::{Expr, Formula};
use passnet_graph::ops::Op;

/// What tuning may change about a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice {
    /// Elements that one program holds at a time; a power of two.
    pub tile: usize,
    /// Groups of 32 lanes that work on a program.
    pub warps: usize,
    pub(crate) cut: Cut,
    /// For a `cat` by itself: whether each argument is copied by a launch of its own.
    pub by_argument: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Choice { tile: 1024, warps: 4, cut: Cut::Divides, by_argument: false }
    }
}

/// How wide the tiles of rows and columns are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// As a power of two that divides a row, where one does.
    Divides,
    /// As the row, or the whole tile.
    Broad,
    /// As high as wide: for what memory holds column by column, and for what is read once for a column.
    Square,
}

/// A tile of a GPU has no fewer elements: two for each of 128 lanes.
const LEAST_TILE: usize = 256;
/// A square that a GPU moves through its shared memory, where there are enough of them.
const LARGE_SQUARE: usize = 4096;
/// Rows that lie side by side in memory: as many as fill the smallest piece that a GPU reads.
const ROWS_SIDE_BY_SIDE: usize = 16;
/// Elements of whole rows that one program of a GPU can hold.
const MOST_HELD: usize = 16384;
/// Elements that a lane of a GPU holds of a folded row.
const HELD_BY_LANE: usize = 8;
const LANES_OF_WARP: usize = 32;

impl Draft<'_> {
    /// Choices worth trying, the usual one first. On the host a program costs as much as hundreds of elements.
    pub fn choices(&self, multiprocessors: Option<usize>) -> Vec<Choice> {
        let tile = |tile: usize| Choice { tile, ..Choice::default() };
        let broad = |tile: usize| Choice { tile, cut: Cut::Broad, ..Choice::default() };
        let square = |tile: usize| Choice { tile, cut: Cut::Square, ..Choice::default() };
        let Some(multiprocessors) = multiprocessors else {
            let mut choices = match self.shape {
                // Long runs through memory come first, and lanes that a mask switches off at the end of a row cost nothing.
                Shape::Tiled => {
                    vec![broad(4096), broad(16384), tile(4096), broad(1024), tile(1024)]
                }
                Shape::Rows | Shape::LongRows => vec![tile(4096), tile(1024)],
                Shape::Flat => vec![tile(4096), tile(1024), tile(256)],
            };
            // As many rows as a cache line has elements.
            match self.shape {
                Shape::Tiled if self.across => choices.insert(0, square(4096)),
                Shape::Rows if self.across => choices.insert(0, tile(32768)),
                _ => {}
            }
            if self.piece.only(Op::Cat).is_some() {
                choices.insert(0, Choice { by_argument: true, ..tile(16384) });
            }
            return choices;
        };
        let usual = self.for_gpu(multiprocessors);
        let others = match self.shape {
            Shape::Tiled => vec![tile(1024), broad(1024), broad(4096), square(4096), tile(256)],
            _ => vec![tile(1024), tile(4096), tile(256)],
        };
        let others = others.into_iter().filter(|choice| *choice != usual);
        std::iter::once(usual).chain(others).collect()
    }

    /// What is taken on a GPU where nothing is measured: every multiprocessor gets a program where there is work for it,
    /// memory is read in pieces as long as its lines, and no lane holds more of a row than its registers can.
    pub fn for_gpu(&self, multiprocessors: usize) -> Choice {
        let (rows, columns) = (self.steps(&self.space.kept), self.steps(&self.space.reduced));
        // What each program gets if all have the same.
        let share = rows.saturating_mul(columns) / multiprocessors.max(1);
        let shared = |most: usize| floor_power(share).clamp(LEAST_TILE, most);
        let usual = Choice::default();
        match self.shape {
            Shape::Flat => Choice { tile: shared(usual.tile), ..usual },
            Shape::Tiled if self.across || self.repeats_work() => match share / 2 {
                LARGE_SQUARE.. => {
                    Choice { tile: LARGE_SQUARE, warps: 8, cut: Cut::Square, ..usual }
                }
                _ => Choice { cut: Cut::Square, ..usual },
            },
            Shape::Tiled => Choice { tile: shared(usual.tile), ..usual },
            Shape::Rows => {
                let width = columns.next_power_of_two();
                let most = match self.across {
                    true => ROWS_SIDE_BY_SIDE.min(MOST_HELD / width),
                    false => usual.tile / width,
                };
                let height = floor_power(rows / multiprocessors.max(1)).clamp(1, most.max(1));
                let tile = (width * height).max(LANES_OF_WARP * usual.warps);
                let warps = tile / (HELD_BY_LANE * LANES_OF_WARP);
                Choice { tile, warps: warps.clamp(usual.warps, 16), ..usual }
            }
            Shape::LongRows => Choice { warps: 16, ..usual },
        }
    }

    /// How many steps loops take in the largest graph.
    fn steps(&self, loops: &[AxisId]) -> usize {
        let sizes = loops.iter().map(|axis| &self.body.axes[*axis]);
        let steps = product(sizes, self.piece.graphs).map_or(i64::MAX, |size| size.largest());
        usize::try_from(steps).unwrap_or(0).max(1)
    }

    /// Whether something is read or worked out along the columns that is the same for all rows, so that every further row of
    /// a tile saves doing it again.
    fn repeats_work(&self) -> bool {
        let [.., row, column] = self.space.kept.as_slice() else { return false };
        let is_work = |code: &Code| match code {
            Code::Load { .. } => true,
            Code::Compute { formula, .. } => calls_function(formula),
            _ => false,
        };
        self.body
            .vars
            .iter()
            .any(|var| is_work(&var.code) && var.axes.contains(column) && !var.axes.contains(row))
    }
}

/// Whether a formula has a function in it that takes many instructions.
fn calls_function(formula: &Formula) -> bool {
    const SHORT: [&str; 6] =
        ["tl.where", "tl.abs", "tl.minimum", "tl.maximum", "tl.floor", "tl.ceil"];
    let mut calls = false;
    formula.for_each(&mut |part| {
        calls |= matches!(part, Expr::Call(function, ..) if !SHORT.contains(function));
    });
    calls
}

/// The largest power of two that is not larger.
fn floor_power(value: usize) -> usize {
    value.checked_ilog2().map_or(1, |power| 1 << power)
}
