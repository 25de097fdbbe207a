//! Views of a tensor: the same buffer under another shape, with other strides or another start.

use super::calls::CallArgs;
use super::interp::{Interp, Result};
use super::tensor::{Tensor, extent};
use super::value::Value;
use crate::consts::Const;
use passnet_graph::ops::Op;
use passnet_graph::syntax::Ranged;
use std::rc::Rc;

/// Tensors that one call may cut another one into.
const MAX_PIECES: i64 = 1024;

impl<'a> Interp<'a> {
    /// The view that an operation gives; `name` is how the call spells it.
    pub(super) fn view_op(
        &mut self,
        t: &Rc<Tensor>,
        op: Op,
        name: &str,
        args: &CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let (at, rank) = (args.range, t.shape.len());
        match op {
            Op::View | Op::Reshape | Op::ViewAs | Op::ReshapeAs => self.view(t, op, args),
            Op::Flatten => self.flattened(t, args),
            Op::Unflatten => self.unflattened(t, args),
            Op::Unsqueeze => {
                let d = self.dim_arg(args, 0, "dim", rank + 1)?;
                let mut out = (**t).clone();
                let stride =
                    if d < rank { t.shape[d].max(1).saturating_mul(t.stride[d]) } else { 1 };
                out.shape.insert(d, 1);
                out.stride.insert(d, stride);
                Ok(Value::Tensor(Rc::new(out)))
            }
            Op::Squeeze => self.squeezed(t, args),
            Op::Transpose => {
                let a = self.dim_arg(args, 0, "dim0", rank)?;
                let b = self.dim_arg(args, 1, "dim1", rank)?;
                let mut order: Vec<usize> = (0..rank).collect();
                order.swap(a, b);
                Ok(permuted(t, &order))
            }
            Op::TransposeMatrix if rank <= 2 => {
                Ok(permuted(t, &(0..rank).rev().collect::<Vec<_>>()))
            }
            Op::Permute => self.reordered(t, args),
            Op::Expand | Op::BroadcastTo => {
                let shape = self.sizes(args)?;
                self.expanded(&at, t, &shape)
            }
            Op::ExpandAs => {
                let shape = match args.positional.first() {
                    Some(Value::Tensor(other)) => other.shape.clone(),
                    _ => self.sizes(args)?,
                };
                self.expanded(&at, t, &shape)
            }
            Op::Narrow => {
                let d = self.dim_arg(args, 0, "dim", rank)?;
                let start = args.get(1, "start").and_then(|v| v.as_int()).unwrap_or(-1);
                let length = args.get(2, "length").and_then(|v| v.as_int()).unwrap_or(-1);
                if start < 0 || length < 0 || start.saturating_add(length) > t.shape[d] {
                    return Err(self.error(&at, "`narrow` reaches outside the tensor"));
                }
                Ok(narrowed(t, d, start, length))
            }
            Op::Select => {
                let d = self.dim_arg(args, 0, "dim", rank)?;
                let index = args.get(1, "index").unwrap_or(Value::NONE);
                let i = self.index(&at, &index, t.shape[d].max(0) as usize)?;
                Ok(selected(t, d, i as i64))
            }
            Op::Unbind => {
                let first = args.get(0, "dim").unwrap_or(Value::int(0));
                let d = self.dim(&at, &first, rank)?;
                if t.shape[d] > MAX_PIECES {
                    return Err(self.error(&at, "`unbind` into more than 1024 tensors"));
                }
                Ok(Value::tuple((0..t.shape[d]).map(|i| selected(t, d, i)).collect::<Vec<_>>()))
            }
            Op::Chunk | Op::Split => self.pieces(t, op, name, args),
            Op::AsStrided => self.strided(t, args),
            _ => Err(self.not_callable(&at, name)),
        }
    }

