//! Pointwise operations as expressions. Comparisons are used where torch lets NaN through and `maximum` would not.

use super::super::body::{Code, Kind, VarId};
use super::super::index::Index;
use super::super::{Refusal, Size, refuse};
use super::{Lower, Wanted};
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, NodeId};
use std::collections::BTreeSet;

impl Lower<'_> {
    pub(super) fn pointwise(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let result = self.piece.kind(node)?;
        if let Some(template) = unary(bound.op) {
            let x = self.operand(node, bound.arg("input"), index)?;
            let x = self.cast(x, Kind::Float);
            return Ok(self.text(Kind::Float, template, &[x]));
        }
        if let Some(operator) = comparison(bound.op) {
            let [a, b] = self.pair(node, bound, "other", index)?;
            let kind = self.kind(a).max(self.kind(b)).max(Kind::Int);
            let (a, b) = (self.cast(a, kind), self.cast(b, kind));
            return Ok(self.text(Kind::Bool, format!("({{0}} {operator} {{1}})"), &[a, b]));
        }
        if let Some(operator) = logical(bound.op, result) {
            let [a, b] = self.pair(node, bound, "other", index)?;
            let kind = if result == Kind::Bool { Kind::Bool } else { Kind::Int };
            let (a, b) = (self.cast(a, kind), self.cast(b, kind));
            return Ok(self.text(kind, format!("({{0}} {operator} {{1}})"), &[a, b]));
        }
        match bound.op {
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rsub => self.arithmetic(wanted, result),
            Op::Maximum | Op::Minimum | Op::Max | Op::Min => self.arithmetic(wanted, result),
            Op::Pow => self.power(wanted, result),
            Op::FloorDivide | Op::Remainder => self.modular(wanted, result),
            Op::Neg | Op::Positive | Op::Abs | Op::Square => {
                let x = self.operand(node, bound.arg("input"), index)?;
                let x = self.cast(x, result);
                let template = match bound.op {
                    Op::Neg => "-{0}",
                    Op::Abs => "tl.abs({0})",
                    Op::Square => "{0} * {0}",
                    _ => "{0}",
                };
                Ok(self.text(result, template, &[x]))
            }
            Op::BitwiseNot | Op::LogicalNot => {
                let x = self.operand(node, bound.arg("input"), index)?;
                if bound.op == Op::BitwiseNot && result != Kind::Bool {
                    return Ok(self.text(result, "~{0}", &[x]));
                }
                let x = self.cast(x, Kind::Bool);
                Ok(self.text(Kind::Bool, "({0} == 0)", &[x]))
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
            Arg::Bool(value) => {
                Ok(self.text(Kind::Bool, if *value { "True" } else { "False" }, &[]))
            }
            Arg::Int(value) => Ok(self.text(Kind::Int, value.to_string(), &[])),
            Arg::Float(value) => Ok(self.text(Kind::Float, number(*value), &[])),
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
        if rounding.as_str() == Some("floor") && result == Kind::Int {
            let [a, b] = self.pair(node, bound, "other", index)?;
            return Ok(self.whole_division(Op::FloorDivide, a, b));
        }
        if !rounding.is_none() || bound.float("alpha").is_some_and(|a| a != 1.0) {
            return Err(self.unsupported(bound));
        }
        let other = self.second(node, bound).unwrap_or("other");
        let [a, b] = self.pair(node, bound, other, index)?;
        let kind = if bound.op == Op::Div { Kind::Float } else { result.max(Kind::Int) };
        let (a, b) = (self.cast(a, kind), self.cast(b, kind));
        let template = match bound.op {
            Op::Add => "{0} + {1}",
            Op::Sub => "{0} - {1}",
            Op::Rsub => "{1} - {0}",
            Op::Mul => "{0} * {1}",
            Op::Div => "{0} / {1}",
            // Either operand's NaN goes through, as in torch.
            Op::Maximum | Op::Max if kind == Kind::Float => {
                "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)"
            }
            Op::Maximum | Op::Max => "tl.maximum({0}, {1})",
            _ if kind == Kind::Float => "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
            _ => "tl.minimum({0}, {1})",
        };
        let value = self.text(kind, template, &[a, b]);
        Ok(self.cast(value, result))
    }

    fn power(&mut self, wanted: Wanted<'_, '_>, result: Kind) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let x = self.operand(node, bound.arg("input"), index)?;
        let exponent = bound.arg("exponent");
        if let Some(exponent) = exponent.as_float() {
            let x = self.cast(x, result);
            let template = match exponent {
                1.0 => "{0}",
                2.0 => "{0} * {0}",
                3.0 => "{0} * {0} * {0}",
                4.0 => "({0} * {0}) * ({0} * {0})",
                0.5 if result == Kind::Float => "tl.sqrt({0})",
                -0.5 if result == Kind::Float => "1.0 / tl.sqrt({0})",
                -1.0 if result == Kind::Float => "1.0 / {0}",
                _ => "",
            };
            if !template.is_empty() {
                return Ok(self.text(result, template, &[x]));
            }
        }
        if result != Kind::Float {
            return Err(self.unsupported(bound));
        }
        let y = self.operand(node, exponent, index)?;
        // A number alone has no type that the library function could take.
        let (x, y) = (self.cast(x, Kind::Float), self.cast(y, Kind::Float));
        let (x, y) = (self.spread(x, y), self.spread(y, x));
        Ok(self.text(Kind::Float, "libdevice.pow({0}, {1})", &[x, y]))
    }

    /// A literal made a block like the other operand.
    fn spread(&mut self, var: VarId, like: VarId) -> VarId {
        let literal = match &self.body.vars[var].code {
            Code::Text { operands, .. } => operands.is_empty(),
            Code::Number { .. } => true,
            _ => false,
        };
        if literal { self.text(Kind::Float, "({1} * 0.0 + {0})", &[var, like]) } else { var }
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
        let (a, b) = (self.cast(a, result), self.cast(b, result));
        let quotient = self.text(result, "tl.floor({0} / {1})", &[a, b]);
        if bound.op == Op::FloorDivide {
            return Ok(quotient);
        }
        Ok(self.text(result, "{0} - {1} * {2}", &[a, b, quotient]))
    }

    /// Whole numbers divided downwards, as torch does it; a kernel divides towards zero.
    fn whole_division(&mut self, op: Op, a: VarId, b: VarId) -> VarId {
        let (a, b) = (self.cast(a, Kind::Int), self.cast(b, Kind::Int));
        let rest = self.text(Kind::Int, "({0} % {1})", &[a, b]);
        let is_above = self.text(Kind::Bool, "(({0} != 0) & (({0} < 0) != ({1} < 0)))", &[rest, b]);
        match op {
            Op::Remainder => {
                self.text(Kind::Int, "tl.where({0}, {1} + {2}, {1})", &[is_above, rest, b])
            }
            _ => {
                let quotient = self.text(Kind::Int, "({0} // {1})", &[a, b]);
                self.text(Kind::Int, "tl.where({0}, {1} - 1, {1})", &[is_above, quotient])
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
        Ok(self.text(result, "tl.where({0}, {1}, {2})", &[condition, yes, no]))
    }

    fn clamp(&mut self, wanted: Wanted<'_, '_>, result: Kind) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let x = self.operand(node, bound.arg("input"), index)?;
        let mut x = self.cast(x, result);
        let sides = match bound.op {
            Op::Hardtanh => [("min_val", "<"), ("max_val", ">")],
            _ => [("min", "<"), ("max", ">")],
        };
        for (side, operator) in sides {
            if bound.arg(side).is_none() {
                continue;
            }
            let limit = self.operand(node, bound.arg(side), index)?;
            let limit = self.cast(limit, result);
            let template = format!("tl.where({{0}} {operator} {{1}}, {{1}}, {{0}})");
            x = self.text(result, template, &[x, limit]);
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
        let template = match bound.op {
            Op::Lerp => "{0} + {2} * ({1} - {0})",
            Op::Addcmul => "{0} + {3} * {1} * {2}",
            _ => "{0} + {3} * {1} / {2}",
        };
        if bound.op != Op::Lerp {
            let value = self.operand(node, bound.arg("value"), index)?;
            operands.push(self.cast(value, Kind::Float));
        }
        Ok(self.text(Kind::Float, template, &operands))
    }

    fn prelu(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let x = self.operand(node, bound.arg("input"), index)?;
        let weight = self.input_node(node, bound, "weight")?;
        let own = self.piece.shape(weight)?;
        let place = match own.as_slice() {
            [size] if size.is(1) => vec![self.zero()],
            [_] if index.len() > 1 => vec![index[1].clone()],
            _ => refuse!("`prelu` takes one weight for each channel"),
        };
        let weight = self.pull(weight, &place)?;
        let (x, weight) = (self.cast(x, Kind::Float), self.cast(weight, Kind::Float));
        Ok(self.text(Kind::Float, "tl.where({0} > 0, {0}, {0} * {1})", &[x, weight]))
    }

    fn activation(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let x = self.operand(node, bound.arg("input"), index)?;
        let x = self.cast(x, self.piece.kind(node)?);
        let kind = self.kind(x);
        if bound.op == Op::Relu {
            return Ok(self.text(kind, "tl.where({0} < 0, 0, {0})", &[x]));
        }
        if kind != Kind::Float {
            return Err(self.unsupported(bound));
        }
        let given = |name: &str| bound.float(name).ok_or_else(|| Refusal::new("not a number"));
        let template = match bound.op {
            Op::Relu6 => "tl.where({0} < 0, 0.0, tl.where({0} > 6, 6.0, {0}))".to_string(),
            Op::Hardswish => {
                let gate = self.text(
                    kind,
                    "tl.where({0} < -3, 0.0, tl.where({0} > 3, 6.0, {0} + 3.0))",
                    &[x],
                );
                return Ok(self.text(kind, "{0} * {1} / 6.0", &[x, gate]));
            }
            Op::Hardsigmoid => {
                "tl.where({0} < -3, 0.0, tl.where({0} > 3, 1.0, ({0} + 3.0) / 6.0))".into()
            }
            Op::LeakyRelu => {
                format!("tl.where({{0}} > 0, {{0}}, {{0}} * {})", number(given("negative_slope")?))
            }
            Op::Elu | Op::Celu => {
                let alpha = given("alpha")?;
                let scale = if bound.op == Op::Elu { 1.0 } else { 1.0 / alpha };
                format!(
                    "tl.where({{0}} > 0, {{0}}, {} * libdevice.expm1({{0}} * {}))",
                    number(alpha),
                    number(scale)
                )
            }
            Op::Gelu => match bound.arg("approximate").as_str() {
                Some("tanh") => {
                    let inner = self.text(
                        kind,
                        "0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})",
                        &[x],
                    );
                    return Ok(self.text(
                        kind,
                        "0.5 * {0} * (1.0 + libdevice.tanh({1}))",
                        &[x, inner],
                    ));
                }
                _ => "0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476))".into(),
            },
            Op::Softplus => {
                let (beta, threshold) = (given("beta")?, given("threshold")?);
                format!(
                    "tl.where({{0}} * {b} > {t}, {{0}}, libdevice.log1p(tl.exp({{0}} * {b})) / {b})",
                    b = number(beta),
                    t = number(threshold)
                )
            }
            Op::Mish => {
                "{0} * libdevice.tanh(tl.where({0} > 20, {0}, libdevice.log1p(tl.exp({0}))))".into()
            }
            Op::Threshold => format!(
                "tl.where({{0}} <= {}, {}, {{0}})",
                number(given("threshold")?),
                number(given("value")?)
            ),
            _ => return Err(self.unsupported(bound)),
        };
        Ok(self.text(kind, template, &[x]))
    }

    /// A size as a float, for means.
    pub(super) fn extent(&mut self, size: &Size) -> VarId {
        self.add(None, Kind::Int, Code::Extent(size.clone()), BTreeSet::new())
    }
}

/// Functions of one float.
fn unary(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Ceil => "tl.ceil({0})",
        Op::Floor => "tl.floor({0})",
        Op::Round => "libdevice.rint({0})",
        Op::Exp => "tl.exp({0})",
        Op::Exp2 => "tl.exp2({0})",
        Op::Expm1 => "libdevice.expm1({0})",
        Op::Log => "tl.log({0})",
        Op::Log2 => "tl.log2({0})",
        Op::Log1p => "libdevice.log1p({0})",
        Op::Sqrt => "tl.sqrt({0})",
        Op::Rsqrt => "tl.rsqrt({0})",
        Op::Reciprocal => "1.0 / {0}",
        Op::Sin => "tl.sin({0})",
        Op::Cos => "tl.cos({0})",
        Op::Tanh => "libdevice.tanh({0})",
        Op::Erf => "tl.erf({0})",
        Op::Sigmoid => "tl.sigmoid({0})",
        Op::Silu => "{0} * tl.sigmoid({0})",
        Op::Softsign => "{0} / (1.0 + tl.abs({0}))",
        _ => return None,
    })
}

fn comparison(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Eq => "==",
        Op::Ne => "!=",
        Op::Lt => "<",
        Op::Le => "<=",
        Op::Gt => ">",
        Op::Ge => ">=",
        _ => return None,
    })
}

fn logical(op: Op, result: Kind) -> Option<&'static str> {
    match op {
        Op::LogicalAnd => Some("&"),
        Op::LogicalOr => Some("|"),
        Op::LogicalXor => Some("^"),
        Op::BitwiseAnd if result != Kind::Float => Some("&"),
        Op::BitwiseOr if result != Kind::Float => Some("|"),
        Op::BitwiseXor if result != Kind::Float => Some("^"),
        _ => None,
    }
}

/// A float as Python writes it.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() {
        "float(\"nan\")".into()
    } else if value.is_infinite() {
        if value > 0.0 { "float(\"inf\")".into() } else { "float(\"-inf\")".into() }
    } else {
        format!("{value:?}")
    }
}
