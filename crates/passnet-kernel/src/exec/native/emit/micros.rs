//! One micro after the other: operands in registers, memory through masks.

use super::super::assembler::*;
use super::super::layout::Walk;
use super::{AHEAD, BOX, Emit, Held};
use crate::exec::group::{Access, Home, MaskForm, Micro};
use crate::exec::registers::{Bounds, Src, VReg};
use crate::lane::Lane;
use crate::types::Elem;

impl Emit<'_> {
    pub(super) fn full(&self, way: usize, r: VReg) -> Option<Operand> {
        match self.group.homes[usize::from(r.0)] {
            (Home::Full(offset), Lane::F32) => Some(Operand::Lanes {
                base: R9,
                scale: 4,
                offset: i32::try_from(offset + 4 * self.first_lane(way)).ok()?,
            }),
            _ => None,
        }
    }

    pub(super) fn operand(&mut self, asm: &mut Assembler, way: usize, src: Src) -> Option<Operand> {
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
    pub(super) fn register(
        &mut self,
        asm: &mut Assembler,
        way: usize,
        src: Src,
        spare: usize,
    ) -> Option<Zmm> {
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
    pub(super) fn define(
        &mut self,
        asm: &mut Assembler,
        way: usize,
        dst: VReg,
        value: Zmm,
    ) -> Option<()> {
        let (place, lane) = self.group.homes[usize::from(dst.0)];
        if lane != Lane::F32 {
            return None;
        }
        let reduced = || self.group.reductions.iter().filter(|it| it.from == dst);
        let only_reduced = reduced().count() > 0 && reduced().all(|it| it.is_last);
        if let Home::Full(_) = place
            && !only_reduced
        {
            let to = self.full(way, dst)?;
            asm.store(to, value, K0);
        }
        self.ways[way].held[usize::from(dst.0)] = Held::Lanes(value);
        Some(())
    }

    /// The numbers of a way's lanes, in its first scratch register.
    pub(super) fn lane_numbers(&self, asm: &mut Assembler, way: usize) {
        let [a, ..] = asm.scratch.lanes;
        asm.spread_index(a, RAX);
        asm.op(INT_ADD, a, a, Operand::Fixed { base: RDX, offset: 0 });
        if self.first_lane(way) > 0 {
            let before = asm.bits(self.first_lane(way) as u32);
            asm.op(INT_ADD, a, a, before);
        }
    }

    /// Which of the numbered lanes a box holds.
    pub(super) fn box_mask(&self, asm: &mut Assembler, index: usize, to: K) {
        let (low, high) = self.layout.limits(index);
        let [a, ..] = asm.scratch.lanes;
        asm.int_compare(to, a, Operand::Spread { base: RDI, offset: high }, INT_LT, K0);
        asm.int_compare(to, a, Operand::Spread { base: RDI, offset: low }, INT_GE, to);
    }

    /// The lanes of a box as a mask.
    pub(super) fn mask(&self, asm: &mut Assembler, way: usize, bounds: &Bounds) -> Option<K> {
        let index = self.layout.boxes.iter().position(|b| b == bounds)?;
        if self.hoists {
            return self.ways[way].boxes.get(index).copied();
        }
        self.lane_numbers(asm, way);
        self.box_mask(asm, index, BOX);
        Some(BOX)
    }

    pub(super) fn is_off(&self, bounds: &Bounds) -> bool {
        let index = self.layout.boxes.iter().position(|b| b == bounds);
        index.is_some_and(|index| self.off >> index & 1 != 0)
    }

    /// Whether an access touches nothing because its box holds no lane.
    pub(super) fn is_switched_off(&self, access: usize) -> bool {
        matches!(&self.group.accesses[access].mask, MaskForm::Box(bounds) if self.is_off(bounds))
    }

    pub(super) fn access_mask(
        &self,
        asm: &mut Assembler,
        way: usize,
        access: &Access,
    ) -> Option<K> {
        match &access.mask {
            MaskForm::Box(bounds) if self.masked => self.mask(asm, way, bounds),
            MaskForm::Lanes(_) => None,
            _ => Some(K0),
        }
    }

    pub(super) fn micro(
        &mut self,
        asm: &mut Assembler,
        way: usize,
        at: usize,
        micro: &Micro,
    ) -> Option<()> {
        match micro {
            Micro::Map { op, dst, a, b, c, .. } => self.map(asm, way, (*op)?, *dst, [*a, *b, *c]),
            Micro::Splat { dst, from }
                if matches!(self.group.homes[usize::from(dst.0)], (Home::Slot(_), Lane::B8)) =>
            {
                let k = self.free_masks.pop()?;
                self.uniform_mask(asm, way, *from, k)?;
                self.ways[way].held[usize::from(dst.0)] = Held::Mask(k);
                Some(())
            }
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
            Micro::Load { dst, access } => self.load(asm, way, *dst, *access),
            Micro::Store { src, access, .. } => self.store(asm, way, *src, *access),
            Micro::Iota { .. } | Micro::Divided { .. } | Micro::BoxMask { .. } => None,
        }
    }

    fn load(&mut self, asm: &mut Assembler, way: usize, dst: VReg, access: usize) -> Option<()> {
        let a = &self.group.accesses[access];
        let (base, walk) = self.pointers[access];
        let to = self.free.pop()?;
        let is_off = self.is_switched_off(access);
        let k = self.access_mask(asm, way, a)?;
        if k != K0 || is_off {
            let other = match a.other {
                Src::None => asm.number(0.0),
                other => self.operand(asm, way, other)?,
            };
            asm.load(to, other);
        }
        if is_off {
            return self.define(asm, way, dst, to);
        }
        self.read(asm, way, to, (base, walk), a.elem, k)?;
        if walk.inner != 0 && walk.outer != 0 && !self.masked {
            let size = a.elem.size() as u8;
            let offset = AHEAD + self.offset(size, way);
            asm.prefetch(Operand::Lanes { base, scale: size, offset });
        }
        self.define(asm, way, dst, to)
    }

    fn store(&mut self, asm: &mut Assembler, way: usize, src: Src, access: usize) -> Option<()> {
        let a = &self.group.accesses[access];
        let (base, walk) = self.pointers[access];
        if self.is_switched_off(access) {
            return Some(());
        }
        let value = self.register(asm, way, src, 1)?;
        let k = self.access_mask(asm, way, a)?;
        let size = a.elem.size() as u8;
        if i64::from(walk.inner) != i64::from(size) {
            return None;
        }
        let to = Operand::Lanes { base, scale: size, offset: self.offset(size, way) };
        if self.streams && !self.masked && a.elem == Elem::F32 {
            asm.stream(to, value);
            return Some(());
        }
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

    /// Lanes from memory where the mask is on; `to` keeps the others.
    pub(super) fn read(
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
}
