//! From a group to a loop over sixteen lanes at a time that keeps every value in a register.
//!
//! A group becomes one function: for each row a loop over the lanes where no mask is off, and before and after it one that
//! computes the masks of each access. Reductions along the row are folded and stored at its end. Where some masks are off for
//! whole runs of lanes, a function for these runs leaves out what the masks switch off.
//! What the code cannot express (other lane types, gathers, too many values) stays with the interpreter.

mod arithmetic;
mod micros;

use super::assembler::*;
use super::layout::{Layout, WIDTH, Walk};
use crate::exec::group::{FusedGroup, Home, Micro, reads, written};
use crate::exec::registers::{Src, VReg};
use crate::ir::ReduceOp;
use crate::lane::Lane;
use arithmetic::extreme;
use smallvec::SmallVec;

/// Registers that hold addresses.
const POINTERS: [Gpr; 8] = [R8, R10, R11, RBX, RBP, R12, R13, R14];
/// The last lane from which a whole turn of the wide loop is left.
const LIMIT: Gpr = R15;
/// Registers that belong to the caller.
const SAVED: [Gpr; 6] = [RBX, RBP, R12, R13, R14, R15];

/// The mask of an access, where masks are computed one by one.
const BOX: K = K(2);

/// Bytes ahead of the lanes at work whose cache lines are asked for: about what the next program will need.
const AHEAD: i32 = 4096;

/// Vector registers in all.
const REGISTERS: u8 = 32;
/// Mask registers in all.
const MASKS: u8 = 8;
/// Lanes folded onto as many others, from all of a register down to one.
const HALVES: [usize; 4] = [8, 4, 2, 1];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    Lanes(Zmm),
    Mask(K),
}

/// One of the registers' sets that work side by side, each on sixteen lanes.
struct Way {
    held: Vec<Held>,
    scratch: Scratch,
    /// The masks of the layout's boxes, where they are computed beforehand.
    boxes: Vec<K>,
}

/// For which runs of a group code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Variant {
    /// The boxes that hold no lane, bit by bit.
    pub(super) off: u32,
    /// Whether what is stored goes past the caches: it will not be read soon, and what it replaces need not be read.
    pub(super) streams: bool,
}

struct Emit<'a> {
    group: &'a FusedGroup,
    layout: &'a Layout,
    /// Address registers: of the accesses, then of the views, then of the results of reductions.
    pointers: Vec<(Gpr, Walk)>,
    last_use: Vec<usize>,
    /// Whether anything reads what a micro computes.
    needed: Vec<bool>,
    free: Vec<Zmm>,
    free_masks: Vec<K>,
    ways: Vec<Way>,
    /// Of each reduction, the registers of its partial results.
    accumulators: Vec<Vec<Zmm>>,
    /// How often the ways worked already in this turn.
    pass: usize,
    masked: bool,
    /// The boxes that hold no lane, bit by bit; the others hold all, unless masks are computed.
    off: u32,
    /// Whether what is stored without a mask goes past the caches.
    streams: bool,
    /// Whether the masks of all boxes are computed at the beginning of a turn.
    hoists: bool,
}

/// How many ways work side by side, and whether each mask is computed once: the first that the registers allow.
const WHOLE: &[(usize, bool)] = &[(4, false), (2, false), (1, false)];
const MASKED: &[(usize, bool)] = &[(2, true), (1, true), (1, false)];

/// Writes a function of a group and says where it begins: that for any lanes, or, where some boxes are `off`, that for lanes
/// which the others hold.
pub(super) fn function(
    asm: &mut Assembler,
    group: &FusedGroup,
    layout: &Layout,
    Variant { off, streams }: Variant,
) -> Option<usize> {
    if layout.walks.len() > POINTERS.len() {
        return None;
    }
    asm.align();
    let start = asm.code.len();
    let partials = layout.lanes_at_once() / WIDTH;
    let count = u8::try_from(group.reductions.len() * partials).ok()?;
    let accumulators: Vec<Zmm> = (0..count).map(Zmm).collect();
    let mut emit = Emit {
        group,
        layout,
        pointers: POINTERS.into_iter().zip(layout.walks.iter().copied()).collect(),
        last_use: vec![0; group.homes.len()],
        needed: vec![false; group.micros.len()],
        free: Vec::new(),
        free_masks: Vec::new(),
        ways: Vec::new(),
        accumulators: accumulators.chunks(partials).map(<[Zmm]>::to_vec).collect(),
        pass: 0,
        masked: false,
        off,
        streams,
        hoists: false,
    };
    emit.find_needed();
    emit.function(asm)?;
    Some(start)
}

