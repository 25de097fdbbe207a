//! Instructions over whole blocks: reductions, scans, products, sorting, gathering.

use super::{Lower, Rep, Result};
use crate::exec::group::{Home, Reduction, written};
use crate::exec::registers::{SReg, VReg};
use crate::exec::simd;
use crate::exec::tape::{AxisSizes, Combine, LaneOrder, Step};
use crate::ir::{Inst, Op, ReduceOp, ValueId};
use crate::lane::Lane;
use crate::types::{Elem, Type};

fn axis_sizes(ty: &Type, axis: u8) -> AxisSizes {
    let axis = usize::from(axis);
    let product = |dims: &[u32]| dims.iter().map(|&d| d as usize).product();
    AxisSizes {
        outer: product(&ty.shape[..axis]),
        size: ty.shape[axis] as usize,
        inner: product(&ty.shape[axis + 1..]),
    }
}

impl Lower<'_> {
    /// Space for a result; a scalar result is moved into a register by `finish`.
    fn target(&mut self, v: ValueId) -> usize {
        if self.ty(v).is_scalar() {
            let lane = Lane::of(self.ty(v));
            self.arena.allocate(lane.size()).1
        } else {
            self.result_block(v)
        }
    }

    /// Space for a reduction, which may run row by row with the group before it: what that group reads is free already,
    /// and still read for the next rows when the first result is written.
    fn reduced(&mut self, v: ValueId) -> usize {
        if self.ty(v).is_scalar() || !matches!(self.steps.last(), Some(Step::Group(_))) {
            return self.target(v);
        }
        let ty = self.ty(v);
        let block = self.arena.allocate_unused(ty.numel() * Lane::of(ty).size());
        self.placed(v, block)
    }

    fn finish(&mut self, v: ValueId, at: usize) {
        if self.ty(v).is_scalar() {
            let lane = Lane::of(self.ty(v));
            let range = self.scalar_range(v);
            let dst = self.fresh_reg(range);
            self.steps.push(Step::Extract { dst, from: at, lane });
            self.set(v, Rep::Uniform(dst));
        }
    }

    /// Rounds or wraps a finished block to its exact type.
    fn exact(&mut self, v: ValueId, at: usize) {
        let ty = self.ty(v).clone();
        let lane = Lane::of(&ty);
        if let Some(f) = ty.num().and_then(|e| simd::narrow(self.isa, e, lane)) {
            let (_, copy) = self.arena.allocate(ty.numel() * lane.size());
            self.steps.push(Step::CopyFull { to: copy, from: at, bytes: ty.numel() * lane.size() });
            self.steps.push(Step::MapFull { f, to: at, from: copy, lanes: ty.numel() });
        }
    }

    pub(super) fn block_op(&mut self, inst: &Inst) -> Result<()> {
        match &inst.op {
            Op::Reduce { op, axis } => self.reduce(inst, *op, *axis),
            Op::Scan { op, axis, reverse } => self.scan(inst, *op, *axis, *reverse),
            Op::ArgReduce { max, tie_left, axis } => self.arg_reduce(inst, *max, *tie_left, *axis),
            Op::Dot => self.dot(inst),
            Op::Sort { descending } => self.sort(inst, *descending),
            Op::Histogram { mask } => self.histogram(inst, *mask),
            Op::Gather { axis } => self.gather(inst, *axis),
            Op::ReduceWith { axis } => self.combine(inst, *axis, false, false),
            Op::ScanWith { axis, reverse } => self.combine(inst, *axis, true, *reverse),
            Op::Assert(message) => {
                let from = self.materialize(inst.args[0])?;
                self.close_group()?;
                let lanes = self.ty(inst.args[0]).numel();
                self.steps.push(Step::Assert {
                    from,
                    lanes,
                    message: message.clone(),
                    loc: inst.loc,
                });
                Ok(())
            }
            other => Err(self.error(format!("internal error: {other} is not a block operation"))),
        }
    }

    fn reduce(&mut self, inst: &Inst, op: ReduceOp, axis: u8) -> Result<()> {
        let from = self.materialize(inst.args[0])?;
        self.close_group()?;
        let ty = self.ty(inst.args[0]).clone();
        let f = simd::reduce(self.isa, op, Lane::of(&ty), ty.elem());
        let f = f.ok_or_else(|| self.error("this reduction is not supported for floats"))?;
        let to = self.reduced(inst.results[0]);
        let (lane, axis) = (Lane::of(&ty), axis_sizes(&ty, axis));
        let is_last = self.is_last_use(inst.args[0]);
        let reduction = |from| Reduction { f, op, from, to, row: axis.size, is_last };
        if !self.joins_group(from, lane, &axis, reduction) {
            self.steps.push(Step::Reduce { f, to, from, axis });
        }
        if matches!(op, ReduceOp::Sum | ReduceOp::Prod) {
            self.exact(inst.results[0], to);
        }
        self.finish(inst.results[0], to);
        Ok(())
    }

    fn scan(&mut self, inst: &Inst, op: ReduceOp, axis: u8, reverse: bool) -> Result<()> {
        let from = self.materialize(inst.args[0])?;
        self.close_group()?;
        let ty = self.ty(inst.args[0]).clone();
        let f = simd::scan(self.isa, op, Lane::of(&ty), ty.elem());
        let f = f.ok_or_else(|| self.error("this scan is not supported for floats"))?;
        let to = self.target(inst.results[0]);
        self.steps.push(Step::Scan { f, to, from, axis: axis_sizes(&ty, axis), reverse });
        self.exact(inst.results[0], to);
        Ok(())
    }

    fn arg_reduce(&mut self, inst: &Inst, max: bool, tie_left: bool, axis: u8) -> Result<()> {
        let from = self.materialize(inst.args[0])?;
        self.close_group()?;
        let ty = self.ty(inst.args[0]).clone();
        let value = self.target(inst.results[0]);
        let index = self.target(inst.results[1]);
        let axis = axis_sizes(&ty, axis);
        self.steps.push(Step::ArgReduce {
            value,
            index,
            from,
            order: LaneOrder::of(&ty),
            axis,
            max,
            tie_left,
        });
        self.finish(inst.results[0], value);
        self.finish(inst.results[1], index);
        Ok(())
    }

    fn sort(&mut self, inst: &Inst, descending: bool) -> Result<()> {
        let from = self.materialize(inst.args[0])?;
        self.close_group()?;
        let ty = self.ty(inst.results[0]).clone();
        let lane = Lane::of(&ty);
        let block = self.result_block(inst.results[0]);
        self.steps.push(Step::CopyFull { to: block, from, bytes: ty.numel() * lane.size() });
        let size = ty.shape.last().map_or(1, |&d| d as usize);
        self.steps.push(Step::Sort {
            block,
            order: LaneOrder::of(&ty),
            rows: ty.numel() / size,
            size,
            descending,
        });
        Ok(())
    }

    fn histogram(&mut self, inst: &Inst, mask: bool) -> Result<()> {
        let from = self.materialize(inst.args[0])?;
        let mask = if mask { Some(self.materialize(inst.args[1])?) } else { None };
        self.close_group()?;
        let ty = self.ty(inst.args[0]).clone();
        let bins = self.ty(inst.results[0]).numel();
        let to = self.result_block(inst.results[0]);
        self.steps.push(Step::Histogram {
            to,
            bins,
            from,
            lane: Lane::of(&ty),
            lanes: ty.numel(),
            mask,
        });
        Ok(())
    }

    fn gather(&mut self, inst: &Inst, axis: u8) -> Result<()> {
        let from = self.materialize(inst.args[0])?;
        let index = self.materialize(inst.args[1])?;
        self.close_group()?;
        let source = self.ty(inst.args[0]).shape[usize::from(axis)] as usize;
        let index_ty = self.ty(inst.args[1]).clone();
        let size = Lane::of(self.ty(inst.args[0])).size();
        let to = self.result_block(inst.results[0]);
        let axis = axis_sizes(&index_ty, axis);
        self.steps.push(Step::Gather {
            to,
            from,
            index,
            index_lane: Lane::of(&index_ty),
            size,
            axis,
            source,
            loc: inst.loc,
        });
        Ok(())
    }

    /// Whether nothing reads a materialised value after this.
    fn is_last_use(&self, v: ValueId) -> bool {
        let alone = match &self.reps[v.index()] {
            Some(Rep::Dense { buffer, .. }) => self.arena.values(*buffer) == 1,
            _ => false,
        };
        // One of an outer loop level is needed again in the next iteration.
        alone && self.uses[v.index()] == 1 && self.depths[v.index()] == self.depth
    }

    /// A reduction along the rows of a block that the last step computes is done along with it.
    fn joins_group(
        &mut self,
        from: usize,
        lane: Lane,
        axis: &AxisSizes,
        reduction: impl Fn(VReg) -> Reduction,
    ) -> bool {
        let Some(Step::Group(group)) = self.steps.last_mut() else { return false };
        let by_row = axis.inner == 1 && axis.outer * axis.size == group.lanes;
        let computed = group.micros.iter().filter_map(written);
        let block =
            computed.into_iter().find(|r| group.homes[usize::from(r.0)].0 == Home::Full(from));
        match block {
            Some(from) if by_row && lane == Lane::F32 => {
                group.reductions.push(reduction(from));
                true
            }
            _ => false,
        }
    }

    fn dot(&mut self, inst: &Inst) -> Result<()> {
        let a = self.materialize(inst.args[0])?;
        let b = self.materialize(inst.args[1])?;
        let acc = self.materialize(inst.args[2])?;
        self.close_group()?;
        let (ta, tr) = (self.ty(inst.args[0]).clone(), self.ty(inst.results[0]).clone());
        let rank = ta.shape.len();
        let lane = Lane::of(&tr);
        // Accumulators of another lane type than the operands exist only for half accumulation, which is `f32` too.
        let f = simd::dot(self.isa, lane)
            .ok_or_else(|| self.error("`tl.dot` is not supported for this type"))?;
        let c = self.result_block(inst.results[0]);
        self.steps.push(Step::CopyFull { to: c, from: acc, bytes: tr.numel() * lane.size() });
        let batch = if rank == 3 { ta.shape[0] as usize } else { 1 };
        let (m, k) = (ta.shape[rank - 2] as usize, ta.shape[rank - 1] as usize);
        let n = tr.shape[rank - 1] as usize;
        self.steps.push(Step::Dot { f, c, a, b, batch, m, n, k, lane });
        self.exact(inst.results[0], c);
        Ok(())
    }

    /// A combine function given as a region runs element by element on registers.
    fn combine(&mut self, inst: &Inst, axis: u8, scan: bool, reverse: bool) -> Result<()> {
        let mut inputs = Vec::new();
        for &arg in &inst.args {
            let at = self.materialize(arg)?;
            inputs.push((at, Lane::of(self.ty(arg))));
        }
        self.close_group()?;
        let sizes = axis_sizes(self.ty(inst.args[0]), axis);
        let region = &inst.regions[0];
        let params: Vec<SReg> = region
            .params
            .iter()
            .map(|v| {
                let range = self.scalar_range(*v);
                let reg = self.fresh_reg(range);
                self.set(*v, Rep::Uniform(reg));
                reg
            })
            .collect();
        let body = self.region(region)?;
        let mut results = Vec::new();
        for &v in &region.yields {
            match self.rep(v)? {
                Rep::Uniform(r) => results.push(r),
                _ => return Err(self.error("internal error: a combined scalar is not uniform")),
            }
            self.used(v);
        }
        let half = params.len() / 2;
        let mut outputs = Vec::new();
        for &r in &inst.results {
            let at = self.target(r);
            outputs.push((at, Lane::of(self.ty(r))));
        }
        self.steps.push(Step::Combine(Box::new(Combine {
            inputs,
            outputs: outputs.clone(),
            accumulators: params[..half].to_vec(),
            elements: params[half..].to_vec(),
            results,
            body,
            axis: sizes,
            scan,
            reverse,
        })));
        for (&r, (at, _)) in inst.results.iter().zip(&outputs) {
            self.finish(r, *at);
        }
        Ok(())
    }

    /// Element type of an integer index register.
    pub(super) fn index_elem(&self, v: ValueId) -> Elem {
        self.ty(v).num().unwrap_or(Elem::I64)
    }
}
