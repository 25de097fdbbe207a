//! From a group to a loop over sixteen lanes at a time that keeps every value in a register.
//!
//! A group becomes one function: for each row a loop over the lanes where no mask is off, and before and after it one that
//! computes the masks of each access. Reductions along the row are folded and stored at its end.
//! What the code cannot express (other lane types, gathers, too many values) stays with the interpreter.

use super::assembler::*;
use super::layout::{Layout, WIDTH, Walk};
use crate::exec::lane::Lane;
use crate::exec::tape::{
    Access, Bounds, Group, LaneOp, MaskForm, Micro, Place, Src, VReg, reads, written,
};
use crate::ir::{BinaryOp, CmpOp, ReduceOp, UnaryOp};
use crate::types::Elem;
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

struct Emit<'a> {
    group: &'a Group,
    layout: &'a Layout,
    /// Address registers: of the accesses, then of the views.
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
    group: &Group,
    layout: &Layout,
    off: u32,
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
        last_use: vec![0; group.places.len()],
        needed: vec![false; group.micros.len()],
        free: Vec::new(),
        free_masks: Vec::new(),
        ways: Vec::new(),
        accumulators: accumulators.chunks(partials).map(<[Zmm]>::to_vec).collect(),
        pass: 0,
        masked: false,
        off,
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
        let full = |(place, _): &(Place, Lane)| matches!(place, Place::Full(_));
        let mut read: Vec<bool> = self.group.places.iter().map(full).collect();
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
                held: vec![Held::Nothing; self.group.places.len()],
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

    fn full(&self, way: usize, r: VReg) -> Option<Operand> {
        match self.group.places[usize::from(r.0)] {
            (Place::Full(offset), Lane::F32) => Some(Operand::Lanes {
                base: R9,
                scale: 4,
                offset: i32::try_from(offset + 4 * self.first_lane(way)).ok()?,
            }),
            _ => None,
        }
    }

    fn operand(&mut self, asm: &mut Assembler, way: usize, src: Src) -> Option<Operand> {
        match src {
            Src::S(r) => Some(Operand::Spread { base: RSI, offset: i32::try_from(r.0 * 8).ok()? }),
            Src::V(r) => match self.ways[way].held[usize::from(r.0)] {
                Held::Lanes(z) => Some(Operand::Reg(z)),
                Held::Mask(_) => None,
                // A block of an earlier group.
                Held::Nothing => {
                    let from = self.full(way, r)?;
                    let to = self.free.pop()?;
                    asm.load(to, from);
                    self.ways[way].held[usize::from(r.0)] = Held::Lanes(to);
                    Some(Operand::Reg(to))
                }
            },
            Src::None => None,
        }
    }

    /// The operand in a register: its own, or the given one.
    fn register(&mut self, asm: &mut Assembler, way: usize, src: Src, spare: usize) -> Option<Zmm> {
        match self.operand(asm, way, src)? {
            Operand::Reg(z) => Some(z),
            other => {
                let spare = asm.scratch.lanes[spare];
                asm.load(spare, other);
                Some(spare)
            }
        }
    }

    /// A value is complete: it is stored if it is a block of its own.
    fn define(&mut self, asm: &mut Assembler, way: usize, dst: VReg, value: Zmm) -> Option<()> {
        let (place, lane) = self.group.places[usize::from(dst.0)];
        if lane != Lane::F32 {
            return None;
        }
        let reduced = || self.group.reductions.iter().filter(|it| it.from == dst);
        let only_reduced = reduced().count() > 0 && reduced().all(|it| it.is_last);
        if let Place::Full(_) = place
            && !only_reduced
        {
            let to = self.full(way, dst)?;
            asm.store(to, value, K0);
        }
        self.ways[way].held[usize::from(dst.0)] = Held::Lanes(value);
        Some(())
    }

    /// The numbers of a way's lanes, in its first scratch register.
    fn lane_numbers(&self, asm: &mut Assembler, way: usize) {
        let [a, ..] = asm.scratch.lanes;
        asm.spread_index(a, RAX);
        asm.op(INT_ADD, a, a, Operand::Fixed { base: RDX, offset: 0 });
        if self.first_lane(way) > 0 {
            let before = asm.bits(self.first_lane(way) as u32);
            asm.op(INT_ADD, a, a, before);
        }
    }

    /// Which of the numbered lanes a box holds.
    fn box_mask(&self, asm: &mut Assembler, index: usize, to: K) {
        let (low, high) = self.layout.limits(index);
        let [a, ..] = asm.scratch.lanes;
        asm.int_compare(to, a, Operand::Spread { base: RDI, offset: high }, INT_LT, K0);
        asm.int_compare(to, a, Operand::Spread { base: RDI, offset: low }, INT_GE, to);
    }

    /// The lanes of a box as a mask.
    fn mask(&self, asm: &mut Assembler, way: usize, bounds: &Bounds) -> Option<K> {
        let index = self.layout.boxes.iter().position(|b| b == bounds)?;
        if self.hoists {
            return self.ways[way].boxes.get(index).copied();
        }
        self.lane_numbers(asm, way);
        self.box_mask(asm, index, BOX);
        Some(BOX)
    }

    fn is_off(&self, bounds: &Bounds) -> bool {
        let index = self.layout.boxes.iter().position(|b| b == bounds);
        index.is_some_and(|index| self.off >> index & 1 != 0)
    }

    /// Whether an access touches nothing because its box holds no lane.
    fn is_switched_off(&self, access: usize) -> bool {
        matches!(&self.group.accesses[access].mask, MaskForm::Box(bounds) if self.is_off(bounds))
    }

    fn access_mask(&self, asm: &mut Assembler, way: usize, access: &Access) -> Option<K> {
        match &access.mask {
            MaskForm::Box(bounds) if self.masked => self.mask(asm, way, bounds),
            MaskForm::Lanes(_) => None,
            _ => Some(K0),
        }
    }

    fn micro(&mut self, asm: &mut Assembler, way: usize, at: usize, micro: &Micro) -> Option<()> {
        match micro {
            Micro::Map { op, dst, a, b, c, .. } => self.map(asm, way, (*op)?, *dst, [*a, *b, *c]),
            Micro::Splat { dst, from } => {
                let to = self.free.pop()?;
                let from = self.operand(asm, way, Src::S(*from))?;
                asm.load(to, from);
                self.define(asm, way, *dst, to)
            }
            Micro::SelectBox { dst, bounds, a, b, .. } => {
                let to = self.free.pop()?;
                let whole = if self.is_off(bounds) { *b } else { *a };
                let a = self.operand(asm, way, whole)?;
                asm.load(to, a);
                if self.masked {
                    let other = self.operand(asm, way, *b)?;
                    let k = self.mask(asm, way, bounds)?;
                    let [a, ..] = asm.scratch.lanes;
                    asm.load(a, other);
                    asm.masked(BLEND, to, a, to, k);
                }
                self.define(asm, way, *dst, to)
            }
            Micro::Strided { dst, .. } => {
                let views = self.group.micros[..at].iter();
                let index = views.filter(|m| matches!(m, Micro::Strided { .. })).count();
                let (base, walk) = self.pointers[self.group.accesses.len() + index];
                let to = self.free.pop()?;
                self.read(asm, way, to, (base, walk), Elem::F32, K0)?;
                self.define(asm, way, *dst, to)
            }
            Micro::Load { dst, access } => {
                let a = &self.group.accesses[*access];
                let (base, walk) = self.pointers[*access];
                let to = self.free.pop()?;
                let is_off = self.is_switched_off(*access);
                let k = self.access_mask(asm, way, a)?;
                if k != K0 || is_off {
                    let other = match a.other {
                        Src::None => asm.number(0.0),
                        other => self.operand(asm, way, other)?,
                    };
                    asm.load(to, other);
                }
                if is_off {
                    return self.define(asm, way, *dst, to);
                }
                self.read(asm, way, to, (base, walk), a.elem, k)?;
                if walk.inner != 0 && walk.outer != 0 && !self.masked {
                    let size = a.elem.size() as u8;
                    let offset = AHEAD + self.offset(size, way);
                    asm.prefetch(Operand::Lanes { base, scale: size, offset });
                }
                self.define(asm, way, *dst, to)
            }
            Micro::Store { src, access, .. } => {
                let a = &self.group.accesses[*access];
                let (base, walk) = self.pointers[*access];
                if self.is_switched_off(*access) {
                    return Some(());
                }
                let value = self.register(asm, way, *src, 1)?;
                let k = self.access_mask(asm, way, a)?;
                let size = a.elem.size() as u8;
                if i64::from(walk.inner) != i64::from(size) {
                    return None;
                }
                let to = Operand::Lanes { base, scale: size, offset: self.offset(size, way) };
                if !self.masked {
                    let offset = AHEAD + self.offset(size, way);
                    asm.prefetch_write(Operand::Lanes { base, scale: size, offset });
                }
                match a.elem {
                    Elem::F32 => asm.store(to, value, k),
                    Elem::F16 => asm.store_f16(to, value, k),
                    Elem::BF16 => asm.store_bf16(to, value, k),
                    _ => return None,
                }
                Some(())
            }
            Micro::Iota { .. } | Micro::Divided { .. } | Micro::BoxMask { .. } => None,
        }
    }

    /// Lanes from memory where the mask is on; `to` keeps the others.
    fn read(
        &self,
        asm: &mut Assembler,
        way: usize,
        to: Zmm,
        (base, walk): (Gpr, Walk),
        elem: Elem,
        k: K,
    ) -> Option<()> {
        let size = elem.size() as u8;
        if walk.inner == 0 {
            let from = Operand::Fixed { base, offset: 0 };
            let [a, ..] = asm.scratch.lanes;
            match elem {
                Elem::F32 => asm.masked(SPREAD, to, Zmm(0), from, k),
                Elem::F16 => {
                    asm.zeroed(SPREAD_16, a, from, k);
                    asm.masked(FROM_HALF, to, Zmm(0), a, k);
                }
                Elem::BF16 => {
                    asm.zeroed(SPREAD_16, a, from, k);
                    asm.unary(WIDEN_16, a, a);
                    asm.shift_left(a, a, 16);
                    asm.masked(MOV, to, Zmm(0), a, k);
                }
                _ => return None,
            }
            return Some(());
        }
        let from = Operand::Lanes { base, scale: size, offset: self.offset(size, way) };
        match elem {
            Elem::F32 => asm.masked(MOV, to, Zmm(0), from, k),
            Elem::F16 => asm.masked(FROM_HALF, to, Zmm(0), from, k),
            Elem::BF16 => {
                let [a, ..] = asm.scratch.lanes;
                asm.zeroed(WIDEN_16, a, from, k);
                asm.shift_left(a, a, 16);
                asm.masked(MOV, to, Zmm(0), a, k);
            }
            _ => return None,
        }
        Some(())
    }

    fn map(
        &mut self,
        asm: &mut Assembler,
        way: usize,
        op: LaneOp,
        dst: VReg,
        [a, b, c]: [Src; 3],
    ) -> Option<()> {
        if let LaneOp::Compare(op) = op {
            return self.compare(asm, way, op, dst, a, b);
        }
        let to = self.free.pop()?;
        match op {
            LaneOp::Unary(op) => {
                let x = self.register(asm, way, a, 1)?;
                self.unary(asm, op, to, x)?;
            }
            LaneOp::Sigmoid => {
                let x = self.register(asm, way, a, 1)?;
                asm.sigmoid(to, x);
            }
            LaneOp::RoundF16 => {
                let x = self.register(asm, way, a, 1)?;
                asm.round_f16(to, x);
            }
            LaneOp::RoundBF16 => {
                let x = self.register(asm, way, a, 1)?;
                asm.round_bf16(to, x);
            }
            LaneOp::Binary(op) => self.binary(asm, way, op, to, a, b)?,
            LaneOp::Fma => {
                let (x, y, z) = (
                    self.operand(asm, way, a)?,
                    self.register(asm, way, b, 1)?,
                    self.operand(asm, way, c)?,
                );
                asm.load(to, x);
                asm.op(FMA, to, y, z);
            }
            LaneOp::Select => {
                let k = match a {
                    Src::V(condition) => match self.ways[way].held[usize::from(condition.0)] {
                        Held::Mask(k) => k,
                        _ => return None,
                    },
                    Src::S(_) => {
                        let ([x, ..], k) = (asm.scratch.lanes, asm.scratch.mask);
                        let condition = self.operand(asm, way, a)?;
                        asm.load(x, condition);
                        let one = asm.bits(1);
                        asm.op(INT_AND, x, x, one);
                        let zero = asm.bits(0);
                        asm.int_compare(k, x, zero, INT_NE, K0);
                        k
                    }
                    Src::None => return None,
                };
                let (yes, no) = (self.operand(asm, way, b)?, self.register(asm, way, c, 1)?);
                asm.masked(BLEND, to, no, yes, k);
            }
            LaneOp::Compare(_) => return None,
        }
        self.define(asm, way, dst, to)
    }

    fn compare(
        &mut self,
        asm: &mut Assembler,
        way: usize,
        op: CmpOp,
        dst: VReg,
        a: Src,
        b: Src,
    ) -> Option<()> {
        if let (Place::Full(_), _) = self.group.places[usize::from(dst.0)] {
            return None;
        }
        let (x, y) = (self.register(asm, way, a, 1)?, self.operand(asm, way, b)?);
        let how = match op {
            CmpOp::Eq => EQ,
            CmpOp::Ne => NE,
            CmpOp::Lt => LT,
            CmpOp::Le => LE,
            CmpOp::Gt => GT,
            CmpOp::Ge => GE,
        };
        let k = self.free_masks.pop()?;
        asm.compare(k, x, y, how, K0);
        self.ways[way].held[usize::from(dst.0)] = Held::Mask(k);
        Some(())
    }

    fn binary(
        &mut self,
        asm: &mut Assembler,
        way: usize,
        op: BinaryOp,
        to: Zmm,
        a: Src,
        b: Src,
    ) -> Option<()> {
        let x = self.register(asm, way, a, 1)?;
        let simple = match op {
            BinaryOp::Add => Some(ADD),
            BinaryOp::Sub => Some(SUB),
            BinaryOp::Mul => Some(MUL),
            BinaryOp::Div => Some(DIV),
            _ => None,
        };
        if let Some(code) = simple {
            let y = self.operand(asm, way, b)?;
            asm.op(code, to, x, y);
            return Some(());
        }
        let y = self.register(asm, way, b, 0)?;
        match op {
            BinaryOp::Max => extreme(asm, MAX, (to, x, y), false),
            BinaryOp::Min => extreme(asm, MIN, (to, x, y), false),
            BinaryOp::MaxNan => extreme(asm, MAX, (to, x, y), true),
            BinaryOp::MinNan => extreme(asm, MIN, (to, x, y), true),
            _ => return None,
        }
        Some(())
    }

    fn unary(&mut self, asm: &mut Assembler, op: UnaryOp, to: Zmm, x: Zmm) -> Option<()> {
        match op {
            UnaryOp::Neg => {
                let sign = asm.number(-0.0);
                asm.op(XOR, to, x, sign);
            }
            UnaryOp::Abs => {
                let rest = asm.bits(0x7fff_ffff);
                asm.op(AND, to, x, rest);
            }
            UnaryOp::Exp => asm.exp(to, x),
            UnaryOp::Exp2 => asm.exp2(to, x),
            UnaryOp::Log => asm.log(to, x),
            UnaryOp::Tanh => asm.tanh(to, x),
            UnaryOp::Erf => asm.erf(to, x),
            UnaryOp::Sqrt => asm.unary(SQRT, to, x),
            UnaryOp::Rsqrt => {
                let [a, b, ..] = asm.scratch.lanes;
                asm.unary(SQRT, a, x);
                let one = asm.number(1.0);
                asm.load(b, one);
                asm.op(DIV, to, b, a);
            }
            UnaryOp::Floor => asm.round(to, x, DOWN),
            UnaryOp::Ceil => asm.round(to, x, UP),
            UnaryOp::Trunc => asm.round(to, x, TO_ZERO),
            UnaryOp::Rint => asm.round(to, x, NEAREST),
            _ => return None,
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

/// The smaller or larger of two; where the first is NaN the second, or NaN if that is to `spread`.
fn extreme(asm: &mut Assembler, code: Code, (to, x, y): (Zmm, Zmm, Zmm), spread: bool) {
    let k = asm.scratch.mask;
    asm.compare(k, x, x, UNORDERED, K0);
    if spread {
        asm.op(code, to, x, y);
        asm.masked(BLEND, to, to, x, k);
    } else {
        asm.op(code, to, y, x);
        asm.masked(BLEND, to, to, y, k);
    }
}

/// Whether the code of a group may be tried at all: no other lanes than `f32`, and masks that stay inside.
pub(super) fn is_candidate(group: &Group) -> bool {
    group.micros.iter().all(|micro| match written(micro) {
        Some(dst) => {
            matches!(group.places[usize::from(dst.0)], (_, Lane::F32) | (Place::Slot(_), Lane::B8))
        }
        None => true,
    })
}
