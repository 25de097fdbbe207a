//! Scalar registers: constants, ranges, and operations on values that are the same in all lanes.

use super::{Lower, Rep, Result};
use crate::exec::registers::SReg;
use crate::exec::simd::{self, Kernel, Mode};
use crate::exec::tape::{IntOp, Step};
use crate::ir::{BinaryOp, Inst, Literal, Op, UnaryOp, ValueId};
use crate::lane::Lane;
use crate::types::{Elem, Type};
use passnet_cpu::Isa;
use passnet_cpu::halves::{round_to_bf16, round_to_f16};

pub(super) const FULL: (i64, i64) = (i64::MIN, i64::MAX);

fn clamp(low: i128, high: i128) -> (i64, i64) {
    if low < i128::from(i64::MIN) || high > i128::from(i64::MAX) {
        return FULL;
    }
    (low as i64, high as i64)
}

/// Range of an integer type held in a register.
pub(super) fn elem_range(elem: Elem) -> (i64, i64) {
    if elem == Elem::U64 {
        return FULL;
    }
    let (low, high) = elem.int_range();
    clamp(low, high)
}

impl Lower<'_> {
    pub(super) fn fresh_reg(&mut self, range: (i64, i64)) -> SReg {
        self.image.push(0);
        self.constant.push(false);
        self.ranges.push(range);
        self.multiples.push(1);
        SReg(self.image.len() as u32 - 1)
    }

    pub(super) fn constant_reg(&mut self, bits: u64) -> SReg {
        let reg = self.fresh_reg((bits as i64, bits as i64));
        self.image[reg.0 as usize] = bits;
        self.constant[reg.0 as usize] = true;
        self.multiples[reg.0 as usize] = (bits as i64).checked_abs().unwrap_or(1);
        reg
    }

    pub(super) fn int_reg(&mut self, value: i64) -> SReg {
        self.constant_reg(value as u64)
    }

    pub(super) fn range(&self, reg: SReg) -> (i64, i64) {
        self.ranges[reg.0 as usize]
    }

    /// The value of a register that never changes.
    pub(super) fn known_int(&self, reg: SReg) -> Option<i64> {
        self.constant[reg.0 as usize].then(|| self.image[reg.0 as usize] as i64)
    }

    pub(super) fn literal(&mut self, literal: Literal, v: ValueId) -> SReg {
        let elem = self.ty(v).elem();
        let bits = match (literal, elem) {
            (Literal::Int(i), e) if e.is_int() => i as u64,
            (literal, e) => {
                let x = match literal {
                    Literal::Int(i) => i as f64,
                    Literal::Float(x) => x,
                };
                match e {
                    Elem::F64 => x.to_bits(),
                    Elem::F32 => u64::from((x as f32).to_bits()),
                    Elem::F16 => u64::from(round_to_f16(x as f32).to_bits()),
                    Elem::BF16 => u64::from(round_to_bf16(x as f32).to_bits()),
                    _ => x as i64 as u64,
                }
            }
        };
        self.constant_reg(bits)
    }

    /// Emits a scalar step, or folds it when all operands are constants, or reuses an equal one.
    pub(super) fn scalar(&mut self, f: Kernel, args: [SReg; 3], range: (i64, i64)) -> SReg {
        let key = (f as usize, args);
        if let Some(reg) = self.known.get(&key) {
            return *reg;
        }
        if args.iter().all(|a| self.constant[a.0 as usize]) {
            let operands = args.map(|a| self.image[a.0 as usize]);
            let mut out = 0u64;
            let at = |i: usize| std::ptr::from_ref(&operands[i]).cast::<u8>();
            // SAFETY: each operand and the result is an aligned 64-bit word, at least as large as any lane; the
            // kernel reads and writes one lane.
            unsafe { f(std::ptr::from_mut(&mut out).cast(), at(0), at(1), at(2), 1) };
            return self.constant_reg(out);
        }
        let dst = self.fresh_reg(range);
        let [a, b, c] = args;
        self.steps.push(Step::Scalar { f, dst, a, b, c });
        self.known.insert(key, dst);
        dst
    }

    pub(super) fn scalar1(&mut self, f: Kernel, a: SReg, range: (i64, i64)) -> SReg {
        self.scalar(f, [a, a, a], range)
    }

    pub(super) fn scalar2(&mut self, f: Kernel, a: SReg, b: SReg, range: (i64, i64)) -> SReg {
        self.scalar(f, [a, b, b], range)
    }

    /// `i64` arithmetic that wraps, with the range it can have.
    pub(super) fn int_op(&mut self, op: BinaryOp, a: SReg, b: SReg) -> SReg {
        let identity = match (op, self.known_int(a), self.known_int(b)) {
            (BinaryOp::Add, Some(0), _) | (BinaryOp::Mul, Some(1), _) => Some(b),
            (BinaryOp::Add | BinaryOp::Sub, _, Some(0)) | (BinaryOp::Mul, _, Some(1)) => Some(a),
            _ => None,
        };
        if let Some(reg) = identity {
            return reg;
        }
        let range = op_range(op, self.range(a), self.range(b));
        let reg = match simd::binary(Isa::Base, op, Lane::I64, Elem::I64, Mode::VV) {
            Some(f) => self.scalar2(f, a, b, range),
            None => a,
        };
        let plain = match op {
            BinaryOp::Add => Some(IntOp::Add),
            BinaryOp::Sub => Some(IntOp::Sub),
            BinaryOp::Mul => Some(IntOp::Mul),
            _ => None,
        };
        if let (Some(op), Some(Step::Scalar { dst, a, b, .. })) = (plain, self.steps.last())
            && *dst == reg
        {
            let step = Step::Int { op, dst: *dst, a: *a, b: *b };
            self.steps.pop();
            self.steps.push(step);
        }
        // Where the arithmetic could wrap, nothing is known about divisors.
        if range != FULL && !self.constant[reg.0 as usize] {
            let (m, n) = (self.multiple(a), self.multiple(b));
            self.multiples[reg.0 as usize] = match op {
                BinaryOp::Add | BinaryOp::Sub => gcd(m, n),
                BinaryOp::Mul => m.checked_mul(n).unwrap_or(1),
                BinaryOp::Rem => gcd(m, n),
                _ => 1,
            };
        }
        reg
    }

    /// A number that divides the register, whatever its value; zero for a register that is always zero.
    pub(super) fn multiple(&self, reg: SReg) -> i64 {
        self.multiples[reg.0 as usize]
    }

    pub(super) fn set_multiple(&mut self, reg: SReg, multiple: i64) {
        self.multiples[reg.0 as usize] = multiple;
    }

    /// Wraps an integer register to its type where its range does not already prove it.
    pub(super) fn wrap(&mut self, reg: SReg, elem: Elem) -> SReg {
        let (low, high) = elem_range(elem);
        let (have_low, have_high) = self.range(reg);
        if have_low >= low && have_high <= high {
            return reg;
        }
        match simd::narrow(Isa::Base, elem, Lane::I64) {
            Some(f) => self.scalar1(f, reg, (low, high)),
            None => reg,
        }
    }

    /// The lane-typed view of a scalar's type.
    fn scalar_lane(ty: &Type) -> Lane {
        Lane::of_scalar(ty)
    }

    /// An elementwise operation on uniform operands.
    pub(super) fn uniform_op(&mut self, inst: &Inst, args: &[SReg]) -> Result<SReg> {
        let result_ty = self.ty(inst.results[0]).clone();
        let arg_ty = self.ty(*inst.args.last().unwrap_or(&inst.results[0])).clone();
        let lane = Self::scalar_lane(&arg_ty);
        let elem = arg_ty.num().unwrap_or(Elem::I64);
        let base = Isa::Base;
        let reg = match &inst.op {
            Op::Unary(op @ (UnaryOp::Popc | UnaryOp::Clz)) => {
                let narrow = Lane::of(&arg_ty);
                let (input, narrow) =
                    if elem == Elem::U32 { (args[0], Lane::I32) } else { (args[0], narrow) };
                let f = self.kernel(simd::unary(base, *op, narrow), op.name())?;
                let counted = self.scalar1(f, input, (0, 64));
                self.widen(counted)
            }
            Op::Unary(op) => {
                let f = self.kernel(simd::unary(base, *op, lane), op.name())?;
                let range = match op {
                    UnaryOp::Neg => op_range(BinaryOp::Sub, (0, 0), self.range(args[0])),
                    UnaryOp::Not if elem == Elem::I1 => (0, 1),
                    _ => FULL,
                };
                self.scalar1(f, args[0], range)
            }
            Op::Binary(BinaryOp::UMulHi) if elem == Elem::I32 => {
                let f = self.kernel(
                    simd::binary(base, BinaryOp::UMulHi, Lane::I32, elem, Mode::VV),
                    "umulhi",
                )?;
                let high = self.scalar2(f, args[0], args[1], FULL);
                self.widen(high)
            }
            Op::Binary(op)
                if elem.is_int()
                    && lane == Lane::I64
                    && !matches!(elem, Elem::U64)
                    && *op != BinaryOp::UMulHi =>
            {
                self.int_op(*op, args[0], args[1])
            }
            Op::Binary(op) => {
                let f = self.kernel(simd::binary(base, *op, lane, elem, Mode::VV), op.name())?;
                self.scalar2(f, args[0], args[1], FULL)
            }
            Op::Compare(op) => {
                let f = simd::compare(base, *op, lane, elem, Mode::VV);
                self.scalar2(f, args[0], args[1], (0, 1))
            }
            Op::Select => {
                let f = simd::select(base, lane, Mode::VV);
                let (a, b) = (self.range(args[1]), self.range(args[2]));
                self.scalar(f, [args[0], args[1], args[2]], (a.0.min(b.0), a.1.max(b.1)))
            }
            Op::Fma => {
                let f = simd::fma(base, lane, Mode::VV);
                self.scalar(f, [args[0], args[1], args[2]], FULL)
            }
            // As lanes do it: numbers that are too large for 32 bits end there.
            Op::Cast if elem.is_float() && Lane::of(&result_ty) == Lane::I32 => {
                let to = (result_ty.elem(), Lane::I32);
                let f = self.kernel(simd::cast(base, (elem, lane), to), "this cast")?;
                let narrow = self.scalar1(f, args[0], FULL);
                self.widen(narrow)
            }
            Op::Cast => {
                let (to_elem, to_lane) = (result_ty.elem(), Self::scalar_lane(&result_ty));
                let range = if elem.is_int() { self.range(args[0]) } else { FULL };
                let f =
                    self.kernel(simd::cast(base, (elem, lane), (to_elem, to_lane)), "this cast")?;
                if lane == to_lane { args[0] } else { self.scalar1(f, args[0], range) }
            }
            Op::Bitcast => self.uniform_bitcast(&arg_ty, &result_ty, args[0])?,
            Op::AddPtr => {
                let size = self.int_reg(self.ty(inst.args[0]).elem().size() as i64);
                let bytes = self.int_op(BinaryOp::Mul, args[1], size);
                self.int_op(BinaryOp::Add, args[0], bytes)
            }
            other => return Err(self.error(format!("internal error: {other} is not elementwise"))),
        };
        Ok(match result_ty.num() {
            Some(e) if e.is_int() && e != Elem::I1 => self.wrap(reg, e),
            Some(e) if e.is_half() => match simd::narrow(base, e, Lane::F32) {
                Some(f) => self.scalar1(f, reg, FULL),
                None => reg,
            },
            _ => reg,
        })
    }

    /// An `i32` lane as the `i64` a register holds.
    pub(super) fn widen(&mut self, reg: SReg) -> SReg {
        match simd::cast(Isa::Base, (Elem::I32, Lane::I32), (Elem::I64, Lane::I64)) {
            Some(f) => self.scalar1(f, reg, elem_range(Elem::I32)),
            None => reg,
        }
    }

    fn uniform_bitcast(&mut self, from: &Type, to: &Type, reg: SReg) -> Result<SReg> {
        let pair = |t: &Type| (t.num().unwrap_or(Elem::I64), Lane::of(t));
        let (from, to) = (pair(from), pair(to));
        if from.1 != Lane::F32 && from.1 != Lane::F64 && to.1 != Lane::F32 && to.1 != Lane::F64 {
            return Ok(reg);
        }
        let f = self.kernel(simd::bitcast(Isa::Base, from, to), "this bitcast")?;
        let cast = self.scalar1(f, reg, FULL);
        Ok(if to.1 == Lane::I32 { self.widen(cast) } else { cast })
    }

    /// Whether an affine block certainly stays inside its integer type: yes, perhaps (a guard decides), no.
    pub(super) fn affine_fits(
        &mut self,
        base: SReg,
        strides: &[i64],
        shape: &[u32],
        elem: Elem,
    ) -> bool {
        if elem.bits() == 64 {
            return true;
        }
        let (mut low, mut high) = (0i128, 0i128);
        for (&stride, &size) in strides.iter().zip(shape) {
            let reach = i128::from(stride) * i128::from(size - 1);
            low += reach.min(0);
            high += reach.max(0);
        }
        let (type_low, type_high) = elem.int_range();
        let (base_low, base_high) = self.range(base);
        if i128::from(base_low) + low >= type_low && i128::from(base_high) + high <= type_high {
            return true;
        }
        // A base with known bounds that can overflow is hashing, not indexing: compute it lane by lane.
        let unknown = i128::from(base_low) <= type_low || i128::from(base_high) >= type_high;
        if !unknown || elem.is_unsigned() {
            return false;
        }
        let (Ok(low), Ok(high)) = (i64::try_from(low), i64::try_from(high)) else { return false };
        self.steps.push(Step::Guard { base, low, high, elem, loc: self.loc });
        true
    }

    pub(super) fn uniform_args(&self, inst: &Inst) -> Option<Vec<SReg>> {
        inst.args
            .iter()
            .map(|v| match self.reps[v.index()] {
                Some(Rep::Uniform(r)) => Some(r),
                _ => None,
            })
            .collect()
    }
}

