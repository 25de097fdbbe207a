//! Element-wise operations.

use super::rule::{Rule, is_bit, nonzero, sigmoid};
use crate::graph::Arg;
use crate::ops::Op;
use crate::stats::Stat;
use crate::stats::stat::erf;

impl Rule<'_, '_> {
    pub(super) fn pointwise(&self) -> Option<Stat> {
        let unit = |stat: Stat| stat.within(0.0, 1.0);
        let binary = self.bound.has("other") && !self.bound.arg("other").is_none();
        if binary {
            return self.binary();
        }
        let x = self.first().or_else(|| self.stat("input"))?;
        let slope = self.number("negative_slope").unwrap_or(0.01);
        Some(match self.bound.op {
            Op::Neg => x.negate(),
            Op::Positive | Op::Dropout | Op::NanToNum => x,
            Op::Abs => Stat { min: 0.0, ..x.map(f64::abs) },
            Op::Square => x.square(),
            Op::Exp => x.map_rising(f64::exp).within(0.0, f64::INFINITY),
            Op::Expm1 => x.map_rising(f64::exp_m1),
            Op::Exp2 => x.map_rising(f64::exp2),
            Op::Log => x.map(|v| v.max(1e-12).ln()),
            Op::Log2 => x.map(|v| v.max(1e-12).log2()),
            Op::Log10 => x.map(|v| v.max(1e-12).log10()),
            Op::Log1p => x.map(|v| (1.0 + v).max(1e-12).ln()),
            Op::Sqrt => x.map(|v| v.max(0.0).sqrt()).within(0.0, f64::INFINITY),
            Op::Rsqrt => x.map(|v| 1.0 / v.max(1e-6).sqrt()).within(0.0, f64::INFINITY),
            Op::Reciprocal => Stat::constant(1.0).divide(x),
            Op::Sin => x.map(f64::sin).within(-1.0, 1.0),
            Op::Cos => x.map(f64::cos).within(-1.0, 1.0),
            Op::Tanh => x.map_rising(f64::tanh).within(-1.0, 1.0),
            Op::Atan => x.map_rising(f64::atan),
            Op::Asinh => x.map_rising(f64::asinh),
            Op::Tanhshrink => x.map_rising(|v| v - v.tanh()),
            Op::Deg2rad => x.scale(std::f64::consts::PI / 180.0),
            Op::Rad2deg => x.scale(180.0 / std::f64::consts::PI),
            Op::Erf => x.map_rising(erf).within(-1.0, 1.0),
            Op::Sigmoid => unit(x.map_rising(sigmoid)),
            Op::Hardsigmoid => unit(x.map_rising(|v| (v / 6.0 + 0.5).clamp(0.0, 1.0))),
            Op::Relu => x.map_rising(|v| v.max(0.0)),
            Op::Relu6 => x.map_rising(|v| v.clamp(0.0, 6.0)),
            Op::Silu => x.map(|v| v * sigmoid(v)).within(-0.279, f64::INFINITY),
            Op::Gelu => x
                .map(|v| 0.5 * v * (1.0 + erf(v / std::f64::consts::SQRT_2)))
                .within(-0.17, f64::INFINITY),
            Op::Mish => x.map(|v| v * v.exp().ln_1p().tanh()).within(-0.31, f64::INFINITY),
            Op::Hardswish => {
                x.map(|v| v * (v / 6.0 + 0.5).clamp(0.0, 1.0)).within(-0.376, f64::INFINITY)
            }
            Op::LeakyRelu => x.map_rising(|v| if v < 0.0 { v * slope } else { v }),
            Op::Elu | Op::Celu | Op::Selu => x.map_rising(|v| if v < 0.0 { v.exp_m1() } else { v }),
            Op::Softplus => x.map_rising(|v| v.max(0.0) + (-v.abs()).exp().ln_1p()),
            Op::Softsign => x.map_rising(|v| v / (1.0 + v.abs())),
            Op::LogSigmoid => x.map_rising(|v| sigmoid(v).ln()),
            Op::Ceil => x.map_rising(f64::ceil),
            Op::Floor => x.map_rising(f64::floor),
            Op::Round => x.map_rising(f64::round),
            Op::Trunc => x.map_rising(f64::trunc),
            Op::Sign => x.map_rising(|v| if v == 0.0 { 0.0 } else { v.signum() }),
            Op::Frac => Stat::uniform(0.0, 1.0),
            Op::LogicalNot => Stat::chance(1.0 - nonzero(x)),
            Op::BitwiseNot if x.min >= 0.0 && x.max <= 1.0 => Stat::chance(1.0 - x.mean),
            Op::BitwiseNot => x.negate().plus(Stat::constant(-1.0)),
            Op::IsNan | Op::IsInf => Stat::constant(0.0),
            Op::IsFinite => Stat::constant(1.0),
            Op::Clamp | Op::ClampMin | Op::ClampMax | Op::Hardtanh => self.clamp(x),
            Op::Pow | Op::FloatPower => self.power(x)?,
            Op::Where | Op::WhereMethod => self.choose()?,
            Op::MaskedFill => {
                let fill = self.stat("value").unwrap_or(x);
                fill.mix(self.stat("mask").map_or(0.5, |mask| mask.mean), x)
            }
            Op::Addcmul => {
                let product = self.stat("tensor1")?.multiply(self.stat("tensor2")?);
                x.plus(product.scale(self.number("value").unwrap_or(1.0)))
            }
            Op::Addcdiv => x.plus(self.stat("tensor1")?.divide(self.stat("tensor2")?)),
            Op::Lerp => x.mix(0.5, self.stat("end")?),
            Op::Prelu => {
                let slope = self.stat("weight").map_or(0.25, |weight| weight.mean);
                x.map(|v| if v < 0.0 { v * slope } else { v })
            }
            _ => x.map(|v| v),
        })
    }