impl Emit<'_> {
    /// What a micro reads, given which boxes hold no lane.
    fn reads(&self, micro: &Micro) -> SmallVec<[VReg; 4]> {
        let chosen = |src: &Src| match src {
            Src::V(r) => SmallVec::from_slice(&[*r]),
            _ => SmallVec::new(),
        };
        match micro {
            Micro::SelectBox { bounds, b, .. } if self.is_off(bounds) => chosen(b),
            Micro::SelectBox { a, .. } if self.off != 0 => chosen(a),
            Micro::Load { access, .. } if self.is_switched_off(*access) => {
                chosen(&self.group.accesses[*access].other)
            }
            Micro::Store { access, .. } if self.is_switched_off(*access) => SmallVec::new(),
            _ => reads(micro, &self.group.accesses),
        }
    }

    /// Which micros are needed, and where each value is read last.
    fn find_needed(&mut self) {
        let full = |(place, _): &(Home, Lane)| matches!(place, Home::Full(_));
        let mut read: Vec<bool> = self.group.homes.iter().map(full).collect();
        for (i, micro) in self.group.micros.iter().enumerate().rev() {
            let needed = written(micro).is_none_or(|dst| read[usize::from(dst.0)]);
            self.needed[i] = needed;
            for r in self.reads(micro).into_iter().filter(|_| needed) {
                read[usize::from(r.0)] = true;
                let last = &mut self.last_use[usize::from(r.0)];
                *last = i.max(*last);
            }
        }
    }

    fn function(&mut self, asm: &mut Assembler) -> Option<()> {
        SAVED.into_iter().for_each(|r| asm.push(r));
        asm.move_gpr(R9, RCX);
        for (i, &(register, _)) in self.pointers.iter().enumerate() {
            asm.load_gpr(register, RDI, 8 * i as i32);
        }
        let runs = self.layout.runs();
        asm.load_gpr(RAX, RDI, runs.rows);
        asm.push(RAX);
        let row = asm.code.len();
        for (reduction, registers) in self.group.reductions.iter().zip(&self.accumulators) {
            let identity = asm.number(identity(reduction.op));
            registers.iter().for_each(|register| asm.load(*register, identity));
        }
        asm.load_gpr(RAX, RDI, runs.start);
        if self.layout.has_partial() && self.off == 0 {
            if self.layout.has_low() {
                asm.load_gpr(RCX, RDI, runs.first);
                self.lanes(asm, true)?;
            }
            asm.load_gpr(RCX, RDI, runs.end);
            self.lanes(asm, false)?;
            asm.load_gpr(RCX, RDI, runs.last);
            self.lanes(asm, true)?;
        } else {
            asm.load_gpr(RCX, RDI, runs.last);
            self.lanes(asm, false)?;
        }
        self.totals(asm)?;
        for &(register, walk) in &self.pointers {
            if walk.outer != 0 {
                asm.add_to(register, register, walk.outer);
            }
        }
        asm.add_to(R9, R9, i32::try_from(self.layout.row * 4).ok()?);
        asm.count_down(row);
        asm.pop(RAX);
        SAVED.into_iter().rev().for_each(|r| asm.pop(r));
        asm.finish();
        Some(())
    }

    /// All lanes up to the one in `RCX`, which is a multiple of [`Layout::lanes_at_once`].
    fn lanes(&mut self, asm: &mut Assembler, masked: bool) -> Option<()> {
        self.masked = masked;
        let (most, least) = (self.layout.row / WIDTH, self.layout.lanes_at_once() / WIDTH);
        let before = asm.code.len();
        let plans = if masked { MASKED } else { WHOLE };
        plans.iter().filter(|(ways, _)| *ways <= most).find_map(|&(ways, hoists)| {
            asm.code.truncate(before);
            self.hoists = hoists;
            let wide = ways.max(least);
            self.turns(asm, ways, wide / ways)?;
            let even = !self.layout.has_partial() && most.is_multiple_of(wide);
            if wide > least && !even {
                self.turns(asm, 1, least)?;
            }
            Some(())
        })
    }

    /// Folds the partial results in halves, as the interpreter does, and stores them.
    fn totals(&mut self, asm: &mut Assembler) -> Option<()> {
        let results = self.pointers.len() - self.accumulators.len();
        for (index, reduction) in self.group.reductions.iter().enumerate() {
            let (&sum, others) = self.accumulators[index].split_first()?;
            asm.scratch = self.ways.first()?.scratch;
            for other in others {
                combine(asm, reduction.op, sum, *other)?;
            }
            let [_, other, ..] = asm.scratch.lanes;
            for half in HALVES {
                asm.swap_halves(other, sum, half);
                combine(asm, reduction.op, sum, other)?;
            }
            asm.store_first(self.pointers[results + index].0, sum);
        }
        Some(())
    }

    /// A loop that takes so many times sixteen lanes a turn, side by side and one after the other, as long as there are as
    /// many.
    fn turns(&mut self, asm: &mut Assembler, ways: usize, passes: usize) -> Option<()> {
        let values = REGISTERS - 4 * ways as u8;
        let taken = self.accumulators.iter().map(Vec::len).sum::<usize>() as u8;
        self.free = (taken..values).rev().map(Zmm).collect();
        // A mask of their own for each way, then those of the boxes, then those of comparisons.
        let boxes = if self.hoists { u8::try_from(self.layout.boxes.len()).ok()? } else { 0 };
        let first_box = 1 + ways as u8;
        let first_mask = match self.masked && !self.hoists {
            true => BOX.0 + 1,
            false => first_box.checked_add(boxes.checked_mul(ways as u8)?)?,
        };
        if first_mask > MASKS {
            return None;
        }
        self.free_masks = (first_mask..MASKS).map(K).collect();
        self.ways = (0..ways as u8)
            .map(|way| Way {
                held: vec![Held::Nothing; self.group.homes.len()],
                scratch: Scratch {
                    lanes: [0, 1, 2, 3].map(|i| Zmm(values + 4 * way + i)),
                    mask: K(1 + way),
                },
                boxes: (0..boxes).map(|i| K(first_box + way * boxes + i)).collect(),
            })
            .collect();
        let lanes = (ways * passes * WIDTH) as i32;
        asm.add_to(LIMIT, RCX, -lanes);
        let skip = asm.skip_if_greater(RAX, LIMIT);
        asm.align();
        let again = asm.code.len();
        for pass in 0..passes {
            self.pass = pass;
            self.turn(asm)?;
        }
        asm.add_to(RAX, RAX, lanes);
        asm.repeat_if_at_most(RAX, LIMIT, again);
        asm.land(skip);
        Some(())
    }

    /// All work once, on sixteen lanes for each way.
    fn turn(&mut self, asm: &mut Assembler) -> Option<()> {
        let ways = self.ways.len();
        if self.hoists {
            asm.interleaved(ways, |asm, way| {
                asm.scratch = self.ways[way].scratch;
                self.lane_numbers(asm, way);
                for (index, &to) in self.ways[way].boxes.iter().enumerate() {
                    self.box_mask(asm, index, to);
                }
                Some(())
            })?;
        }
        for (i, micro) in self.group.micros.iter().enumerate() {
            if !self.needed[i] {
                continue;
            }
            asm.interleaved(ways, |asm, way| {
                asm.scratch = self.ways[way].scratch;
                self.micro(asm, way, i, micro)
            })?;
            self.reduce(asm, micro)?;
            self.release(i);
        }
        Some(())
    }

    /// The number of a way's first lane in a turn.
    fn first_lane(&self, way: usize) -> usize {
        WIDTH * (self.pass * self.ways.len() + way)
    }

    /// Bytes to it from where the turn begins.
    fn offset(&self, size: u8, way: usize) -> i32 {
        i32::from(size) * self.first_lane(way) as i32
    }

    /// Gives back the registers of values that are not read after this micro.
    fn release(&mut self, at: usize) {
        for way in &mut self.ways {
            for (held, last_use) in way.held.iter_mut().zip(&self.last_use) {
                if *last_use <= at {
                    match std::mem::replace(held, Held::Nothing) {
                        Held::Lanes(z) => self.free.push(z),
                        Held::Mask(k) => self.free_masks.push(k),
                        Held::Nothing => {}
                    }
                }
            }
        }
    }

    /// Adds what the micro computed to the reductions, in the order of the lanes.
    fn reduce(&mut self, asm: &mut Assembler, micro: &Micro) -> Option<()> {
        let Some(dst) = written(micro) else { return Some(()) };
        for (reduction, sums) in self.group.reductions.iter().zip(&self.accumulators) {
            if reduction.from != dst {
                continue;
            }
            for (index, way) in self.ways.iter().enumerate() {
                let sum = sums[self.first_lane(index) / WIDTH % sums.len()];
                let Held::Lanes(value) = way.held[usize::from(dst.0)] else { return None };
                asm.scratch = way.scratch;
                combine(asm, reduction.op, sum, value)?;
            }
        }
        Some(())
    }
}

