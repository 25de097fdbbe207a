//! Indices and addresses: where an element lies, and which loops an index is made of.

use super::super::body::Guard;
use super::super::index::{Atom, AxisId, Index};
use super::super::{Refusal, Size, refuse};
use super::Lower;
use passnet_graph::NodeId;

impl Lower<'_> {
    /// The address of an index in a contiguous tensor.
    pub(super) fn linear(&self, index: &[Index], shape: &[Size]) -> Result<Index, Refusal> {
        let mut address = Index::fixed(0, self.piece.graphs);
        let mut stride = Size::fixed(1, self.piece.graphs);
        for (index, size) in index.iter().zip(shape).rev() {
            address = index.times(&stride)?.plus(&address)?;
            stride = stride.times(size)?;
        }
        Ok(address)
    }

    /// The address of an index in a tensor that lies in memory in some other order.
    pub(super) fn strided(&self, index: &[Index], param: NodeId) -> Result<Index, Refusal> {
        let mut address = Index::fixed(0, self.piece.graphs);
        for (index, stride) in index.iter().zip(self.piece.strides(param)?) {
            address = address.plus(&index.times(&stride)?)?;
        }
        Ok(address)
    }

    /// Quotient and remainder; asks for a loop to be split where that makes them exact.
    pub(super) fn divide(&mut self, index: &Index, by: &Size) -> Result<(Index, Index), Refusal> {
        let (quotient, rest) = index.divided(by, &self.body.axes)?;
        let inexact =
            matches!(quotient.terms.as_slice(), [(Atom::Div(..), factor)] if factor.is(1));
        if inexact {
            for (atom, factor) in &index.terms {
                let Atom::Axis(axis) = atom else { continue };
                let size = &self.body.axes[*axis];
                let Some(low) = by.over(factor).filter(|low| !low.is(1) && !low.same(size)) else {
                    continue;
                };
                if let Some(high) = size.over(&low).filter(|high| !high.is(1)) {
                    self.split = Some((*axis, vec![high, low]));
                    refuse!("a loop is split");
                }
            }
        }
        Ok((quotient, rest))
    }

    /// The same condition without loops that do not decide it: the innermost loop of a split dimension, where its steps divide
    /// both sides. Then it can guard what does not follow that loop.
    pub(super) fn decided(&self, guard: &Guard) -> Result<Guard, Refusal> {
        let mut guard = guard.clone();
        while let Some(shorter) = self.without_innermost(&guard)? {
            guard = shorter;
        }
        Ok(guard)
    }

    fn without_innermost(&self, guard: &Guard) -> Result<Option<Guard>, Refusal> {
        let innermost = guard.index.terms.iter().find_map(|(atom, factor)| match atom {
            Atom::Axis(axis) if factor.constant() == Some(1) => Some(*axis),
            _ => None,
        });
        let Some(axis) = innermost.filter(|_| guard.index.terms.len() > 1) else { return Ok(None) };
        let steps = &self.body.axes[axis];
        let side = |side: &Option<Size>| match side {
            Some(side) => side.over(steps).map(Some),
            None => Some(None),
        };
        let (Some(low), Some(high)) = (side(&guard.low), side(&guard.high)) else {
            return Ok(None);
        };
        let (index, _) = guard.index.divided(steps, &self.body.axes)?;
        let mut follows = false;
        index.for_each_axis(&mut |own| follows |= own == axis);
        Ok((!follows).then_some(Guard { index, low, high }))
    }
}

/// The index of a dimension that consists of several loops, the first outermost.
pub(super) fn mixed_radix(first: usize, parts: &[Size], graphs: usize) -> Result<Index, Refusal> {
    let mut index = Index::fixed(0, graphs);
    let mut stride = Size::fixed(1, graphs);
    for (offset, size) in parts.iter().enumerate().rev() {
        // A dimension that is one whatever the inputs are needs no loop.
        if size.constant() == Some(1) {
            continue;
        }
        let axis = Index::atom(Atom::Axis(AxisId::new(first + offset)), graphs);
        index = axis.times(&stride)?.plus(&index)?;
        stride = stride.times(size)?;
    }
    Ok(index)
}
