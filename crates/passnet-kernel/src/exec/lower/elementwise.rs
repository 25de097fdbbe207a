//! Elementwise instructions: folded into scalars or affine forms where possible, otherwise put into the group.

use super::scalar::gcd;
use super::{Lower, Rep, Result};
use crate::exec::group::{Cost, LaneOp};
use crate::exec::registers::{Bounds, SReg, Src, VReg};
use crate::exec::simd::{self, Mode};
use crate::exec::tape::{BoundKind, Step};
use crate::exec::views::{Strides, collapse};
use crate::ir::{BinaryOp, CmpOp, Inst, Op, UnaryOp, ValueId};
use crate::lane::Lane;
use crate::types::{Elem, Shape, Type};

/// An affine view of a value: uniform values have strides of zero.
struct Form {
    base: SReg,
    strides: Strides,
}

impl Lower<'_> {
    pub(super) fn elementwise(&mut self, inst: &Inst) -> Result<()> {
        let result = inst.results[0];
        if let Some(args) = self.uniform_args(inst) {
            let reg = self.uniform_op(inst, &args)?;
            self.set(result, Rep::Uniform(reg));
            return Ok(());
        }
        if let Some(rep) = self.affine(inst)? {
            self.set(result, rep);
            return Ok(());
        }
        if let Some(rep) = self.mask_box(inst)? {
            self.set(result, rep);
            return Ok(());
        }
        if let Some(rep) = self.row_pointers(inst)? {
            self.set(result, rep);
            return Ok(());
        }
        self.dense(inst)
    }

    fn form(&self, v: ValueId, shape: &Shape) -> Option<Form> {
        match self.reps[v.index()].as_ref()? {
            Rep::Uniform(base) => {
                Some(Form { base: *base, strides: shape.iter().map(|_| 0).collect() })
            }
            Rep::Affine { base, strides } => Some(Form { base: *base, strides: strides.clone() }),
            _ => None,
        }
    }

    /// The first lane of a value that steps evenly along each dimension, and the steps.
    pub(super) fn even_steps(&self, v: ValueId, shape: &Shape) -> Option<(SReg, Strides)> {
        self.form(v, shape).map(|form| (form.base, form.strides))
    }

    /// Index arithmetic that stays an affine function of the lane index.
    fn affine(&mut self, inst: &Inst) -> Result<Option<Rep>> {
        let ty = self.ty(inst.results[0]).clone();
        let elem = match ty.num() {
            Some(e) if e.is_float() || matches!(e, Elem::I1 | Elem::U64) => return Ok(None),
            Some(e) => e,
            None => Elem::I64,
        };
        let forms: Option<Vec<Form>> = inst.args.iter().map(|v| self.form(*v, &ty.shape)).collect();
        let Some(forms) = forms else { return Ok(None) };
        let is_int = |this: &Self, v: ValueId| {
            this.ty(v).num().is_none_or(|e| e.is_int() && e != Elem::I1 && e != Elem::U64)
        };
        if !inst.args.iter().all(|v| is_int(self, *v)) {
            return Ok(None);
        }
        let combined = match &inst.op {
            Op::Binary(op @ (BinaryOp::Add | BinaryOp::Sub)) => {
                let sign = if *op == BinaryOp::Add { 1 } else { -1 };
                let Some(strides) = combine(&forms[0].strides, &forms[1].strides, sign) else {
                    return Ok(None);
                };
                let base = self.int_op(*op, forms[0].base, forms[1].base);
                Some(Form { base, strides })
            }
            Op::Binary(BinaryOp::Mul) => {
                let by = |f: &Form, this: &Self| {
                    if f.strides.iter().all(|&s| s == 0) { this.known_int(f.base) } else { None }
                };
                let (form, factor) = match (by(&forms[0], self), by(&forms[1], self)) {
                    (_, Some(k)) => (&forms[0], k),
                    (Some(k), _) => (&forms[1], k),
                    _ => return Ok(None),
                };
                let Some(strides) = scaled(&form.strides, factor) else { return Ok(None) };
                let base = form.base;
                let factor = self.int_reg(factor);
                let base = self.int_op(BinaryOp::Mul, base, factor);
                Some(Form { base, strides })
            }
            Op::Binary(op @ (BinaryOp::Div | BinaryOp::Rem)) => {
                self.divided(&forms[0], &forms[1], &ty.shape, *op)
            }
            Op::Unary(UnaryOp::Neg) => {
                let Some(strides) = scaled(&forms[0].strides, -1) else { return Ok(None) };
                let zero = self.int_reg(0);
                let base = self.int_op(BinaryOp::Sub, zero, forms[0].base);
                Some(Form { base, strides })
            }
            Op::Cast => Some(Form { base: forms[0].base, strides: forms[0].strides.clone() }),
            Op::AddPtr => {
                let size = self.ty(inst.args[0]).elem().size() as i64;
                let Some(bytes) = scaled(&forms[1].strides, size) else { return Ok(None) };
                let Some(strides) = combine(&forms[0].strides, &bytes, 1) else { return Ok(None) };
                let size = self.int_reg(size);
                let moved = self.int_op(BinaryOp::Mul, forms[1].base, size);
                let base = self.int_op(BinaryOp::Add, forms[0].base, moved);
                Some(Form { base, strides })
            }
            Op::Bitcast if ty.is_ptr() => {
                Some(Form { base: forms[0].base, strides: forms[0].strides.clone() })
            }
            _ => None,
        };
        let Some(form) = combined else { return Ok(None) };
        if !self.affine_fits(form.base, &form.strides, &ty.shape, elem) {
            return Ok(None);
        }
        if form.strides.iter().all(|&s| s == 0) {
            return Ok(Some(Rep::Uniform(form.base)));
        }
        Ok(Some(Rep::Affine { base: form.base, strides: form.strides }))
    }

    /// Quotient or remainder of an affine block by a constant, where it is affine again: the block lies between two
    /// multiples of the divisor, or moves by multiples of it.
    fn divided(&mut self, x: &Form, by: &Form, shape: &Shape, op: BinaryOp) -> Option<Form> {
        let divisor = self.known_int(by.base).filter(|_| by.strides.iter().all(|&s| s == 0))?;
        if divisor <= 0 || self.range(x.base).0 < 0 || x.strides.iter().any(|&s| s < 0) {
            return None;
        }
        let zeros = || x.strides.iter().map(|_| 0).collect::<Strides>();
        let steps_over = x.strides.iter().all(|&s| s % divisor == 0);
        let reach = x.strides.iter().zip(shape).try_fold(0i64, |sum, (&stride, &size)| {
            sum.checked_add(stride.checked_mul(i64::from(size) - 1)?)
        })?;
        let between = reach < gcd(divisor, self.multiple(x.base));
        let strides = match (op, steps_over, between) {
            (BinaryOp::Div, true, _) => x.strides.iter().map(|&s| s / divisor).collect(),
            (BinaryOp::Div, false, true) | (_, true, _) => zeros(),
            (_, false, true) => x.strides.clone(),
            _ => return None,
        };
        let divisor = self.int_reg(divisor);
        Some(Form { base: self.int_op(op, x.base, divisor), strides })
    }

    /// The same lane by lane, from run to run instead of by division.
    fn divided_lanes(&mut self, inst: &Inst, op: BinaryOp) -> Result<Option<VReg>> {
        let ty = self.ty(inst.results[0]).clone();
        let quotient = match op {
            BinaryOp::Div => true,
            BinaryOp::Rem => false,
            _ => return Ok(None),
        };
        if ty.num().is_none_or(|e| !e.is_int() || matches!(e, Elem::I1 | Elem::U64)) {
            return Ok(None);
        }
        let (Rep::Affine { base, strides }, Rep::Uniform(divisor)) =
            (self.rep(inst.args[0])?, self.rep(inst.args[1])?)
        else {
            return Ok(None);
        };
        let dims = collapse(&ty.shape, &strides);
        let lane = Lane::of(&ty);
        Ok(Some(self.push_divided(lane, (base, dims), divisor, quotient)?))
    }

    /// Comparisons of affine blocks along one dimension, and conjunctions of such masks.
    fn mask_box(&mut self, inst: &Inst) -> Result<Option<Rep>> {
        let shape = self.ty(inst.results[0]).shape.clone();
        match &inst.op {
            Op::Compare(op) => self.compare_box(inst, *op, &shape),
            Op::Binary(BinaryOp::And) if self.ty(inst.results[0]).num() == Some(Elem::I1) => {
                let (a, b) = (self.rep(inst.args[0])?, self.rep(inst.args[1])?);
                Ok(match (a, b) {
                    (Rep::Box(a), Rep::Box(b)) => Some(Rep::Box(self.meet(&a, &b))),
                    (Rep::Box(a), Rep::Uniform(u)) | (Rep::Uniform(u), Rep::Box(a)) => {
                        let size = self.int_reg(i64::from(shape[0]));
                        let mut bounds = a;
                        let high = bounds[0].1.unwrap_or(size);
                        bounds[0].1 = Some(self.int_op(BinaryOp::Mul, high, u));
                        Some(Rep::Box(bounds))
                    }
                    _ => None,
                })
            }
            _ => Ok(None),
        }
    }

    fn meet(&mut self, a: &Bounds, b: &Bounds) -> Bounds {
        let mut out = Bounds::new();
        for (x, y) in a.iter().zip(b) {
            let low = match (x.0, y.0) {
                (Some(p), Some(q)) => Some(self.int_op(BinaryOp::Max, p, q)),
                (p, q) => p.or(q),
            };
            let high = match (x.1, y.1) {
                (Some(p), Some(q)) => Some(self.int_op(BinaryOp::Min, p, q)),
                (p, q) => p.or(q),
            };
            out.push((low, high));
        }
        out
    }

    fn compare_box(&mut self, inst: &Inst, op: CmpOp, shape: &Shape) -> Result<Option<Rep>> {
        let elem = self.ty(inst.args[0]).num();
        if elem.is_none_or(|e| e.is_float() || matches!(e, Elem::U64 | Elem::I1)) {
            return Ok(None);
        }
        let (Some(a), Some(b)) = (self.form(inst.args[0], shape), self.form(inst.args[1], shape))
        else {
            return Ok(None);
        };
        let Some(strides) = combine(&a.strides, &b.strides, -1) else { return Ok(None) };
        let moving: Vec<usize> =
            (0..shape.len()).filter(|&d| strides[d] != 0 && shape[d] > 1).collect();
        let [dim] = moving[..] else { return Ok(None) };
        // The mask is decided by the sign of a - b along one dimension; make the stride positive.
        let (base, stride, op) = if strides[dim] > 0 {
            (self.int_op(BinaryOp::Sub, a.base, b.base), strides[dim], op)
        } else {
            let flipped = match op {
                CmpOp::Lt => CmpOp::Gt,
                CmpOp::Le => CmpOp::Ge,
                CmpOp::Gt => CmpOp::Lt,
                CmpOp::Ge => CmpOp::Le,
                other => other,
            };
            (self.int_op(BinaryOp::Sub, b.base, a.base), -strides[dim], flipped)
        };
        let bound = |this: &mut Self, kind: BoundKind| {
            let size = i64::from(shape[dim]);
            let dst = this.fresh_reg((0, size));
            this.steps.push(Step::Bound { dst, base, stride, kind, size });
            dst
        };
        let mut bounds: Bounds = shape.iter().map(|_| (None, None)).collect();
        bounds[dim] = match op {
            CmpOp::Lt => (None, Some(bound(self, BoundKind::FirstNonNegative))),
            CmpOp::Le => (None, Some(bound(self, BoundKind::FirstPositive))),
            CmpOp::Ge => (Some(bound(self, BoundKind::FirstNonNegative)), None),
            CmpOp::Gt => (Some(bound(self, BoundKind::FirstPositive)), None),
            CmpOp::Eq => {
                (Some(bound(self, BoundKind::Zero)), Some(bound(self, BoundKind::AfterZero)))
            }
            CmpOp::Ne => return Ok(None),
        };
        Ok(Some(Rep::Box(bounds)))
    }

    /// Work on lanes, in the group of the result's shape.
    fn dense(&mut self, inst: &Inst) -> Result<()> {
        let result = inst.results[0];
        let ty = self.ty(result).clone();
        self.group_for(&ty.shape)?;
        let arg_ty = self.ty(*inst.args.last().unwrap_or(&result)).clone();
        let lane = Lane::of(&arg_ty);
        let elem = arg_ty.num().unwrap_or(Elem::I64);
        let out_lane = Lane::of(&ty);
        let isa = self.isa;
        let special = match &inst.op {
            Op::Binary(op) => self.divided_lanes(inst, *op)?,
            Op::Select => self.select_box(inst)?,
            _ => None,
        };
        let reg = match &inst.op {
            Op::Binary(_) | Op::Select if special.is_some() => special.unwrap_or(VReg(0)),
            Op::Unary(op) => {
                let mut a = Src::V(self.lanes(inst.args[0])?);
                let mut lane = lane;
                if matches!(op, UnaryOp::Popc | UnaryOp::Clz) && elem == Elem::U32 {
                    let f = self.kernel(
                        simd::cast(isa, (elem, lane), (Elem::I32, Lane::I32)),
                        "this cast",
                    )?;
                    a = Src::V(self.map(f, Lane::I32, [a, Src::None, Src::None])?);
                    lane = Lane::I32;
                }
                let f = self.kernel(simd::unary(isa, *op, lane), op.name())?;
                let args = [a, Src::None, Src::None];
                let known = floats(lane, LaneOp::Unary(*op));
                self.map_of(f, known, out_lane, args, unary_cost(*op, lane))?
            }
            Op::Binary(op) => {
                let (a, b) = (self.operand(inst.args[0])?, self.operand(inst.args[1])?);
                let f = self.kernel(simd::binary(isa, *op, lane, elem, mode(a, b)), op.name())?;
                let known = floats(lane, LaneOp::Binary(*op));
                self.map_of(f, known, out_lane, [a, b, Src::None], binary_cost(*op))?
            }
            Op::Compare(op) => {
                let (a, b) = (self.operand(inst.args[0])?, self.operand(inst.args[1])?);
                let f = simd::compare(isa, *op, lane, elem, mode(a, b));
                let known = floats(lane, LaneOp::Compare(*op));
                self.map_of(f, known, out_lane, [a, b, Src::None], Cost::Light)?
            }
            Op::Select => {
                let c = Src::V(self.lanes(inst.args[0])?);
                let (a, b) = (self.operand(inst.args[1])?, self.operand(inst.args[2])?);
                let f = simd::select(isa, lane, mode(a, b));
                let known = floats(lane, LaneOp::Select);
                self.map_of(f, known, out_lane, [c, a, b], Cost::Light)?
            }
            Op::Fma => {
                let a = Src::V(self.lanes(inst.args[0])?);
                let (b, c) = (self.operand(inst.args[1])?, self.operand(inst.args[2])?);
                let f = simd::fma(isa, lane, mode(b, c));
                let known = floats(lane, LaneOp::Fma);
                self.map_of(f, known, out_lane, [a, b, c], Cost::Light)?
            }
            Op::Cast => {
                let a = self.lanes(inst.args[0])?;
                self.cast_lanes(a, (elem, lane), (ty.elem(), out_lane))?
            }
            Op::Bitcast => {
                let a = Src::V(self.lanes(inst.args[0])?);
                let to = (ty.num().unwrap_or(Elem::I64), out_lane);
                let f = self.kernel(simd::bitcast(isa, (elem, lane), to), "this bitcast")?;
                self.map(f, out_lane, [a, Src::None, Src::None])?
            }
            Op::AddPtr => self.add_pointer(inst)?,
            other => return Err(self.error(format!("internal error: {other} is not elementwise"))),
        };
        let reg = match ty.num() {
            Some(e) if may_leave_type(&inst.op, &ty, elem) => self.narrowed(reg, e, out_lane)?,
            _ => reg,
        };
        self.define_chunk(result, reg)
    }

    /// A choice by a box mask needs no mask lanes.
    fn select_box(&mut self, inst: &Inst) -> Result<Option<VReg>> {
        let Rep::Box(bounds) = self.rep(inst.args[0])? else { return Ok(None) };
        let lane = Lane::of(self.ty(inst.results[0]));
        let (a, b) = (self.operand(inst.args[1])?, self.operand(inst.args[2])?);
        Ok(Some(self.push_select(lane, bounds, a, b)?))
    }

    pub(super) fn narrowed(&mut self, reg: VReg, elem: Elem, lane: Lane) -> Result<VReg> {
        match simd::narrow(self.isa, elem, lane) {
            Some(f) => {
                let known = match elem {
                    Elem::F16 => Some(LaneOp::RoundF16),
                    Elem::BF16 => Some(LaneOp::RoundBF16),
                    _ => None,
                };
                let args = [Src::V(reg), Src::None, Src::None];
                self.map_of(f, known, lane, args, Cost::Light)
            }
            None => Ok(reg),
        }
    }

    pub(super) fn cast_lanes(
        &mut self,
        reg: VReg,
        from: (Elem, Lane),
        to: (Elem, Lane),
    ) -> Result<VReg> {
        if from.1 == to.1 {
            return Ok(reg);
        }
        let f = self.kernel(simd::cast(self.isa, from, to), "this cast")?;
        self.map(f, to.1, [Src::V(reg), Src::None, Src::None])
    }

    /// Addresses lane by lane.
    fn add_pointer(&mut self, inst: &Inst) -> Result<VReg> {
        let pointee: Type = self.ty(inst.args[0]).clone();
        let offset_ty = self.ty(inst.args[1]).clone();
        let from = (offset_ty.num().unwrap_or(Elem::I64), Lane::of(&offset_ty));
        let isa = self.isa;
        let offset = match self.operand(inst.args[1])? {
            Src::V(reg) => Src::V(self.cast_lanes(reg, from, (Elem::I64, Lane::I64))?),
            other => other,
        };
        let size = Src::S(self.int_reg(pointee.elem().size() as i64));
        let multiply = self.kernel(
            simd::binary(isa, BinaryOp::Mul, Lane::I64, Elem::I64, mode(offset, size)),
            "mul",
        )?;
        let bytes = Src::V(self.map(multiply, Lane::I64, [offset, size, Src::None])?);
        let base = self.operand(inst.args[0])?;
        let add = self.kernel(
            simd::binary(isa, BinaryOp::Add, Lane::I64, Elem::I64, mode(base, bytes)),
            "add",
        )?;
        self.map(add, Lane::I64, [base, bytes, Src::None])
    }
}