/// What changes no number it is combined with.
fn identity(op: ReduceOp) -> f32 {
    match op {
        // Zero would lose the sign of a negative zero.
        ReduceOp::Sum => -0.0,
        ReduceOp::Prod => 1.0,
        _ => f32::NAN,
    }
}

/// `sum = sum op value`
fn combine(asm: &mut Assembler, op: ReduceOp, sum: Zmm, value: Zmm) -> Option<()> {
    let [a, ..] = asm.scratch.lanes;
    match op {
        ReduceOp::Sum => asm.op(ADD, sum, sum, value),
        ReduceOp::Prod => asm.op(MUL, sum, sum, value),
        ReduceOp::Max => extreme(asm, MAX, (a, sum, value), false),
        ReduceOp::Min => extreme(asm, MIN, (a, sum, value), false),
        _ => return None,
    }
    if matches!(op, ReduceOp::Max | ReduceOp::Min) {
        asm.load(sum, a.into());
    }
    Some(())
}

/// Whether the code of a group may be tried at all: no other lanes than `f32`, and masks that stay inside.
pub(super) fn is_candidate(group: &FusedGroup) -> bool {
    group.micros.iter().all(|micro| match written(micro) {
        Some(dst) => {
            matches!(group.homes[usize::from(dst.0)], (_, Lane::F32) | (Home::Slot(_), Lane::B8))
        }
        None => true,
    })
}