    pub(super) fn dim(&self, at: &impl Ranged, value: &Value<'a>, rank: usize) -> Result<usize> {
        let Some(d) = value.as_int() else {
            return Err(
                self.error(at, format!("a dimension is an integer, not {}", value.describe()))
            );
        };
        let resolved = if d < 0 { d + rank as i64 } else { d };
        usize::try_from(resolved).ok().filter(|&d| d < rank).ok_or_else(|| {
            self.error(
                at,
                format!("dimension {d} is out of range for a tensor of {rank} dimensions"),
            )
        })
    }

    /// A dimension that a call names by position or by name.
    fn dim_arg(&self, args: &CallArgs<'a>, index: usize, name: &str, rank: usize) -> Result<usize> {
        self.dim(&args.range, &args.get(index, name).unwrap_or(Value::NONE), rank)
    }

    /// `f(a, b, c)` or `f((a, b, c))`.
    pub(super) fn sizes(&mut self, args: &CallArgs<'a>) -> Result<Vec<i64>> {
        match &args.positional[..] {
            [one] => self.shape(&args.range, one),
            many => self.shape(&args.range, &Value::tuple(many.to_vec())),
        }
    }

    fn view(&mut self, t: &Rc<Tensor>, op: Op, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let sizes = match args.positional.first() {
            Some(Value::Tensor(o)) if matches!(op, Op::ViewAs | Op::ReshapeAs) => o.shape.clone(),
            Some(Value::DType(_)) => {
                return Err(self.outside(&at, "`view` to another dtype is not supported"));
            }
            None => self.shape(&at, &args.named("shape").unwrap_or(Value::NONE))?,
            _ => self.sizes(args)?,
        };
        let Some(shape) = resolve_minus_one(&sizes, t.numel()) else {
            return Err(self.error(
                &at,
                format!("shape {sizes:?} does not fit a tensor of {} elements", t.numel()),
            ));
        };
        if matches!(op, Op::View | Op::ViewAs) {
            return match t.viewed(&shape) {
                Some(v) => Ok(Value::Tensor(Rc::new(v))),
                None => Err(self
                    .error(&at, "`view` would have to move data")
                    .with_hint("use `reshape`")),
            };
        }
        self.reshaped(&at, t, &shape)
    }

