//! Pointwise operations as expressions. Comparisons are used where torch lets NaN through and `maximum` would not.

use super::super::body::{Code, Kind, VarId};
use super::super::index::Index;
use super::super::{Refusal, Size, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, Binary, C, D, Expr, Formula, Literal, Type, Unary};
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, NodeId};
use std::collections::BTreeSet;

impl Lower<'_> {
    pub(super) fn pointwise(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let result = self.piece.kind(node)?;
        if let Some(formula) = unary(bound.op) {
            let x = self.operand(node, bound.arg("input"), index)?;
            let x = self.cast(x, Kind::Float);
            return Ok(self.compute(Kind::Float, formula, &[x]));
        }
        if let Some(operator) = comparison(bound.op) {
            let [a, b] = self.pair(node, bound, "other", index)?;
            let kind = self.kind(a).max(self.kind(b)).max(Kind::Int);
            let (a, b) = (self.cast(a, kind), self.cast(b, kind));
            return Ok(self.compute(Kind::Bool, Expr::binary(operator, A, B), &[a, b]));
        }
        if let Some(operator) = logical(bound.op, result) {
            let [a, b] = self.pair(node, bound, "other", index)?;
            let kind = if result == Kind::Bool { Kind::Bool } else { Kind::Int };
            let (a, b) = (self.cast(a, kind), self.cast(b, kind));
            return Ok(self.compute(kind, Expr::binary(operator, A, B), &[a, b]));
        }
        match bound.op {
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rsub => self.arithmetic(wanted, result),
            Op::Maximum | Op::Minimum | Op::Max | Op::Min => self.arithmetic(wanted, result),
            Op::Pow => self.power(wanted, result),
            Op::FloorDivide | Op::Remainder => self.modular(wanted, result),
            Op::Neg | Op::Positive | Op::Abs | Op::Square => {
                let x = self.operand(node, bound.arg("input"), index)?;
                let x = self.cast(x, result);
                let formula = match bound.op {
                    Op::Neg => -A,
                    Op::Abs => Expr::call("tl.abs", [A]),
                    Op::Square => A * A,
                    _ => A,
                };
                Ok(self.compute(result, formula, &[x]))
            }
            Op::Sign if result != Kind::Bool => {
                let x = self.operand(node, bound.arg("input"), index)?;
                let x = self.cast(x, result);
                let ty = if result == Kind::Float { Type::Float32 } else { Type::Int64 };
                let side = |condition: Formula| condition.to(ty.clone());
                let formula = side(A.above(Expr::int(0))) - side(A.below(Expr::int(0)));
                Ok(self.compute(result, formula, &[x]))
            }
            Op::BitwiseNot | Op::LogicalNot => {
                let x = self.operand(node, bound.arg("input"), index)?;
                if bound.op == Op::BitwiseNot && result != Kind::Bool {
                    return Ok(self.compute(result, Expr::Unary(Unary::Invert, Box::new(A)), &[x]));
                }
                let x = self.cast(x, Kind::Bool);
                Ok(self.compute(Kind::Bool, A.equals(Expr::int(0)), &[x]))
            }
            Op::Where | Op::WhereMethod | Op::MaskedFill => self.choice(wanted, result),
            Op::Clamp | Op::ClampMin | Op::ClampMax | Op::Hardtanh => self.clamp(wanted, result),
            Op::Addcmul | Op::Addcdiv | Op::Lerp => self.ternary(wanted),
            Op::Prelu => self.prelu(wanted),
            _ => self.activation(wanted),
        }
    }

    /// A tensor or a number, broadcast to the result's shape.
    pub(super) fn operand(
        &mut self,
        call: NodeId,
        arg: &Arg,
        index: &[Index],
    ) -> Result<VarId, Refusal> {
        match arg {
            Arg::Node(_) => {
                let Some(input) = self.argument(call, arg) else { refuse!("no operand") };
                if !self.piece.is_tensor(input) {
                    return self.pull(input, &[]);
                }
                let index = self.broadcast(input, &self.piece.shape(call)?, index)?;
                self.pull(input, &index)
            }
            Arg::Bool(value) => Ok(self.number(Kind::Bool, Literal::Bool(*value))),
            Arg::Int(value) => Ok(self.number(Kind::Int, Literal::Int(*value))),
            Arg::Float(value) => Ok(self.number(Kind::Float, Literal::Float(*value))),
            _ => Err(Refusal::new("an operand is neither tensor nor number")),
        }
    }

    /// The index into an operand that is broadcast to `shape`.
    pub(super) fn broadcast(
        &self,
        input: NodeId,
        shape: &[Size],
        index: &[Index],
    ) -> Result<Vec<Index>, Refusal> {
        let own = self.piece.shape(input)?;
        self.broadcast_shape(&own, shape, index)
    }

    pub(super) fn broadcast_shape(
        &self,
        own: &[Size],
        shape: &[Size],
        index: &[Index],
    ) -> Result<Vec<Index>, Refusal> {
        let skip = shape.len().checked_sub(own.len());
        let Some(skip) = skip.filter(|_| shape.len() == index.len()) else {
            refuse!("an operand has more dimensions than the result")
        };
        own.iter()
            .zip(&shape[skip..])
            .zip(&index[skip..])
            .map(|((own, size), index)| {
                if own.same(size) {
                    Ok(index.clone())
                } else if own.is(1) {
                    Ok(self.zero())
                } else {
                    Err(Refusal::new("an operand is broadcast in some graphs only"))
                }
            })
            .collect()
    }

    fn pair(
        &mut self,
        node: NodeId,
        bound: &Bound<'_>,
        second: &str,
        index: &[Index],
    ) -> Result<[VarId; 2], Refusal> {
        let a = self.operand(node, bound.arg("input"), index)?;
        let b = self.operand(node, bound.arg(second), index)?;
        Ok([a, b])
    }

    fn arithmetic(&mut self, wanted: Wanted<'_, '_>, result: Kind) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let rounding = bound.arg("rounding_mode");
        if let Some(mode) = rounding.as_str().filter(|mode| matches!(*mode, "floor" | "trunc")) {
            let [a, b] = self.pair(node, bound, "other", index)?;
            return match (mode, result) {
                ("floor", Kind::Int) => Ok(self.whole_division(Op::FloorDivide, a, b)),
                ("floor", Kind::Float) => Ok(self.float_division(Op::FloorDivide, a, b)),
                (_, Kind::Bool) => Err(self.unsupported(bound)),
                _ => Ok(self.division_towards_zero(a, b, result)),
            };
        }
        if !rounding.is_none() || bound.float("alpha").is_some_and(|a| a != 1.0) {
            return Err(self.unsupported(bound));
        }
        let other = self.second(node, bound).unwrap_or("other");
        let [a, b] = self.pair(node, bound, other, index)?;
        let kind = if bound.op == Op::Div { Kind::Float } else { result.max(Kind::Int) };
        let (a, b) = (self.cast(a, kind), self.cast(b, kind));
        let formula = match bound.op {
            Op::Add => A + B,
            Op::Sub => A - B,
            Op::Rsub => B - A,
            Op::Mul => A * B,
            Op::Div => A / B,
            Op::Maximum | Op::Max => extreme("tl.maximum", kind),
            _ => extreme("tl.minimum", kind),
        };
        let value = self.compute(kind, formula, &[a, b]);
        Ok(self.cast(value, result))
    }

    fn power(&mut self, wanted: Wanted<'_, '_>, result: Kind) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let x = self.operand(node, bound.arg("input"), index)?;
        let exponent = bound.arg("exponent");
        if let Some(exponent) = exponent.as_float() {
            let x = self.cast(x, result);
            let is_float = result == Kind::Float;
            let formula = match exponent {
                1.0 => Some(A),
                2.0 => Some(A * A),
                3.0 => Some(A * A * A),
                4.0 => Some(A * A * (A * A)),
                0.5 if is_float => Some(Expr::call("tl.sqrt", [A])),
                -0.5 if is_float => Some(Expr::float(1.0) / Expr::call("tl.sqrt", [A])),
                -1.0 if is_float => Some(Expr::float(1.0) / A),
                _ => None,
            };
            if let Some(formula) = formula {
                return Ok(self.compute(result, formula, &[x]));
            }
        }
        if result != Kind::Float {
            return Err(self.unsupported(bound));
        }
        let y = self.operand(node, exponent, index)?;
        // A number alone has no type that the library function could take.
        let (x, y) = (self.cast(x, Kind::Float), self.cast(y, Kind::Float));
        let (x, y) = (self.spread(x, y), self.spread(y, x));
        Ok(self.compute(Kind::Float, Expr::call("libdevice.pow", [A, B]), &[x, y]))
    }

    /// A literal made a block like the other operand.
    fn spread(&mut self, var: VarId, like: VarId) -> VarId {
        let code = &self.body.vars[var].code;
        let is_number = code.as_literal().is_some() || matches!(code, Code::Number { .. });
        match is_number {
            true => self.compute(Kind::Float, B * Expr::float(0.0) + A, &[var, like]),
            false => var,
        }
    }

    fn modular(&mut self, wanted: Wanted<'_, '_>, result: Kind) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let [a, b] = self.pair(node, bound, "other", index)?;
        if result == Kind::Int {
            return Ok(self.whole_division(bound.op, a, b));
        }
        if result != Kind::Float {
            return Err(self.unsupported(bound));
        }
        Ok(self.float_division(bound.op, a, b))
    }

    /// Floats divided downwards by way of the rest, which is exact: a quotient may be rounded up to the next whole number.
    fn float_division(&mut self, op: Op, a: VarId, b: VarId) -> VarId {
        let (a, b) = (self.cast(a, Kind::Float), self.cast(b, Kind::Float));
        let (x, y) = (self.spread(a, b), self.spread(b, a));
        let rest = self.compute(Kind::Float, Expr::call("libdevice.fmod", [A, B]), &[x, y]);
        let is_above = self.compute(Kind::Bool, has_other_sign(), &[rest, b]);
        if op == Op::Remainder {
            let formula = Expr::select(A, B + C, B);
            return self.compute(Kind::Float, formula, &[is_above, rest, b]);
        }
        let quotient = self.compute(Kind::Float, (A - B) / C, &[a, rest, b]);
        let lower = Expr::select(A, B - Expr::float(1.0), B);
        let lower = self.compute(Kind::Float, lower, &[is_above, quotient]);
        let whole = Expr::call("libdevice.rint", [C]);
        let formula = Expr::select(B.equals(Expr::int(0)), A / B, whole);
        self.compute(Kind::Float, formula, &[a, b, lower])
    }

    /// A quotient cut to the whole number next to it on the way to zero.
    fn division_towards_zero(&mut self, a: VarId, b: VarId, result: Kind) -> VarId {
        let (a, b) = (self.cast(a, result), self.cast(b, result));
        if result == Kind::Int {
            return self.compute(result, Expr::binary(Binary::FloorOver, A, B), &[a, b]);
        }
        let quotient = self.compute(result, A / B, &[a, b]);
        let [up, down] = ["tl.ceil", "tl.floor"].map(|function| Expr::call(function, [A]));
        self.compute(result, Expr::select(A.below(Expr::int(0)), up, down), &[quotient])
    }

    /// Whole numbers divided downwards, as torch does it; a kernel divides towards zero.
    fn whole_division(&mut self, op: Op, a: VarId, b: VarId) -> VarId {
        let (a, b) = (self.cast(a, Kind::Int), self.cast(b, Kind::Int));
        let rest = self.compute(Kind::Int, Expr::binary(Binary::Modulo, A, B), &[a, b]);
        let is_above = self.compute(Kind::Bool, has_other_sign(), &[rest, b]);
        match op {
            Op::Remainder => {
                self.compute(Kind::Int, Expr::select(A, B + C, B), &[is_above, rest, b])
            }
            _ => {
                let quotient = Expr::binary(Binary::FloorOver, A, B);
                let quotient = self.compute(Kind::Int, quotient, &[a, b]);
                let less = Expr::select(A, B - Expr::int(1), B);
                self.compute(Kind::Int, less, &[is_above, quotient])
            }
        }
    }

    fn choice(&mut self, wanted: Wanted<'_, '_>, result: Kind) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let (condition, yes, no) = match bound.op {
            Op::MaskedFill => ("mask", "value", "input"),
            _ => ("condition", "input", "other"),
        };
        let condition = self.operand(node, bound.arg(condition), index)?;
        let condition = self.cast(condition, Kind::Bool);
        let yes = self.operand(node, bound.arg(yes), index)?;
        let no = self.operand(node, bound.arg(no), index)?;
        let (yes, no) = (self.cast(yes, result), self.cast(no, result));
        Ok(self.compute(result, Expr::select(A, B, C), &[condition, yes, no]))
    }

    fn clamp(&mut self, wanted: Wanted<'_, '_>, result: Kind) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let x = self.operand(node, bound.arg("input"), index)?;
        let mut x = self.cast(x, result);
        let sides = match bound.op {
            Op::Hardtanh => [("min_val", Binary::Less), ("max_val", Binary::Greater)],
            _ => [("min", Binary::Less), ("max", Binary::Greater)],
        };
        for (side, operator) in sides {
            if bound.arg(side).is_none() {
                continue;
            }
            let limit = self.operand(node, bound.arg(side), index)?;
            let limit = self.cast(limit, result);
            let formula = Expr::select(Expr::binary(operator, A, B), B, A);
            x = self.compute(result, formula, &[x, limit]);
        }
        Ok(x)
    }

    fn ternary(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let names = match bound.op {
            Op::Lerp => ["input", "end", "weight"],
            _ => ["input", "tensor1", "tensor2"],
        };
        let mut operands = Vec::new();
        for name in names {
            let operand = self.operand(node, bound.arg(name), index)?;
            operands.push(self.cast(operand, Kind::Float));
        }
        let formula = match bound.op {
            Op::Lerp => A + C * (B - A),
            Op::Addcmul => A + D * B * C,
            _ => A + D * B / C,
        };
        if bound.op != Op::Lerp {
            let value = self.operand(node, bound.arg("value"), index)?;
            operands.push(self.cast(value, Kind::Float));
        }
        Ok(self.compute(Kind::Float, formula, &operands))
    }

    /// A size as a float, for means.
    pub(super) fn extent(&mut self, size: &Size) -> VarId {
        self.add(None, Kind::Int, Code::Extent(size.clone()), BTreeSet::new())
    }
}

