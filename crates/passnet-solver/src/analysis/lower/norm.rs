//! Normalisations and softmax, as folds and arithmetic in float32.

use super::super::body::{Fold, Kind, VarId};
use super::super::index::Index;
use super::super::{Refusal, Size, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, C, D, Expr, Formula, Literal};
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, NodeId};

impl Lower<'_> {
    pub(super) fn normalisation(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { bound, .. } = wanted;
        match bound.op {
            Op::BatchNorm => self.batch_norm(wanted),
            Op::LayerNorm | Op::RmsNorm => self.layer_norm(wanted),
            Op::GroupNorm => self.group_norm(wanted),
            Op::InstanceNorm => self.norm_of_channels(wanted, 2),
            Op::Softmax | Op::LogSoftmax => self.softmax(wanted),
            Op::Normalize => self.normalize(wanted),
            Op::Glu => self.glu(wanted),
            _ => Err(self.unsupported(bound)),
        }
    }

    /// A tensor argument that may be left out, read at one place and made a float.
    fn parameter_at(
        &mut self,
        node: NodeId,
        bound: &Bound<'_>,
        name: &str,
        place: &[Index],
    ) -> Result<Option<VarId>, Refusal> {
        if bound.arg(name).is_none() {
            return Ok(None);
        }
        let value = self.input(node, bound, name, place)?;
        Ok(Some(self.cast(value, Kind::Float)))
    }

    /// A number argument: a literal, or a value read from a tensor.
    fn number_arg(&mut self, node: NodeId, arg: &Arg, default: f64) -> Result<VarId, Refusal> {
        match arg {
            Arg::None => Ok(self.number(Kind::Float, Literal::Float(default))),
            Arg::Node(_) => {
                let Some(input) = self.argument(node, arg) else { refuse!("no number") };
                let value = self.pull(input, &[])?;
                Ok(self.cast(value, Kind::Float))
            }
            other => match other.as_float() {
                Some(value) => Ok(self.number(Kind::Float, Literal::Float(value))),
                None => Err(Refusal::new("an argument is no number")),
            },
        }
    }

    /// Weight and bias, where they are given.
    fn affine(
        &mut self,
        node: NodeId,
        bound: &Bound<'_>,
        place: &[Index],
        mut value: VarId,
    ) -> Result<VarId, Refusal> {
        if let Some(weight) = self.parameter_at(node, bound, "weight", place)? {
            value = self.compute(Kind::Float, A * B, &[value, weight]);
        }
        if let Some(bias) = self.parameter_at(node, bound, "bias", place)? {
            value = self.compute(Kind::Float, A + B, &[value, bias]);
        }
        Ok(value)
    }

    fn batch_norm(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        if bound.flag("training") {
            return self.norm_of_channels(wanted, 0);
        }
        let channel = [index.get(1).cloned().unwrap_or_else(|| self.zero())];
        let x = self.input(node, bound, "input", index)?;
        let x = self.cast(x, Kind::Float);
        let (Some(mean), Some(variance)) = (
            self.parameter_at(node, bound, "running_mean", &channel)?,
            self.parameter_at(node, bound, "running_var", &channel)?,
        ) else {
            refuse!("batch norm without statistics");
        };
        let eps = self.number_arg(node, bound.arg("eps"), 1e-5)?;
        let root = Expr::call("tl.sqrt", [A + B]);
        let scale = match self.parameter_at(node, bound, "weight", &channel)? {
            Some(weight) => self.compute(Kind::Float, C / root, &[variance, eps, weight]),
            None => self.compute(Kind::Float, Expr::float(1.0) / root, &[variance, eps]),
        };
        let name = self.fresh("scale");
        self.body.vars[scale].name = Some(name);
        let value = self.compute(Kind::Float, (A - B) * C, &[x, mean, scale]);
        match self.parameter_at(node, bound, "bias", &channel)? {
            Some(bias) => Ok(self.compute(Kind::Float, A + B, &[value, bias])),
            None => Ok(value),
        }
    }

    /// Every channel by its own mean and variance: of the whole batch, or of each of its samples, where `first` is the first
    /// dimension behind the channels.
    fn norm_of_channels(&mut self, wanted: Wanted<'_, '_>, first: usize) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        if bound.updated().next().is_some() {
            refuse!("a norm in training updates its statistics");
        }
        if bound.has("use_input_stats") && !bound.flag("use_input_stats") {
            return Err(self.unsupported(bound));
        }
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let Some(channel) = index.get(1) else { return Err(self.unsupported(bound)) };
        let dims: Vec<usize> = (first..from.len()).filter(|dim| *dim != 1).collect();
        self.fold_dims(index, &from, &dims)?;
        let x = self.pull(source, index)?;
        let x = self.cast(x, Kind::Float);
        let value = self.standardised(node, bound, x, &from, &dims)?;
        self.affine(node, bound, std::slice::from_ref(channel), value)
    }

    fn layer_norm(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let width = bound.arg("normalized_shape").as_sequence().map_or(1, <[Arg]>::len);
        let Some(first) = from.len().checked_sub(width) else { refuse!("a norm over too much") };
        let dims: Vec<usize> = (first..from.len()).collect();
        self.fold_dims(index, &from, &dims)?;
        let x = self.pull(source, index)?;
        let x = self.cast(x, Kind::Float);
        let place = &index[first..];
        if bound.op == Op::RmsNorm {
            let squares = self.compute(Kind::Float, A * A, &[x]);
            let total = self.fold(Fold::Sum, squares)?;
            let count = self.count(&from, &dims)?;
            let eps = self.number_arg(node, bound.arg("eps"), f64::from(f32::EPSILON))?;
            let value = self.compute(Kind::Float, scaled(), &[x, total, count, eps]);
            return self.affine(node, bound, place, value);
        }
        let value = self.standardised(node, bound, x, &from, &dims)?;
        self.affine(node, bound, place, value)
    }

    fn standardised(
        &mut self,
        node: NodeId,
        bound: &Bound<'_>,
        x: VarId,
        from: &[Size],
        dims: &[usize],
    ) -> Result<VarId, Refusal> {
        let (centred, squares) = self.moments(x, from, dims)?;
        let count = self.count(from, dims)?;
        let eps = self.number_arg(node, bound.arg("eps"), 1e-5)?;
        Ok(self.compute(Kind::Float, scaled(), &[centred, squares, count, eps]))
    }

    fn group_norm(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let groups = bound.int("num_groups").ok_or_else(|| self.unsupported(bound))?;
        let [batch, channels, rest @ ..] = from.as_slice() else {
            return Err(self.unsupported(bound));
        };
        let groups = self.fixed(groups);
        let Some(width) = channels.over(&groups) else { return Err(self.unsupported(bound)) };
        let [batch_index, channel, pixel @ ..] = index else { return Err(self.unsupported(bound)) };
        // Seen as [batch, group, channel in group, pixels...]: the loop over channels is split by groups.
        if let Some(axis) = channel.as_axis().filter(|_| !groups.is(1) && !width.is(1)) {
            self.split = Some((axis, vec![groups, width]));
            refuse!("a loop is split");
        }
        let (group, inner) = self.divide(channel, &width)?;
        let mut place = vec![batch_index.clone(), group, inner];
        place.extend_from_slice(pixel);
        let mut shape = vec![batch.clone(), groups, width];
        shape.extend_from_slice(rest);
        let dims: Vec<usize> = (2..shape.len()).collect();
        self.fold_dims(&place, &shape, &dims)?;
        let x = self.pull(source, index)?;
        let x = self.cast(x, Kind::Float);
        let value = self.standardised(node, bound, x, &shape, &dims)?;
        self.affine(node, bound, std::slice::from_ref(channel), value)
    }

    fn softmax(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let dim = self.dim(bound.arg("dim"), from.len())?;
        self.fold_dims(index, &from, &[dim])?;
        let x = self.pull(source, index)?;
        let x = self.cast(x, Kind::Float);
        let largest = self.fold(Fold::Max, x)?;
        let shifted = self.compute(Kind::Float, A - B, &[x, largest]);
        let powers = self.compute(Kind::Float, Expr::call("tl.exp", [A]), &[shifted]);
        if bound.op == Op::LogSoftmax {
            let total = self.fold(Fold::Sum, powers)?;
            let formula = A - Expr::call("tl.log", [B]);
            return Ok(self.compute(Kind::Float, formula, &[shifted, total]));
        }
        let name = self.fresh("powers");
        self.body.vars[powers].name = Some(name);
        let total = self.fold(Fold::Sum, powers)?;
        Ok(self.compute(Kind::Float, A / B, &[powers, total]))
    }

    fn normalize(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        if bound.float("p") != Some(2.0) {
            return Err(self.unsupported(bound));
        }
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let dims = self.dim_list(bound.arg("dim"), from.len())?;
        self.fold_dims(index, &from, &dims)?;
        let x = self.pull(source, index)?;
        let x = self.cast(x, Kind::Float);
        let squares = self.compute(Kind::Float, A * A, &[x]);
        let total = self.fold(Fold::Sum, squares)?;
        let eps = self.number_arg(node, bound.arg("eps"), 1e-12)?;
        let length = self.compute(Kind::Float, Expr::call("tl.sqrt", [A]), &[total]);
        let name = self.fresh("length");
        self.body.vars[length].name = Some(name);
        let formula = A / Expr::select(B.below(C), C, B);
        Ok(self.compute(Kind::Float, formula, &[x, length, eps]))
    }

    fn glu(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let from = self.piece.shape(source)?;
        let dim = self.dim(bound.arg("dim"), from.len())?;
        let Some(half) = from[dim].over(&self.fixed(2)) else {
            return Err(self.unsupported(bound));
        };
        let value = self.pull(source, index)?;
        let mut other = index.to_vec();
        other[dim] = other[dim].offset(&half)?;
        let gate = self.pull(source, &other)?;
        let (value, gate) = (self.cast(value, Kind::Float), self.cast(gate, Kind::Float));
        let formula = A * Expr::call("tl.sigmoid", [B]);
        Ok(self.compute(Kind::Float, formula, &[value, gate]))
    }
}

/// A value over the root of a mean, which is kept away from zero.
fn scaled() -> Formula {
    A * Expr::call("tl.rsqrt", [B / C + D])
}
