//! One rule per family of operations. A rule that knows nothing says so; a node without statistics stays without.

use super::stat::erf;
use super::{Known, Stat, Stats};
use crate::graph::{Arg, Call, NodeId};
use crate::infer::{Inference, TensorType, Value};
use crate::ops::{Bound, Class, Op};

pub(super) fn apply(stats: &Stats, types: &Inference, id: NodeId, call: &Call) -> Known {
    let Ok(bound) = call.bind() else { return Known::Nothing };
    let rule = Rule { stats, types, id, bound: &bound };
    rule.several().or_else(|| rule.one().map(Known::One)).unwrap_or(Known::Nothing)
}

struct Rule<'a, 'b> {
    stats: &'a Stats,
    types: &'a Inference,
    id: NodeId,
    bound: &'a Bound<'b>,
}

impl Rule<'_, '_> {
    fn of_arg(&self, arg: &Arg) -> Option<Stat> {
        match arg {
            Arg::Node(id) => self.stats.of(*id),
            other => other.as_float().and_then(|value| Stat::constant(value).checked()),
        }
    }

    fn stat(&self, name: &str) -> Option<Stat> {
        self.of_arg(self.bound.arg(name))
    }

    /// The first argument, whatever its name.
    fn first(&self) -> Option<Stat> {
        let mut first = None;
        for param in &self.bound.signature.params {
            let arg = self.bound.arg(param.name);
            arg.for_each_node(&mut |id| first = first.or(self.stats.of(id)));
            if first.is_some() {
                break;
            }
        }
        first
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.bound.arg(name) {
            Arg::Node(id) => match self.types.value(*id) {
                Value::Scalar(scalar) => scalar.as_f64(),
                _ => None,
            },
            other => other.as_float(),
        }
    }

    fn tensor(&self, name: &str) -> Option<&TensorType> {
        self.types.value(self.bound.arg(name).as_node()?).as_tensor()
    }

    fn input(&self) -> Option<&TensorType> {
        self.bound.signature.params.first().and_then(|param| self.tensor(param.name))
    }

    fn output(&self) -> Option<&TensorType> {
        match self.types.value(self.id) {
            Value::Tensor(tensor) => Some(tensor),
            Value::Sequence(items) => items.iter().find_map(Value::as_tensor),
            _ => None,
        }
    }

    /// Elements read for each element of the result.
    fn folded(&self) -> Option<f64> {
        Some(self.input()?.elements() as f64 / self.output()?.elements().max(1) as f64)
    }

    /// The size of the dimension an operation works along.
    fn along(&self) -> Option<f64> {
        let input = self.input()?;
        let rank = input.rank() as i64;
        let dim = self.number("dim").unwrap_or(-1.0) as i64;
        let at = usize::try_from(if dim < 0 { dim + rank } else { dim }).ok()?;
        Some(input.shape.get(at).map_or(1, |dim| dim.size) as f64)
    }

    /// Operations that return several tensors of different meaning.
    fn several(&self) -> Option<Known> {
        let Value::Sequence(items) = self.types.value(self.id) else { return None };
        let places = |size: f64| Some(Stat::uniform(0.0, (size - 1.0).max(0.0)));
        let x = self.first();
        let pair = match self.bound.op {
            Op::Max | Op::Cummax => {
                [x.map(|x| x.largest(self.along().unwrap_or(1.0))), places(self.along()?)]
            }
            Op::Min | Op::Cummin => [
                x.map(|x| x.negate().largest(self.along().unwrap_or(1.0)).negate()),
                places(self.along()?),
            ],
            Op::Topk => {
                let share = self.along()? / self.number("k").unwrap_or(1.0).max(1.0);
                [x.map(|x| x.largest(share)), places(self.along()?)]
            }
            Op::Sort | Op::Median => [x, places(self.along()?)],
            Op::VarMean | Op::StdMean => {
                let x = x?;
                let spread = if self.bound.op == Op::VarMean { x.variance() } else { x.std };
                let count = self.folded().unwrap_or(1.0);
                let first = Stat { min: 0.0, ..Stat::normal(spread, spread / count.sqrt()) };
                [Some(first), Some(x.average(count))]
            }
            Op::AdaptiveMaxPool1d
            | Op::AdaptiveMaxPool2d
            | Op::AdaptiveMaxPool3d
            | Op::MaxPool1d
            | Op::MaxPool2d
            | Op::MaxPool3d => {
                let field =
                    self.input()?.shape.iter().skip(2).fold(1.0, |n, dim| n * dim.size as f64);
                [x.map(|x| x.largest(self.folded().unwrap_or(1.0))), places(field)]
            }
            _ => return x.map(|x| Known::Each(vec![Some(x); items.len()])),
        };
        Some(Known::Each(pair.to_vec()))
    }