/// The larger or smaller of two. Either operand's NaN goes through, as in torch.
fn extreme(function: &'static str, kind: Kind) -> Formula {
    let formula = Expr::call(function, [A, B]);
    match kind {
        Kind::Float => {
            let all = Expr::Literal(Literal::Constant("tl.PropagateNan.ALL"));
            formula.with("propagate_nan", all)
        }
        _ => formula,
    }
}

/// Whether a rest is not zero and has not the sign of what was divided by.
fn has_other_sign() -> Formula {
    let zero = || Expr::int(0);
    A.differs(zero()).and(A.below(zero()).differs(B.below(zero())))
}

/// Functions of one float.
fn unary(op: Op) -> Option<Formula> {
    let function = match op {
        Op::Ceil => "tl.ceil",
        Op::Floor => "tl.floor",
        Op::Round => "libdevice.rint",
        Op::Exp => "tl.exp",
        Op::Exp2 => "tl.exp2",
        Op::Expm1 => "libdevice.expm1",
        Op::Log => "tl.log",
        Op::Log2 => "tl.log2",
        Op::Log1p => "libdevice.log1p",
        Op::Sqrt => "tl.sqrt",
        Op::Rsqrt => "tl.rsqrt",
        Op::Sin => "tl.sin",
        Op::Cos => "tl.cos",
        Op::Tanh => "libdevice.tanh",
        Op::Erf => "tl.erf",
        Op::Sigmoid => "tl.sigmoid",
        Op::Reciprocal => return Some(Expr::float(1.0) / A),
        Op::Silu => return Some(A * Expr::call("tl.sigmoid", [A])),
        Op::Softsign => return Some(A / (Expr::float(1.0) + Expr::call("tl.abs", [A]))),
        _ => return None,
    };
    Some(Expr::call(function, [A]))
}

fn comparison(op: Op) -> Option<Binary> {
    Some(match op {
        Op::Eq => Binary::Equal,
        Op::Ne => Binary::Unequal,
        Op::Lt => Binary::Less,
        Op::Le => Binary::AtMost,
        Op::Gt => Binary::Greater,
        Op::Ge => Binary::AtLeast,
        _ => return None,
    })
}

fn logical(op: Op, result: Kind) -> Option<Binary> {
    match op {
        Op::LogicalAnd => Some(Binary::And),
        Op::LogicalOr => Some(Binary::Or),
        Op::LogicalXor => Some(Binary::Xor),
        Op::BitwiseAnd if result != Kind::Float => Some(Binary::And),
        Op::BitwiseOr if result != Kind::Float => Some(Binary::Or),
        Op::BitwiseXor if result != Kind::Float => Some(Binary::Xor),
        _ => None,
    }
}
