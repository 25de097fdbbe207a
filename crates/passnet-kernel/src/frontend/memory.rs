//! Loads and stores.

use super::arguments::Args;
use super::value::Value;
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{Op, ValueId};
use crate::types::{Elem, Type};
use passnet_graph::syntax::{Ranged, TextRange};
use std::rc::Rc;

impl<'a> Compiler<'a> {
    pub(super) fn memory(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        match name {
            "load" => self.load(args),
            "store" => self.store(args),
            "make_block_ptr" | "make_tensor_descriptor" => self.make_block_ptr(name, args),
            "advance" => self.advance(args),
            "gather" => self.gather_rows(args),
            "scatter" => self.scatter_rows(args),
            "load_tensor_descriptor" => self.load(args),
            "store_tensor_descriptor" => self.store(args),
            "atomic_cas" => self.atomic_cas(args),
            _ => self.atomic(name.trim_start_matches("atomic_"), args),
        }
    }

    fn load(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        if let Some(Value::BlockPtr(p)) = args.positional.first()
            && p.descriptor
        {
            let p = Rc::clone(p);
            let [_, offsets] = self.bind(args, ["self", "offsets"], 2)?;
            let p = self.at_offsets(&range, &p, &offsets.unwrap_or(Value::NONE))?;
            return self.load_block(&range, &p, &(0..p.block.len()).collect::<Vec<_>>(), p.nan);
        }
        let [ptr, mask, other, boundary, padding, ..] = self.bind(
            args,
            [
                "pointer",
                "mask",
                "other",
                "boundary_check",
                "padding_option",
                "cache_modifier",
                "eviction_policy",
                "volatile",
            ],
            1,
        )?;
        let ptr = ptr.unwrap_or(Value::NONE);
        if let Value::BlockPtr(p) = &ptr {
            if [&mask, &other].into_iter().flatten().any(|v| !v.is_none()) {
                return Err(self
                    .error(&range, "a block pointer takes no `mask` and no `other`")
                    .with_hint("use `boundary_check` and `padding_option`"));
            }
            let checked = self.boundary(&range, boundary, p.block.len())?;
            let nan =
                matches!(padding.and_then(|p| p.to_const()), Some(Const::Str(s)) if s == "nan");
            return self.load_block(&range, &Rc::clone(p), &checked, nan);
        }
        if boundary.is_some_and(|b| !matches!(&b, Value::Tuple(t) if t.is_empty()) && !b.is_none())
        {
            return Err(self.error(&range, "`boundary_check` is for block pointers only"));
        }
        let ptr = self.pointer(&range, &ptr)?;
        let mask = mask.filter(|m| !m.is_none());
        let other = other.filter(|o| !o.is_none());
        if mask.is_none() && other.is_some() {
            return Err(self.error(&range, "`other` needs a `mask`"));
        }
        let (ptr, mask) = self.with_mask(&range, ptr, mask)?;
        let mut ptr = ptr;
        let mut mask = mask;
        let elem = self.ty(ptr).elem();
        let other = match other {
            None => None,
            Some(other) => {
                let v = match &other {
                    Value::Const(c) => self.literal(&range, c, elem)?,
                    value => {
                        let v = self.tensor(&range, value)?;
                        self.cast(v, elem)
                    }
                };
                let (p, v) = self.broadcast_pair(&range, ptr, v)?;
                ptr = p;
                let shape = self.ty(p).shape;
                mask = match mask {
                    Some(m) => Some(self.broadcast_to(&range, m, &shape)?),
                    None => None,
                };
                Some(v)
            }
        };
        let ty = self.ty(ptr).with_elem(elem);
        Ok(Value::Tensor(self.emit_load(ptr, mask, other, ty)))
    }

    pub(super) fn emit_load(
        &mut self,
        ptr: ValueId,
        mask: Option<ValueId>,
        other: Option<ValueId>,
        ty: Type,
    ) -> ValueId {
        let op = Op::Load { mask: mask.is_some(), other: other.is_some() };
        let args: Vec<ValueId> = [Some(ptr), mask, other].into_iter().flatten().collect();
        self.b.emit(op, &args, ty)
    }