/// The operation, if it works on `f32` lanes.
fn floats(lane: Lane, op: LaneOp) -> Option<LaneOp> {
    (lane == Lane::F32).then_some(op)
}

fn unary_cost(op: UnaryOp, lane: Lane) -> Cost {
    match op {
        UnaryOp::Neg
        | UnaryOp::Not
        | UnaryOp::Abs
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Trunc
        | UnaryOp::Round
        | UnaryOp::Rint
        | UnaryOp::Popc
        | UnaryOp::Clz
        | UnaryOp::IsNan
        | UnaryOp::IsInf
        | UnaryOp::IsFinite
        | UnaryOp::SignBit => Cost::Light,
        UnaryOp::Sqrt | UnaryOp::Rsqrt => Cost::Middle,
        UnaryOp::Exp | UnaryOp::Exp2 if lane == Lane::F32 => Cost::Middle,
        _ => Cost::Heavy,
    }
}

fn binary_cost(op: BinaryOp) -> Cost {
    match op {
        BinaryOp::Div => Cost::Middle,
        BinaryOp::Rem | BinaryOp::Fmod | BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Hypot => {
            Cost::Heavy
        }
        _ => Cost::Light,
    }
}

pub(super) fn mode(a: Src, b: Src) -> Mode {
    match (a, b) {
        (Src::S(_), Src::S(_)) => Mode::SS,
        (Src::S(_), _) => Mode::SV,
        (_, Src::S(_)) => Mode::VS,
        _ => Mode::VV,
    }
}

