//! Blocks made, reshaped, joined and multiplied.

use super::arguments::Args;
use super::value::Value;
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{BinaryOp, Inst, Op, ValueId};
use crate::types::{Elem, Shape, Type};
use passnet_graph::syntax::{Ranged, TextRange};

impl<'a> Compiler<'a> {
    pub(super) fn shape_op(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        match name {
            "arange" => {
                let [start, end] = self.bind(args, ["start", "end"], 2)?;
                self.arange(&range, start, end)
            }
            "full" => {
                let [shape, value, dtype] = self.bind(args, ["shape", "value", "dtype"], 3)?;
                self.full(&range, shape, value, dtype)
            }
            "reshape" | "view" => {
                let (x, dims) = self.block_and_dims(args, "shape", &["can_reorder"])?;
                let shape = self.const_shape(&range, &Value::Tuple(dims))?;
                self.reshape(&range, x, &shape)
            }
            "permute" | "trans" => {
                let (x, dims) = self.block_and_dims(args, "dims", &[])?;
                let rank = self.ty(x).shape.len() as i64;
                let order = if dims.is_empty() {
                    if rank < 2 {
                        return Err(self.error(&range, "a block of one dimension has no transpose"));
                    }
                    (0..rank - 2).chain([rank - 1, rank - 2]).collect()
                } else {
                    self.const_ints(&range, &Value::Tuple(dims))?
                };
                self.permute(&range, x, &order)
            }
            "expand_dims" => self.expand_dims(args),
            "broadcast_to" => {
                let (x, dims) = self.block_and_dims(args, "shape", &[])?;
                let shape = self.const_shape(&range, &Value::Tuple(dims))?;
                self.broadcast_to(&range, x, &shape).map(Value::Tensor)
            }
            "broadcast" => {
                let [a, b] = self.bind(args, ["input", "other"], 2)?;
                let a = self.tensor(&range, &a.unwrap_or(Value::NONE))?;
                let b = self.tensor(&range, &b.unwrap_or(Value::NONE))?;
                let (a, b) = self.broadcast_pair(&range, a, b)?;
                Ok(Value::Tuple(vec![Value::Tensor(a), Value::Tensor(b)]))
            }
            "join" => self.join_call(args).map(Value::Tensor),
            "interleave" => self.interleave(args),
            "split" => {
                let [x] = self.bind(args, ["a"], 1)?;
                let x = self.tensor(&range, &x.unwrap_or(Value::NONE))?;
                self.split(&range, x)
            }
            "cat" => self.cat(args),
            "flip" => {
                let [x, dim] = self.bind(args, ["x", "dim"], 1)?;
                let x = self.tensor(&range, &x.unwrap_or(Value::NONE))?;
                self.flip(&range, x, dim)
            }
            "gather" => self.gather(args),
            _ => self.dot(args),
        }
    }

