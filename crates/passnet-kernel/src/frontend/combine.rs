//! Reductions, scans and maps with functions of the pass.

use super::arguments::Args;
use super::value::Value;
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{Block, Inst, Op, ReduceOp, ValueId};
use crate::types::{Shape, Type};
use passnet_graph::syntax::TextRange;

impl<'a> Compiler<'a> {
    /// `tl.reduce` with a combine function; the usual ones become plain reductions.
    pub(super) fn reduce_with(&mut self, args: Args<'a>) -> Result<Value<'a>> {
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

    pub(super) fn scan_with(&mut self, args: Args<'a>) -> Result<Value<'a>> {
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
