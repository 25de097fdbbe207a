//! Operations that make elements, and those that move them.

use super::rule::Rule;
use crate::graph::{Arg, NodeId};
use crate::infer::Value;
use crate::ops::Op;
use crate::stats::Stat;

impl Rule<'_, '_> {
    pub(super) fn creation(&self) -> Option<Stat> {
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
            Op::HannWindow | Op::HammingWindow | Op::BlackmanWindow => Stat::uniform(0.0, 1.0),
            Op::Fftfreq | Op::Rfftfreq => {
                let most = 0.5 / number("d").unwrap_or(1.0).abs().max(1e-12);
                Stat::uniform(if self.bound.op == Op::Fftfreq { -most } else { 0.0 }, most)
            }
            Op::BartlettWindow | Op::KaiserWindow => Stat::uniform(0.0, 1.0),
            Op::Rand | Op::RandLike => Stat::uniform(0.0, 1.0),
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

    pub(super) fn movement(&self) -> Option<Stat> {
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

    pub(super) fn indexing(&self) -> Option<Stat> {
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

    pub(super) fn transform(&self) -> Option<Stat> {
        match self.bound.op {
            Op::Argsort => Some(Stat::uniform(0.0, (self.along()? - 1.0).max(0.0))),
            Op::Sort | Op::Topk | Op::Fftshift | Op::Ifftshift => self.first(),
            Op::GruCell | Op::RnnTanhCell => self.recurrent(),
            _ => None,
        }
    }

    /// Gates and hyperbolic tangents keep a state between -1 and 1.
    pub(super) fn recurrent(&self) -> Option<Stat> {
        Some(Stat { std: 0.3, ..Stat::uniform(-1.0, 1.0) })
    }
}
