//! Reductions, scans, sorting, histograms.

use super::arguments::Args;
use super::value::Value;
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{Block, Inst, Op, ReduceOp, ValueId};
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

    fn block(&mut self, at: &impl Ranged, value: Option<Value<'a>>) -> Result<ValueId> {
        let v = self.tensor(at, &value.unwrap_or(Value::NONE))?;
        if self.ty(v).is_ptr() {
            return Err(self.error(at, "pointers cannot be reduced"));
        }
        Ok(v)
    }

    /// Reduces over one axis, or over all when there is none.
    fn reduce_axis(
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
    fn single_axis(
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

    fn without_axis(&self, v: ValueId, axis: u8) -> Type {
        let ty = self.ty(v);
        let mut shape = ty.shape.clone();
        shape.remove(usize::from(axis));
        ty.with_shape(&shape)
    }

    fn kept(&mut self, v: ValueId, shape: &Shape, keep: bool) -> ValueId {
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

    /// `tl.reduce` with a combine function; the usual ones become plain reductions.
    fn reduce_with(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, axis, combine, keep] =
            self.bind(args, ["input", "axis", "combine_fn", "keep_dims"], 3)?;
        let keep = self.const_bool(&range, keep, false)?;
        let (inputs, single) = self.combine_inputs(&range, x)?;
        if inputs.iter().all(|v| self.ty(*v).is_scalar()) {
            return Err(self.error(&range, "takes blocks, not scalars"));
        }
        let mut flat = Vec::new();
        let mut found = (0, Shape::new());
        for v in inputs {
            let (v, axis, kept) = self.single_axis(&range, v, axis.clone())?;
            flat.push(v);
            found = (axis, kept);
        }
        let region = self.combine_region(&range, combine, &flat)?;
        let (axis, kept) = found;
        let types: Vec<Type> = flat.iter().map(|v| self.without_axis(*v, axis)).collect();
        let results: Vec<ValueId> = types.into_iter().map(|t| self.b.fresh(t)).collect();
        if let ([v], [result], Some(op)) = (&flat[..], &results[..], plain(&region)) {
            let inst = Inst {
                op: Op::Reduce { op, axis },
                args: vec![*v],
                results: vec![*result],
                regions: Vec::new(),
                loc: self.b.loc,
            };
            self.b.push(inst);
        } else {
            let loc = self.b.loc;
            self.b.push(Inst {
                op: Op::ReduceWith { axis },
                args: flat,
                results: results.clone(),
                regions: vec![region],
                loc,
            });
        }
        let mut values: Vec<Value<'a>> =
            results.into_iter().map(|v| Value::Tensor(self.kept(v, &kept, keep))).collect();
        Ok(if single { values.remove(0) } else { Value::Tuple(values) })
    }

    fn scan_with(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, axis, combine, reverse] =
            self.bind(args, ["input", "axis", "combine_fn", "reverse"], 3)?;
        let reverse = self.const_bool(&range, reverse, false)?;
        let (inputs, single) = self.combine_inputs(&range, x)?;
        let rank = self.ty(inputs[0]).shape.len();
        let axis = self.const_int(&range, &axis.unwrap_or(Value::int(0)), "the axis")?;
        let axis = self.axis(&range, axis, rank)?;
        let region = self.combine_region(&range, combine, &inputs)?;
        let results: Vec<ValueId> =
            inputs.iter().map(|v| self.b.fresh(self.b.ty(*v).clone())).collect();
        let loc = self.b.loc;
        let plain_op = if single { plain(&region) } else { None };
        let inst = match plain_op {
            Some(op) => Inst {
                op: Op::Scan { op, axis, reverse },
                args: inputs,
                results: results.clone(),
                regions: Vec::new(),
                loc,
            },
            None => Inst {
                op: Op::ScanWith { axis, reverse },
                args: inputs,
                results: results.clone(),
                regions: vec![region],
                loc,
            },
        };
        self.b.push(inst);
        let mut values: Vec<Value<'a>> = results.into_iter().map(Value::Tensor).collect();
        Ok(if single { values.remove(0) } else { Value::Tuple(values) })
    }

    /// `tl.map_elementwise(f, a, b, …)`: a function of scalars, which may branch, for every lane.
    ///
    /// The lanes are written twice along a new axis and reduced over it: the function gets each lane once. What it gives
    /// may have other types than what it takes, so that blocks of those types go along.
    pub(super) fn map_elementwise(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let mut positional = args.positional.into_iter();
        let function = positional.next().unwrap_or(Value::NONE);
        for (name, value) in args.named {
            if name != "pack" || value.to_const().and_then(|c| c.as_int()) != Some(1) {
                return Err(self
                    .error(&range, "`tl.map_elementwise` takes one lane at a time here")
                    .with_hint("leave `pack` out, or make it 1"));
            }
        }
        let (mut inputs, _) =
            self.combine_inputs(&range, Some(Value::Tuple(positional.collect())))?;
        let shape = self.ty(inputs[0]).shape;
        for input in &mut inputs {
            *input = self.broadcast_to(&range, *input, &shape)?;
        }
        if shape.is_empty() {
            let positional = inputs.into_iter().map(Value::Tensor).collect();
            let callee = "the mapped function".into();
            return self
                .call_value(function, Args { positional, named: Vec::new(), range, callee });
        }
        let takes = inputs.len();
        let lanes: Vec<ValueId> =
            inputs.iter().map(|v| self.b.fresh(self.b.ty(*v).with_shape(&[]))).collect();
        self.b.open();
        let positional = lanes.iter().map(|v| Value::Tensor(*v)).collect();
        let callee = "the mapped function".into();
        let result =
            self.call_value(function, Args { positional, named: Vec::new(), range, callee })?;
        let (items, single) = match result {
            Value::Tuple(items) => (items, false),
            other => (vec![other], true),
        };
        let mut made = Vec::new();
        for item in &items {
            let v = self.tensor(&range, item)?;
            if !self.ty(v).is_scalar() || self.ty(v).is_ptr() {
                let ty = self.ty(v);
                return Err(
                    self.error(&range, format!("the mapped function gives {ty}, no number"))
                );
            }
            made.push(v);
        }
        let insts = self.b.close();
        for v in &made {
            let ty = self.ty(*v).with_shape(&shape);
            inputs.push(self.zero_like(&ty));
        }
        let scalars: Vec<Type> = inputs.iter().map(|v| self.ty(*v).with_shape(&[])).collect();
        let mut params: Vec<ValueId> = scalars.iter().map(|t| self.b.fresh(t.clone())).collect();
        let yields = lanes.iter().chain(&made).copied().collect();
        params.extend(&lanes);
        params.extend(scalars[takes..].iter().map(|t| self.b.fresh(t.clone())));
        let mut doubled = Vec::new();
        for v in &inputs {
            let mut wide = shape.clone();
            wide.push(2);
            let ty = self.ty(*v).with_shape(&wide);
            doubled.push(self.b.emit(Op::Join, &[*v, *v], ty));
        }
        let results: Vec<ValueId> =
            inputs.iter().map(|v| self.b.fresh(self.b.ty(*v).clone())).collect();
        let loc = self.b.loc;
        self.b.push(Inst {
            op: Op::ReduceWith { axis: shape.len() as u8 },
            args: doubled,
            results: results.clone(),
            regions: vec![Block { params, insts, yields }],
            loc,
        });
        let mut values: Vec<Value<'a>> =
            results.into_iter().skip(takes).map(Value::Tensor).collect();
        Ok(if single { values.remove(0) } else { Value::Tuple(values) })
    }

    /// The blocks of a combine call, brought to one shape.
    fn combine_inputs(
        &mut self,
        at: &TextRange,
        x: Option<Value<'a>>,
    ) -> Result<(Vec<ValueId>, bool)> {
        let (items, single) = match x.unwrap_or(Value::NONE) {
            Value::Tuple(items) => (items, false),
            other => (vec![other], true),
        };
        if items.is_empty() || items.len() > 8 {
            return Err(self.error(at, "takes one to eight blocks"));
        }
        let mut inputs = Vec::new();
        for item in items {
            inputs.push(self.block(at, Some(item))?);
        }
        for i in 1..inputs.len() {
            let (a, b) = self.broadcast_pair(at, inputs[0], inputs[i])?;
            inputs[0] = a;
            inputs[i] = b;
        }
        Ok((inputs, single))
    }

    /// Compiles the combine function on scalars.
    fn combine_region(
        &mut self,
        at: &TextRange,
        combine: Option<Value<'a>>,
        inputs: &[ValueId],
    ) -> Result<Block> {
        let Some(callee @ (Value::Function(_) | Value::Path(_))) = combine else {
            return Err(self.error(at, "the combine function must be a `@triton.jit` function"));
        };
        let scalars: Vec<Type> = inputs.iter().map(|v| self.ty(*v).with_shape(&[])).collect();
        let params: Vec<ValueId> =
            scalars.iter().chain(&scalars).map(|t| self.b.fresh(t.clone())).collect();
        self.b.open();
        let args = Args {
            positional: params.iter().map(|v| Value::Tensor(*v)).collect(),
            named: Vec::new(),
            range: *at,
            callee: "the combine function".into(),
        };
        let result = self.call_value(callee, args);
        let results = match result? {
            Value::Tuple(items) => items,
            other => vec![other],
        };
        let mut yields = Vec::new();
        for (item, ty) in results.iter().zip(&scalars) {
            let v = match item {
                Value::Const(c @ (Const::Int(_) | Const::Float(_) | Const::Bool(_))) => {
                    self.literal(at, c, ty.elem())?
                }
                other => self.tensor(at, other)?,
            };
            if self.ty(v) != *ty {
                let found = self.ty(v);
                return Err(self
                    .error(at, format!("the combine function gives {found} where {ty} belongs")));
            }
            yields.push(v);
        }
        if results.len() != scalars.len() {
            return Err(self.error(
                at,
                format!(
                    "the combine function gives {} values for {} blocks",
                    results.len(),
                    scalars.len()
                ),
            ));
        }
        Ok(Block { params, insts: self.b.close(), yields })
    }
}

fn sum_elem(elem: Elem) -> Option<Elem> {
    match elem {
        e if e.is_float() || e.bits() >= 32 => None,
        e if e.is_unsigned() => Some(Elem::U32),
        _ => Some(Elem::I32),
    }
}

/// Recognises `a + b`, `maximum(a, b)` and the like.
fn plain(region: &Block) -> Option<ReduceOp> {
    use crate::ir::BinaryOp;
    let ([a, b], [inst], [out]) = (&region.params[..], &region.insts[..], &region.yields[..])
    else {
        return None;
    };
    let Op::Binary(op) = inst.op else { return None };
    if inst.results != [*out] || !(inst.args == [*a, *b] || inst.args == [*b, *a]) {
        return None;
    }
    match op {
        BinaryOp::Add => Some(ReduceOp::Sum),
        BinaryOp::Mul => Some(ReduceOp::Prod),
        BinaryOp::Max => Some(ReduceOp::Max),
        BinaryOp::Min => Some(ReduceOp::Min),
        BinaryOp::And => Some(ReduceOp::And),
        BinaryOp::Or => Some(ReduceOp::Or),
        BinaryOp::Xor => Some(ReduceOp::Xor),
        _ => None,
    }
}
