//! Operations that fold many elements into one, and those that bring elements to a common spread.

use super::rule::{Rule, nonzero, sigmoid};
use crate::graph::{Arg, NodeId};
use crate::infer::TensorType;
use crate::ops::Op;
use crate::stats::Stat;

impl Rule<'_, '_> {
    pub(super) fn reduction(&self) -> Option<Stat> {
        let x = self.first()?;
        let count = self.folded()?.max(1.0);
        let positive = |mean: f64, std: f64| Stat { min: 0.0, ..Stat::normal(mean, std) };
        Some(match self.bound.op {
            Op::Sum | Op::NanSum => x.sum(count),
            Op::Mean | Op::NanMean => x.average(count),
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
    pub(super) fn contraction(&self) -> Option<Stat> {
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

    pub(super) fn normalisation(&self) -> Option<Stat> {
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
            Op::Softmax | Op::Softmin => {
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
    pub(super) fn attention(&self) -> Option<Stat> {
        let value = self.stat("value")?;
        let keys = self.tensor("key")?;
        let count = keys.shape.iter().rev().nth(1).map_or(1, |dim| dim.size) as f64;
        Some(Stat { mean: value.mean, ..value.average(count) })
    }

    pub(super) fn pooling(&self) -> Option<Stat> {
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
}

/// The spread left after normalising: a constant has none.
fn unit_spread(x: Stat) -> f64 {
    if x.std == 0.0 { 0.0 } else { 1.0 }
}