pub(super) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Interval arithmetic; gives up rather than wrap.
pub(super) fn op_range(op: BinaryOp, a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    let w = |x: i64| i128::from(x);
    match op {
        BinaryOp::Add => clamp(w(a.0) + w(b.0), w(a.1) + w(b.1)),
        BinaryOp::Sub => clamp(w(a.0) - w(b.1), w(a.1) - w(b.0)),
        BinaryOp::Mul => {
            let all = [w(a.0) * w(b.0), w(a.0) * w(b.1), w(a.1) * w(b.0), w(a.1) * w(b.1)];
            let low = all.iter().copied().min().unwrap_or(0);
            let high = all.iter().copied().max().unwrap_or(0);
            clamp(low, high)
        }
        BinaryOp::Div if b.0 > 0 => {
            let all = [a.0 / b.0, a.0 / b.1, a.1 / b.0, a.1 / b.1];
            (all.iter().copied().min().unwrap_or(0), all.iter().copied().max().unwrap_or(0))
        }
        BinaryOp::Rem if b.0 > 0 => {
            let low = if a.0 >= 0 { 0 } else { -(b.1 - 1) };
            (low, (b.1 - 1).min(a.1.max(0)))
        }
        BinaryOp::Min => (a.0.min(b.0), a.1.min(b.1)),
        BinaryOp::Max => (a.0.max(b.0), a.1.max(b.1)),
        BinaryOp::And if b.0 >= 0 => (0, if a.0 >= 0 { b.1.min(a.1) } else { b.1 }),
        BinaryOp::And if a.0 >= 0 => (0, a.1),
        BinaryOp::Shr if b.0 >= 0 && b.0 == b.1 && b.0 < 64 => (a.0 >> b.0, a.1 >> b.0),
        BinaryOp::Shl if b.0 >= 0 && b.0 == b.1 && b.0 < 62 => clamp(w(a.0) << b.0, w(a.1) << b.0),
        _ => FULL,
    }
}
