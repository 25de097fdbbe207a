//! Typing of operators: promotion, broadcasting, casts. The rules are Triton's.

use super::value::Value;
use super::{Compiler, Result};
use crate::consts::{self, Const};
use crate::ir::{BinaryOp, CmpOp, Literal, Op, UnaryOp, ValueId};
use crate::types::{Elem, Lane, Shape, Type};
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{self, Operator};

/// bool < integer < float: a Python scalar of no higher kind takes the tensor's type.
fn kind(elem: Elem) -> u8 {
    match elem {
        Elem::I1 => 0,
        e if e.is_int() => 1,
        _ => 2,
    }
}

fn promote_ints(a: Elem, b: Elem) -> Elem {
    if a.is_unsigned() == b.is_unsigned() {
        return if a.bits() > b.bits() { a } else { b };
    }
    let (unsigned, signed) = if a.is_unsigned() { (a, b) } else { (b, a) };
    if unsigned.bits() >= signed.bits() { unsigned } else { signed }
}

impl<'a> Compiler<'a> {
    /// A run-time value for a number; anything else is an error.
    pub(super) fn tensor(&mut self, at: &impl Ranged, value: &Value<'a>) -> Result<ValueId> {
        match value {
            Value::Tensor(v) => Ok(*v),
            Value::Const(c) => match natural_elem(c) {
                Some(elem) => self.literal(at, c, elem),
                None => Err(self
                    .error(at, format!("expected a number or a block, not {}", value.describe()))),
            },
            other => {
                Err(self
                    .error(at, format!("expected a number or a block, not {}", other.describe())))
            }
        }
    }

    /// A constant of a given type.
    pub(super) fn literal(&mut self, at: &impl Ranged, c: &Const, elem: Elem) -> Result<ValueId> {
        if elem.is_float8() {
            let value = self.literal(at, c, Elem::F32)?;
            return Ok(self.cast(value, elem));
        }
        if elem.is_float() {
            let value =
                c.as_float().ok_or_else(|| self.error(at, format!("{c} is not a number")))?;
            return Ok(self.b.float(value, elem));
        }
        if let Const::Float(value) = c {
            // A conversion like that of any other float, so that infinities become what they become elsewhere.
            let float = self.b.float(*value, natural_elem(c).unwrap_or(Elem::F32));
            return Ok(self.cast(float, elem));
        }
        let value = c.as_int().ok_or_else(|| self.error(at, format!("{c} is not a number")))?;
        let (low, high) = elem.int_range();
        if !(low..=high).contains(&i128::from(value)) && elem != Elem::U64 {
            return Err(self.error(at, format!("{value} is out of range for type {elem}")));
        }
        Ok(self.b.int(value, elem))
    }

    pub(super) fn ty(&self, v: ValueId) -> Type {
        self.b.ty(v).clone()
    }

    fn computation_type(
        &self,
        at: &impl Ranged,
        (a, a_scalar): (Elem, bool),
        (b, b_scalar): (Elem, bool),
        division: bool,
    ) -> Result<Elem> {
        let half = |e: Elem| if division { Elem::F32 } else { e };
        if a_scalar != b_scalar {
            let (scalar, tensor) = if a_scalar { (a, b) } else { (b, a) };
            if kind(scalar) <= kind(tensor) {
                return Ok(if tensor.is_half() { half(tensor) } else { tensor });
            }
        }
        let either = |e: Elem| a == e || b == e;
        if either(Elem::F64) {
            return Ok(Elem::F64);
        }
        if either(Elem::F32) {
            return Ok(Elem::F32);
        }
        if either(Elem::F16) {
            return Ok(half(Elem::F16));
        }
        if either(Elem::BF16) {
            return Ok(if a == b { half(Elem::BF16) } else { Elem::F32 });
        }
        if a.is_float8() && b.is_float8() {
            return Ok(if a == b { a } else { Elem::F16 });
        }
        if a.is_float8() || b.is_float8() {
            return Ok(if a.is_float8() { a } else { b });
        }
        if division && a.is_unsigned() != b.is_unsigned() {
            return Err(self
                .error(at, format!("cannot divide {a} by {b}: one is signed and the other is not"))
                .with_hint("cast one of them"));
        }
        Ok(promote_ints(a, b))
    }

