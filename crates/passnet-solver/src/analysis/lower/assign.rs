//! Assignment to a part of a tensor: what lies in the part is new, everything else is as it was.

use super::super::body::{Code, Guard, Kind, VarId};
use super::super::index::Index;
use super::super::{Refusal, Size, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, C, Expr};
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, NodeId};

/// Where in a part an index lies: the conditions under which it does, and the index and the size of every dimension of the part.
struct Part {
    guards: Vec<Guard>,
    index: Vec<Index>,
    shape: Vec<Size>,
}

impl Part {
    /// The part goes from `low` to `high` of so many.
    fn bound(&mut self, index: &Index, size: &Size, low: Size, high: Size) {
        let low = (!low.is(0)).then_some(low);
        let high = (!high.same(size)).then_some(high);
        if low.is_some() || high.is_some() {
            self.guards.push(Guard { index: index.clone(), low, high });
        }
    }
}

impl Lower<'_> {
    /// `x[...] = y`: the value of `x` afterwards.
    pub(super) fn assigned(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let (guards, value) = self.assignment(wanted)?;
        if guards.is_empty() {
            return Ok(value);
        }
        let before = self.input(node, bound, "input", index)?;
        let inside = self.inside(&guards);
        let kind = self.kind(value);
        Ok(self.compute(kind, Expr::select(A, B, C), &[inside, value, before]))
    }

    /// The conditions under which an element is assigned to, and what it becomes.
    fn assignment(&mut self, wanted: Wanted<'_, '_>) -> Result<(Vec<Guard>, VarId), Refusal> {
        let Wanted { node, bound, index } = wanted;
        let target = self.input_node(node, bound, "input")?;
        let mut part = self.part(node, target, bound, index)?;
        if part.guards.iter().any(|guard| guard.settled() == Some(false)) {
            refuse!("an assignment to a part that is not asked for");
        }
        part.guards.retain(|guard| guard.settled().is_none());
        let kind = self.piece.kind(node)?;
        let source = self.argument(node, bound.arg("value"));
        let (value, converts) = match source.filter(|source| self.piece.is_tensor(*source)) {
            Some(source) => {
                let own = self.broadcast(source, &part.shape, &part.index)?;
                let value = self.guarded(&part.guards, |lower| lower.pull(source, &own))?;
                (value, self.piece.dtypes(source) != self.piece.dtypes(node))
            }
            None => (self.operand(node, bound.arg("value"), index)?, true),
        };
        let value = self.cast(value, kind);
        let is_half = self.piece.dtypes(node).iter().any(|dtype| dtype.size() < 4);
        if !(converts && is_half && kind == Kind::Float) {
            return Ok((part.guards, value));
        }
        let axes = self.body.vars[value].axes.clone();
        let value = self.add(None, Kind::Float, Code::Round { value, node }, axes);
        Ok((part.guards, value))
    }

    /// What is stored in a parameter that one assignment updates: nothing but the part. `None` where it is updated otherwise.
    pub(super) fn stored_part(
        &mut self,
        last: NodeId,
        param: NodeId,
        index: &[Index],
    ) -> Result<Option<(Vec<Guard>, VarId)>, Refusal> {
        let piece = self.piece;
        let Some(call) = piece.graph.call(last) else { return Ok(None) };
        let bound = call.bind().map_err(Refusal::new)?;
        let is_first = self.argument(last, bound.arg("input")) == Some(param);
        if bound.op != Op::SetItem || !is_first {
            return Ok(None);
        }
        self.assignment(Wanted { node: last, bound: &bound, index }).map(Some)
    }

    /// Where an index lies in the part that a subscript of numbers and slices names.
    fn part(
        &self,
        node: NodeId,
        target: NodeId,
        bound: &Bound<'_>,
        index: &[Index],
    ) -> Result<Part, Refusal> {
        let from = self.piece.shape(target)?;
        let single = std::slice::from_ref(bound.arg("index"));
        let items = bound.arg("index").as_sequence().unwrap_or(single);
        let consumed = items.iter().filter(|item| !matches!(item, Arg::Ellipsis)).count();
        let Some(skipped) = from.len().checked_sub(consumed) else { refuse!("too many indices") };
        let mut part = Part { guards: Vec::new(), index: Vec::new(), shape: Vec::new() };
        let mut dim = 0;
        let whole = |part: &mut Part, dim: usize| {
            part.index.push(index[dim].clone());
            part.shape.push(from[dim].clone());
        };
        for item in items {
            match item {
                Arg::Ellipsis => {
                    (dim..dim + skipped).for_each(|dim| whole(&mut part, dim));
                    dim += skipped;
                    continue;
                }
                Arg::Slice(parts) if parts[2].is_none() || parts[2].as_int() == Some(1) => {
                    let size = &from[dim];
                    let low = self.start(&parts[0], size)?;
                    let high = match &parts[1] {
                        Arg::None => size.clone(),
                        stop => self.start(stop, size)?,
                    };
                    if high.values().iter().zip(low.values()).any(|(high, low)| high <= low) {
                        refuse!("an assignment to nothing in some graph");
                    }
                    part.shape.push(high.minus(&low)?);
                    part.index.push(index[dim].minus_size(&low)?);
                    part.bound(&index[dim], size, low, high);
                }
                Arg::Int(_) => {
                    let low = self.start(item, &from[dim])?;
                    let high = low.plus(&self.fixed(1))?;
                    part.bound(&index[dim], &from[dim], low, high);
                }
                _ => {
                    let name = self.piece.name(node);
                    refuse!("`{name}` is assigned to by a subscript that has no loop form");
                }
            }
            dim += 1;
        }
        (dim..from.len()).for_each(|dim| whole(&mut part, dim));
        Ok(part)
    }
}
