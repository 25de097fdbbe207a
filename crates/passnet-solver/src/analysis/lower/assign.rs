//! Assignment to a part of a tensor: what lies in the part is new, everything else is as it was.

use super::super::body::{Code, Guard, Kind, VarId};
use super::super::index::Index;
use super::super::{Refusal, Size, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B, C, Expr};
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, NodeId};

/// Where in a part an index lies: the conditions under which it does, and the index and the size of every dimension of the part.
#[derive(Default)]
struct Part {
    guards: Vec<Guard>,
    /// Truth values that say for each element whether it is meant.
    masks: Vec<VarId>,
    index: Vec<Index>,
    shape: Vec<Size>,
}

/// What an assignment does to an element.
struct Assignment {
    guards: Vec<Guard>,
    masks: Vec<VarId>,
    value: VarId,
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

    fn dimension(&mut self, index: Index, size: Size) {
        self.index.push(index);
        self.shape.push(size);
    }
}

impl Lower<'_> {
    /// `x[...] = y`: the value of `x` afterwards.
    pub(super) fn assigned(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let Some(Assignment { guards, masks, value }) = self.assignment(wanted)? else {
            return self.input(node, bound, "input", index);
        };
        if guards.is_empty() && masks.is_empty() {
            return Ok(value);
        }
        let before = self.input(node, bound, "input", index)?;
        let mut conditions = masks;
        if !guards.is_empty() {
            conditions.push(self.inside(&guards));
        }
        let both = |all, one| self.compute(Kind::Bool, A.and(B), &[all, one]);
        let Some(condition) = conditions.into_iter().reduce(both) else { return Ok(value) };
        let kind = self.kind(value);
        Ok(self.compute(kind, Expr::select(A, B, C), &[condition, value, before]))
    }

    /// The conditions under which an element is assigned to, and what it becomes; `None` where no element that is asked for is.
    fn assignment(&mut self, wanted: Wanted<'_, '_>) -> Result<Option<Assignment>, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let target = self.input_node(node, bound, "input")?;
        let mut part = self.part(node, target, bound, index)?;
        if part.guards.iter().any(|guard| guard.settled() == Some(false)) {
            return Ok(None);
        }
        part.guards.retain(|guard| guard.settled().is_none());
        let value = self.new_value(node, bound.arg("value"), index, &part)?;
        Ok(Some(Assignment { guards: part.guards, masks: part.masks, value }))
    }

    /// `x.copy_(y)`: an assignment to all of `x`.
    pub(super) fn copied(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let shape = self.piece.shape(node)?;
        let part = Part { index: index.to_vec(), shape, ..Part::default() };
        self.new_value(node, bound.arg("src"), index, &part)
    }

    /// What an element of a part becomes, as the tensor holds it.
    fn new_value(
        &mut self,
        node: NodeId,
        given: &Arg,
        index: &[Index],
        part: &Part,
    ) -> Result<VarId, Refusal> {
        let kind = self.piece.kind(node)?;
        let source = self.argument(node, given);
        let (value, converts) = match source.filter(|source| self.piece.is_tensor(*source)) {
            Some(source) => {
                let own = self.place_in_value(source, part)?;
                let value = self.guarded(&part.guards, |lower| lower.pull(source, &own))?;
                (value, self.piece.dtypes(source) != self.piece.dtypes(node))
            }
            None => (self.operand(node, given, index)?, true),
        };
        let value = self.cast(value, kind);
        let is_half = self.piece.dtypes(node).iter().any(|dtype| dtype.size() < 4);
        if !(converts && is_half && kind == Kind::Float) {
            return Ok(value);
        }
        let axes = self.body.vars[value].axes.clone();
        Ok(self.add(None, Kind::Float, Code::Round { value, node }, axes))
    }

    /// The index into what is assigned. Dimensions of one that it has in front of the part's are left out.
    fn place_in_value(&self, source: NodeId, part: &Part) -> Result<Vec<Index>, Refusal> {
        let own = self.piece.shape(source)?;
        if !part.masks.is_empty() && !own.iter().all(|size| size.is(1)) {
            refuse!("several values are assigned by a mask");
        }
        let more = own.len().saturating_sub(part.shape.len());
        let (ones, rest) = own.split_at(more);
        if !ones.iter().all(|size| size.is(1)) {
            refuse!("what is assigned has more dimensions than the part");
        }
        let mut place = vec![self.zero(); more];
        place.extend(self.broadcast_shape(rest, &part.shape, &part.index)?);
        Ok(place)
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
        let assignment = self.assignment(Wanted { node: last, bound: &bound, index })?;
        let part = assignment.filter(|assignment| assignment.masks.is_empty());
        Ok(part.map(|part| (part.guards, part.value)))
    }

    /// Where an index lies in the part that a subscript of numbers, slices and masks names.
    fn part(
        &mut self,
        node: NodeId,
        target: NodeId,
        bound: &Bound<'_>,
        index: &[Index],
    ) -> Result<Part, Refusal> {
        let from = self.piece.shape(target)?;
        let single = std::slice::from_ref(bound.arg("index"));
        let items = bound.arg("index").as_sequence().unwrap_or(single);
        let mut consumed = 0;
        for item in items {
            consumed += match (item, self.mask(node, item)?) {
                (Arg::None | Arg::Ellipsis, _) => 0,
                (_, Some(mask)) => self.piece.shape(mask)?.len(),
                _ => 1,
            };
        }
        let Some(skipped) = from.len().checked_sub(consumed) else { refuse!("too many indices") };
        let mut part = Part::default();
        let mut dim = 0;
        for item in items {
            if let Some(mask) = self.mask(node, item)? {
                let own = self.piece.shape(mask)?;
                let end = dim + own.len();
                if !own.iter().zip(&from[dim..end]).all(|(own, size)| own.same(size)) {
                    refuse!("a mask has another shape than what it chooses from");
                }
                part.masks.push(self.pull(mask, &index[dim..end])?);
                dim = end;
                continue;
            }
            match item {
                Arg::None => {
                    part.dimension(self.zero(), self.fixed(1));
                    continue;
                }
                Arg::Ellipsis => {
                    let whole = dim..dim + skipped;
                    whole.for_each(|dim| part.dimension(index[dim].clone(), from[dim].clone()));
                    dim += skipped;
                    continue;
                }
                Arg::Slice(parts) => self.slice(&mut part, parts, &index[dim], &from[dim])?,
                Arg::Int(_) | Arg::Node(_)
                    if !item.as_node().is_some_and(|id| self.piece.is_tensor(id)) =>
                {
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
        let rest = dim..from.len();
        rest.for_each(|dim| part.dimension(index[dim].clone(), from[dim].clone()));
        Ok(part)
    }

    /// The tensor of truth values that an item of a subscript is.
    fn mask(&self, node: NodeId, item: &Arg) -> Result<Option<NodeId>, Refusal> {
        let Some(mask) = self.argument(node, item).filter(|id| self.piece.is_tensor(*id)) else {
            return Ok(None);
        };
        Ok((self.piece.kind(mask)? == Kind::Bool).then_some(mask))
    }

    /// A dimension of which a part takes every element, or every so many, between two places.
    fn slice(
        &mut self,
        part: &mut Part,
        [start, stop, step]: &[Arg; 3],
        index: &Index,
        size: &Size,
    ) -> Result<(), Refusal> {
        let step = if step.is_none() { Some(1) } else { step.as_int() };
        let low = self.start(start, size)?;
        let high = match stop {
            Arg::None => size.clone(),
            // Beyond the end is the end.
            Arg::Int(stop) if size.values().iter().all(|size| stop >= size) => size.clone(),
            stop => self.start(stop, size)?,
        };
        if high.values().iter().zip(low.values()).any(|(high, low)| high <= low) {
            refuse!("an assignment to nothing in some graph");
        }
        if step == Some(1) {
            part.dimension(index.minus_size(&low)?, high.minus(&low)?);
            part.bound(index, size, low, high);
            return Ok(());
        }
        let Some(step) = step.filter(|step| *step > 0) else { refuse!("a slice steps backwards") };
        // The place in steps of this length, and the place within a step, which is the same for all elements of the part.
        let steps = self.fixed(step);
        let (Some(first), Some(whole)) = (low.constant(), size.over(&steps)) else {
            refuse!("an assignment by steps that do not divide the dimension");
        };
        if !high.same(size) {
            refuse!("an assignment by steps that ends before the dimension");
        }
        let (place, within) = self.divide(index, &steps)?;
        let (skipped, own) = (self.fixed(first / step), self.fixed(first % step));
        let count = whole.minus(&skipped)?;
        let next = own.plus(&self.fixed(1))?;
        part.dimension(place.minus_size(&skipped)?, count);
        part.bound(&place, &whole, skipped, whole.clone());
        part.bound(&within, &steps, own, next);
        Ok(())
    }
}