    fn one(&self) -> Option<Stat> {
        match self.bound.class() {
            Class::Pointwise => self.pointwise(),
            Class::Reduction | Class::Scan => self.reduction(),
            Class::Contraction => self.contraction(),
            Class::Normalisation => self.normalisation(),
            Class::Attention => self.attention(),
            Class::Pooling => self.pooling(),
            Class::Creation | Class::Random => self.creation(),
            Class::Movement => self.movement(),
            Class::Indexing => self.indexing(),
            Class::View | Class::Resampling => self.first(),
            Class::Transform => self.transform(),
            Class::Scalar => match self.types.value(self.id) {
                Value::Scalar(scalar) => scalar.as_f64().map(Stat::constant),
                _ => None,
            },
            Class::Effect => None,
        }
    }

    fn pointwise(&self) -> Option<Stat> {
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

    fn reduction(&self) -> Option<Stat> {
        let x = self.first()?;
        let count = self.folded()?.max(1.0);
        let positive = |mean: f64, std: f64| Stat { min: 0.0, ..Stat::normal(mean, std) };
        Some(match self.bound.op {
            Op::Sum | Op::NanSum => x.sum(count),
            Op::Mean => x.average(count),
            Op::Max | Op::Amax => x.largest(count),
            Op::Min | Op::Amin => x.negate().largest(count).negate(),
            Op::Argmax | Op::Argmin => {
                let size = if self.bound.arg("dim").is_none() { count } else { self.along()? };
                Stat::uniform(0.0, (size - 1.0).max(0.0))
            }
            Op::All => Stat::chance(nonzero(x).powf(count)),
            Op::Any => Stat::chance(1.0 - (1.0 - nonzero(x)).powf(count)),
            Op::CountNonzero => {
                Stat { min: 0.0, max: count, ..Stat::chance(nonzero(x)).sum(count) }
            }
            Op::Var => positive(x.variance(), x.variance() / count.sqrt()),
            Op::Std => positive(x.std, x.std / count.sqrt()),
            Op::Norm | Op::LinalgNorm | Op::VectorNorm => {
                let size = (count * (x.mean * x.mean + x.variance())).sqrt();
                positive(size, size / (2.0 * count).sqrt())
            }
            Op::Logsumexp => {
                Stat::normal(x.mean + x.variance() / 2.0 + count.ln(), x.std / count.sqrt())
            }
            Op::Cumsum => {
                let size = self.along()?;
                let total = x.sum(size / 2.0);
                Stat {
                    std: x.std.hypot(x.mean * size / 12f64.sqrt()).hypot(total.std),
                    min: x.min.min(x.min * size),
                    max: x.max.max(x.max * size),
                    ..total
                }
            }
            Op::Median => x.average(count),
            _ => return None,
        })
    }

    /// Sums of products: `fan_in` independent terms.
    fn contraction(&self) -> Option<Stat> {
        let terms = |a: Stat, b: Stat, count: f64| {
            let sum = a.multiply(b).sum(count);
            Stat::normal(sum.mean, sum.std)
        };
        let plus = |sum: Stat, bias: Option<Stat>| bias.map_or(sum, |bias| sum.plus(bias));
        let last = |tensor: &TensorType| tensor.shape.last().map_or(1, |dim| dim.size) as f64;
        Some(match self.bound.op {
            Op::Linear => {
                let fan_in = last(self.tensor("input")?);
                plus(terms(self.stat("input")?, self.stat("weight")?, fan_in), self.stat("bias"))
            }
            Op::Conv1d | Op::Conv2d | Op::Conv3d => {
                let weight = self.tensor("weight")?;
                let fan_in = weight.shape.iter().skip(1).fold(1.0, |n, dim| n * dim.size as f64);
                plus(terms(self.stat("input")?, self.stat("weight")?, fan_in), self.stat("bias"))
            }
            Op::ConvTranspose1d | Op::ConvTranspose2d | Op::ConvTranspose3d => {
                let (input, weight, output) =
                    (self.tensor("input")?, self.tensor("weight")?, self.output()?);
                // Every input element reaches every weight once.
                let products = input.elements() as f64 * weight.elements() as f64
                    / input.shape.get(1).map_or(1, |dim| dim.size).max(1) as f64;
                let fan_in = (products / output.elements().max(1) as f64).max(1.0);
                plus(terms(self.stat("input")?, self.stat("weight")?, fan_in), self.stat("bias"))
            }
            Op::Matmul | Op::Mv | Op::Mm | Op::Bmm | Op::Dot => {
                let params = &self.bound.signature.params;
                let fan_in = last(self.input()?);
                terms(self.first()?, self.stat(params.get(1)?.name)?, fan_in)
            }
            Op::Addmm | Op::Baddbmm | Op::Addbmm => {
                let params = &self.bound.signature.params;
                let fan_in = last(self.tensor(params.get(1)?.name)?);
                let product =
                    terms(self.stat(params.get(1)?.name)?, self.stat(params.get(2)?.name)?, fan_in);
                let scaled = product.scale(self.number("alpha").unwrap_or(1.0));
                scaled.plus(self.stat("input")?.scale(self.number("beta").unwrap_or(1.0)))
            }
            Op::Einsum => {
                let mut operands = Vec::new();
                for arg in self.bound.rest("operands") {
                    arg.for_each_node(&mut |id| operands.push(id));
                }
                let [a, b] = operands[..] else { return None };
                let sizes = |id: NodeId| Some(self.types.value(id).as_tensor()?.elements() as f64);
                // Elements of both operands and of the result share every index twice, sums once less.
                let fan_in = (sizes(a)? * sizes(b)? / self.output()?.elements().max(1) as f64)
                    .sqrt()
                    .max(1.0);
                terms(self.stats.of(a)?, self.stats.of(b)?, fan_in)
            }
            Op::Outer => self.first()?.multiply(self.stat("vec2")?),
            Op::CosineSimilarity => Stat { std: 0.3, ..Stat::uniform(-1.0, 1.0) },
            _ => return None,
        })
    }

    fn normalisation(&self) -> Option<Stat> {
        let x = self.first()?;
        let affine = |normal: Stat| {
            let scaled = self.stat("weight").map_or(normal, |weight| normal.multiply(weight));
            self.stat("bias").map_or(scaled, |bias| scaled.plus(bias))
        };
        Some(match self.bound.op {
            Op::LayerNorm | Op::GroupNorm | Op::InstanceNorm => {
                affine(Stat::normal(0.0, unit_spread(x)))
            }
            Op::RmsNorm => {
                let size = (x.mean * x.mean + x.variance()).sqrt().max(1e-6);
                affine(Stat::normal(x.mean / size, x.std / size))
            }
            Op::BatchNorm if self.bound.flag("training") => {
                affine(Stat::normal(0.0, unit_spread(x)))
            }
            Op::BatchNorm => {
                let eps = self.number("eps").unwrap_or(1e-5);
                let centred = self.stat("running_mean").map_or(x, |mean| x.plus(mean.negate()));
                let scale = self.stat("running_var")?.map(|v| 1.0 / (v.max(0.0) + eps).sqrt());
                let normal = centred.multiply(scale);
                affine(Stat::normal(normal.mean, normal.std))
            }
            Op::Softmax => {
                let size = self.along()?.max(1.0);
                let share = 1.0 / size;
                let spread = share * (x.variance().min(20.0).exp_m1()).sqrt();
                let most = (share * (1.0 - share)).max(0.0).sqrt();
                Stat { mean: share, std: spread.min(most), min: 0.0, max: 1.0 }
            }
            Op::LogSoftmax => {
                let size = self.along()?.max(1.0);
                Stat { max: 0.0, ..Stat::normal(-(size.ln() + x.variance() / 2.0), x.std) }
            }
            Op::Normalize => {
                let size = self.along()?.max(1.0);
                let norm = (size * (x.mean * x.mean + x.variance())).sqrt().max(1e-12);
                Stat { min: -1.0, max: 1.0, ..Stat::normal(x.mean / norm, x.std / norm) }
            }
            Op::Glu => x.multiply(x.map_rising(sigmoid)),
            Op::WeightNorm => x,
            _ => x,
        })
    }

    /// Attention averages values; the sharper the scores, the fewer of them.
    fn attention(&self) -> Option<Stat> {
        let value = self.stat("value")?;
        let keys = self.tensor("key")?;
        let count = keys.shape.iter().rev().nth(1).map_or(1, |dim| dim.size) as f64;
        Some(Stat { mean: value.mean, ..value.average(count) })
    }

    fn pooling(&self) -> Option<Stat> {
        let x = self.first()?;
        let window = self.window().unwrap_or_else(|| self.folded().unwrap_or(1.0)).max(1.0);
        Some(match self.bound.op {
            Op::MaxPool1d
            | Op::MaxPool2d
            | Op::MaxPool3d
            | Op::AdaptiveMaxPool1d
            | Op::AdaptiveMaxPool2d
            | Op::AdaptiveMaxPool3d => x.largest(window),
            _ => x.average(window),
        })
    }

    fn window(&self) -> Option<f64> {
        match self.bound.arg("kernel_size") {
            Arg::Tuple(sizes) | Arg::List(sizes) => {
                Some(sizes.iter().filter_map(Arg::as_float).product())
            }
            arg => {
                let dims = self.input()?.rank().saturating_sub(2) as i32;
                Some(arg.as_float()?.powi(dims))
            }
        }
    }

    fn creation(&self) -> Option<Stat> {
        let number = |name: &str| self.number(name);
        Some(match self.bound.op {
            Op::Zeros
            | Op::ZerosLike
            | Op::NewZeros
            | Op::Zero
            | Op::Empty
            | Op::EmptyLike
            | Op::NewEmpty => Stat::constant(0.0),
            Op::Ones | Op::OnesLike | Op::NewOnes => Stat::constant(1.0),
            Op::Full | Op::FullLike | Op::NewFull => self.stat("fill_value")?,
            Op::Fill => self.stat("value")?,
            Op::ScalarTensor => self.stat("s")?,
            Op::Tensor | Op::AsTensor | Op::NewTensor => match self.bound.arg("data") {
                Arg::Tuple(items) | Arg::List(items) => {
                    let numbers: Option<Vec<f64>> = items.iter().map(Arg::as_float).collect();
                    Stat::of_elements(numbers?.into_iter())?
                }
                data => self.of_arg(data)?,
            },
            Op::Arange => {
                let start = number("start").unwrap_or(0.0);
                let step = number("step").unwrap_or(1.0);
                let count = self.output()?.elements().max(1) as f64;
                let last = start + (count - 1.0) * step;
                Stat::uniform(start.min(last), start.max(last))
            }
            Op::Linspace => Stat::uniform(
                number("start")?.min(number("end")?),
                number("start")?.max(number("end")?),
            ),
            Op::Eye => {
                let size = self.output()?.shape.last().map_or(1, |dim| dim.size).max(1) as f64;
                Stat::chance(1.0 / size)
            }
            Op::TrilIndices | Op::TriuIndices => {
                Stat::uniform(0.0, (number("row")?.max(number("col")?) - 1.0).max(0.0))
            }
            Op::HannWindow | Op::Rand | Op::RandLike => Stat::uniform(0.0, 1.0),
            Op::Randn | Op::RandnLike => Stat::normal(0.0, 1.0),
            Op::Randint => Stat::uniform(number("low").unwrap_or(0.0), number("high")? - 1.0),
            Op::Randperm => Stat::uniform(0.0, (number("n")? - 1.0).max(0.0)),
            Op::Bernoulli => Stat::chance(number("p").or(self.first().map(|x| x.mean))?),
            Op::Multinomial => {
                let size = self.input()?.shape.last().map_or(1, |dim| dim.size) as f64;
                Stat::uniform(0.0, (size - 1.0).max(0.0))
            }
            Op::NormalInPlace => Stat::normal(number("mean")?, number("std")?),
            Op::UniformInPlace => Stat::uniform(number("from")?, number("to")?),
            _ => self.first()?,
        })
    }

    fn movement(&self) -> Option<Stat> {
        match self.bound.op {
            Op::Cat | Op::Stack | Op::Hstack | Op::Vstack => {
                let mut parts: Vec<(f64, Stat)> = Vec::new();
                let mut complete = true;
                let first = self.bound.signature.params.first()?.name;
                let mut add = |id: NodeId| match (self.stats.of(id), self.types.value(id)) {
                    (Some(stat), Value::Tensor(tensor)) => {
                        parts.push((tensor.elements() as f64, stat))
                    }
                    _ => complete = false,
                };
                self.bound.arg(first).for_each_node(&mut add);
                let mut parts = parts.into_iter();
                let (mut total, mut mixed) = parts.next().filter(|_| complete)?;
                for (count, stat) in parts {
                    total += count;
                    mixed = if total > 0.0 { stat.mix(count / total, mixed) } else { mixed };
                }
                Some(mixed)
            }
            Op::Pad | Op::ConstantPadNd => {
                let x = self.first()?;
                let inside =
                    self.input()?.elements() as f64 / self.output()?.elements().max(1) as f64;
                let constant =
                    !matches!(self.bound.arg("mode"), Arg::Str(mode) if &**mode != "constant");
                let fill = Stat::constant(self.number("value").unwrap_or(0.0));
                Some(if constant { x.mix(inside.clamp(0.0, 1.0), fill) } else { x })
            }
            Op::Tril | Op::Triu => Some(self.first()?.mix(0.5, Stat::constant(0.0))),
            Op::Copy => self.stat("src").or_else(|| self.first()),
            Op::DiagEmbed => {
                let size = self.output()?.shape.last().map_or(1, |dim| dim.size).max(1) as f64;
                Some(self.first()?.mix(1.0 / size, Stat::constant(0.0)))
            }
            Op::Polar => None,
            _ => self.first(),
        }
    }

    fn indexing(&self) -> Option<Stat> {
        match self.bound.op {
            Op::GetItem => {
                let node = self.bound.arg("input").as_node()?;
                match (self.types.value(node), self.bound.arg("index")) {
                    (Value::Sequence(items), Arg::Int(index)) => {
                        let at = if *index < 0 { index + items.len() as i64 } else { *index };
                        self.stats.at(node, &[usize::try_from(at).ok()?])
                    }
                    _ => self.stats.of(node),
                }
            }
            Op::SetItem
            | Op::IndexPut
            | Op::Scatter
            | Op::IndexCopy
            | Op::IndexFill
            | Op::MaskedScatter => {
                let x = self.first()?;
                let names = ["value", "values", "src", "source"];
                let written = names.iter().find_map(|name| self.stat(name));
                Some(written.map_or(x, |written| x.mix(0.5, written)))
            }
            Op::Embedding | Op::EmbeddingBag => self.stat("weight"),
            Op::OneHot => {
                let classes = self.output()?.shape.last().map_or(1, |dim| dim.size).max(1) as f64;
                Some(Stat::chance(1.0 / classes))
            }
            Op::ScatterAdd | Op::IndexAdd | Op::ScatterReduce => {
                let added = self.stat("src").or_else(|| self.stat("source"))?;
                // In the extreme all of them fall on one place.
                let count = self.tensor("index")?.elements().max(1) as f64;
                let reach = Stat {
                    min: (added.min * count).min(0.0),
                    max: (added.max * count).max(0.0),
                    ..added
                };
                Some(self.first()?.plus(reach))
            }
            Op::Nonzero => {
                let most = self.input()?.shape.iter().map(|dim| dim.size).max().unwrap_or(1) as f64;
                Some(Stat::uniform(0.0, (most - 1.0).max(0.0)))
            }
            Op::Searchsorted | Op::Bucketize => {
                let names = ["sorted_sequence", "boundaries"];
                let sorted = names.iter().find_map(|name| self.tensor(name))?;
                Some(Stat::uniform(0.0, sorted.shape.last().map_or(1, |dim| dim.size) as f64))
            }
            Op::Bincount => None,
            _ => self.first(),
        }
    }

    fn transform(&self) -> Option<Stat> {
        match self.bound.op {
            Op::Argsort => Some(Stat::uniform(0.0, (self.along()? - 1.0).max(0.0))),
            Op::Sort | Op::Topk => self.first(),
            _ => None,
        }
    }
}

/// The spread left after normalising: a constant has none.
fn unit_spread(x: Stat) -> f64 {
    if x.std == 0.0 { 0.0 } else { 1.0 }
}

fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}

/// How often a value is not zero.
fn nonzero(x: Stat) -> f64 {
    if is_bit(x) { x.mean } else { f64::from(u8::from(x.std != 0.0 || x.mean != 0.0)) }
}

fn is_bit(x: Stat) -> bool {
    x.min >= 0.0 && x.max <= 1.0
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
