//! Loads, stores and atomics.

use super::{Lower, Rep, Result, Stretch};
use crate::exec::group::{Access, MaskForm, PtrForm};
use crate::exec::registers::{SReg, Src};
use crate::exec::simd;
use crate::exec::tape::{Atomic, Step};
use crate::exec::views::{Strides, collapse, is_contiguous, plain, span};
use crate::ir::{Inst, Op, ValueId};
use crate::lane::Lane;
use crate::types::{Elem, Shape};

/// Lanes up to which a load is repeated rather than its result spread.
const MAX_STRETCHED: usize = 1 << 14;

impl Lower<'_> {
    pub(super) fn scalar_range(&self, v: ValueId) -> (i64, i64) {
        match self.ty(v).num() {
            Some(e) if e.is_int() => super::scalar::elem_range(e),
            _ => super::scalar::FULL,
        }
    }

    fn uniform(&self, v: ValueId) -> Result<SReg> {
        match self.rep(v)? {
            Rep::Uniform(r) => Ok(r),
            _ => Err(self.error("internal error: a scalar is not uniform")),
        }
    }

    pub(super) fn load(&mut self, inst: &Inst, masked: bool, has_other: bool) -> Result<()> {
        let ptr = inst.args[0];
        let mask = masked.then(|| inst.args[1]);
        let other = has_other.then(|| inst.args[1 + usize::from(masked)]);
        let result = inst.results[0];
        let root = self.roots[ptr.index()];
        let elem = self.ty(ptr).elem();
        // A pointer that is the same in all lanes is read once, unless the mask varies.
        let uniform_mask = match mask {
            None => true,
            Some(m) => matches!(self.rep(m)?, Rep::Uniform(_)),
        };
        let uniform_other = match other {
            None => true,
            Some(o) => matches!(self.rep(o)?, Rep::Uniform(_)),
        };
        if let (Rep::Uniform(address), true, true) = (self.rep(ptr)?, uniform_mask, uniform_other) {
            if self.group_stores_alias(root) {
                self.close_group()?;
            }
            let mask = mask.map(|m| self.uniform(m)).transpose()?;
            let other = other.map(|o| self.uniform(o)).transpose()?;
            let range = self.scalar_range(result);
            let dst = self.fresh_reg(range);
            self.steps.push(Step::LoadScalar {
                dst,
                ptr: address,
                mask,
                other,
                elem,
                buffer: self.owner(ptr),
                loc: inst.loc,
            });
            self.set(result, Rep::Uniform(dst));
            return Ok(());
        }
        if self.group_stores_alias(root) {
            self.close_group()?;
        }
        let mut shape = self.ty(ptr).shape.clone();
        if let Stretch::To(wide) = self.stretched[result.index()].clone()
            && uniform_other
            && self.can_stretch(ptr, mask, &wide)?
        {
            self.stretched[result.index()] = Stretch::Done;
            shape = wide;
        }
        self.group_for(&shape)?;
        let mut access = self.access(inst, ptr, mask, (&shape, false))?;
        access.other = match other {
            Some(o) => self.operand(o)?,
            None => Src::None,
        };
        self.push_load(access, (ptr, root), result)
    }

    /// Whether a load can fetch its lanes once for every place to which they are broadcast.
    fn can_stretch(&self, ptr: ValueId, mask: Option<ValueId>, wide: &Shape) -> Result<bool> {
        let shape = &self.ty(ptr).shape;
        let mask_fits = match mask {
            None => true,
            Some(m) => match self.rep(m)? {
                Rep::Uniform(_) => true,
                Rep::Box(bounds) => {
                    (0..shape.len()).all(|d| shape[d] == wide[d] || bounds[d] == (None, None))
                }
                _ => false,
            },
        };
        let lanes: usize = wide.iter().map(|&d| d as usize).product();
        Ok(mask_fits
            && shape.len() == wide.len()
            && lanes <= MAX_STRETCHED
            && matches!(self.rep(ptr)?, Rep::Affine { .. } | Rep::Uniform(_)))
    }

    /// Whether the open group writes memory this pointer may read.
    fn group_stores_alias(&self, root: Option<u32>) -> bool {
        self.group.as_ref().is_some_and(|g| {
            g.pointers.iter().any(|(_, other, is_store)| *is_store && self.may_alias(*other, root))
        })
    }

    pub(super) fn store(&mut self, inst: &Inst, masked: bool) -> Result<()> {
        let (ptr, value) = (inst.args[0], inst.args[1]);
        let mask = masked.then(|| inst.args[2]);
        let root = self.roots[ptr.index()];
        let elem = self.ty(ptr).elem();
        if self.ty(ptr).is_scalar() {
            if self.group_touches(root) {
                self.close_group()?;
            }
            let step = Step::StoreScalar {
                ptr: self.uniform(ptr)?,
                value: self.uniform(value)?,
                mask: mask.map(|m| self.uniform(m)).transpose()?,
                elem,
                buffer: self.owner(ptr),
                loc: inst.loc,
            };
            self.steps.push(step);
            return Ok(());
        }
        // Within a group lanes are written chunk by chunk: other accesses to the same memory must use the same
        // address in the same lane.
        let rep = self.rep(ptr)?;
        let conflict = self.group.as_ref().is_some_and(|g| {
            g.pointers.iter().any(|(other, other_root, _)| {
                self.may_alias(*other_root, root)
                    && *other != ptr
                    && self.reps[other.index()].as_ref() != Some(&rep)
            })
        });
        if conflict {
            self.close_group()?;
        }
        let shape = self.ty(ptr).shape.clone();
        self.group_for(&shape)?;
        let access = self.access(inst, ptr, mask, (&shape, true))?;
        let src = Src::V(self.lanes(value)?);
        self.push_store(access, (ptr, root), src)
    }

    fn group_touches(&self, root: Option<u32>) -> bool {
        self.group
            .as_ref()
            .is_some_and(|g| g.pointers.iter().any(|(_, other, _)| self.may_alias(*other, root)))
    }

    /// The only buffer that a pointer may reach, where its parameter is known.
    fn owner(&self, ptr: ValueId) -> Option<usize> {
        self.roots[ptr.index()].and_then(|r| self.owners.get(r as usize).copied().flatten())
    }

    fn access(
        &mut self,
        inst: &Inst,
        ptr: ValueId,
        mask: Option<ValueId>,
        (shape, is_store): (&Shape, bool),
    ) -> Result<Access> {
        let own = self.ty(ptr).shape.clone();
        let elem = self.ty(ptr).elem();
        let buffer = self.owner(ptr);
        let mask = match mask {
            None => MaskForm::All,
            Some(m) => match self.rep(m)? {
                Rep::Uniform(r) => MaskForm::Uniform(r),
                Rep::Box(bounds) => MaskForm::Box(bounds),
                _ => MaskForm::Lanes(self.lanes(m)?),
            },
        };
        let rep = self.rep(ptr)?;
        let boxed = matches!(mask, MaskForm::Box(_));
        let dims = |strides: &[i64]| {
            let strides: Strides =
                (0..shape.len()).map(|d| if own[d] == shape[d] { strides[d] } else { 0 }).collect();
            if boxed { plain(shape, &strides) } else { collapse(shape, &strides) }
        };
        let rows = self.row_form(&rep, shape, &mask).map(Box::new);
        let ptr = match rep {
            Rep::Affine { base, strides } => PtrForm::Affine { base, dims: dims(&strides) },
            Rep::Uniform(base) => {
                let zeros: Vec<i64> = vec![0; shape.len()];
                PtrForm::Affine { base, dims: dims(&zeros) }
            }
            _ => PtrForm::Lanes(self.lanes(ptr)?),
        };
        // Per-lane pointers and box masks do not mix: the mask becomes lanes too.
        let mask = match (&ptr, mask) {
            (PtrForm::Lanes(_), MaskForm::Box(_)) => {
                let m = inst.args[if is_store { 2 } else { 1 }];
                MaskForm::Lanes(self.lanes(m)?)
            }
            (_, mask) => mask,
        };
        let (span, contiguous) = match &ptr {
            PtrForm::Affine { dims, .. } => {
                (span(elem.size(), dims, dims.iter().map(|d| (0, d.0))), is_contiguous(elem, dims))
            }
            PtrForm::Lanes(_) => ((0, 0), false),
        };
        Ok(Access {
            ptr,
            span,
            contiguous,
            mask,
            other: Src::None,
            elem,
            lane: Lane::of_elem(elem),
            load: simd::load_row(self.isa, elem),
            store: simd::store_row(self.isa, elem),
            is_store,
            buffer,
            rows,
            loc: inst.loc,
        })
    }

    pub(super) fn atomic(&mut self, inst: &Inst) -> Result<()> {
        self.has_atomics = true;
        let (op, masked, cas) = match &inst.op {
            Op::Atomic { op, mask } => (Some(*op), *mask, false),
            _ => (None, false, true),
        };
        let ptr = self.materialize(inst.args[0])?;
        let first = self.materialize(inst.args[1])?;
        let (compare, value) =
            if cas { (Some(first), self.materialize(inst.args[2])?) } else { (None, first) };
        let mask = if masked { Some(self.materialize(inst.args[2])?) } else { None };
        self.close_group()?;
        let result = inst.results[0];
        let ty = self.ty(result).clone();
        let elem: Elem = ty.elem();
        let lane = Lane::of_elem(elem);
        let old = if ty.is_scalar() {
            self.arena.allocate(lane.size()).1
        } else {
            self.result_block(result)
        };
        let atomic = Atomic {
            op,
            elem,
            lane,
            lanes: ty.numel(),
            ptr,
            value,
            compare,
            mask,
            old,
            buffer: self.owner(inst.args[0]),
            loc: inst.loc,
        };
        self.steps.push(Step::Atomic(Box::new(atomic)));
        if ty.is_scalar() {
            let range = self.scalar_range(result);
            let dst = self.fresh_reg(range);
            self.steps.push(Step::Extract { dst, from: old, lane });
            self.set(result, Rep::Uniform(dst));
        }
        Ok(())
    }
}