    /// Brings two operands to one type and one shape.
    pub(super) fn unify(
        &mut self,
        at: &impl Ranged,
        a: &Value<'a>,
        b: &Value<'a>,
        division: bool,
    ) -> Result<(ValueId, ValueId)> {
        let number = |v: &Value<'a>| match v {
            Value::Const(c) => Some(c.clone()),
            _ => None,
        };
        let (ca, cb) = (number(a), number(b));
        let elem_of = |this: &Self, v: &Value<'a>| -> Result<Elem> {
            match v {
                Value::Tensor(id) if this.b.ty(*id).is_ptr() => {
                    Err(this.error(at, "this operator does not take pointers"))
                }
                Value::Tensor(id) => Ok(this.b.ty(*id).elem()),
                Value::Const(c) if natural_elem(c).is_some() => {
                    Ok(natural_elem(c).unwrap_or(Elem::I32))
                }
                other => Err(this
                    .error(at, format!("expected a number or a block, not {}", other.describe()))),
            }
        };
        let (ea, eb) = (elem_of(self, a)?, elem_of(self, b)?);
        let elem = self.computation_type(at, (ea, ca.is_some()), (eb, cb.is_some()), division)?;
        if elem.is_unsigned() && elem != Elem::I1 {
            for c in [&ca, &cb].into_iter().flatten() {
                if c.as_int().is_some_and(|i| i < 0) {
                    return Err(self
                        .error(at, format!("negative scalar {c} with an unsigned block of {elem}"))
                        .with_hint("cast one of them"));
                }
            }
        }
        let x = self.operand(at, a, ca.as_ref(), elem)?;
        let y = self.operand(at, b, cb.as_ref(), elem)?;
        self.broadcast_pair(at, x, y)
    }

    fn operand(
        &mut self,
        at: &impl Ranged,
        v: &Value<'a>,
        c: Option<&Const>,
        elem: Elem,
    ) -> Result<ValueId> {
        match c {
            Some(c) => self.literal(at, c, elem),
            None => {
                let v = self.tensor(at, v)?;
                Ok(self.cast(v, elem))
            }
        }
    }

    /// Converts by value; does nothing when the type is already right.
    pub(super) fn cast(&mut self, v: ValueId, elem: Elem) -> ValueId {
        let ty = self.ty(v);
        match ty.lane {
            Lane::Num(e) if e == elem => v,
            Lane::Num(e) if e.is_float8() => {
                let value = self.widen_float8(v);
                self.cast(value, elem)
            }
            Lane::Num(_) if elem.is_float8() => self.narrow_float8(v, elem),
            // To `i1` means "is not zero", as in C.
            Lane::Num(e) if elem == Elem::I1 => {
                let zero = if e.is_float() { self.b.float(0.0, e) } else { self.b.int(0, e) };
                let zero = self.splat(zero, &ty.shape);
                self.b.emit(Op::Compare(CmpOp::Ne), &[v, zero], ty.with_elem(Elem::I1))
            }
            Lane::Num(_) => self.b.emit(Op::Cast, &[v], ty.with_elem(elem)),
            Lane::Ptr(_) => v,
        }
    }

    pub(super) fn splat(&mut self, v: ValueId, shape: &[u32]) -> ValueId {
        if shape.is_empty() {
            return v;
        }
        let ty = self.ty(v).with_shape(shape);
        self.b.emit(Op::Splat, &[v], ty)
    }

    /// Broadcasts to exactly `shape`.
    pub(super) fn broadcast_to(
        &mut self,
        at: &impl Ranged,
        v: ValueId,
        shape: &[u32],
    ) -> Result<ValueId> {
        let ty = self.ty(v);
        if ty.shape.as_slice() == shape {
            return Ok(v);
        }
        if ty.is_scalar() {
            return Ok(self.splat(v, shape));
        }
        let mut v = v;
        let mut current: Shape = ty.shape.clone();
        if current.len() < shape.len() {
            let mut padded: Shape = std::iter::repeat_n(1, shape.len() - current.len()).collect();
            padded.extend(current);
            current = padded;
            v = self.b.emit(Op::Reshape, &[v], ty.with_shape(&current));
        }
        let fits = current.len() == shape.len()
            && current.iter().zip(shape).all(|(&have, &want)| have == want || have == 1);
        if !fits {
            let text = |s: &[u32]| s.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let message =
                format!("cannot broadcast a block of [{}] to [{}]", text(&ty.shape), text(shape));
            return Err(self.error(at, message));
        }
        if current.as_slice() == shape {
            return Ok(v);
        }
        Ok(self.b.emit(Op::Broadcast, &[v], ty.with_shape(shape)))
    }

    pub(super) fn broadcast_pair(
        &mut self,
        at: &impl Ranged,
        a: ValueId,
        b: ValueId,
    ) -> Result<(ValueId, ValueId)> {
        let (sa, sb) = (self.ty(a).shape, self.ty(b).shape);
        if sa == sb {
            return Ok((a, b));
        }
        let rank = sa.len().max(sb.len());
        let dim = |s: &Shape, i: usize| (i + s.len()).checked_sub(rank).map_or(1, |j| s[j]);
        let mut shape = Shape::new();
        for i in 0..rank {
            let (x, y) = (dim(&sa, i), dim(&sb, i));
            if x != y && x != 1 && y != 1 {
                let text = |s: &Shape| s.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                let message =
                    format!("blocks of [{}] and [{}] do not broadcast", text(&sa), text(&sb));
                return Err(self.error(at, message));
            }
            shape.push(x.max(y));
        }
        Ok((self.broadcast_to(at, a, &shape)?, self.broadcast_to(at, b, &shape)?))
    }

    /// `a op b` for any mix of compile-time and run-time values.
    pub(super) fn binary_operator(
        &mut self,
        at: &impl Ranged,
        op: Operator,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<Value<'a>> {
        if let (Some(x), Some(y)) = (a.to_const(), b.to_const()) {
            return consts::binary(op, &x, &y)
                .map(Value::from_const)
                .map_err(|e| self.error(at, e));
        }
        if let (Operator::Add, Value::Tuple(x), Value::Tuple(y)) = (op, a, b) {
            return Ok(Value::Tuple(x.iter().chain(y).cloned().collect()));
        }
        let is_ptr =
            |this: &Self, v: &Value<'a>| matches!(v, Value::Tensor(id) if this.b.ty(*id).is_ptr());
        match (op, is_ptr(self, a), is_ptr(self, b)) {
            (_, false, false) => {}
            (Operator::Add, true, false) => return self.add_pointer(at, a, b),
            (Operator::Add, false, true) => return self.add_pointer(at, b, a),
            (Operator::Sub, true, false) => {
                let negative = self.negate(at, b)?;
                return self.add_pointer(at, a, &negative);
            }
            _ => {
                let text = consts::operator_text(op);
                return Err(self.error(at, format!("`{text}` does not take pointers here")));
            }
        }
        let bits = matches!(
            op,
            Operator::BitAnd
                | Operator::BitOr
                | Operator::BitXor
                | Operator::LShift
                | Operator::RShift
        );
        let division = matches!(op, Operator::Div | Operator::FloorDiv | Operator::Mod);
        let (mut x, mut y) = self.unify(at, a, b, division)?;
        let ty = self.ty(x);
        let elem = ty.elem();
        if bits && elem.is_float() {
            let text = consts::operator_text(op);
            return Err(self.error(at, format!("`{text}` takes integers, not {elem}")));
        }
        let code = match op {
            Operator::Add => BinaryOp::Add,
            Operator::Sub => BinaryOp::Sub,
            Operator::Mult => BinaryOp::Mul,
            Operator::Div => {
                if elem.is_int() {
                    x = self.cast(x, Elem::F32);
                    y = self.cast(y, Elem::F32);
                }
                BinaryOp::Div
            }
            Operator::FloorDiv if elem.is_float() => {
                return Err(self
                    .error(at, format!("`//` takes integers, not {elem}"))
                    .with_hint("use `tl.floor(a / b)`"));
            }
            Operator::FloorDiv => BinaryOp::Div,
            Operator::Mod => BinaryOp::Rem,
            Operator::BitAnd => BinaryOp::And,
            Operator::BitOr => BinaryOp::Or,
            Operator::BitXor => BinaryOp::Xor,
            Operator::LShift => BinaryOp::Shl,
            Operator::RShift => BinaryOp::Shr,
            Operator::Pow | Operator::MatMult => {
                let text = consts::operator_text(op);
                return Err(self.error(at, format!("Triton has no `{text}` on run-time values")));
            }
        };
        let ty = self.ty(x);
        Ok(Value::Tensor(self.b.emit(Op::Binary(code), &[x, y], ty)))
    }

    pub(super) fn add_pointer(
        &mut self,
        at: &impl Ranged,
        ptr: &Value<'a>,
        offset: &Value<'a>,
    ) -> Result<Value<'a>> {
        let ptr = self.tensor(at, ptr)?;
        let offset = self.tensor(at, offset)?;
        if self.ty(offset).num().is_none_or(Elem::is_float) {
            let ty = self.ty(offset);
            return Err(self.error(at, format!("a pointer moves by integers, not by {ty}")));
        }
        let (ptr, offset) = self.broadcast_pair(at, ptr, offset)?;
        let ty = self.ty(ptr);
        Ok(Value::Tensor(self.b.emit(Op::AddPtr, &[ptr, offset], ty)))
    }

    pub(super) fn negate(&mut self, at: &impl Ranged, v: &Value<'a>) -> Result<Value<'a>> {
        if let Value::Const(c) = v {
            return consts::unary(ast::UnaryOp::USub, c)
                .map(Value::Const)
                .map_err(|e| self.error(at, e));
        }
        let v = self.tensor(at, v)?;
        let ty = self.ty(v);
        if ty.is_ptr() {
            return Err(self.error(at, "a pointer has no sign"));
        }
        Ok(Value::Tensor(self.b.emit(Op::Unary(UnaryOp::Neg), &[v], ty)))
    }

    pub(super) fn unary_operator(
        &mut self,
        at: &impl Ranged,
        op: ast::UnaryOp,
        v: &Value<'a>,
    ) -> Result<Value<'a>> {
        if let Some(c) = v.to_const() {
            return consts::unary(op, &c).map(Value::from_const).map_err(|e| self.error(at, e));
        }
        match op {
            ast::UnaryOp::UAdd => Ok(v.clone()),
            ast::UnaryOp::USub => self.negate(at, v),
            ast::UnaryOp::Not => {
                let v = self.tensor(at, v)?;
                let v = self.cast(v, Elem::I1);
                let ty = self.ty(v);
                Ok(Value::Tensor(self.b.emit(Op::Unary(UnaryOp::Not), &[v], ty)))
            }
            ast::UnaryOp::Invert => {
                let v = self.tensor(at, v)?;
                let ty = self.ty(v);
                if ty.num().is_none_or(Elem::is_float) {
                    return Err(self.error(at, format!("`~` takes integers, not {ty}")));
                }
                Ok(Value::Tensor(self.b.emit(Op::Unary(UnaryOp::Not), &[v], ty)))
            }
        }
    }

    pub(super) fn compare_operator(
        &mut self,
        at: &impl Ranged,
        op: ast::CmpOp,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<Value<'a>> {
        if let (Some(x), Some(y)) = (a.to_const(), b.to_const()) {
            let result = consts::compare(op, &x, &y).map_err(|e| self.error(at, e))?;
            return Ok(Value::Const(Const::Bool(result)));
        }
        let code = match op {
            ast::CmpOp::Eq => CmpOp::Eq,
            ast::CmpOp::NotEq => CmpOp::Ne,
            ast::CmpOp::Lt => CmpOp::Lt,
            ast::CmpOp::LtE => CmpOp::Le,
            ast::CmpOp::Gt => CmpOp::Gt,
            ast::CmpOp::GtE => CmpOp::Ge,
            // A run-time value is never `None`, nor any other object.
            ast::CmpOp::Is => return Ok(Value::Const(Const::Bool(a.same(b)))),
            ast::CmpOp::IsNot => return Ok(Value::Const(Const::Bool(!a.same(b)))),
            ast::CmpOp::In | ast::CmpOp::NotIn => {
                return Err(self.error(at, "`in` works on compile-time values only"));
            }
        };
        if a.is_none() || b.is_none() {
            return Ok(Value::Const(Const::Bool(code == CmpOp::Ne)));
        }
        if let (Value::Tensor(x), Value::Tensor(y)) = (a, b)
            && self.ty(*x).is_ptr()
            && self.ty(*y).is_ptr()
        {
            let (x, y) = self.broadcast_pair(at, *x, *y)?;
            let ty = self.ty(x).with_elem(Elem::I1);
            return Ok(Value::Tensor(self.b.emit(Op::Compare(code), &[x, y], ty)));
        }
        let (x, y) = self.unify(at, a, b, false)?;
        let ty = self.ty(x).with_elem(Elem::I1);
        Ok(Value::Tensor(self.b.emit(Op::Compare(code), &[x, y], ty)))
    }

    /// `and` / `or` on run-time values.
    pub(super) fn logical(
        &mut self,
        at: &impl Ranged,
        and: bool,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<Value<'a>> {
        let x = self.tensor(at, a)?;
        let y = self.tensor(at, b)?;
        let (x, y) = (self.cast(x, Elem::I1), self.cast(y, Elem::I1));
        let (x, y) = self.broadcast_pair(at, x, y)?;
        let ty = self.ty(x);
        let op = if and { BinaryOp::And } else { BinaryOp::Or };
        Ok(Value::Tensor(self.b.emit(Op::Binary(op), &[x, y], ty)))
    }

    /// A constant block of zeros of the value's type, for padding.
    pub(super) fn constant_like(&mut self, ty: &Type, value: Literal) -> ValueId {
        let scalar = match value {
            Literal::Float(v) if ty.elem().is_float8() => {
                // Padding: zero, or what is no number.
                self.b.int(if v.is_nan() { 0x7f } else { 0 }, ty.elem())
            }
            Literal::Int(0) if ty.elem().is_float8() => self.b.int(0, ty.elem()),
            Literal::Float(v) if ty.elem().is_float() => self.b.float(v, ty.elem()),
            Literal::Float(v) => self.b.int(v as i64, ty.elem()),
            Literal::Int(v) if ty.elem().is_float() => self.b.float(v as f64, ty.elem()),
            Literal::Int(v) => self.b.int(v, ty.elem()),
        };
        self.splat(scalar, &ty.shape)
    }
}

/// The type a bare Python number takes.
pub(super) fn natural_elem(c: &Const) -> Option<Elem> {
    Some(match c {
        Const::Bool(_) => Elem::I1,
        Const::Int(i) if i32::try_from(*i).is_ok() => Elem::I32,
        Const::Int(i) if u32::try_from(*i).is_ok() => Elem::U32,
        Const::Int(_) => Elem::I64,
        Const::Float(f) => {
            let single = !f.is_finite()
                || *f == 0.0
                || (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&f.abs());
            if single { Elem::F32 } else { Elem::F64 }
        }
        _ => return None,
    })
}
