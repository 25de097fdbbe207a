//! Activations: functions of one value, written where torch's own limits are.

use super::super::body::{Kind, VarId};
use super::super::{Refusal, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, Binary, Expr, Formula};
use passnet_graph::ops::Op;

impl Lower<'_> {
    pub(super) fn prelu(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
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
        Ok(self.compute(Kind::Float, leaky(B), &[x, weight]))
    }

    pub(super) fn activation(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let x = self.operand(node, bound.arg("input"), index)?;
        let x = self.cast(x, self.piece.kind(node)?);
        let kind = self.kind(x);
        if bound.op == Op::Relu {
            let formula = Expr::select(A.below(Expr::int(0)), Expr::int(0), A);
            return Ok(self.compute(kind, formula, &[x]));
        }
        if kind != Kind::Float {
            return Err(self.unsupported(bound));
        }
        let given = |name: &str| {
            bound.float(name).map(Expr::float).ok_or_else(|| Refusal::new("not a number"))
        };
        let formula = match bound.op {
            Op::Relu6 => between(0.0, Expr::float(0.0), 6.0, Expr::float(6.0), A),
            Op::Hardswish => {
                let middle = A + Expr::float(3.0);
                let gate = between(-3.0, Expr::float(0.0), 3.0, Expr::float(6.0), middle);
                let gate = self.compute(kind, gate, &[x]);
                return Ok(self.compute(kind, A * B / Expr::float(6.0), &[x, gate]));
            }
            Op::Hardsigmoid => {
                let middle = (A + Expr::float(3.0)) / Expr::float(6.0);
                between(-3.0, Expr::float(0.0), 3.0, Expr::float(1.0), middle)
            }
            Op::LeakyRelu => leaky(given("negative_slope")?),
            Op::Elu | Op::Celu => {
                let alpha = given("alpha")?;
                let scale = match bound.op {
                    Op::Elu => Expr::float(1.0),
                    _ => Expr::float(1.0 / bound.float("alpha").unwrap_or(1.0)),
                };
                let below = alpha * Expr::call("libdevice.expm1", [A * scale]);
                Expr::select(A.above(Expr::int(0)), A, below)
            }
            Op::Gelu => match bound.arg("approximate").as_str() {
                Some("tanh") => {
                    let inner = Expr::float(0.797_884_560_802_865_4)
                        * (A + Expr::float(0.044715) * A * A * A);
                    let inner = self.compute(kind, inner, &[x]);
                    let gate = Expr::float(1.0) + Expr::call("libdevice.tanh", [B]);
                    return Ok(self.compute(kind, Expr::float(0.5) * A * gate, &[x, inner]));
                }
                _ => {
                    let root = Expr::float(std::f64::consts::FRAC_1_SQRT_2);
                    Expr::float(0.5) * A * (Expr::float(1.0) + Expr::call("tl.erf", [A * root]))
                }
            },
            Op::Softplus => {
                let (beta, threshold) = (given("beta")?, given("threshold")?);
                let scaled = || A * beta.clone();
                let power = Expr::call("libdevice.log1p", [Expr::call("tl.exp", [scaled()])]);
                Expr::select(scaled().above(threshold), A, power / beta.clone())
            }
            Op::Mish => {
                let power = Expr::call("libdevice.log1p", [Expr::call("tl.exp", [A])]);
                let softplus = Expr::select(A.above(Expr::int(20)), A, power);
                A * Expr::call("libdevice.tanh", [softplus])
            }
            Op::LogSigmoid => {
                let power = Expr::call("tl.exp", [-Expr::call("tl.abs", [A])]);
                Expr::call("tl.minimum", [A, Expr::float(0.0)])
                    - Expr::call("libdevice.log1p", [power])
            }
            Op::Logit => {
                let odds = A / (Expr::float(1.0) - A);
                let kept = match bound.float("eps") {
                    Some(eps) => {
                        // In float32, as torch takes it from one.
                        let (low, high) = (eps as f32, 1.0 - eps as f32);
                        let bound = |bound: f32| Expr::float(f64::from(bound));
                        let upper = Expr::select(A.above(bound(high)), bound(high), A);
                        Expr::select(A.below(bound(low)), bound(low), upper)
                    }
                    None => A,
                };
                let kept = self.compute(kind, kept, &[x]);
                return Ok(self.compute(kind, Expr::call("tl.log", [odds]), &[kept]));
            }
            Op::Threshold => {
                let is_low = Expr::binary(Binary::AtMost, A, given("threshold")?);
                Expr::select(is_low, given("value")?, A)
            }
            _ => return Err(self.unsupported(bound)),
        };
        Ok(self.compute(kind, formula, &[x]))
    }
}

/// The operand where it is above zero, else a part of it.
fn leaky(slope: Formula) -> Formula {
    Expr::select(A.above(Expr::int(0)), A, A * slope)
}

/// One value below a limit, another above a second one, and something between.
fn between(low: f64, below: Formula, high: f64, above: Formula, middle: Formula) -> Formula {
    let limit = |limit: f64| Expr::int(limit as i64);
    let upper = Expr::select(A.above(limit(high)), above, middle);
    Expr::select(A.below(limit(low)), below, upper)
}