    pub(super) fn reshaped(
        &mut self,
        at: &impl Ranged,
        t: &Rc<Tensor>,
        shape: &[i64],
    ) -> Result<Value<'a>> {
        if let Some(v) = t.viewed(shape) {
            return Ok(Value::Tensor(Rc::new(v)));
        }
        match self.copied(at, t)? {
            Value::Tensor(copy) => match copy.viewed(shape) {
                Some(v) => Ok(Value::Tensor(Rc::new(v))),
                None => Err(self.error(at, "shape does not fit")),
            },
            other => Ok(other),
        }
    }

    fn flattened(&mut self, t: &Rc<Tensor>, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let (at, rank) = (args.range, t.shape.len());
        if rank == 0 {
            return self.reshaped(&at, t, &[1]);
        }
        let (start, end) = (args.get(0, "start_dim"), args.get(1, "end_dim"));
        let start = self.dim(&at, &start.unwrap_or(Value::int(0)), rank)?;
        let end = self.dim(&at, &end.unwrap_or(Value::int(-1)), rank)?;
        if start > end {
            return Err(self.error(&at, "`flatten` with its start after its end"));
        }
        let mut shape = t.shape[..start].to_vec();
        shape.push(t.shape[start..=end].iter().product());
        shape.extend(&t.shape[end + 1..]);
        self.reshaped(&at, t, &shape)
    }

    fn unflattened(&mut self, t: &Rc<Tensor>, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let d = self.dim_arg(args, 0, "dim", t.shape.len())?;
        let sizes = self.shape(&at, &args.get(1, "sizes").unwrap_or(Value::NONE))?;
        let sizes = resolve_minus_one(&sizes, t.shape[d])
            .ok_or_else(|| self.error(&at, "sizes do not fit"))?;
        let shape = [&t.shape[..d], &sizes, &t.shape[d + 1..]].concat();
        self.reshaped(&at, t, &shape)
    }

    fn squeezed(&mut self, t: &Rc<Tensor>, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let rank = t.shape.len();
        let dims = match args.get(0, "dim") {
            Some(d) => vec![self.dim(&args.range, &d, rank)?],
            None => (0..rank).collect(),
        };
        let mut out = (**t).clone();
        for d in dims.into_iter().rev() {
            if out.shape[d] == 1 {
                out.shape.remove(d);
                out.stride.remove(d);
            }
        }
        Ok(Value::Tensor(Rc::new(out)))
    }

    fn reordered(&mut self, t: &Rc<Tensor>, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let (at, rank) = (args.range, t.shape.len());
        let mut order = Vec::new();
        for d in self.sizes(args)? {
            let d = self.dim(&at, &Value::int(d), rank)?;
            if order.contains(&d) {
                return Err(self.error(&at, "a permutation names each dimension once"));
            }
            order.push(d);
        }
        if order.len() != rank {
            let named = order.len();
            return Err(self.error(&at, format!("{named} dimensions named for a tensor of {rank}")));
        }
        Ok(permuted(t, &order))
    }

    fn pieces(
        &mut self,
        t: &Rc<Tensor>,
        op: Op,
        name: &str,
        args: &CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        let d = self.dim(&at, &args.get(1, "dim").unwrap_or(Value::int(0)), t.shape.len())?;
        let n = match args.positional.first() {
            Some(Value::Const(c)) => c.as_int().unwrap_or(0),
            _ => return Err(self.outside(&at, format!("`{name}` takes an integer here"))),
        };
        if n <= 0 {
            return Err(self.error(&at, format!("`{name}` into {n} pieces")));
        }
        let size = if op == Op::Chunk { (t.shape[d] + n - 1) / n } else { n }.max(1);
        if t.shape[d] / size > MAX_PIECES {
            return Err(self.error(&at, "more than 1024 pieces"));
        }
        let starts = (0..t.shape[d]).step_by(usize::try_from(size).unwrap_or(usize::MAX));
        let piece = |start| narrowed(t, d, start, size.min(t.shape[d] - start));
        Ok(Value::tuple(starts.map(piece).collect::<Vec<_>>()))
    }

    fn strided(&mut self, t: &Rc<Tensor>, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let shape = self.shape(&at, &args.get(0, "size").unwrap_or(Value::NONE))?;
        let stride = self.shape(&at, &args.get(1, "stride").unwrap_or(Value::NONE))?;
        let offset = args.get(2, "storage_offset").and_then(|v| v.as_int()).unwrap_or(t.offset);
        let fits = extent(&shape, &stride).is_some_and(|reach| {
            offset >= 0 && reach.saturating_add(offset as u64) <= self.buffers[t.buffer].elements
        });
        if !fits {
            return Err(self.error(&at, "`as_strided` reaches outside the storage"));
        }
        Ok(Value::Tensor(Rc::new(Tensor { shape, stride, offset, ..(**t).clone() })))
    }

    pub(super) fn expanded(
        &mut self,
        at: &impl Ranged,
        t: &Rc<Tensor>,
        shape: &[i64],
    ) -> Result<Value<'a>> {
        let rank = t.shape.len();
        if shape.len() < rank {
            return Err(self.error(at, "`expand` to fewer dimensions"));
        }
        let lead = shape.len() - rank;
        let mut out = (**t).clone();
        out.shape = shape.to_vec();
        out.stride = vec![0; shape.len()];
        for (d, &size) in shape.iter().enumerate() {
            let Some(old) = d.checked_sub(lead) else {
                if size < 0 {
                    return Err(self.error(at, "`expand` with -1 for a new dimension"));
                }
                continue;
            };
            if size == -1 || size == t.shape[old] {
                out.shape[d] = t.shape[old];
                out.stride[d] = t.stride[old];
            } else if t.shape[old] != 1 || size < 0 {
                return Err(self.error(
                    at,
                    format!("cannot expand dimension of size {} to {size}", t.shape[old]),
                ));
            }
        }
        Ok(Value::Tensor(Rc::new(out)))
    }

    /// `x[0]`, `x[:, 1:3]`, `x[None]`, `x[..., 0]`.
    pub(super) fn tensor_index(
        &mut self,
        at: &impl Ranged,
        t: &Rc<Tensor>,
        key: &Value<'a>,
    ) -> Result<Value<'a>> {
        let keys: Vec<Value<'a>> = match key {
            Value::Tuple(items) => items.to_vec(),
            other => vec![other.clone()],
        };
        let used = keys.iter().filter(|k| !k.is_none() && !matches!(k, Value::Ellipsis)).count();
        if used > t.shape.len() {
            return Err(self.error(
                at,
                format!("{used} indices for a tensor of {} dimensions", t.shape.len()),
            ));
        }
        let mut out = (**t).clone();
        let mut d = 0;
        for key in &keys {
            match key {
                Value::Const(Const::None) => {
                    out.shape.insert(d, 1);
                    out.stride.insert(d, 0);
                    d += 1;
                }
                Value::Ellipsis => {
                    let after = keys
                        .iter()
                        .skip_while(|k| !matches!(k, Value::Ellipsis))
                        .skip(1)
                        .filter(|k| !k.is_none())
                        .count();
                    d = out.shape.len().saturating_sub(after);
                }
                Value::Const(Const::Int(_)) => {
                    let i = self.index(at, key, out.shape[d].max(0) as usize)?;
                    out.offset += i as i64 * out.stride[d];
                    out.shape.remove(d);
                    out.stride.remove(d);
                }
                Value::Slice(parts) => {
                    let step = if parts[2].is_none() { 1 } else { parts[2].as_int().unwrap_or(0) };
                    if step <= 0 {
                        return Err(self.error(at, "slices of tensors need a positive step"));
                    }
                    let len = out.shape[d];
                    let clamp = |v: &Value<'a>, default: i64| match v.as_int() {
                        Some(i) => (if i < 0 { i.saturating_add(len) } else { i }).clamp(0, len),
                        None => default,
                    };
                    let (start, end) = (clamp(&parts[0], 0), clamp(&parts[1], len));
                    out.offset += start * out.stride[d];
                    out.shape[d] = (end - start).max(0).saturating_add(step - 1) / step;
                    out.stride[d] = out.stride[d].saturating_mul(step);
                    d += 1;
                }
                other => {
                    return Err(self.outside(
                        at,
                        format!("a wrapper cannot index a tensor with {}", other.describe()),
                    ));
                }
            }
        }
        Ok(Value::Tensor(Rc::new(out)))
    }
}