fn combine(a: &Strides, b: &Strides, sign: i64) -> Option<Strides> {
    a.iter().zip(b).map(|(&x, &y)| x.checked_add(y.checked_mul(sign)?)).collect()
}

fn scaled(a: &Strides, k: i64) -> Option<Strides> {
    a.iter().map(|&x| x.checked_mul(k)).collect()
}

/// Whether lanes of a result may hold more than its type can.
fn may_leave_type(op: &Op, ty: &Type, elem: Elem) -> bool {
    match op {
        // Selecting and copying bits cannot leave the type; comparisons give bytes.
        Op::Select | Op::Compare(_) | Op::AddPtr => false,
        Op::Bitcast => !ty.is_ptr() && ty.elem().is_int(),
        Op::Unary(op) => !matches!(
            op,
            UnaryOp::Popc
                | UnaryOp::Clz
                | UnaryOp::IsNan
                | UnaryOp::IsInf
                | UnaryOp::IsFinite
                | UnaryOp::SignBit
        ),
        // Widening is exact.
        Op::Cast => {
            !(ty.elem().bits() > elem.bits()
                && ty.elem().is_int() == elem.is_int()
                && (ty.elem().is_unsigned() == elem.is_unsigned() || elem.is_unsigned()))
        }
        Op::Binary(op) => !matches!(
            op,
            BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::MinNan
                | BinaryOp::MaxNan
                | BinaryOp::And
                | BinaryOp::Or
        ),
        _ => true,
    }
}
