//! The steps of a tape, one after the other.

use super::blocks::{arg_reduce, gather, histogram, sort};
use super::strided::copy_lanes;
use super::{Machine, Result, fill, read_lane, write_lane};
use crate::exec::fault::FaultKind;
use crate::exec::registers::SReg;
use crate::exec::simd::{DotKernel, Kernel};
use crate::exec::tape::{ArenaView, BoundKind, Combine, IntOp, Step};
use crate::ir::Loc;
use crate::types::Elem;

impl<'t> Machine<'t, '_> {
    pub(super) fn steps(&mut self, steps: &'t [Step]) -> Result<()> {
        for step in steps {
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &'t Step) -> Result<()> {
        match step {
            Step::Scalar { f, dst, a, b, c } => self.scalar(*f, *dst, [*a, *b, *c]),
            Step::Int { op, dst, a, b } => {
                let (a, b) = (self.regs[a.0 as usize], self.regs[b.0 as usize]);
                self.regs[dst.0 as usize] = match op {
                    IntOp::Add => a.wrapping_add(b),
                    IntOp::Sub => a.wrapping_sub(b),
                    IntOp::Mul => a.wrapping_mul(b),
                };
            }
            Step::Move { dst, src } => self.regs[dst.0 as usize] = self.regs[src.0 as usize],
            Step::Bound { dst, base, stride, kind, size } => {
                let value = bound(self.int(*base), *stride, *kind, *size);
                self.regs[dst.0 as usize] = value as u64;
            }
            Step::Guard { base, low, high, elem, loc } => {
                self.guard(*base, (*low, *high), *elem, *loc)?;
            }
            Step::Group(group) => self.group(group)?,
            Step::LoadScalar { dst, ptr, mask, other, elem, buffer, loc } => {
                let on = mask.is_none_or(|m| self.regs[m.0 as usize] & 1 != 0);
                self.regs[dst.0 as usize] = if on {
                    self.load_scalar((self.int(*ptr), *buffer), *elem, *loc)?
                } else {
                    other.map_or(0, |o| self.regs[o.0 as usize])
                };
            }
            Step::StoreScalar { ptr, value, mask, elem, buffer, loc } => {
                if mask.is_none_or(|m| self.regs[m.0 as usize] & 1 != 0) {
                    let (address, bits) = (self.int(*ptr), self.regs[value.0 as usize]);
                    self.store_scalar((address, *buffer), bits, *elem, *loc)?;
                }
            }
            Step::Extract { dst, from, lane } => {
                self.regs[dst.0 as usize] = read_lane(self.arena(*from), *lane);
            }
            Step::Fill { to, from, lane, lanes } => {
                fill(self.arena(*to), self.regs[from.0 as usize], *lane, *lanes);
            }
            Step::CopyFull { to, from, bytes } => {
                let (to, from) = (self.arena(*to), self.arena(*from));
                // SAFETY: both blocks lie in the arena and hold `bytes`; the lowering never overlaps two blocks.
                unsafe { std::ptr::copy(from, to, *bytes) };
            }
            Step::CopyView { to, from, size } => self.copy_view(to, from, *size),
            Step::Reduce { f, to, from, axis } => {
                self.prefetch.step();
                let (to, from) = (self.arena(*to), self.arena(*from));
                // SAFETY: blocks of the sizes the lowering allocated, in different places.
                unsafe { f(to, from, axis.outer, axis.size, axis.inner) };
            }
            Step::Scan { f, to, from, axis, reverse } => {
                let (to, from) = (self.arena(*to), self.arena(*from));
                // SAFETY: as above.
                unsafe { f(to, from, axis.outer, axis.size, axis.inner, *reverse) };
            }
            Step::MapFull { f, to, from, lanes } => {
                let (to, from) = (self.arena(*to), self.arena(*from));
                // SAFETY: as above.
                unsafe { f(to, from, from, from, *lanes) };
            }
            Step::Dot { f, c, a, b, batch, m, n, k, lane } => {
                self.dot(*f, [*c, *a, *b], *batch, [*m, *n, *k], lane.size());
            }
            Step::ArgReduce { value, index, from, order, axis, max, tie_left } => {
                let (value, index, from) =
                    (self.arena(*value), self.arena(*index), self.arena(*from));
                arg_reduce(value, index, from, *order, axis, *max, *tie_left);
            }
            Step::Sort { block, order, rows, size, descending } => {
                let at = self.arena(*block);
                sort(at, *order, *rows, *size, *descending);
            }
            Step::Histogram { to, bins, from, lane, lanes, mask } => {
                let (to, from) = (self.arena(*to), self.arena(*from));
                let mask = mask.map(|m| self.arena(m).cast_const());
                histogram(to, *bins, from, *lane, *lanes, mask);
            }
            Step::Gather { to, from, index, index_lane, size, axis, source, loc } => {
                let (to, from, index) = (self.arena(*to), self.arena(*from), self.arena(*index));
                gather(to, from, index, *index_lane, *size, axis, *source).map_err(|found| {
                    self.fault(FaultKind::GatherIndex { index: found, size: *source }, *loc)
                })?;
            }
            Step::Combine(combine) => self.combine(combine)?,
            Step::Atomic(atomic) => self.atomic(atomic)?,
            Step::Assert { from, lanes, message, loc } => {
                self.assert_all(*from, *lanes, message, *loc)?;
            }
            Step::If { condition, then, otherwise } => {
                let taken = if self.regs[condition.0 as usize] & 1 != 0 { then } else { otherwise };
                self.steps(taken)?;
            }
            Step::For { low, high, step, index, body, loc } => {
                self.for_loop([*low, *high, *step], *index, body, *loc)?;
            }
            Step::While { condition_steps, condition, body, loc } => {
                self.while_loop(condition_steps, *condition, body, *loc)?;
            }
        }
        Ok(())
    }

    fn scalar(&mut self, f: Kernel, dst: SReg, [a, b, c]: [SReg; 3]) {
        let mut out = 0u64;
        let to = std::ptr::from_mut(&mut out).cast();
        // SAFETY: registers are aligned 64-bit words; the kernel touches one lane of each, and `out` is apart.
        unsafe { f(to, self.reg_ptr(a), self.reg_ptr(b), self.reg_ptr(c), 1) };
        self.regs[dst.0 as usize] = out;
    }

    /// Stops when an affine block leaves its integer type.
    fn guard(&self, base: SReg, (low, high): (i64, i64), elem: Elem, loc: Loc) -> Result<()> {
        let base = i128::from(self.int(base));
        let (type_low, type_high) = elem.int_range();
        if base + i128::from(low) < type_low || base + i128::from(high) > type_high {
            return Err(self.fault(FaultKind::IndexOverflow { elem }, loc));
        }
        Ok(())
    }

    fn dot(
        &mut self,
        f: DotKernel,
        operands: [usize; 3],
        batch: usize,
        [m, n, k]: [usize; 3],
        size: usize,
    ) {
        let [c, a, b] = operands.map(|at| self.arena(at));
        for i in 0..batch {
            // SAFETY: the operands hold `batch` matrices of these sizes.
            unsafe {
                let (c, a) = (c.add(i * m * n * size), a.add(i * m * k * size));
                f(c, a, b.add(i * k * n * size), m, n, k);
            }
        }
    }

    fn assert_all(&mut self, from: usize, lanes: usize, message: &str, loc: Loc) -> Result<()> {
        // SAFETY: the block holds `lanes` bytes.
        let lanes = unsafe { std::slice::from_raw_parts(self.arena(from), lanes) };
        match lanes.contains(&0) {
            true => Err(self.fault(FaultKind::Assert(message.to_string()), loc)),
            false => Ok(()),
        }
    }

    fn for_loop(
        &mut self,
        [low, high, step]: [SReg; 3],
        index: SReg,
        body: &'t [Step],
        loc: Loc,
    ) -> Result<()> {
        let (mut i, high, step) = (self.int(low), self.int(high), self.int(step));
        if step == 0 {
            return Err(self.fault(FaultKind::EndlessLoop, loc));
        }
        while if step > 0 { i < high } else { i > high } {
            self.tick(loc)?;
            self.regs[index.0 as usize] = i as u64;
            self.steps(body)?;
            match i.checked_add(step) {
                Some(next) => i = next,
                None => break,
            }
        }
        Ok(())
    }

    fn while_loop(
        &mut self,
        condition_steps: &'t [Step],
        condition: SReg,
        body: &'t [Step],
        loc: Loc,
    ) -> Result<()> {
        loop {
            self.tick(loc)?;
            self.steps(condition_steps)?;
            if self.regs[condition.0 as usize] & 1 == 0 {
                return Ok(());
            }
            self.steps(body)?;
        }
    }

    fn tick(&mut self, loc: Loc) -> Result<()> {
        self.iterations += 1;
        if self.iterations > self.max_iterations {
            return Err(self.fault(FaultKind::EndlessLoop, loc));
        }
        Ok(())
    }

    fn copy_view(&mut self, to: &ArenaView, from: &ArenaView, size: usize) {
        let (target, source) = (self.arena(to.offset), self.arena(from.offset));
        // SAFETY: both views stay inside their blocks, which the lowering made large enough.
        unsafe { copy_lanes(target, &to.dims, source, &from.dims, size) };
    }

    fn combine(&mut self, c: &'t Combine) -> Result<()> {
        let axis = &c.axis;
        for outer in 0..axis.outer {
            for inner in 0..axis.inner {
                for k in 0..axis.size {
                    let row = if c.reverse { axis.size - 1 - k } else { k };
                    let at = (outer * axis.size + row) * axis.inner + inner;
                    for (i, (from, lane)) in c.inputs.iter().enumerate() {
                        let ptr = self.arena(*from).wrapping_add(at * lane.size());
                        let bits = read_lane(ptr, *lane);
                        let reg = if k == 0 { c.accumulators[i] } else { c.elements[i] };
                        self.regs[reg.0 as usize] = bits;
                    }
                    if k > 0 {
                        self.steps(&c.body)?;
                        let results: Vec<u64> =
                            c.results.iter().map(|r| self.regs[r.0 as usize]).collect();
                        for (reg, bits) in c.accumulators.iter().zip(results) {
                            self.regs[reg.0 as usize] = bits;
                        }
                    }
                    if c.scan || k + 1 == axis.size {
                        let out = if c.scan { at } else { outer * axis.inner + inner };
                        for (i, (to, lane)) in c.outputs.iter().enumerate() {
                            let bits = self.regs[c.accumulators[i].0 as usize];
                            let ptr = self.arena(*to).wrapping_add(out * lane.size());
                            write_lane(ptr, bits, *lane);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Index of the first lane where `base + stride * index` crosses zero, clamped to the block; `stride > 0`.
fn bound(base: i64, stride: i64, kind: BoundKind, size: i64) -> i64 {
    if stride == 1 && base.unsigned_abs() < 1 << 62 {
        let zero = -base;
        let value = match kind {
            BoundKind::FirstNonNegative | BoundKind::Zero => zero,
            BoundKind::FirstPositive | BoundKind::AfterZero => zero + 1,
        };
        return value.clamp(0, size);
    }
    let below = i128::from(base).wrapping_neg();
    let stride = i128::from(stride);
    let ceil = |x: i128| x.div_euclid(stride) + i128::from(x.rem_euclid(stride) != 0);
    let exact = below.rem_euclid(stride) == 0;
    let size = i128::from(size);
    let value = match kind {
        BoundKind::FirstNonNegative => ceil(below),
        BoundKind::FirstPositive => below.div_euclid(stride) + 1,
        BoundKind::Zero => {
            if exact {
                below.div_euclid(stride)
            } else {
                size
            }
        }
        BoundKind::AfterZero => {
            if exact {
                below.div_euclid(stride) + 1
            } else {
                0
            }
        }
    };
    value.clamp(0, size) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_agree_with_trying_every_lane() {
        for base in -40i64..40 {
            for stride in 1i64..7 {
                let lanes: Vec<i64> = (0..16).map(|i| base + stride * i).collect();
                let first =
                    |p: &dyn Fn(i64) -> bool| lanes.iter().position(|&x| p(x)).unwrap_or(16) as i64;
                assert_eq!(
                    bound(base, stride, BoundKind::FirstNonNegative, 16),
                    first(&|x| x >= 0)
                );
                assert_eq!(bound(base, stride, BoundKind::FirstPositive, 16), first(&|x| x > 0));
                let (low, high) = (
                    bound(base, stride, BoundKind::Zero, 16),
                    bound(base, stride, BoundKind::AfterZero, 16),
                );
                for (i, &x) in lanes.iter().enumerate() {
                    assert_eq!((low..high).contains(&(i as i64)), x == 0, "{base} {stride} {i}");
                }
            }
        }
    }
}
