//! Products as arithmetic: each element of the result is a sum of its own, for which a row of one operand and a column of
//! the other are read.

use super::super::body::{Fold, Kind, VarId};
use super::super::index::Index;
use super::super::{Refusal, Size, refuse};
use super::{Lower, Wanted};
use crate::expression::{A, B};
use crate::products::{is_large, is_plain, second};
use passnet_graph::NodeId;
use passnet_graph::ops::{Bound, Op};

/// Elements that a kernel may have for each one of a product that is wanted in a part of them alone.
const MOST_IDLE: i64 = 2;

/// What is multiplied: the matrices, and how many numbers are added up.
struct Factors {
    left: NodeId,
    right: NodeId,
    inner: Size,
}

impl Lower<'_> {
    pub(super) fn product(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        if self.piece.kind(node)? != Kind::Float {
            return Err(self.unsupported(bound));
        }
        let is_convolution = matches!(bound.op, Op::Conv1d | Op::Conv2d);
        if is_convolution && bound.arg("groups").as_int().is_some_and(|groups| groups > 1) {
            self.check_wanted(node)?;
            return self.depthwise(wanted);
        }
        let factors = self.factors(node, bound)?;
        let is_sum = !factors.inner.is(1);
        let along = match is_sum {
            true => {
                self.check_wanted(node)?;
                self.loops_for(index, std::slice::from_ref(&factors.inner))?.pop()
            }
            false => Some(self.zero()),
        };
        let Some(along) = along else { refuse!("no loop to add up along") };
        let (left, right) = self.places(wanted, &factors, &along)?;
        let left = self.pull(factors.left, &left)?;
        let right = self.pull(factors.right, &right)?;
        let (left, right) = (self.cast(left, Kind::Float), self.cast(right, Kind::Float));
        let mut total = self.compute(Kind::Float, A * B, &[left, right]);
        if is_sum {
            total = self.fold(Fold::Sum, total)?;
            let in_tiles = self.is_in_tiles(node, &factors.inner)?;
            if in_tiles && index.iter().any(|index| self.axes_of(index).len() > 1) {
                refuse!("the rows of a product are cut up, and so would its tiles be");
            }
            self.body.in_tiles |= in_tiles;
        }
        let channel = if is_convolution { index.get(1) } else { index.last() };
        match channel {
            Some(channel) => self.with_bias(node, bound, total, channel.clone()),
            None => Ok(total),
        }
    }

    fn factors(&self, node: NodeId, bound: &Bound<'_>) -> Result<Factors, Refusal> {
        let left = self.input_node(node, bound, "input")?;
        let right = self.input_node(node, bound, second(bound.op))?;
        let (rows, columns) = (self.piece.shape(left)?, self.piece.shape(right)?);
        let inner = match bound.op {
            Op::Outer => Some(self.fixed(1)),
            Op::Linear if columns.len() == 2 => columns.get(1).cloned(),
            Op::Conv1d | Op::Conv2d if is_plain(bound) && rows.len() == columns.len() => {
                columns.get(1).cloned()
            }
            Op::Matmul | Op::Mm | Op::Bmm if rows.len() > 1 && columns.len() > 1 => {
                rows.last().cloned()
            }
            _ => None,
        };
        let inner = inner.ok_or_else(|| self.unsupported(bound))?;
        Ok(Factors { left, right, inner })
    }

    /// Where the operands are read for one step of the sum.
    fn places(
        &self,
        Wanted { node, bound, index }: Wanted<'_, '_>,
        factors: &Factors,
        along: &Index,
    ) -> Result<(Vec<Index>, Vec<Index>), Refusal> {
        let last = index.len().checked_sub(1).ok_or_else(|| self.unsupported(bound))?;
        let with_along = |channel: usize| {
            let mut place = index.to_vec();
            place[channel] = along.clone();
            place
        };
        match bound.op {
            Op::Outer => Ok((index[..last].to_vec(), index[last..].to_vec())),
            Op::Linear => Ok((with_along(last), vec![index[last].clone(), along.clone()])),
            // The channels of a convolution of single pixels come second.
            Op::Conv1d | Op::Conv2d => {
                let mut row = vec![index[1].clone(), along.clone()];
                row.resize(index.len(), self.zero());
                Ok((with_along(1), row))
            }
            _ => {
                let shape = self.piece.shape(node)?;
                let batch = |of: NodeId| -> Result<Vec<Index>, Refusal> {
                    let own = self.piece.shape(of)?;
                    let (own, all) = (own.len() - 2, last - 1);
                    let sizes = &self.piece.shape(of)?[..own];
                    self.broadcast_shape(sizes, &shape[..all], &index[..all])
                };
                let (mut left, mut right) = (batch(factors.left)?, batch(factors.right)?);
                left.extend([index[last - 1].clone(), along.clone()]);
                right.extend([along.clone(), index[last].clone()]);
                Ok((left, right))
            }
        }
    }

    pub(super) fn with_bias(
        &mut self,
        node: NodeId,
        bound: &Bound<'_>,
        total: VarId,
        channel: Index,
    ) -> Result<VarId, Refusal> {
        if !bound.has("bias") || bound.arg("bias").is_none() {
            return Ok(total);
        }
        let bias = self.input(node, bound, "bias", &[channel])?;
        let bias = self.cast(bias, Kind::Float);
        Ok(self.compute(Kind::Float, A + B, &[total, bias]))
    }

    /// Whether a result has more than a few rows in some graph, and more is multiplied than a row at a time is good for.
    fn is_in_tiles(&self, node: NodeId, inner: &Size) -> Result<bool, Refusal> {
        let elements = self.elements(&self.piece.shape(node)?)?;
        let mut sizes = elements.values().iter().zip(inner.values());
        Ok(sizes.any(|(elements, inner)| is_large(*elements, *inner)))
    }

    /// Where a product is a small part of what it is joined to, it would be added up for all the rest, too.
    fn check_wanted(&self, node: NodeId) -> Result<(), Refusal> {
        if self.guards.is_empty() {
            return Ok(());
        }
        let all = self.elements(&self.main_sizes()?)?;
        let own = self.elements(&self.piece.shape(node)?)?;
        let mut sizes = all.values().iter().zip(own.values());
        if sizes.any(|(all, own)| *all > own.saturating_mul(MOST_IDLE)) {
            refuse!("a product would be added up for all that it is joined to");
        }
        Ok(())
    }
}