pub(super) fn permuted<'a>(t: &Tensor, order: &[usize]) -> Value<'a> {
    let mut out = t.clone();
    out.shape = order.iter().map(|&d| t.shape[d]).collect();
    out.stride = order.iter().map(|&d| t.stride[d]).collect();
    Value::Tensor(Rc::new(out))
}

fn narrowed<'a>(t: &Tensor, d: usize, start: i64, length: i64) -> Value<'a> {
    let mut out = t.clone();
    out.offset += start * t.stride[d];
    out.shape[d] = length;
    Value::Tensor(Rc::new(out))
}

fn selected<'a>(t: &Tensor, d: usize, index: i64) -> Value<'a> {
    let mut out = t.clone();
    out.offset += index * t.stride[d];
    out.shape.remove(d);
    out.stride.remove(d);
    Value::Tensor(Rc::new(out))
}

/// Fills in a single -1; `None` if the sizes cannot hold `numel` elements.
fn resolve_minus_one(sizes: &[i64], numel: i64) -> Option<Vec<i64>> {
    let holes = sizes.iter().filter(|&&s| s == -1).count();
    if holes > 1 || sizes.iter().any(|&s| s < -1) {
        return None;
    }
    let known = sizes.iter().filter(|&&s| s != -1).try_fold(1i64, |n, &s| n.checked_mul(s))?;
    if holes == 0 {
        return (known == numel).then(|| sizes.to_vec());
    }
    if known == 0 || numel % known != 0 {
        return None;
    }
    Some(sizes.iter().map(|&s| if s == -1 { numel / known } else { s }).collect())
}