    fn binary(&self) -> Option<Stat> {
        let (left, right) = (self.bound.arg("input"), self.bound.arg("other"));
        let (a, b) = (self.of_arg(left)?, self.of_arg(right)?);
        let same = left.as_node().is_some() && left.as_node() == right.as_node();
        let alpha = self.number("alpha").unwrap_or(1.0);
        let equal =
            if a.std == 0.0 && b.std == 0.0 { f64::from(u8::from(a.mean == b.mean)) } else { 0.1 };
        Some(match self.bound.op {
            Op::Add if same => a.scale(1.0 + alpha),
            Op::Add => a.plus(b.scale(alpha)),
            Op::Sub => a.plus(b.scale(-alpha)),
            Op::Rsub => b.plus(a.scale(-alpha)),
            Op::Mul if same => a.square(),
            Op::Mul => a.multiply(b),
            Op::Div => self.rounded(a.divide(b), a, b),
            Op::FloorDivide => floor_divide(a, b),
            Op::Remainder | Op::Fmod => remainder(a, b),
            Op::Maximum => a.larger(b),
            Op::Minimum => a.negate().larger(b.negate()).negate(),
            Op::Eq | Op::IsClose => Stat::chance(equal),
            Op::Ne => Stat::chance(1.0 - equal),
            Op::Lt | Op::Le => Stat::chance(a.chance_below(b)),
            Op::Gt | Op::Ge => Stat::chance(b.chance_below(a)),
            Op::LogicalAnd => Stat::chance(nonzero(a) * nonzero(b)),
            Op::LogicalOr => Stat::chance(nonzero(a) + nonzero(b) - nonzero(a) * nonzero(b)),
            Op::LogicalXor => Stat::chance(nonzero(a) + nonzero(b) - 2.0 * nonzero(a) * nonzero(b)),
            Op::BitwiseAnd if is_bit(a) && is_bit(b) => Stat::chance(a.mean * b.mean),
            Op::BitwiseOr if is_bit(a) && is_bit(b) => {
                Stat::chance(a.mean + b.mean - a.mean * b.mean)
            }
            Op::BitwiseXor if is_bit(a) && is_bit(b) => {
                Stat::chance(a.mean + b.mean - 2.0 * a.mean * b.mean)
            }
            Op::BitwiseAnd if a.min >= 0.0 && b.min >= 0.0 => Stat::uniform(0.0, a.max.min(b.max)),
            Op::LeftShift if b.std == 0.0 => a.scale(b.mean.exp2()),
            Op::RightShift if b.std == 0.0 => floor_divide(a, Stat::constant(b.mean.exp2())),
            Op::Pow | Op::FloatPower => self.power(a)?,
            Op::Where | Op::WhereMethod => self.choose()?,
            Op::Hypot => a.square().plus(b.square()).map(|v| v.max(0.0).sqrt()),
            Op::Logaddexp | Op::Logaddexp2 => a.larger(b),
            Op::Atan2 => Stat::uniform(-std::f64::consts::PI, std::f64::consts::PI),
            _ => return None,
        })
    }

