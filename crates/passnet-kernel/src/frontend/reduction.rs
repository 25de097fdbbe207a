//! Reductions, scans, sorting, histograms.

use super::arguments::Args;
use super::value::Value;
use super::{Compiler, Result};
use crate::ir::{Inst, Op, ReduceOp, ValueId};
use crate::types::{Elem, Shape, Type};
use passnet_graph::syntax::{Ranged, TextRange};

impl<'a> Compiler<'a> {
    pub(super) fn reduction(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        match name {
            "sum" | "xor_sum" | "reduce_or" => self.plain_reduce(name, args),
            "max" | "min" => self.extreme(name == "max", args),
            "argmax" | "argmin" => self.arg_extreme(name == "argmax", args),
            "reduce" => self.reduce_with(args),
            "associative_scan" => self.scan_with(args),
            "cumsum" | "cumprod" => self.cumulative(name, args),
            "sort" => self.sort(args),
            _ => self.histogram(args),
        }
    }

    pub(super) fn block(&mut self, at: &impl Ranged, value: Option<Value<'a>>) -> Result<ValueId> {
        let v = self.tensor(at, &value.unwrap_or(Value::NONE))?;
        if self.ty(v).is_ptr() {
            return Err(self.error(at, "pointers cannot be reduced"));
        }
        Ok(v)
    }

