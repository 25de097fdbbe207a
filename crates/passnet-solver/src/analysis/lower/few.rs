//! Products and sums of a few elements, which are written out.

use super::super::body::{Kind, VarId};
use super::super::index::Index;
use super::super::{Refusal, Size};
use super::{Lower, Wanted};
use crate::expression::{A, B};
use passnet_graph::NodeId;
use passnet_graph::ops::Op;
use std::collections::BTreeSet;

/// Elements of a product, which is written out.
const MOST_MULTIPLIED: i64 = 16;
/// Elements of a sum that is written out: as many as a lane computes sooner than it shares them with others.
const MOST_ADDED: i64 = 4;

impl Lower<'_> {
    /// Whether a sum of a few elements is better written out than folded: no result has a dimension for them, so that a fold
    /// would have rows of these few elements.
    pub(super) fn is_short_sum(
        &self,
        wanted: Wanted<'_, '_>,
        from: &[Size],
        dims: &[usize],
    ) -> bool {
        let mut sizes = dims.iter().map(|dim| from[*dim].constant());
        let count = sizes.try_fold(1, |count: i64, size| count.checked_mul(size?));
        let mut used = BTreeSet::new();
        wanted.index.iter().for_each(|index| used.extend(self.axes_of(index)));
        let mut axes = self.main.iter().flat_map(|index| self.axes_of(index));
        matches!(wanted.bound.op, Op::Sum | Op::Mean)
            && count.is_some_and(|count| (1..=MOST_ADDED).contains(&count))
            && axes.all(|axis| used.contains(&axis) || self.body.axes[axis].largest() <= 1)
    }

    /// The product or sum of a few elements, each pulled by itself. Triton has no fold that multiplies.
    pub(super) fn few_folded(
        &mut self,
        wanted: Wanted<'_, '_>,
        source: NodeId,
        dims: &[usize],
    ) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let from = self.piece.shape(source)?;
        let sizes: Option<Vec<i64>> = dims.iter().map(|dim| from[*dim].constant()).collect();
        let sizes = sizes.ok_or_else(|| self.unsupported(bound))?;
        let count = sizes.iter().try_fold(1, |count: i64, size| count.checked_mul(*size));
        let Some(count @ 1..=MOST_MULTIPLIED) = count else { return Err(self.unsupported(bound)) };
        let kind = self.piece.kind(node)?;
        let formula = if bound.op == Op::Prod { A * B } else { A + B };
        let mut folded: Option<VarId> = None;
        for number in 0..count {
            let mut place = index.to_vec();
            let mut rest = number;
            let mut digits: Vec<i64> = Vec::new();
            for size in sizes.iter().rev() {
                digits.push(rest % size);
                rest /= size;
            }
            for (dim, digit) in dims.iter().zip(digits.iter().rev()) {
                let digit = Index::fixed(*digit, self.piece.graphs);
                match bound.flag("keepdim") {
                    true => place[*dim] = digit,
                    false => place.insert(*dim, digit),
                }
            }
            let element = self.pull(source, &place)?;
            let element = match kind {
                Kind::Int => self.wide(element),
                _ => self.cast(element, kind),
            };
            folded = Some(match folded {
                None => element,
                Some(before) => self.compute(kind, formula.clone(), &[before, element]),
            });
        }
        folded.ok_or_else(|| self.unsupported(bound))
    }
}
