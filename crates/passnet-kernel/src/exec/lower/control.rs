//! Branches and loops: which form each carried value takes, and the copies between iterations.

use super::{Lower, Rep, Result};
use crate::exec::registers::SReg;
use crate::exec::tape::Step;
use crate::exec::views::{Strides, row_major};
use crate::ir::{Block, Inst, ValueId};
use crate::lane::Lane;

/// Where a value that crosses a region boundary is kept.
#[derive(Debug, Clone, PartialEq)]
enum Storage {
    Register(SReg),
    /// An affine block: only its base changes.
    Base {
        base: SReg,
        strides: Strides,
    },
    Block {
        buffer: usize,
        offset: usize,
    },
}

impl Lower<'_> {
    /// Lowers a region on its own list of steps. What it learns about outer values is forgotten.
    pub(super) fn region(&mut self, block: &Block) -> Result<Vec<Step>> {
        let outer_steps = std::mem::take(&mut self.steps);
        let outer_known = self.known.clone();
        self.block(block)?;
        // Blocks among the results are settled so that they can be copied out.
        self.close_group()?;
        self.known = outer_known;
        Ok(std::mem::replace(&mut self.steps, outer_steps))
    }

    fn storage_rep(&self, v: ValueId, storage: &Storage) -> Rep {
        match storage {
            Storage::Register(r) => Rep::Uniform(*r),
            Storage::Base { base, strides } => {
                Rep::Affine { base: *base, strides: strides.clone() }
            }
            Storage::Block { buffer, offset } => Rep::Dense {
                buffer: *buffer,
                offset: *offset,
                strides: row_major(&self.ty(v).shape),
            },
        }
    }

    fn new_block(&mut self, v: ValueId) -> Storage {
        let ty = self.ty(v).clone();
        let (buffer, offset) = self.arena.allocate(ty.numel() * Lane::of(&ty).size());
        // Never reused: the loop or branch owns it.
        self.arena.retain(buffer);
        Storage::Block { buffer, offset }
    }

    /// Copies a value into its storage, at the end of the current steps.
    fn store_into(&mut self, v: ValueId, storage: &Storage) -> Result<()> {
        let lane = Lane::of(self.ty(v));
        let bytes = self.ty(v).numel() * lane.size();
        match (storage, self.rep(v)?) {
            (Storage::Register(dst), Rep::Uniform(src)) => {
                self.steps.push(Step::Move { dst: *dst, src })
            }
            (Storage::Base { base, .. }, Rep::Affine { base: src, .. } | Rep::Uniform(src)) => {
                self.steps.push(Step::Move { dst: *base, src });
            }
            (Storage::Block { offset, .. }, _) => {
                let to = *offset;
                self.with_block(v, |steps, from| {
                    if from != to {
                        steps.push(Step::CopyFull { to, from, bytes });
                    }
                })?;
            }
            _ => return Err(self.error("internal error: a carried value changed its form")),
        }
        Ok(())
    }

    /// Uses a value as a block. One that needs no block stays what it was: it may cross the boundary a second time, in the
    /// form that it has now.
    fn with_block(&mut self, v: ValueId, work: impl FnOnce(&mut Vec<Step>, usize)) -> Result<()> {
        let form = self.rep(v)?;
        let from = self.materialize(v)?;
        self.close_group()?;
        work(&mut self.steps, from);
        if let (Rep::Uniform(_) | Rep::Affine { .. }, Rep::Dense { buffer, .. }) =
            (&form, self.rep(v)?)
        {
            self.arena.release(buffer, self.depth, self.depth, false);
            self.reps[v.index()] = Some(form);
        }
        Ok(())
    }

    fn fits(&self, v: ValueId, storage: &Storage) -> Result<bool> {
        Ok(match (storage, self.rep(v)?) {
            (Storage::Register(_), Rep::Uniform(_)) | (Storage::Block { .. }, _) => true,
            (Storage::Base { strides, .. }, Rep::Affine { strides: other, .. }) => {
                *strides == other
            }
            (Storage::Base { strides, .. }, Rep::Uniform(_)) => strides.iter().all(|&s| s == 0),
            _ => false,
        })
    }

    pub(super) fn lower_if(&mut self, inst: &Inst) -> Result<()> {
        self.close_group()?;
        let Rep::Uniform(condition) = self.rep(inst.args[0])? else {
            return Err(self.error("internal error: a condition is not uniform"));
        };
        let outer_reps = self.reps.clone();
        let mut lists = Vec::new();
        let mut yields: Vec<Vec<Option<Rep>>> = Vec::new();
        for region in &inst.regions {
            lists.push(self.region(region)?);
            self.restore(&outer_reps);
            yields.push(region.yields.iter().map(|v| self.reps[v.index()].clone()).collect());
        }
        // One form for each result that both branches can give.
        let mut storages = Vec::new();
        for (i, &r) in inst.results.iter().enumerate() {
            let storage = match (&yields[0][i], &yields[1][i]) {
                (Some(Rep::Uniform(_)), Some(Rep::Uniform(_))) => {
                    let range = self.scalar_range(r);
                    Storage::Register(self.fresh_reg(range))
                }
                (Some(Rep::Affine { strides: a, .. }), Some(Rep::Affine { strides: b, .. }))
                    if a == b =>
                {
                    let strides = a.clone();
                    let range = self.scalar_range(r);
                    Storage::Base { base: self.fresh_reg(range), strides }
                }
                _ => self.new_block(r),
            };
            storages.push(storage);
        }
        for (region, list) in inst.regions.iter().zip(&mut lists) {
            let outer_steps = std::mem::replace(&mut self.steps, std::mem::take(list));
            let outer_known = self.known.clone();
            for (&v, storage) in region.yields.iter().zip(&storages) {
                self.store_into(v, storage)?;
                self.used(v);
            }
            self.known = outer_known;
            *list = std::mem::replace(&mut self.steps, outer_steps);
            self.restore(&outer_reps);
        }
        let mut roots = Vec::new();
        for i in 0..inst.results.len() {
            let root = |r: usize| inst.regions[r].yields.get(i).and_then(|v| self.roots[v.index()]);
            roots.push(if root(0) == root(1) { root(0) } else { None });
        }
        let otherwise = lists.pop().unwrap_or_default();
        let then = lists.pop().unwrap_or_default();
        self.steps.push(Step::If { condition, then, otherwise });
        for ((&r, storage), root) in inst.results.iter().zip(&storages).zip(roots) {
            let rep = self.storage_rep(r, storage);
            self.set(r, rep);
            self.roots[r.index()] = root;
        }
        Ok(())
    }

    /// Outer values get back the form they had before the region, for only some paths run through it.
    fn restore(&mut self, outer: &[Option<Rep>]) {
        for (slot, old) in self.reps.iter_mut().zip(outer) {
            if old.is_some() {
                slot.clone_from(old);
            }
        }
    }

    pub(super) fn lower_for(&mut self, inst: &Inst) -> Result<()> {
        self.close_group()?;
        let mut bounds = Vec::new();
        for &v in &inst.args[..3] {
            match self.rep(v)? {
                Rep::Uniform(r) => bounds.push(r),
                _ => return Err(self.error("internal error: a loop bound is not uniform")),
            }
        }
        let (low, high, step) = (bounds[0], bounds[1], bounds[2]);
        let (l, h, s) = (self.range(low), self.range(high), self.range(step));
        let range = if s.0 > 0 {
            (l.0, l.1.max(h.1.saturating_sub(1)))
        } else if s.1 < 0 {
            (l.0.min(h.0.saturating_add(1)), l.1)
        } else {
            super::scalar::elem_range(self.index_elem(inst.args[0]))
        };
        let index = self.fresh_reg(range);
        self.set_multiple(index, super::scalar::gcd(self.multiple(low), self.multiple(step)));
        self.set(inst.regions[0].params[0], Rep::Uniform(index));
        let inits = inst.args[3..].to_vec();
        let (storages, mut lists) = self.carried(inst, &inits, &[(&inst.regions[0], 1)])?;
        let body = lists.pop().unwrap_or_default();
        self.steps.push(Step::For { low, high, step, index, body, loc: inst.loc });
        self.finish_loop(inst, &inits, &storages);
        Ok(())
    }

    pub(super) fn lower_while(&mut self, inst: &Inst) -> Result<()> {
        self.close_group()?;
        let inits = inst.args.clone();
        let (storages, mut lists) =
            self.carried(inst, &inits, &[(&inst.regions[0], 0), (&inst.regions[1], 0)])?;
        let body = lists.pop().unwrap_or_default();
        let condition_steps = lists.pop().unwrap_or_default();
        let condition = match self.rep(inst.regions[0].yields[0])? {
            Rep::Uniform(r) => r,
            _ => return Err(self.error("internal error: a condition is not uniform")),
        };
        self.used(inst.regions[0].yields[0]);
        self.steps.push(Step::While { condition_steps, condition, body, loc: inst.loc });
        self.finish_loop(inst, &inits, &storages);
        Ok(())
    }

    fn finish_loop(&mut self, inst: &Inst, inits: &[ValueId], storages: &[Storage]) {
        for ((&r, storage), &init) in inst.results.iter().zip(storages).zip(inits) {
            let rep = self.storage_rep(r, storage);
            self.set(r, rep);
            self.roots[r.index()] = self.roots[init.index()];
        }
    }

    /// Lowers the regions of a loop. Each carried value starts in the cheapest form of its initial value; when the
    /// body does not keep that form, the attempt is thrown away and the value becomes a block.
    fn carried(
        &mut self,
        inst: &Inst,
        inits: &[ValueId],
        regions: &[(&Block, usize)],
    ) -> Result<(Vec<Storage>, Vec<Vec<Step>>)> {
        let mut as_block: Vec<bool> = Vec::new();
        for &v in inits {
            let scalar = self.ty(v).is_scalar();
            as_block.push(
                !scalar
                    && (self.ty(v).num().is_some_and(crate::types::Elem::is_float)
                        || !matches!(self.rep(v)?, Rep::Uniform(_) | Rep::Affine { .. })),
            );
        }
        let mut unknown_roots = false;
        for _ in 0..=inits.len() + 1 {
            // The steps so far move into the attempt and back: copying them for every loop would be quadratic.
            let before = std::mem::take(&mut self.steps);
            let kept = before.len();
            let mut attempt = self.clone();
            attempt.steps = before;
            if unknown_roots {
                attempt.buffers.iter_mut().for_each(|b| *b = None);
            }
            let storages = attempt.storages(inits, &as_block)?;
            let outer_reps = attempt.reps.clone();
            attempt.depth += 1;
            let mut lists = Vec::new();
            for (region, skip) in regions {
                for ((&param, storage), &init) in
                    region.params[*skip..].iter().zip(&storages).zip(inits)
                {
                    let rep = attempt.storage_rep(param, storage);
                    attempt.set(param, rep);
                    // Carried blocks outlive every iteration.
                    attempt.depths[param.index()] = attempt.depth - 1;
                    attempt.roots[param.index()] =
                        if unknown_roots { None } else { attempt.roots[init.index()] };
                }
                lists.push(attempt.region(region)?);
            }
            let last = regions[regions.len() - 1].0;
            let mut changed = false;
            for (i, &v) in last.yields.iter().enumerate() {
                if !attempt.fits(v, &storages[i])? {
                    as_block[i] = true;
                    changed = true;
                }
                let moved = self.ty(v).is_ptr()
                    && attempt.roots[v.index()] != attempt.roots[inits[i].index()];
                if moved && !unknown_roots {
                    unknown_roots = true;
                    changed = true;
                }
            }
            if changed {
                attempt.steps.truncate(kept);
                self.steps = attempt.steps;
                continue;
            }
            let body = lists.len() - 1;
            attempt.close_body(&mut lists[body], last, &storages)?;
            attempt.depth -= 1;
            attempt.arena.loop_left(attempt.depth);
            attempt.restore(&outer_reps);
            *self = attempt;
            return Ok((storages, lists));
        }
        self.loc = inst.loc;
        Err(self.error("a loop-carried value changes its form in every iteration"))
    }

    /// A place for each carried value, with its first value in it.
    fn storages(&mut self, inits: &[ValueId], as_block: &[bool]) -> Result<Vec<Storage>> {
        let mut storages = Vec::new();
        for (&v, &block) in inits.iter().zip(as_block) {
            let storage = match self.rep(v)? {
                _ if block => self.new_block(v),
                Rep::Uniform(_) => {
                    let range = self.scalar_range(v);
                    Storage::Register(self.fresh_reg(range))
                }
                Rep::Affine { strides, .. } => {
                    let range = self.scalar_range(v);
                    Storage::Base { base: self.fresh_reg(range), strides }
                }
                _ => self.new_block(v),
            };
            self.store_into(v, &storage)?;
            storages.push(storage);
        }
        Ok(storages)
    }

    /// Copies what the body yields into place, first aside where a copy would overwrite another's source.
    fn close_body(
        &mut self,
        steps: &mut Vec<Step>,
        body: &Block,
        storages: &[Storage],
    ) -> Result<()> {
        let outer_steps = std::mem::replace(&mut self.steps, std::mem::take(steps));
        let outer_known = self.known.clone();
        self.copy_yields(&body.yields, storages)?;
        for &v in &body.yields {
            self.used(v);
        }
        self.known = outer_known;
        *steps = std::mem::replace(&mut self.steps, outer_steps);
        Ok(())
    }

    /// Whether the storage at `own` is the only storage of the loop that making this value reads, or none is read.
    fn reads_other_storage(&self, v: ValueId, own: usize, storages: &[Storage]) -> Result<bool> {
        let others = || storages.iter().enumerate().filter(|(i, _)| *i != own).map(|(_, s)| s);
        Ok(match self.rep(v)? {
            Rep::Uniform(src) | Rep::Affine { base: src, .. } => others().any(
                |s| matches!(s, Storage::Register(r) | Storage::Base { base: r, .. } if *r == src),
            ),
            Rep::Dense { buffer: src, .. } => {
                others().any(|s| matches!(s, Storage::Block { buffer, .. } if *buffer == src))
            }
            // Bounds, addresses or their base may be storage of the loop.
            Rep::Box(_) | Rep::Rows { .. } => true,
            Rep::Chunk(_) => false,
        })
    }

    fn copy_yields(&mut self, yields: &[ValueId], storages: &[Storage]) -> Result<()> {
        // Sources that are themselves storage of this loop must be read before any is overwritten. Views of the own block in
        // another order also need a copy first; `materialize` makes one.
        let mut aside = Vec::new();
        for (i, &v) in yields.iter().enumerate() {
            aside.push(self.reads_other_storage(v, i, storages)?);
        }
        let mut pending = Vec::new();
        for (i, &v) in yields.iter().enumerate() {
            if !aside[i] {
                continue;
            }
            match (&storages[i], self.rep(v)?) {
                (
                    Storage::Register(dst) | Storage::Base { base: dst, .. },
                    Rep::Uniform(src) | Rep::Affine { base: src, .. },
                ) => {
                    let temporary = self.fresh_reg(super::scalar::FULL);
                    self.steps.push(Step::Move { dst: temporary, src });
                    pending.push(Step::Move { dst: *dst, src: temporary });
                }
                (Storage::Block { offset, .. }, _) => {
                    let bytes = self.ty(v).numel() * Lane::of(self.ty(v)).size();
                    let (_, temporary) = self.arena.allocate(bytes);
                    self.with_block(v, |steps, from| {
                        steps.push(Step::CopyFull { to: temporary, from, bytes });
                    })?;
                    pending.push(Step::CopyFull { to: *offset, from: temporary, bytes });
                }
                _ => return Err(self.error("internal error: a carried value changed its form")),
            }
        }
        for (i, &v) in yields.iter().enumerate() {
            if !aside[i] {
                self.store_into(v, &storages[i])?;
            }
        }
        self.steps.extend(pending);
        Ok(())
    }
}