    /// Reduces over one axis, or over all when there is none.
    pub(super) fn reduce_axis(
        &mut self,
        at: &TextRange,
        op: ReduceOp,
        v: ValueId,
        axis: Option<Value<'a>>,
        keep: bool,
    ) -> Result<Value<'a>> {
        let ty = self.ty(v);
        if ty.is_scalar() {
            return Ok(Value::Tensor(v));
        }
        let (v, axis, kept) = self.single_axis(at, v, axis)?;
        let result_ty = self.without_axis(v, axis);
        let reduced = self.b.emit(Op::Reduce { op, axis }, &[v], result_ty);
        Ok(Value::Tensor(self.kept(reduced, &kept, keep)))
    }

    /// The block to reduce, its axis, and the shape with that axis kept as one.
    pub(super) fn single_axis(
        &mut self,
        at: &TextRange,
        v: ValueId,
        axis: Option<Value<'a>>,
    ) -> Result<(ValueId, u8, Shape)> {
        let ty = self.ty(v);
        match axis.filter(|a| !a.is_none()) {
            None => {
                let flat = if ty.shape.len() == 1 {
                    v
                } else {
                    let lanes = ty.numel() as u32;
                    self.b.emit(Op::Reshape, &[v], ty.with_shape(&[lanes]))
                };
                Ok((flat, 0, ty.shape.iter().map(|_| 1).collect()))
            }
            Some(axis) => {
                let axis = self.const_int(at, &axis, "the axis")?;
                let axis = self.axis(at, axis, ty.shape.len())?;
                let mut kept = ty.shape.clone();
                kept[usize::from(axis)] = 1;
                Ok((v, axis, kept))
            }
        }
    }

    pub(super) fn without_axis(&self, v: ValueId, axis: u8) -> Type {
        let ty = self.ty(v);
        let mut shape = ty.shape.clone();
        shape.remove(usize::from(axis));
        ty.with_shape(&shape)
    }

    pub(super) fn kept(&mut self, v: ValueId, shape: &Shape, keep: bool) -> ValueId {
        if !keep {
            return v;
        }
        let ty = self.ty(v);
        if ty.is_scalar() {
            return self.splat(v, shape);
        }
        self.b.emit(Op::Reshape, &[v], ty.with_shape(shape))
    }

    fn plain_reduce(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, axis, keep, dtype] = self.bind(args, ["input", "axis", "keep_dims", "dtype"], 1)?;
        let mut v = self.block(&range, x)?;
        let elem = self.ty(v).elem();
        let keep = self.const_bool(&range, keep, false)?;
        let op = match name {
            "sum" => {
                let wanted = match dtype.filter(|d| !d.is_none()) {
                    Some(d) => Some(self.const_elem(&range, &d)?),
                    None => sum_elem(elem),
                };
                if let Some(wanted) = wanted {
                    v = self.cast(v, wanted);
                }
                ReduceOp::Sum
            }
            _ if elem.is_float() => {
                return Err(self.error(&range, format!("`tl.{name}` takes integers, not {elem}")));
            }
            "xor_sum" => ReduceOp::Xor,
            _ => ReduceOp::Or,
        };
        self.reduce_axis(&range, op, v, axis, keep)
    }

    fn extreme(&mut self, max: bool, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, axis, indices, tie_left, keep] = self.bind(
            args,
            ["input", "axis", "return_indices", "return_indices_tie_break_left", "keep_dims"],
            1,
        )?;
        let mut v = self.block(&range, x)?;
        let keep = self.const_bool(&range, keep, false)?;
        if self.const_bool(&range, indices, false)? {
            let tie_left = self.const_bool(&range, tie_left, true)?;
            let (value, index) = self.arg_reduce(&range, max, v, axis, tie_left, keep)?;
            return Ok(Value::Tuple(vec![value, index]));
        }
        let elem = self.ty(v).elem();
        if elem.bits() < 32 {
            v = self.cast(v, if elem.is_float() { Elem::F32 } else { Elem::I32 });
        }
        self.reduce_axis(&range, if max { ReduceOp::Max } else { ReduceOp::Min }, v, axis, keep)
    }

    fn arg_extreme(&mut self, max: bool, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, axis, tie_left, keep] =
            self.bind(args, ["input", "axis", "tie_break_left", "keep_dims"], 1)?;
        let v = self.block(&range, x)?;
        let tie_left = self.const_bool(&range, tie_left, true)?;
        let keep = self.const_bool(&range, keep, false)?;
        Ok(self.arg_reduce(&range, max, v, axis, tie_left, keep)?.1)
    }

    fn arg_reduce(
        &mut self,
        at: &TextRange,
        max: bool,
        v: ValueId,
        axis: Option<Value<'a>>,
        tie_left: bool,
        keep: bool,
    ) -> Result<(Value<'a>, Value<'a>)> {
        let v = if self.ty(v).elem() == Elem::BF16 { self.cast(v, Elem::F32) } else { v };
        if self.ty(v).is_scalar() {
            return Err(self.error(at, "takes a block, not a scalar"));
        }
        let (v, axis, kept) = self.single_axis(at, v, axis)?;
        let ty = self.without_axis(v, axis);
        let value = self.b.fresh(ty.clone());
        let index = self.b.fresh(ty.with_elem(Elem::I32));
        let loc = self.b.loc;
        let op = Op::ArgReduce { max, tie_left, axis };
        self.b.push(Inst {
            op,
            args: vec![v],
            results: vec![value, index],
            regions: Vec::new(),
            loc,
        });
        let value = self.kept(value, &kept, keep);
        let index = self.kept(index, &kept, keep);
        Ok((Value::Tensor(value), Value::Tensor(index)))
    }

    fn cumulative(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, axis, reverse, dtype] =
            self.bind(args, ["input", "axis", "reverse", "dtype"], 1)?;
        let mut v = self.block(&range, x)?;
        if self.ty(v).elem() == Elem::BF16 {
            v = self.cast(v, Elem::F32);
        }
        let elem = self.ty(v).elem();
        let sum = name == "cumsum";
        let wanted = match dtype.filter(|d| !d.is_none()) {
            Some(d) => Some(self.const_elem(&range, &d)?),
            None if sum => sum_elem(elem),
            None => None,
        };
        if let Some(wanted) = wanted {
            v = self.cast(v, wanted);
        }
        let ty = self.ty(v);
        if ty.is_scalar() {
            return Ok(Value::Tensor(v));
        }
        let axis = self.const_int(&range, &axis.unwrap_or(Value::int(0)), "the axis")?;
        let axis = self.axis(&range, axis, ty.shape.len())?;
        let reverse = self.const_bool(&range, reverse, false)?;
        let op = if sum { ReduceOp::Sum } else { ReduceOp::Prod };
        Ok(Value::Tensor(self.b.emit(Op::Scan { op, axis, reverse }, &[v], ty)))
    }

    fn sort(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, dim, descending] = self.bind(args, ["x", "dim", "descending"], 1)?;
        let v = self.block(&range, x)?;
        let ty = self.ty(v);
        if ty.is_scalar() {
            return Ok(Value::Tensor(v));
        }
        if let Some(dim) = dim.filter(|d| !d.is_none()) {
            let dim = self.const_int(&range, &dim, "the dimension")?;
            if usize::from(self.axis(&range, dim, ty.shape.len())?) + 1 != ty.shape.len() {
                return Err(self.error(&range, "`tl.sort` sorts along the last dimension only"));
            }
        }
        let descending = self.const_bool(&range, descending, false)?;
        Ok(Value::Tensor(self.b.emit(Op::Sort { descending }, &[v], ty)))
    }

    fn histogram(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, bins, mask] = self.bind(args, ["input", "num_bins", "mask"], 2)?;
        let v = self.block(&range, x)?;
        let ty = self.ty(v);
        if ty.shape.len() != 1 || ty.elem().is_float() {
            return Err(self
                .error(&range, format!("`tl.histogram` takes a 1-d block of integers, not {ty}")));
        }
        let bins = self.const_shape(&range, &bins.unwrap_or(Value::NONE))?;
        let mut operands = vec![v];
        if let Some(mask) = mask.filter(|m| !m.is_none()) {
            let mask = self.tensor(&range, &mask)?;
            let mask = self.cast(mask, Elem::I1);
            operands.push(self.broadcast_to(&range, mask, &ty.shape)?);
        }
        let op = Op::Histogram { mask: operands.len() == 2 };
        Ok(Value::Tensor(self.b.emit(op, &operands, Type::block(Elem::I32, &bins))))
    }
}

fn sum_elem(elem: Elem) -> Option<Elem> {
    match elem {
        e if e.is_float() || e.bits() >= 32 => None,
        e if e.is_unsigned() => Some(Elem::U32),
        _ => Some(Elem::I32),
    }
}
