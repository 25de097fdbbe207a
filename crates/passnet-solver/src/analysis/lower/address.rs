//! Indices and addresses: where an element lies, and which loops an index is made of.

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