    fn expand_dims(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, axis] = self.bind(args, ["input", "axis"], 2)?;
        let x = self.tensor(&range, &x.unwrap_or(Value::NONE))?;
        let axes = self.const_ints(&range, &axis.unwrap_or(Value::NONE))?;
        let mut shape = self.ty(x).shape;
        let rank = shape.len() + axes.len();
        let mut resolved = Vec::new();
        for axis in axes {
            resolved.push(usize::from(self.axis(&range, axis, rank)?));
        }
        resolved.sort_unstable();
        for axis in resolved {
            shape.insert(axis.min(shape.len()), 1);
        }
        if self.ty(x).is_scalar() {
            return Ok(Value::Tensor(self.splat(x, &shape)));
        }
        self.reshape(&range, x, &shape)
    }

    fn interleave(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let joined = self.join_call(args)?;
        let mut shape = self.ty(joined).shape;
        shape.pop();
        match shape.last_mut() {
            Some(last) => *last *= 2,
            None => return Ok(Value::Tensor(joined)),
        }
        self.reshape(&range, joined, &shape)
    }

    fn join_call(&mut self, args: Args<'a>) -> Result<ValueId> {
        let range = args.range;
        let [a, b] = self.bind(args, ["a", "b"], 2)?;
        self.join(&range, &a.unwrap_or(Value::NONE), &b.unwrap_or(Value::NONE))
    }

    fn cat(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [a, b, _] = self.bind(args, ["input", "other", "can_reorder"], 2)?;
        let (a, b) = (a.unwrap_or(Value::NONE), b.unwrap_or(Value::NONE));
        let a = self.tensor(&range, &a)?;
        let b = self.tensor(&range, &b)?;
        if self.ty(a) != self.ty(b) || self.ty(a).shape.len() != 1 {
            return Err(self.error(&range, "`tl.cat` takes two 1-d blocks of one type"));
        }
        let ty = self.ty(a);
        let ty = ty.with_shape(&[ty.shape[0] * 2]);
        Ok(Value::Tensor(self.b.emit(Op::Cat, &[a, b], ty)))
    }

    fn gather(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, index, axis] = self.bind(args, ["src", "index", "axis"], 3)?;
        let x = self.tensor(&range, &x.unwrap_or(Value::NONE))?;
        let index = self.tensor(&range, &index.unwrap_or(Value::NONE))?;
        let axis = self.const_int(&range, &axis.unwrap_or(Value::NONE), "the axis")?;
        let rank = self.ty(x).shape.len();
        let axis = self.axis(&range, axis, rank)?;
        if self.ty(index).shape.len() != rank || self.ty(index).num().is_none_or(Elem::is_float) {
            return Err(
                self.error(&range, "the index of `tl.gather` is an integer block of the same rank")
            );
        }
        let shape = self.ty(index).shape;
        let ty = self.ty(x).with_shape(&shape);
        Ok(Value::Tensor(self.b.emit(Op::Gather { axis }, &[x, index], ty)))
    }

    fn arange(
        &mut self,
        at: &TextRange,
        start: Option<Value<'a>>,
        end: Option<Value<'a>>,
    ) -> Result<Value<'a>> {
        let start =
            self.const_int(at, &start.unwrap_or(Value::NONE), "the start of `tl.arange`")?;
        let end = self.const_int(at, &end.unwrap_or(Value::NONE), "the end of `tl.arange`")?;
        let size = end.checked_sub(start).unwrap_or(0);
        if size <= 0 {
            return Err(self.error(at, "the end of `tl.arange` must be greater than its start"));
        }
        if !(size as u64).is_power_of_two() {
            return Err(self
                .error(
                    at,
                    format!("`tl.arange` over {size} elements: the size must be a power of two"),
                )
                .with_hint("use `triton.next_power_of_2` and mask the rest"));
        }
        let shape = self.const_shape(at, &Value::int(size))?;
        if i32::try_from(start).is_err() || i32::try_from(end).is_err() {
            return Err(self.error(at, "`tl.arange` counts in 32 bits"));
        }
        Ok(Value::Tensor(self.b.emit(Op::Arange(start), &[], Type::block(Elem::I32, &shape))))
    }

    fn full(
        &mut self,
        at: &TextRange,
        shape: Option<Value<'a>>,
        value: Option<Value<'a>>,
        dtype: Option<Value<'a>>,
    ) -> Result<Value<'a>> {
        let shape = self.const_shape(at, &shape.unwrap_or(Value::NONE))?;
        let elem = self.const_elem(at, &dtype.unwrap_or(Value::NONE))?;
        let scalar = match value.unwrap_or(Value::NONE) {
            Value::Const(c) => self.literal(at, &c, elem)?,
            other => {
                let v = self.tensor(at, &other)?;
                if !self.ty(v).is_scalar() {
                    return Err(self.error(at, "`tl.full` takes a scalar value"));
                }
                self.cast(v, elem)
            }
        };
        Ok(Value::Tensor(self.splat(scalar, &shape)))
    }

    /// `f(x, (a, b))` or `f(x, a, b)`.
    fn block_and_dims(
        &mut self,
        args: Args<'a>,
        dims_name: &str,
        ignored: &[&str],
    ) -> Result<(ValueId, Vec<Value<'a>>)> {
        let range = args.range;
        let mut positional = args.positional.into_iter();
        let mut x = positional.next();
        let mut dims: Vec<Value<'a>> = positional.collect();
        for (name, value) in args.named {
            match name.as_str() {
                "input" => x = Some(value),
                n if n == dims_name => dims.push(value),
                n if ignored.contains(&n) => {}
                _ => {
                    return Err(
                        self.error(&range, format!("`{}` has no argument `{name}`", args.callee))
                    );
                }
            }
        }
        let v = self.tensor(&range, &x.unwrap_or(Value::NONE))?;
        if let [Value::Tuple(items)] = &dims[..] {
            dims = items.clone();
        }
        Ok((v, dims))
    }

    fn reshape(&mut self, at: &impl Ranged, x: ValueId, shape: &Shape) -> Result<Value<'a>> {
        let ty = self.ty(x);
        let to = ty.with_shape(shape);
        if ty.numel() != to.numel() {
            return Err(
                self.error(at, format!("cannot reshape {ty} to {to}: the number of lanes changes"))
            );
        }
        if ty == to {
            return Ok(Value::Tensor(x));
        }
        if ty.is_scalar() {
            return Ok(Value::Tensor(self.splat(x, shape)));
        }
        Ok(Value::Tensor(self.b.emit(Op::Reshape, &[x], to)))
    }

    pub(super) fn permute(
        &mut self,
        at: &impl Ranged,
        x: ValueId,
        order: &[i64],
    ) -> Result<Value<'a>> {
        let ty = self.ty(x);
        let rank = ty.shape.len();
        let mut resolved = Vec::new();
        for &d in order {
            let axis = self.axis(at, d, rank)?;
            if resolved.contains(&axis) {
                return Err(self.error(at, "a permutation names each dimension once"));
            }
            resolved.push(axis);
        }
        if resolved.len() != rank {
            return Err(
                self.error(at, format!("{} dimensions named for a block of {rank}", order.len()))
            );
        }
        let shape: Shape = resolved.iter().map(|&a| ty.shape[usize::from(a)]).collect();
        Ok(Value::Tensor(self.b.emit(Op::Permute(resolved), &[x], ty.with_shape(&shape))))
    }

    fn join(&mut self, at: &TextRange, a: &Value<'a>, b: &Value<'a>) -> Result<ValueId> {
        let a = self.tensor(at, a)?;
        let b = self.tensor(at, b)?;
        let (a, b) = self.broadcast_pair(at, a, b)?;
        let ty = self.ty(a);
        if self.ty(b) != ty {
            return Err(self.error(at, format!("cannot join {ty} and {}", self.ty(b))));
        }
        let mut shape = ty.shape.clone();
        shape.push(2);
        Ok(self.b.emit(Op::Join, &[a, b], ty.with_shape(&shape)))
    }

    fn split(&mut self, at: &TextRange, x: ValueId) -> Result<Value<'a>> {
        let ty = self.ty(x);
        if ty.shape.last() != Some(&2) {
            return Err(
                self.error(at, format!("`tl.split` needs a last dimension of two, not {ty}"))
            );
        }
        let mut shape = ty.shape.clone();
        shape.pop();
        let half = ty.with_shape(&shape);
        let (a, b) = (self.b.fresh(half.clone()), self.b.fresh(half));
        let loc = self.b.loc;
        self.b.push(Inst {
            op: Op::Split,
            args: vec![x],
            results: vec![a, b],
            regions: Vec::new(),
            loc,
        });
        Ok(Value::Tuple(vec![Value::Tensor(a), Value::Tensor(b)]))
    }

    fn flip(&mut self, at: &TextRange, x: ValueId, dim: Option<Value<'a>>) -> Result<Value<'a>> {
        let ty = self.ty(x);
        let rank = ty.shape.len();
        let dim = match dim.filter(|d| !d.is_none()) {
            Some(d) => self.const_int(at, &d, "the dimension")?,
            None => -1,
        };
        let axis = self.axis(at, dim, rank)?;
        let size = ty.shape[usize::from(axis)];
        let lanes = self.b.emit(Op::Arange(0), &[], Type::block(Elem::I32, &[size]));
        let last = self.b.int(i64::from(size) - 1, Elem::I32);
        let last = self.splat(last, &[size]);
        let reversed =
            self.b.emit(Op::Binary(BinaryOp::Sub), &[last, lanes], Type::block(Elem::I32, &[size]));
        let mut shape: Shape = ty.shape.iter().map(|_| 1).collect();
        shape[usize::from(axis)] = size;
        let reversed = if rank == 1 {
            reversed
        } else {
            self.b.emit(Op::Reshape, &[reversed], Type::block(Elem::I32, &shape))
        };
        let index = self.broadcast_to(at, reversed, &ty.shape)?;
        Ok(Value::Tensor(self.b.emit(Op::Gather { axis }, &[x, index], ty)))
    }

    fn dot(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [a, b, acc, _, _, _, out] = self.bind(
            args,
            [
                "input",
                "other",
                "acc",
                "input_precision",
                "allow_tf32",
                "max_num_imprecise_acc",
                "out_dtype",
            ],
            2,
        )?;
        let a = self.tensor(&range, &a.unwrap_or(Value::NONE))?;
        let b = self.tensor(&range, &b.unwrap_or(Value::NONE))?;
        // Floats of eight bits may be of two kinds; float16 holds both.
        let narrow = |this: &mut Self, v: ValueId| match this.ty(v).num() {
            Some(elem) if elem.is_float8() => this.cast(v, Elem::F16),
            _ => v,
        };
        let (a, b) = (narrow(self, a), narrow(self, b));
        let (ta, tb) = (self.ty(a), self.ty(b));
        let rank = ta.shape.len();
        if !(2..=3).contains(&rank) || tb.shape.len() != rank || ta.is_ptr() || tb.is_ptr() {
            return Err(
                self.error(&range, format!("`tl.dot` takes 2-d or 3-d blocks, not {ta} and {tb}"))
            );
        }
        if ta.elem() != tb.elem() {
            return Err(self.error(
                &range,
                format!("both operands of `tl.dot` must have one type: {ta} and {tb}"),
            ));
        }
        if !(ta.elem().is_float() || matches!(ta.elem(), Elem::I8 | Elem::U8)) {
            return Err(self.error(&range, format!("`tl.dot` does not support {}", ta.elem())));
        }
        if ta.shape[rank - 1] != tb.shape[rank - 2] || (rank == 3 && ta.shape[0] != tb.shape[0]) {
            return Err(
                self.error(&range, format!("shapes of {ta} and {tb} do not fit for `tl.dot`"))
            );
        }
        let wanted = match out.filter(|o| !o.is_none()) {
            Some(o) => self.const_elem(&range, &o)?,
            None => Elem::F32,
        };
        let elem = match ta.elem() {
            Elem::I8 | Elem::U8 => Elem::I32,
            Elem::F64 => Elem::F64,
            Elem::F16 if wanted == Elem::F16 => Elem::F16,
            _ => Elem::F32,
        };
        let mut shape = ta.shape.clone();
        shape[rank - 1] = tb.shape[rank - 1];
        let ty = Type::block(elem, &shape);
        let acc = match acc.filter(|v| !matches!(v, Value::Const(Const::None))) {
            Some(acc) => self.tensor(&range, &acc)?,
            None => self.zero_like(&ty),
        };
        if self.ty(acc) != ty {
            return Err(self
                .error(&range, format!("the accumulator is {} where {ty} belongs", self.ty(acc))));
        }
        Ok(Value::Tensor(self.b.emit(Op::Dot, &[a, b, acc], ty)))
    }
}
