//! Shape instructions: mostly a change of strides, sometimes a copy.

use super::{Lower, Rep, Result, Stretch};
use crate::exec::registers::Bounds;
use crate::exec::tape::{ArenaView, Step};
use crate::exec::views::{Strides, collapse, reshaped, row_major};
use crate::ir::{Inst, Op, ValueId};
use crate::lane::Lane;

impl Lower<'_> {
    pub(super) fn shape_op(&mut self, inst: &Inst) -> Result<()> {
        match &inst.op {
            Op::Broadcast => self.broadcast(inst),
            Op::Reshape => self.reshape(inst),
            Op::Permute(order) => self.permute(inst, order),
            Op::Split => self.split(inst),
            Op::Join => self.join(inst),
            _ => self.cat(inst),
        }
    }

    /// The value's representation, with a value of the open group brought into the arena.
    fn settled(&mut self, v: ValueId) -> Result<Rep> {
        if let Rep::Chunk(_) = self.rep(v)? {
            self.close_group()?;
        }
        self.rep(v)
    }

    /// The value as strided lanes of the arena.
    fn dense_rep(&mut self, v: ValueId) -> Result<(usize, usize, Strides)> {
        if let Rep::Dense { buffer, offset, strides } = self.settled(v)? {
            return Ok((buffer, offset, strides));
        }
        let offset = self.materialize(v)?;
        match self.rep(v)? {
            Rep::Dense { buffer, offset, strides } => Ok((buffer, offset, strides)),
            _ => Err(self.error(format!("internal error: block at {offset} has no owner"))),
        }
    }

    fn broadcast(&mut self, inst: &Inst) -> Result<()> {
        if self.stretched[inst.args[0].index()] == Stretch::Done {
            match self.rep(inst.args[0])? {
                Rep::Chunk(reg) => self.define_chunk(inst.results[0], reg)?,
                rep => self.set(inst.results[0], rep),
            }
            return Ok(());
        }
        let from = self.ty(inst.args[0]).shape.clone();
        let to = self.ty(inst.results[0]).shape.clone();
        let stretched = |strides: &Strides| -> Strides {
            (0..to.len()).map(|d| if from[d] == to[d] { strides[d] } else { 0 }).collect()
        };
        let rep = match self.settled(inst.args[0])? {
            Rep::Uniform(r) => Rep::Uniform(r),
            Rep::Affine { base, strides } => Rep::Affine { base, strides: stretched(&strides) },
            Rep::Box(bounds)
                if (0..to.len()).all(|d| from[d] == to[d] || bounds[d] == (None, None)) =>
            {
                Rep::Box(bounds)
            }
            _ => {
                let (buffer, offset, strides) = self.dense_rep(inst.args[0])?;
                Rep::Dense { buffer, offset, strides: stretched(&strides) }
            }
        };
        self.set(inst.results[0], rep);
        Ok(())
    }

    fn reshape(&mut self, inst: &Inst) -> Result<()> {
        let from = self.ty(inst.args[0]).shape.clone();
        let to = self.ty(inst.results[0]).shape.clone();
        let rep = match self.settled(inst.args[0])? {
            Rep::Uniform(r) => Some(Rep::Uniform(r)),
            Rep::Affine { base, strides } => {
                reshaped(&from, &strides, &to).map(|strides| Rep::Affine { base, strides })
            }
            Rep::Box(bounds) => moved_bounds(&from, &to, &bounds).map(Rep::Box),
            _ => None,
        };
        let rep = match rep {
            Some(rep) => rep,
            None => {
                let (buffer, offset, strides) = self.dense_rep(inst.args[0])?;
                match reshaped(&from, &strides, &to) {
                    Some(strides) => Rep::Dense { buffer, offset, strides },
                    None => {
                        self.materialize(inst.args[0])?;
                        let (buffer, offset, _) = self.dense_rep(inst.args[0])?;
                        Rep::Dense { buffer, offset, strides: row_major(&to) }
                    }
                }
            }
        };
        self.set(inst.results[0], rep);
        Ok(())
    }

    fn permute(&mut self, inst: &Inst, order: &[u8]) -> Result<()> {
        let permuted = |strides: &Strides| -> Strides {
            order.iter().map(|&d| strides[usize::from(d)]).collect()
        };
        let rep = match self.settled(inst.args[0])? {
            Rep::Uniform(r) => Rep::Uniform(r),
            Rep::Affine { base, strides } => Rep::Affine { base, strides: permuted(&strides) },
            Rep::Box(bounds) => Rep::Box(order.iter().map(|&d| bounds[usize::from(d)]).collect()),
            _ => {
                let (buffer, offset, strides) = self.dense_rep(inst.args[0])?;
                Rep::Dense { buffer, offset, strides: permuted(&strides) }
            }
        };
        self.set(inst.results[0], rep);
        Ok(())
    }

    fn split(&mut self, inst: &Inst) -> Result<()> {
        if let Rep::Uniform(r) = self.rep(inst.args[0])? {
            self.set(inst.results[0], Rep::Uniform(r));
            self.set(inst.results[1], Rep::Uniform(r));
            return Ok(());
        }
        let (buffer, offset, mut strides) = self.dense_rep(inst.args[0])?;
        let lane = Lane::of(self.ty(inst.args[0]));
        let step = strides.pop().unwrap_or(1);
        if strides.is_empty() {
            // Halves of a pair are scalars.
            for (i, &r) in inst.results.iter().enumerate() {
                let range = self.scalar_range(r);
                let dst = self.fresh_reg(range);
                let from = offset + i * step as usize * lane.size();
                self.steps.push(Step::Extract { dst, from, lane });
                self.set(r, Rep::Uniform(dst));
            }
            return Ok(());
        }
        let second = offset + step as usize * lane.size();
        self.set(inst.results[0], Rep::Dense { buffer, offset, strides: strides.clone() });
        self.set(inst.results[1], Rep::Dense { buffer, offset: second, strides });
        Ok(())
    }

    fn join(&mut self, inst: &Inst) -> Result<()> {
        let result = inst.results[0];
        let shape = self.ty(inst.args[0]).shape.clone();
        let lane = Lane::of(self.ty(result));
        let mut sources = Vec::new();
        for &arg in &inst.args {
            if shape.is_empty() {
                let from = self.materialize(arg)?;
                sources.push((from, Strides::new()));
            } else {
                let (_, offset, strides) = self.dense_rep(arg)?;
                sources.push((offset, strides));
            }
        }
        self.close_group()?;
        let to = self.result_block(result);
        let target: Strides = row_major(&shape).iter().map(|s| s * 2).collect();
        for (i, (offset, strides)) in sources.into_iter().enumerate() {
            let from = ArenaView { offset, dims: crate::exec::views::plain(&shape, &strides) };
            let to = ArenaView {
                offset: to + i * lane.size(),
                dims: crate::exec::views::plain(&shape, &target),
            };
            self.steps.push(Step::CopyView { to, from, size: lane.size() });
        }
        Ok(())
    }

    fn cat(&mut self, inst: &Inst) -> Result<()> {
        let result = inst.results[0];
        let shape = self.ty(inst.args[0]).shape.clone();
        let lane = Lane::of(self.ty(result));
        let mut sources = Vec::new();
        for &arg in &inst.args {
            let (_, offset, strides) = self.dense_rep(arg)?;
            sources.push(ArenaView { offset, dims: collapse(&shape, &strides) });
        }
        self.close_group()?;
        let to = self.result_block(result);
        let half = self.ty(inst.args[0]).numel() * lane.size();
        let dims = collapse(&[self.ty(inst.args[0]).numel() as u32], &[1]);
        for (i, from) in sources.into_iter().enumerate() {
            let to = ArenaView { offset: to + i * half, dims: dims.clone() };
            self.steps.push(Step::CopyView { to, from, size: lane.size() });
        }
        Ok(())
    }
}

/// Bounds under a shape that differs only by dimensions of one.
fn moved_bounds(from: &[u32], to: &[u32], bounds: &Bounds) -> Option<Bounds> {
    let kept: Vec<usize> = (0..from.len()).filter(|&d| from[d] != 1).collect();
    if (0..from.len()).any(|d| from[d] == 1 && bounds[d] != (None, None)) {
        return None;
    }
    let target: Vec<usize> = (0..to.len()).filter(|&d| to[d] != 1).collect();
    if kept.len() != target.len() || kept.iter().zip(&target).any(|(&a, &b)| from[a] != to[b]) {
        return None;
    }
    let mut out: Bounds = to.iter().map(|_| (None, None)).collect();
    for (&a, &b) in kept.iter().zip(&target) {
        out[b] = bounds[a];
    }
    Some(out)
}
