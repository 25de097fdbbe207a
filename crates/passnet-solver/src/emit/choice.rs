//! How a kernel's work is cut into programs: what tuning tries, and what is taken where nothing is measured.

use super::Draft;
use super::chunks::Stages;
use super::long_rows::rounds;
use super::shape::Shape;
use super::wrapper::LONG_ROW_BLOCK;
use crate::analysis::body::{Code, Var};
use crate::analysis::index::AxisId;
use crate::analysis::product;
use crate::expression::{Expr, Formula};
use crate::products::{Extent, SIDES};
use passnet_graph::infer::TensorType;
use passnet_graph::ops::{Class, Op};
use passnet_graph::{DType, NodeId};
use std::collections::BTreeSet;

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
    /// Programs that all rows together are cut into, where one for each row is too few; else none.
    pub(crate) programs: usize,
    /// Whether it is for a GPU. Sizes are constants of its kernel then: they are divided by with a multiplication, and the
    /// compiler sees by what a row can be divided, so that it loads and stores as much at a time as there is. A variance of a
    /// long row takes one walk, for memory is what a walk waits for.
    pub(crate) for_gpu: bool,
    /// Whether a program of whole rows has one, so that tiles need no second dimension.
    pub(crate) one_row: bool,
    /// Whether every lane folds rows of its own, element by element; a tile is so many rows then.
    pub(crate) walked: bool,
    /// What a graph with less work takes instead, where the wrapper sees that by its sizes.
    pub(crate) small: Option<Small>,
}

/// Tiles of a graph that leaves multiprocessors idle with those of the largest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Small {
    /// Rows times columns from which on it is not small.
    pub(crate) below: usize,
    pub(crate) tile: usize,
    pub(crate) warps: usize,
}

