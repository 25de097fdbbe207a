//! Loads, stores, atomics, block pointers.

use super::arguments::Args;
use super::value::{BlockPtr, Value};
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{AtomicOp, BinaryOp, CmpOp, Literal, Op, ValueId};
use crate::types::{Elem, Shape, Type};
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

    fn emit_load(
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

    fn pointer(&mut self, at: &impl Ranged, value: &Value<'a>) -> Result<ValueId> {
        let v = self.tensor(at, value)?;
        if self.ty(v).is_ptr() {
            Ok(v)
        } else {
            Err(self.error(at, format!("expected a pointer, not {}", self.ty(v))))
        }
    }

    /// Brings pointer and mask to one shape; a scalar pointer cannot take a block mask.
    fn with_mask(
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

    fn boundary(
        &mut self,
        at: &impl Ranged,
        value: Option<Value<'a>>,
        rank: usize,
    ) -> Result<Vec<usize>> {
        let dims = match value {
            None | Some(Value::Const(Const::None)) => Vec::new(),
            Some(v) => self.const_ints(at, &v)?,
        };
        let mut checked = Vec::new();
        for dim in dims {
            checked.push(usize::from(self.axis(at, dim, rank)?));
        }
        Ok(checked)
    }

    /// Pointers and mask of a block pointer's window.
    fn window(
        &mut self,
        at: &impl Ranged,
        p: &BlockPtr,
        checked: &[usize],
    ) -> Result<(ValueId, Option<ValueId>)> {
        let mut indices = Vec::new();
        for (&size, &offset) in p.block.iter().zip(&p.offsets) {
            let lanes = self.b.emit(Op::Arange(0), &[], Type::block(Elem::I32, &[size]));
            let lanes = self.cast(lanes, Elem::I64);
            let offset = self.splat(offset, &[size]);
            let ty = Type::block(Elem::I64, &[size]);
            indices.push(self.b.emit(Op::Binary(BinaryOp::Add), &[lanes, offset], ty));
        }
        self.window_at(at, p, &indices, checked)
    }

    /// The same where each dimension has a block of indices.
    fn window_at(
        &mut self,
        at: &impl Ranged,
        p: &BlockPtr,
        indices: &[ValueId],
        checked: &[usize],
    ) -> Result<(ValueId, Option<ValueId>)> {
        let block: Shape = indices.iter().map(|v| self.ty(*v).shape[0]).collect();
        let mut ptr = self.splat(p.base, &block);
        let mut mask: Option<ValueId> = None;
        for (d, &index) in indices.iter().enumerate() {
            let mut shape: Vec<u32> = vec![1; block.len()];
            shape[d] = block[d];
            let index = self.b.emit(Op::Reshape, &[index], Type::block(Elem::I64, &shape));
            let stride = self.splat(p.strides[d], &shape);
            let moved = self.b.emit(
                Op::Binary(BinaryOp::Mul),
                &[index, stride],
                Type::block(Elem::I64, &shape),
            );
            let moved = self.broadcast_to(at, moved, &block)?;
            let ty = self.ty(ptr);
            ptr = self.b.emit(Op::AddPtr, &[ptr, moved], ty);
            if checked.contains(&d) {
                let bool_ty = Type::block(Elem::I1, &shape);
                let size = self.splat(p.shape[d], &shape);
                let zero = self.zero_like(&Type::block(Elem::I64, &shape));
                let below = self.b.emit(Op::Compare(CmpOp::Lt), &[index, size], bool_ty.clone());
                let above = self.b.emit(Op::Compare(CmpOp::Ge), &[index, zero], bool_ty.clone());
                let inside = self.b.emit(Op::Binary(BinaryOp::And), &[above, below], bool_ty);
                let inside = self.broadcast_to(at, inside, &block)?;
                mask = Some(match mask {
                    None => inside,
                    Some(m) => {
                        let ty = self.ty(m);
                        self.b.emit(Op::Binary(BinaryOp::And), &[m, inside], ty)
                    }
                });
            }
        }
        Ok((ptr, mask))
    }

    fn load_block(
        &mut self,
        at: &impl Ranged,
        p: &BlockPtr,
        checked: &[usize],
        nan: bool,
    ) -> Result<Value<'a>> {
        let (ptr, mask) = self.window(at, p, checked)?;
        let elem = self.ty(p.base).elem();
        Ok(self.padded_load(ptr, mask, elem, nan))
    }

    fn padded_load(
        &mut self,
        ptr: ValueId,
        mask: Option<ValueId>,
        elem: Elem,
        nan: bool,
    ) -> Value<'a> {
        let ty = self.ty(ptr).with_elem(elem);
        let padding =
            if nan && elem.is_float() { Literal::Float(f64::NAN) } else { Literal::Int(0) };
        let other = mask.map(|_| self.constant_like(&ty, padding));
        Value::Tensor(self.emit_load(ptr, mask, other, ty))
    }

    /// Pointers to rows that a block of numbers picks, and to the columns from a place on.
    fn picked_rows(
        &mut self,
        at: &TextRange,
        p: &BlockPtr,
        rows: &Value<'a>,
        column: &Value<'a>,
    ) -> Result<(ValueId, Option<ValueId>)> {
        let rows = self.tensor(at, rows)?;
        let column = self.tensor(at, column)?;
        let fits = p.block.len() == 2
            && p.block[0] == 1
            && self.ty(rows).shape.len() == 1
            && self.ty(column).is_scalar()
            && [rows, column].iter().all(|v| self.ty(*v).num().is_some_and(Elem::is_int));
        if !fits {
            return Err(self
                .error(at, "rows are picked by a 1-d block of integers from a descriptor of [1, N]")
                .with_hint("give the descriptor a block shape of `[1, N]`"));
        }
        let rows = self.cast(rows, Elem::I64);
        let lanes = self.b.emit(Op::Arange(0), &[], Type::block(Elem::I32, &p.block[1..]));
        let lanes = self.cast(lanes, Elem::I64);
        let column = self.cast(column, Elem::I64);
        let column = self.splat(column, &p.block[1..]);
        let ty = self.ty(lanes);
        let columns = self.b.emit(Op::Binary(BinaryOp::Add), &[lanes, column], ty);
        self.window_at(at, p, &[rows, columns], &[0, 1])
    }

    /// `desc.gather(rows, column)`
    fn gather_rows(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [desc, rows, column] = self.bind(args, ["self", "x_offsets", "y_offset"], 3)?;
        let p = self.descriptor(&range, desc)?;
        let (rows, column) = (rows.unwrap_or(Value::NONE), column.unwrap_or(Value::NONE));
        let (ptr, mask) = self.picked_rows(&range, &p, &rows, &column)?;
        let elem = self.ty(p.base).elem();
        Ok(self.padded_load(ptr, mask, elem, p.nan))
    }

    /// `desc.scatter(value, rows, column)`
    fn scatter_rows(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [desc, value, rows, column] =
            self.bind(args, ["self", "value", "x_offsets", "y_offset"], 4)?;
        let p = self.descriptor(&range, desc)?;
        let (rows, column) = (rows.unwrap_or(Value::NONE), column.unwrap_or(Value::NONE));
        let (ptr, mask) = self.picked_rows(&range, &p, &rows, &column)?;
        self.store_at(&range, ptr, mask, &value.unwrap_or(Value::NONE))
    }

    fn descriptor(&self, at: &TextRange, value: Option<Value<'a>>) -> Result<Rc<BlockPtr>> {
        match value {
            Some(Value::BlockPtr(p)) if p.descriptor => Ok(p),
            _ => Err(self.error(at, "expected a tensor descriptor")),
        }
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

    fn store_block(
        &mut self,
        at: &impl Ranged,
        p: &BlockPtr,
        value: &Value<'a>,
        checked: &[usize],
    ) -> Result<Value<'a>> {
        let (ptr, mask) = self.window(at, p, checked)?;
        self.store_at(at, ptr, mask, value)
    }

    fn store_at(
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

    /// `i64` scalars from a tuple of numbers.
    fn wide_scalars(&mut self, at: &impl Ranged, value: &Value<'a>) -> Result<Vec<ValueId>> {
        let Value::Tuple(items) = value else {
            return Err(
                self.error(at, format!("expected a tuple of numbers, not {}", value.describe()))
            );
        };
        let mut scalars = Vec::new();
        for item in items {
            let v = self.tensor(at, item)?;
            if !self.ty(v).is_scalar() || self.ty(v).num().is_none_or(Elem::is_float) {
                return Err(
                    self.error(at, format!("expected an integer scalar, not {}", self.ty(v)))
                );
            }
            scalars.push(self.cast(v, Elem::I64));
        }
        Ok(scalars)
    }

    fn make_block_ptr(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let descriptor = name == "make_tensor_descriptor";
        let mut nan = false;
        let (base, shape, strides, offsets, block) = if descriptor {
            let [base, shape, strides, block, padding] =
                self.bind(args, ["base", "shape", "strides", "block_shape", "padding_option"], 4)?;
            nan = matches!(padding.and_then(|p| p.to_const()), Some(Const::Str(s)) if s == "nan");
            (base, shape, strides, None, block)
        } else {
            let [base, shape, strides, offsets, block, _] = self.bind(
                args,
                ["base", "shape", "strides", "offsets", "block_shape", "order"],
                5,
            )?;
            (base, shape, strides, offsets, block)
        };
        let none = Value::NONE;
        let base = self.pointer(&range, &base.unwrap_or(Value::NONE))?;
        if !self.ty(base).is_scalar() {
            return Err(
                self.error(&range, "the base of a block pointer is one pointer, not a block")
            );
        }
        let shape = self.wide_scalars(&range, shape.as_ref().unwrap_or(&none))?;
        let strides = self.wide_scalars(&range, strides.as_ref().unwrap_or(&none))?;
        let block = self.const_shape(&range, block.as_ref().unwrap_or(&none))?;
        let offsets = match offsets {
            Some(o) => self.wide_scalars(&range, &o)?,
            None => {
                let zero = self.b.int(0, Elem::I64);
                vec![zero; block.len()]
            }
        };
        if shape.len() != block.len()
            || strides.len() != block.len()
            || offsets.len() != block.len()
        {
            return Err(
                self.error(&range, "shape, strides, offsets and block shape differ in length")
            );
        }
        let made = BlockPtr { base, shape, strides, offsets, block, descriptor, nan };
        Ok(Value::BlockPtr(Rc::new(made)))
    }

    fn moved(
        &mut self,
        at: &impl Ranged,
        p: &BlockPtr,
        by: &Value<'a>,
        relative: bool,
    ) -> Result<BlockPtr> {
        let by = self.wide_scalars(at, by)?;
        if by.len() != p.offsets.len() {
            return Err(
                self.error(at, format!("{} offsets for {} dimensions", by.len(), p.offsets.len()))
            );
        }
        let mut copy = p.clone();
        for (slot, delta) in copy.offsets.iter_mut().zip(by) {
            *slot = if relative {
                self.b.emit(Op::Binary(BinaryOp::Add), &[*slot, delta], Type::scalar(Elem::I64))
            } else {
                delta
            };
        }
        Ok(copy)
    }

    fn at_offsets(
        &mut self,
        at: &impl Ranged,
        p: &BlockPtr,
        offsets: &Value<'a>,
    ) -> Result<BlockPtr> {
        self.moved(at, p, offsets, false)
    }

    fn advance(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [base, offsets] = self.bind(args, ["base", "offsets"], 2)?;
        let Some(Value::BlockPtr(p)) = base else {
            return Err(self.error(&range, "`tl.advance` takes a block pointer"));
        };
        let moved = self.moved(&range, &p, &offsets.unwrap_or(Value::NONE), true)?;
        Ok(Value::BlockPtr(Rc::new(moved)))
    }

    fn atomic(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let Some(op) = AtomicOp::from_name(name) else {
            return Err(self.error(&range, format!("unknown atomic `{name}`")));
        };
        if let Some(Value::BlockPtr(p)) = args.positional.first() {
            let p = Rc::clone(p);
            let [_, offsets, value] = self.bind(args, ["self", "offsets", "value"], 3)?;
            let p = self.at_offsets(&range, &p, &offsets.unwrap_or(Value::NONE))?;
            let (ptr, inside) = self.window(&range, &p, &(0..p.block.len()).collect::<Vec<_>>())?;
            // What it gives on a GPU is nothing.
            self.atomic_at(&range, op, ptr, value.unwrap_or(Value::NONE), inside)?;
            return Ok(Value::NONE);
        }
        let [ptr, value, mask, ..] =
            self.bind(args, ["pointer", "val", "mask", "sem", "scope"], 2)?;
        let ptr = self.pointer(&range, &ptr.unwrap_or(Value::NONE))?;
        let (ptr, mask) = self.with_mask(&range, ptr, mask.filter(|m| !m.is_none()))?;
        self.atomic_at(&range, op, ptr, value.unwrap_or(Value::NONE), mask)
    }

    fn atomic_at(
        &mut self,
        range: &TextRange,
        op: AtomicOp,
        ptr: ValueId,
        value: Value<'a>,
        mask: Option<ValueId>,
    ) -> Result<Value<'a>> {
        let elem = self.ty(ptr).elem();
        let legal = match op {
            AtomicOp::Add | AtomicOp::Xchg => {
                elem.bits() >= 16 && !matches!(elem, Elem::I16 | Elem::U16)
            }
            AtomicOp::Max | AtomicOp::Min => elem.bits() >= 32,
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => elem.is_int() && elem.bits() >= 32,
        };
        if !legal {
            return Err(self.error(range, format!("`atomic_{op}` does not support {elem}")));
        }
        let value = match value {
            Value::Const(c) => self.literal(range, &c, elem)?,
            other => {
                let v = self.tensor(range, &other)?;
                self.cast(v, elem)
            }
        };
        let shape = self.ty(ptr).shape;
        let value = self.broadcast_to(range, value, &shape)?;
        let ty = self.ty(value);
        let args: Vec<ValueId> = [Some(ptr), Some(value), mask].into_iter().flatten().collect();
        Ok(Value::Tensor(self.b.emit(Op::Atomic { op, mask: mask.is_some() }, &args, ty)))
    }

    fn atomic_cas(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [ptr, compare, value, ..] =
            self.bind(args, ["pointer", "cmp", "val", "sem", "scope"], 3)?;
        let ptr = self.pointer(&range, &ptr.unwrap_or(Value::NONE))?;
        let ty = self.ty(ptr).with_elem(self.ty(ptr).elem());
        let mut operands = vec![ptr];
        for v in [compare, value] {
            let v = match v.unwrap_or(Value::NONE) {
                Value::Const(c) => self.literal(&range, &c, ty.elem())?,
                other => {
                    let v = self.tensor(&range, &other)?;
                    self.cast(v, ty.elem())
                }
            };
            operands.push(self.broadcast_to(&range, v, &ty.shape)?);
        }
        Ok(Value::Tensor(self.b.emit(Op::AtomicCas, &operands, ty)))
    }
}