    pub(super) fn pointer(&mut self, at: &impl Ranged, value: &Value<'a>) -> Result<ValueId> {
        let v = self.tensor(at, value)?;
        if self.ty(v).is_ptr() {
            Ok(v)
        } else {
            Err(self.error(at, format!("expected a pointer, not {}", self.ty(v))))
        }
    }

    /// Brings pointer and mask to one shape; a scalar pointer cannot take a block mask.
    pub(super) fn with_mask(
        &mut self,
        at: &TextRange,
        ptr: ValueId,
        mask: Option<Value<'a>>,
    ) -> Result<(ValueId, Option<ValueId>)> {
        let Some(mask) = mask else { return Ok((ptr, None)) };
        let mask = self.tensor(at, &mask)?;
        let mask = self.cast(mask, Elem::I1);
        if self.ty(ptr).is_scalar() && !self.ty(mask).is_scalar() {
            return Err(self.error(at, "a scalar pointer cannot take a block mask"));
        }
        let (ptr, mask) = self.broadcast_pair(at, ptr, mask)?;
        Ok((ptr, Some(mask)))
    }

    fn store(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        if let Some(Value::BlockPtr(p)) = args.positional.first()
            && p.descriptor
        {
            let p = Rc::clone(p);
            let [_, offsets, value] = self.bind(args, ["self", "offsets", "value"], 3)?;
            let p = self.at_offsets(&range, &p, &offsets.unwrap_or(Value::NONE))?;
            let all: Vec<usize> = (0..p.block.len()).collect();
            return self.store_block(&range, &p, &value.unwrap_or(Value::NONE), &all);
        }
        let [ptr, value, mask, boundary, ..] = self.bind(
            args,
            ["pointer", "value", "mask", "boundary_check", "cache_modifier", "eviction_policy"],
            2,
        )?;
        let (ptr, value) = (ptr.unwrap_or(Value::NONE), value.unwrap_or(Value::NONE));
        if let Value::BlockPtr(p) = &ptr {
            let checked = self.boundary(&range, boundary, p.block.len())?;
            return self.store_block(&range, &Rc::clone(p), &value, &checked);
        }
        let ptr = self.pointer(&range, &ptr)?;
        let elem = self.ty(ptr).elem();
        let value = match &value {
            // A number that does not fit wraps around, as a converted value does.
            Value::Const(c @ Const::Float(_)) => self.literal(&range, c, elem)?,
            other => self.tensor(&range, other)?,
        };
        if self.ty(value).is_ptr() {
            return Err(self.error(&range, "pointers cannot be stored"));
        }
        let value = self.cast(value, elem);
        if self.ty(ptr).is_scalar() && !self.ty(value).is_scalar() {
            return Err(self.error(&range, "a scalar pointer cannot store a block"));
        }
        let (ptr, mask) = self.with_mask(&range, ptr, mask.filter(|m| !m.is_none()))?;
        let shape = self.ty(ptr).shape;
        let value = self.broadcast_to(&range, value, &shape)?;
        let store_args: Vec<ValueId> =
            [Some(ptr), Some(value), mask].into_iter().flatten().collect();
        self.b.emit_effect(Op::Store { mask: mask.is_some() }, &store_args);
        Ok(Value::NONE)
    }

    pub(super) fn store_at(
        &mut self,
        at: &impl Ranged,
        ptr: ValueId,
        mask: Option<ValueId>,
        value: &Value<'a>,
    ) -> Result<Value<'a>> {
        let ty = self.ty(ptr);
        let value = self.tensor(at, value)?;
        let value = self.cast(value, ty.elem());
        let value = self.broadcast_to(at, value, &ty.shape)?;
        let args: Vec<ValueId> = [Some(ptr), Some(value), mask].into_iter().flatten().collect();
        self.b.emit_effect(Op::Store { mask: mask.is_some() }, &args);
        Ok(Value::NONE)
    }
}
