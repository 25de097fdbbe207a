//! Views of a tensor: the same buffer under another shape, with other strides or another start.
//!
//! What a view is, `passnet_graph::view` says. Here are the arguments of calls, the buffer, and errors at their place in
//! the wrapper.

use super::call_args::CallArgs;
use super::interp::{Interp, Result};
use super::tensor::{Tensor, extent};
use super::value::Value;
use crate::consts::Const;
use passnet_graph::ops::Op;
use passnet_graph::syntax::Ranged;
use passnet_graph::view::{self, List, Strided, ViewError, region, shape};
use std::rc::Rc;

/// Tensors that one call may cut another one into.
const MAX_PIECES: i64 = 1024;

impl Strided for Tensor {
    type Size = i64;
    type Step = i64;

    fn shape(&self) -> &[i64] {
        &self.shape
    }

    fn strides(&self) -> &[i64] {
        &self.stride
    }

    fn start(&self) -> i64 {
        self.offset
    }

    fn seen(&self, shape: List<i64>, strides: List<i64>, offset: i64) -> Tensor {
        Tensor { shape: shape.into_vec(), stride: strides.into_vec(), offset, ..self.clone() }
    }
}

fn one<'a>(tensor: Tensor) -> Value<'a> {
    Value::Tensor(Rc::new(tensor))
}

fn several<'a>(tensors: Vec<Tensor>) -> Value<'a> {
    Value::tuple(tensors.into_iter().map(one).collect::<Vec<_>>())
}

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
        let order = match op {
            Op::View | Op::Reshape | Op::ViewAs | Op::ReshapeAs => return self.view(t, op, args),
            Op::Flatten => return self.flattened(t, args),
            Op::Unflatten => {
                let d = self.dim_arg(args, 0, "dim", rank)?;
                let sizes = self.shape(&at, &args.get(1, "sizes").unwrap_or(Value::NONE))?;
                let split = shape::unflattened(&t.shape, d, &sizes, i64::eq);
                let split = self.ruled(&at, split)?;
                return self.reshaped(&at, t, split);
            }
            Op::Unsqueeze => {
                let d = self.dim_arg(args, 0, "dim", rank + 1)?;
                return Ok(one(region::unsqueezed(&**t, d)));
            }
            Op::Squeeze => {
                let d = args.get(0, "dim").map(|d| self.dim(&at, &d, rank)).transpose()?;
                return Ok(one(region::squeezed(&**t, d.as_ref().map(std::slice::from_ref))));
            }
            Op::Expand | Op::BroadcastTo | Op::ExpandAs => {
                let sizes = match args.positional.first() {
                    Some(Value::Tensor(other)) if op == Op::ExpandAs => other.shape.clone(),
                    _ => self.sizes(args)?,
                };
                return self.ruled(&at, region::expanded(&**t, &sizes, i64::eq)).map(one);
            }
            Op::Narrow | Op::Select | Op::Unbind => return self.part(t, op, args),
            Op::Chunk | Op::Split => return self.pieces(t, op, name, args),
            Op::AsStrided => return self.strided(t, args),
            Op::Transpose => {
                let a = self.dim_arg(args, 0, "dim0", rank)?;
                Ok(shape::swapped(a, self.dim_arg(args, 1, "dim1", rank)?, rank))
            }
            Op::TransposeMatrix => shape::turned_matrix(rank),
            Op::Permute => shape::order(&self.sizes(args)?, rank),
            _ => return Err(self.not_callable(&at, name)),
        };
        Ok(permuted(t, &self.ruled(&at, order)?))
    }

    /// What the rules of views say, at its place in the wrapper.
    fn ruled<T>(&self, at: &impl Ranged, found: view::Result<T>) -> Result<T> {
        found.map_err(|error| match error {
            ViewError::TooMany => self.error(at, format!("more than {MAX_PIECES} pieces")),
            refused => self.error(at, refused.to_string()),
        })
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
        let shape = self.ruled(&at, shape::resolved(&t.shape, &sizes, i64::eq))?;
        if matches!(op, Op::View | Op::ViewAs) {
            return match region::reshaped(&**t, shape) {
                Some(v) => Ok(one(v)),
                None => Err(self
                    .error(&at, "`view` would have to move data")
                    .with_hint("use `reshape`")),
            };
        }
        self.reshaped(&at, t, shape)
    }

    fn reshaped(
        &mut self,
        at: &impl Ranged,
        t: &Rc<Tensor>,
        shape: List<i64>,
    ) -> Result<Value<'a>> {
        if let Some(v) = region::reshaped(&**t, shape.clone()) {
            return Ok(one(v));
        }
        match self.copied(at, t, None, t.dtype)? {
            Value::Tensor(copy) => match region::reshaped(&*copy, shape) {
                Some(v) => Ok(one(v)),
                None => Err(self.error(at, "shape does not fit")),
            },
            other => Ok(other),
        }
    }

    fn flattened(&mut self, t: &Rc<Tensor>, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let (at, rank) = (args.range, t.shape.len());
        let (start, end) = (args.get(0, "start_dim"), args.get(1, "end_dim"));
        let (start, end) = match rank {
            0 => (0, 0),
            _ => (
                self.dim(&at, &start.unwrap_or(Value::int(0)), rank)?,
                self.dim(&at, &end.unwrap_or(Value::int(-1)), rank)?,
            ),
        };
        match self.ruled(&at, shape::flattened(&t.shape, start, end))? {
            Some(shape) => self.reshaped(&at, t, shape),
            None => Ok(Value::Tensor(Rc::clone(t))),
        }
    }

    fn part(&mut self, t: &Rc<Tensor>, op: Op, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let (at, rank) = (args.range, t.shape.len());
        let dim = args.get(0, "dim");
        let dim = if op == Op::Unbind { dim.or(Some(Value::int(0))) } else { dim };
        let d = self.dim(&at, &dim.unwrap_or(Value::NONE), rank)?;
        let number = |index: usize, name: &str| {
            args.get(index, name).and_then(|v| v.as_int()).ok_or_else(|| {
                self.error(&at, format!("`{name}` of `{}` is an integer", op.name()))
            })
        };
        let view = match op {
            Op::Unbind => {
                return self.ruled(&at, region::unbound(&**t, d, MAX_PIECES)).map(several);
            }
            Op::Select => region::selected(&**t, d, number(1, "index")?),
            _ => shape::narrow(&t.shape[d], number(1, "start")?, number(2, "length")?)
                .map(|run| region::narrowed(&**t, d, run)),
        };
        self.ruled(&at, view).map(one)
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
        let lengths = match op {
            Op::Chunk => shape::chunk(&t.shape[d], &n, MAX_PIECES),
            _ => shape::split(&t.shape[d], &n, MAX_PIECES),
        };
        Ok(several(region::consecutive(&**t, d, self.ruled(&at, lengths)?)))
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
                    out = region::unsqueezed(&out, d);
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
                Value::Const(Const::Int(index)) => {
                    out = self.ruled(at, region::selected(&out, d, *index))?;
                }
                Value::Slice(parts) => {
                    let step = if parts[2].is_none() { 1 } else { parts[2].as_int().unwrap_or(0) };
                    let run =
                        shape::slice(&out.shape[d], parts[0].as_int(), parts[1].as_int(), step);
                    out = region::narrowed(&out, d, self.ruled(at, run)?);
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
        Ok(one(out))
    }
}

pub(super) fn permuted<'a>(t: &Tensor, order: &[usize]) -> Value<'a> {
    one(region::permuted(t, order))
}