impl Default for Choice {
    fn default() -> Self {
        Choice {
            tile: 1024,
            warps: 4,
            cut: Cut::Divides,
            by_argument: false,
            programs: 0,
            for_gpu: false,
            one_row: false,
            walked: false,
            small: None,
        }
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

/// What is tried around the usual choice on a GPU, as powers of two of its tile and its warps: those first that were best most
/// often for what the benchmark set's fusible tasks become, on an H200.
const NEAR: [(i32, i32); 5] = [(-2, -2), (0, -1), (0, 1), (2, 1), (1, 0)];
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
/// Elements of rows that a single warp folds, where there are rows enough to keep every multiprocessor busy with that: no lane
/// waits for another warp then.
const FOLDED_BY_WARP: usize = 1024;
/// Columns from which on several warps would share a row otherwise, and rows for each multiprocessor that are enough.
const SHARED_BY_WARPS: usize = 256;
const ROWS_EACH: usize = 8;
const LANES_OF_WARP: usize = 32;
const MOST_WARPS: usize = 32;
/// Bytes that a lane loads or stores at once.
const BYTES_AT_ONCE: usize = 16;
/// Programs that a multiprocessor holds while it folds chunks of rows: enough loads at a time to keep its memory busy.
const PROGRAMS_EACH: usize = 4;
/// Elements of a chunk that a lane holds at a time, and the least of a chunk.
const HELD_OF_CHUNK: usize = 16;
const LEAST_CHUNK: usize = 2048;
/// Steps of a walk through memory that another launch costs as much as.
const STEPS_OF_LAUNCH: usize = 4;
/// Elements of rows that lanes fold by themselves: rows that lie side by side are loaded in one piece then, and no lane waits
/// for another. Rows for each multiprocessor from which on there are lanes enough for that.
const MOST_WALKED: usize = 32;
const ROWS_WALKED_EACH: usize = 64;
/// Elements of a window from which on a lane has enough to wait for with four results, and with two. Of small programs, a
/// multiprocessor holds some that load while others compute.
const LARGE_WINDOW: i64 = 9;
const LARGEST_WINDOW: i64 = 25;
const WINDOW_WARPS: usize = 2;

impl Choice {
    /// With a tile and warps that are so many powers of two larger, where there is such a choice.
    fn changed_by(self, (tile, warps): (i32, i32)) -> Option<Choice> {
        let times = |value: usize, power: i32| match power {
            0.. => value.checked_shl(power.unsigned_abs()),
            _ => value.checked_shr(power.unsigned_abs()),
        };
        let warps = times(self.warps, warps).filter(|warps| (1..=MOST_WARPS).contains(warps))?;
        let tile = times(self.tile, tile).filter(|tile| *tile >= LANES_OF_WARP)?;
        let has_side = self.cut != Cut::Square || tile.isqrt().pow(2) == tile;
        has_side.then_some(Choice { tile, warps, ..self })
    }
}

impl Draft<'_> {
    /// Choices worth trying, the usual one first. On the host a program costs as much as hundreds of elements.
    pub fn choices(&self, multiprocessors: Option<usize>) -> Vec<Choice> {
        let tile = |tile: usize| Choice { tile, ..Choice::default() };
        let broad = |tile: usize| Choice { tile, cut: Cut::Broad, ..Choice::default() };
        let square = |tile: usize| Choice { tile, cut: Cut::Square, ..Choice::default() };
        let Some(multiprocessors) = multiprocessors else {
            let mut choices = match self.shape {
                Shape::Product => vec![self.in_tiles(SIDES[1])],
                // Long runs through memory come first, and lanes that a mask switches off at the end of a row cost nothing.
                Shape::Tiled => {
                    vec![broad(4096), broad(16384), tile(4096), broad(1024), tile(1024)]
                }
                Shape::Rows | Shape::LongRows | Shape::Walked => vec![tile(4096), tile(1024)],
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
        let near = NEAR.into_iter().filter_map(|change| usual.changed_by(change));
        let others: Vec<Choice> = match self.shape {
            Shape::Product => SIDES.map(|side| self.in_tiles(side)).to_vec(),
            Shape::Tiled => near.chain([broad(1024), square(1024), square(4096)]).collect(),
            _ => near.collect(),
        };
        let others = others.into_iter().map(|choice| Choice { for_gpu: true, ..choice });
        let others = others.filter(|choice| *choice != usual);
        std::iter::once(usual).chain(others).collect()
    }

    /// What is taken on a GPU where nothing is measured: every multiprocessor gets a program where there is work for it,
    /// memory is read in pieces as long as its lines, and no lane holds more of a row than its registers can. Smaller graphs
    /// of the task have tiles of their own, as long as the kernel is the same.
    pub fn for_gpu(&self, multiprocessors: usize) -> Choice {
        let choice = self.for_graph(multiprocessors, self.largest());
        let recorded = 0..self.piece.recorded;
        let others =
            recorded.map(|graph| (self.work(graph), self.for_graph(multiprocessors, graph)));
        let is_small = |other: &Choice| {
            let tiles = Choice { tile: choice.tile, warps: choice.warps, ..*other };
            tiles == choice && *other != choice
        };
        let (small, large): (Vec<_>, Vec<_>) = others.partition(|(_, other)| is_small(other));
        let below = large.iter().map(|(work, _)| *work).min().unwrap_or(usize::MAX);
        let small =
            small.into_iter().filter(|(work, _)| *work < below).max_by_key(|(work, _)| *work);
        let may_differ = matches!(self.shape, Shape::Flat | Shape::Tiled | Shape::Rows);
        let small = small.filter(|_| may_differ);
        let small = small.map(|(_, other)| Small { below, tile: other.tile, warps: other.warps });
        Choice { small, ..choice }
    }

    /// What is taken for one graph of the task.
    fn for_graph(&self, multiprocessors: usize, graph: usize) -> Choice {
        let rows = self.steps_in(&self.space.kept, graph);
        let columns = self.steps_in(&self.space.reduced, graph);
        // What each program gets if all have the same.
        let share = rows.saturating_mul(columns) / multiprocessors.max(1);
        let shared = |most: usize| floor_power(share).clamp(LEAST_TILE, most);
        let usual = Choice { for_gpu: true, ..Choice::default() };
        match self.shape {
            Shape::Product => {
                let choice = self.in_tiles(self.extent().side(multiprocessors));
                Choice { for_gpu: true, ..choice }
            }
            Shape::Flat | Shape::Tiled if self.window() >= LARGE_WINDOW => {
                let held = if self.window() >= LARGEST_WINDOW { 2 } else { 4 };
                let tile = held * LANES_OF_WARP * WINDOW_WARPS;
                Choice { tile, warps: WINDOW_WARPS, ..usual }
            }
            Shape::Flat | Shape::Tiled if self.resamples() => {
                // Places worked out for one element serve its neighbours.
                let tile = shared(self.loaded_at_once());
                Choice { tile, warps: usual.warps / 2, ..usual }
            }
            Shape::Flat => Choice { tile: shared(self.loaded_at_once()), ..usual },
            Shape::Tiled if self.across || self.repeats_work() => match share / 2 {
                LARGE_SQUARE.. => {
                    Choice { tile: LARGE_SQUARE, warps: 8, cut: Cut::Square, ..usual }
                }
                _ => Choice { cut: Cut::Square, ..usual },
            },
            Shape::Tiled => Choice { tile: shared(self.loaded_at_once()), ..usual },
            Shape::Rows if rows >= ROWS_WALKED_EACH * multiprocessors && self.can_be_walked() => {
                let each = floor_power(rows / multiprocessors.max(1));
                let least = LANES_OF_WARP * usual.warps;
                let tile = each.clamp(least, self.loaded_at_once().max(least));
                Choice { tile, walked: true, ..usual }
            }
            Shape::Rows => {
                let width = columns.next_power_of_two();
                // Where rows are short, a lane has enough to wait for with several of them only: with one element each, the lanes
                // that a multiprocessor holds ask for a third of what memory could give meanwhile.
                let most = match self.across {
                    true => {
                        let at_once = if width <= MOST_WALKED { 2 } else { 1 };
                        let side_by_side = at_once * self.loaded_at_once() / width;
                        let side_by_side = ROWS_SIDE_BY_SIDE.max(side_by_side);
                        side_by_side.min(MOST_HELD / width)
                    }
                    false => usual.tile / width,
                };
                let is_shared = !self.across && (SHARED_BY_WARPS..=FOLDED_BY_WARP).contains(&width);
                if is_shared && rows >= ROWS_EACH * multiprocessors {
                    let one_row = width == FOLDED_BY_WARP && self.space.reduced.len() > 1;
                    return Choice { tile: FOLDED_BY_WARP, warps: 1, one_row, ..usual };
                }
                // Of rows that lie side by side a lane loads as many at once as it can, also where fewer programs are left.
                let least = if self.across { BYTES_AT_ONCE / self.widest() } else { 1 };
                let height = floor_power(rows / multiprocessors.max(1)).max(least);
                let height = height.min(floor_power(rows)).clamp(1, most.max(1));
                let tile = (width * height).max(LANES_OF_WARP * usual.warps);
                let warps = tile / (HELD_BY_LANE * LANES_OF_WARP);
                // A row of several loops reads some of its parameters once for many columns.
                let one_row = height == 1 && self.space.reduced.len() > 1;
                Choice { tile, warps: warps.clamp(usual.warps, 16), one_row, ..usual }
            }
            Shape::LongRows | Shape::Walked => {
                self.for_long_rows(usual, (rows, columns), multiprocessors)
            }
        }
    }

    /// Whether rows lie side by side, nothing lies along them, and a lane can fold one by itself in every graph, in one walk:
    /// each further one would compute everything again.
    fn can_be_walked(&self) -> bool {
        let columns =
            (0..self.piece.recorded).map(|graph| self.steps_in(&self.space.reduced, graph));
        let whole = |code: &Code| {
            matches!(code, Code::Scan { .. } | Code::Sort { .. } | Code::Window { .. })
        };
        let lanes: BTreeSet<AxisId> = self.space.reduced.iter().copied().collect();
        let stores = self.body.stores.iter().any(|store| store.moves_along(&lanes));
        let walks = rounds(&self.body, false).len() + usize::from(stores);
        self.across
            && walks == 1
            && !self.space.runs_along(&self.body)
            && columns.max().is_some_and(|columns| columns <= MOST_WALKED)
            && !self.body.live().iter().any(|var| whole(&self.body.vars[*var].code))
    }

    /// Elements of its largest window.
    fn window(&self) -> i64 {
        let size = |var: &Var| match &var.code {
            Code::Window { loops, .. } => loops.iter().map(|(_, count)| count).product(),
            _ => 1,
        };
        self.body.vars.iter().map(size).max().unwrap_or(1)
    }

    /// Whether elements are found between others.
    fn resamples(&self) -> bool {
        let mut calls = self.piece.graph.calls();
        calls.any(|(_, call)| call.op().is_some_and(|op| op.class() == Class::Resampling))
    }

    /// A product in tiles of a side: each lane computes squares of four by four, for which it reads eight numbers a step.
    fn in_tiles(&self, side: i64) -> Choice {
        let side = usize::try_from(side).unwrap_or(1);
        Choice { tile: side * side, warps: side / 16, ..Choice::default() }
    }

    /// What a product computes in the largest graph.
    fn extent(&self) -> Extent {
        let steps = |loops: &[AxisId]| i64::try_from(self.steps(loops)).unwrap_or(i64::MAX);
        let (matrices, tile) = self.space.kept.split_at(self.space.kept.len().saturating_sub(2));
        let [row, column] = [0, 1].map(|at| tile.get(at).map_or(1, |axis| steps(&[*axis])));
        Extent { matrices: steps(matrices), rows: row, columns: column }
    }

    /// Long rows: one program walks through each, unless there are too few of them for all multiprocessors and the walks saved
    /// are worth another launch.
    fn for_long_rows(
        &self,
        usual: Choice,
        (rows, columns): (usize, usize),
        multiprocessors: usize,
    ) -> Choice {
        let whole = Choice { warps: 16, one_row: true, ..usual };
        let Some(stages) = Stages::of(self.piece, &self.body) else { return whole };
        let programs = PROGRAMS_EACH.saturating_mul(multiprocessors);
        let chunks = programs / rows;
        let reduced = self.space.reduced.iter().copied().collect();
        let stores = self.body.stores.iter().any(|store| store.moves_along(&reduced));
        let alone = rounds(&self.body, true).len();
        let walks = |folding: usize| folding + usize::from(stores);
        let alone = walks(alone) * columns.div_ceil(LONG_ROW_BLOCK);
        let cut = walks(stages.count()) * columns.div_ceil(LONG_ROW_BLOCK * chunks.max(1));
        if chunks < 2 || alone <= cut + stages.count() * STEPS_OF_LAUNCH {
            return whole;
        }
        let share = rows.saturating_mul(columns) / multiprocessors.max(1) / 2;
        let tile = floor_power(share).clamp(LEAST_CHUNK, LONG_ROW_BLOCK);
        let warps = tile / (HELD_OF_CHUNK * LANES_OF_WARP);
        Choice { tile, warps: warps.max(usual.warps), programs, ..whole }
    }

    /// Elements of a tile of which every lane loads and stores as much as it can at once: fewer programs than that would each
    /// wait for their memory in turn, where more of them wait side by side.
    fn loaded_at_once(&self) -> usize {
        let lanes = LANES_OF_WARP * Choice::default().warps;
        (lanes * BYTES_AT_ONCE / self.widest()).min(Choice::default().tile)
    }

    /// Bytes of the widest element of its large tensors.
    fn widest(&self) -> usize {
        let tensors = self.piece.graph.ids().take(self.piece.params.len());
        let tensors: Vec<NodeId> = tensors.chain(self.piece.outputs.iter().copied()).collect();
        let elements = |id: NodeId| self.piece.tensor(id).map_or(0, TensorType::elements);
        let most = tensors.iter().copied().map(elements).max().unwrap_or(0);
        let large = tensors.into_iter().filter(|id| elements(*id) >= most / 2);
        let sizes = large.flat_map(|id| self.piece.dtypes(id)).map(DType::size);
        sizes.max().unwrap_or(1)
    }

    /// How many steps loops take in the largest graph.
    fn steps(&self, loops: &[AxisId]) -> usize {
        self.steps_in(loops, self.largest())
    }

    fn steps_in(&self, loops: &[AxisId], graph: usize) -> usize {
        let sizes = loops.iter().map(|axis| &self.body.axes[*axis]);
        let steps = product(sizes, self.piece.graphs).ok();
        let steps = steps.and_then(|size| size.values().get(graph).copied()).unwrap_or(i64::MAX);
        usize::try_from(steps).unwrap_or(0).max(1)
    }

    /// Rows times columns of a graph.
    fn work(&self, graph: usize) -> usize {
        let [kept, reduced] = [&self.space.kept, &self.space.reduced];
        self.steps_in(kept, graph).saturating_mul(self.steps_in(reduced, graph))
    }

    /// The graph of the task with the most work.
    fn largest(&self) -> usize {
        (0..self.piece.recorded).rev().max_by_key(|graph| self.work(*graph)).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_keep_sides_whole_and_warps_in_bounds() {
        let square = Choice { tile: 4096, warps: 8, cut: Cut::Square, ..Choice::default() };
        let changed = |choice: Choice| -> Vec<(usize, usize)> {
            let all = NEAR.into_iter().filter_map(|change| choice.changed_by(change));
            all.map(|choice| (choice.tile, choice.warps)).collect()
        };
        assert_eq!(changed(square), [(1024, 2), (4096, 4), (4096, 16), (16384, 16)]);
        let small = Choice { tile: 64, warps: 1, ..Choice::default() };
        assert_eq!(changed(small), [(64, 2), (256, 2), (128, 1)]);
    }
}
