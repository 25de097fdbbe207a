//! Block pointers and descriptors: windows into tensors, moved, loaded and stored.

use super::arguments::Args;
use super::value::{BlockPtr, Value};
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{BinaryOp, CmpOp, Literal, Op, ValueId};
use crate::types::{Elem, Shape, Type};
use passnet_graph::syntax::{Ranged, TextRange};
use std::rc::Rc;

impl<'a> Compiler<'a> {
    pub(super) fn boundary(
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
    pub(super) fn window(
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

    pub(super) fn load_block(
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
    pub(super) fn gather_rows(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [desc, rows, column] = self.bind(args, ["self", "x_offsets", "y_offset"], 3)?;
        let p = self.descriptor(&range, desc)?;
        let (rows, column) = (rows.unwrap_or(Value::NONE), column.unwrap_or(Value::NONE));
        let (ptr, mask) = self.picked_rows(&range, &p, &rows, &column)?;
        let elem = self.ty(p.base).elem();
        Ok(self.padded_load(ptr, mask, elem, p.nan))
    }

    /// `desc.scatter(value, rows, column)`
    pub(super) fn scatter_rows(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [desc, value, rows, column] =
            self.bind(args, ["self", "value", "x_offsets", "y_offset"], 4)?;
        let p = self.descriptor(&range, desc)?;
        let (rows, column) = (rows.unwrap_or(Value::NONE), column.unwrap_or(Value::NONE));
        let (ptr, mask) = self.picked_rows(&range, &p, &rows, &column)?;
        self.store_at(&range, ptr, mask, &value.unwrap_or(Value::NONE))
    }

    pub(super) fn descriptor(
        &self,
        at: &TextRange,
        value: Option<Value<'a>>,
    ) -> Result<Rc<BlockPtr>> {
        match value {
            Some(Value::BlockPtr(p)) if p.descriptor => Ok(p),
            _ => Err(self.error(at, "expected a tensor descriptor")),
        }
    }

    pub(super) fn store_block(
        &mut self,
        at: &impl Ranged,
        p: &BlockPtr,
        value: &Value<'a>,
        checked: &[usize],
    ) -> Result<Value<'a>> {
        let (ptr, mask) = self.window(at, p, checked)?;
        self.store_at(at, ptr, mask, value)
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

    pub(super) fn make_block_ptr(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
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

    pub(super) fn at_offsets(
        &mut self,
        at: &impl Ranged,
        p: &BlockPtr,
        offsets: &Value<'a>,
    ) -> Result<BlockPtr> {
        self.moved(at, p, offsets, false)
    }

    pub(super) fn advance(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [base, offsets] = self.bind(args, ["base", "offsets"], 2)?;
        let Some(Value::BlockPtr(p)) = base else {
            return Err(self.error(&range, "`tl.advance` takes a block pointer"));
        };
        let moved = self.moved(&range, &p, &offsets.unwrap_or(Value::NONE), true)?;
        Ok(Value::BlockPtr(Rc::new(moved)))
    }
}