    /// `torch.div` may round.
    fn rounded(&self, quotient: Stat, a: Stat, b: Stat) -> Stat {
        match self.bound.arg("rounding_mode") {
            Arg::Str(_) => floor_divide(a, b),
            _ => quotient,
        }
    }

    fn clamp(&self, x: Stat) -> Stat {
        let bound =
            |names: [&str; 2]| names.iter().find_map(|name| self.stat(name)).map(|stat| stat.mean);
        let (min, max) = match self.bound.op {
            Op::ClampMin => (bound(["min", "min"]), None),
            Op::ClampMax => (None, bound(["max", "max"])),
            _ => (bound(["min", "min_val"]), bound(["max", "max_val"])),
        };
        let (min, max) = (min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY));
        x.map_rising(|v| v.max(min).min(max))
    }

    fn power(&self, x: Stat) -> Option<Stat> {
        let exponent = self.stat("exponent").or_else(|| self.stat("other"))?;
        if exponent.std == 0.0 {
            let by = exponent.mean;
            return Some(match by {
                2.0 => x.square(),
                by if by % 2.0 == 0.0 => Stat { min: 0.0, ..x.map(|v| v.powf(by)) },
                by if by.fract() == 0.0 && by > 0.0 => x.map_rising(|v| v.powf(by)),
                by => x.map(|v| v.max(1e-6).powf(by)).within(0.0, f64::INFINITY),
            });
        }
        let base = x.mean;
        Some(exponent.map(|v| base.powf(v)))
    }

    fn choose(&self) -> Option<Stat> {
        let condition = self.stat("condition").map_or(0.5, |condition| condition.mean);
        let (a, b) = match self.bound.op {
            Op::WhereMethod => (self.first()?, self.stat("other")?),
            _ => (self.stat("input")?, self.stat("other")?),
        };
        Some(a.mix(condition, b))
    }
}

fn floor_divide(a: Stat, b: Stat) -> Stat {
    if b.std == 0.0 && b.mean != 0.0 {
        let quotient = a.scale(1.0 / b.mean);
        return Stat {
            mean: quotient.mean - 0.5 * f64::from(u8::from(quotient.std > 0.0)),
            min: quotient.min.floor(),
            max: quotient.max.floor(),
            ..quotient
        };
    }
    a.divide(b)
}

/// What is left lies between zero and the divisor.
fn remainder(a: Stat, b: Stat) -> Stat {
    if b.std == 0.0 && b.mean > 0.0 {
        if a.min >= 0.0 && a.max < b.mean {
            return a;
        }
        return Stat::uniform(
            0.0,
            if a.min.fract() == 0.0 && b.mean.fract() == 0.0 { b.mean - 1.0 } else { b.mean },
        );
    }
    a
}
