//! What a wrapper may ask of a tensor: its shape, views of it, copies, new tensors like it.

use super::calls::CallArgs;
use super::interp::{Interp, Result};
use super::tensor::Tensor;
use super::torch_api::preserved_strides;
use super::value::Value;
use super::{Init, Step};
use crate::consts::Const;
use crate::types::Elem;
use passnet_graph::DType;
use passnet_graph::syntax::Ranged;
use std::rc::Rc;

impl<'a> Interp<'a> {
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

    /// `f(a, b, c)` or `f((a, b, c))`.
    pub(super) fn sizes(&mut self, args: &CallArgs<'a>) -> Result<Vec<i64>> {
        match &args.positional[..] {
            [one] => self.shape(&args.range, one),
            many => self.shape(&args.range, &Value::tuple(many.to_vec())),
        }
    }

    pub(super) fn tensor_method(
        &mut self,
        t: &Rc<Tensor>,
        name: &str,
        args: CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        let rank = t.shape.len();
        let same = || Ok(Value::Tensor(Rc::clone(t)));
        match name {
            "size" | "stride" => {
                let values = if name == "size" { &t.shape } else { &t.stride };
                match args.get(0, "dim") {
                    None => Ok(Value::ints(values)),
                    Some(d) => Ok(Value::int(values[self.dim(&at, &d, rank)?])),
                }
            }
            "numel" | "nelement" => Ok(Value::int(t.numel())),
            "dim" | "ndimension" => Ok(Value::int(rank as i64)),
            "element_size" => Ok(Value::int(t.dtype.size() as i64)),
            "is_contiguous" => Ok(Value::bool(t.is_contiguous())),
            "is_floating_point" => Ok(Value::bool(t.dtype.is_float())),
            "is_complex" => Ok(Value::bool(t.dtype.is_complex())),
            "storage_offset" => Ok(Value::int(t.offset)),
            "get_device" => Ok(Value::int(t.device.index.map_or(-1, i64::from))),
            "detach" | "requires_grad_" | "cuda" => same(),
            "view" | "reshape" | "view_as" | "reshape_as" => self.view(t, name, &args),
            "contiguous" => {
                let plain = args.named("memory_format").is_none();
                if t.is_contiguous() && plain {
                    return same();
                }
                if !plain {
                    return Err(self.outside(
                        &at,
                        "`contiguous` with a memory format is not supported in a wrapper",
                    ));
                }
                self.copied(&at, t)
            }
            "clone" => self.copied(&at, t),
            "flatten" => {
                let (start, end) = (args.get(0, "start_dim"), args.get(1, "end_dim"));
                if rank == 0 {
                    return self.reshaped(&at, t, &[1]);
                }
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
            "unflatten" => {
                let d = self.dim(&at, &args.get(0, "dim").unwrap_or(Value::NONE), rank)?;
                let sizes = self.shape(&at, &args.get(1, "sizes").unwrap_or(Value::NONE))?;
                let mut shape = t.shape[..d].to_vec();
                shape.extend(
                    resolve_minus_one(&sizes, t.shape[d])
                        .ok_or_else(|| self.error(&at, "sizes do not fit"))?,
                );
                shape.extend(&t.shape[d + 1..]);
                self.reshaped(&at, t, &shape)
            }
            "unsqueeze" => {
                let d = self.dim(&at, &args.get(0, "dim").unwrap_or(Value::NONE), rank + 1)?;
                let mut out = (**t).clone();
                let stride =
                    if d < rank { t.shape[d].max(1).saturating_mul(t.stride[d]) } else { 1 };
                out.shape.insert(d, 1);
                out.stride.insert(d, stride);
                Ok(Value::Tensor(Rc::new(out)))
            }
            "squeeze" => {
                let dims = match args.get(0, "dim") {
                    Some(d) => vec![self.dim(&at, &d, rank)?],
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
            "transpose" | "swapaxes" => {
                let a = self.dim(&at, &args.get(0, "dim0").unwrap_or(Value::NONE), rank)?;
                let b = self.dim(&at, &args.get(1, "dim1").unwrap_or(Value::NONE), rank)?;
                let mut order: Vec<usize> = (0..rank).collect();
                order.swap(a, b);
                Ok(permuted(t, &order))
            }
            "t" if rank <= 2 => Ok(permuted(t, &(0..rank).rev().collect::<Vec<_>>())),
            "permute" => {
                let dims = self.sizes(&args)?;
                let mut order = Vec::new();
                for d in dims {
                    let d = self.dim(&at, &Value::int(d), rank)?;
                    if order.contains(&d) {
                        return Err(self.error(&at, "a permutation names each dimension once"));
                    }
                    order.push(d);
                }
                if order.len() != rank {
                    return Err(self.error(
                        &at,
                        format!("{} dimensions named for a tensor of {rank}", order.len()),
                    ));
                }
                Ok(permuted(t, &order))
            }
            "expand" | "expand_as" => {
                let shape = match (name, args.positional.first()) {
                    ("expand_as", Some(Value::Tensor(o))) => o.shape.clone(),
                    _ => self.sizes(&args)?,
                };
                self.expanded(&at, t, &shape)
            }
            "narrow" => {
                let d = self.dim(&at, &args.get(0, "dim").unwrap_or(Value::NONE), rank)?;
                let start = args.get(1, "start").and_then(|v| v.as_int()).unwrap_or(-1);
                let length = args.get(2, "length").and_then(|v| v.as_int()).unwrap_or(-1);
                if start < 0 || length < 0 || start.saturating_add(length) > t.shape[d] {
                    return Err(self.error(&at, "`narrow` reaches outside the tensor"));
                }
                Ok(narrowed(t, d, start, length))
            }
            "select" => {
                let d = self.dim(&at, &args.get(0, "dim").unwrap_or(Value::NONE), rank)?;
                let i = self.index(
                    &at,
                    &args.get(1, "index").unwrap_or(Value::NONE),
                    t.shape[d].max(0) as usize,
                )?;
                Ok(selected(t, d, i as i64))
            }
            "unbind" => {
                let d = self.dim(&at, &args.get(0, "dim").unwrap_or(Value::int(0)), rank)?;
                if t.shape[d] > 1024 {
                    return Err(self.error(&at, "`unbind` into more than 1024 tensors"));
                }
                Ok(Value::tuple((0..t.shape[d]).map(|i| selected(t, d, i)).collect::<Vec<_>>()))
            }
            "chunk" | "split" => {
                let d = self.dim(&at, &args.get(1, "dim").unwrap_or(Value::int(0)), rank)?;
                let n = match args.positional.first() {
                    Some(Value::Const(c)) => c.as_int().unwrap_or(0),
                    _ => return Err(self.outside(&at, format!("`{name}` takes an integer here"))),
                };
                if n <= 0 {
                    return Err(self.error(&at, format!("`{name}` into {n} pieces")));
                }
                let size = if name == "chunk" { (t.shape[d] + n - 1) / n } else { n }.max(1);
                if t.shape[d] / size > 1024 {
                    return Err(self.error(&at, "more than 1024 pieces"));
                }
                let mut pieces = Vec::new();
                let mut start = 0;
                while start < t.shape[d] {
                    let length = size.min(t.shape[d] - start);
                    pieces.push(narrowed(t, d, start, length));
                    start += length;
                }
                Ok(Value::tuple(pieces))
            }
            "as_strided" => {
                let shape = self.shape(&at, &args.get(0, "size").unwrap_or(Value::NONE))?;
                let stride = self.shape(&at, &args.get(1, "stride").unwrap_or(Value::NONE))?;
                let offset =
                    args.get(2, "storage_offset").and_then(|v| v.as_int()).unwrap_or(t.offset);
                let reach = super::tensor::extent(&shape, &stride);
                let fits = reach.is_some_and(|r| {
                    offset >= 0
                        && r.saturating_add(offset as u64) <= self.buffers[t.buffer].elements
                });
                if !fits {
                    return Err(self.error(&at, "`as_strided` reaches outside the storage"));
                }
                Ok(Value::Tensor(Rc::new(Tensor { shape, stride, offset, ..(**t).clone() })))
            }
            "new_empty" | "new_zeros" | "new_ones" | "new_full" | "new_empty_strided" => {
                self.new_like(t, name, &args)
            }
            "to" | "type" | "type_as" => self.to(t, &args),
            "float" | "half" | "bfloat16" | "double" | "int" | "long" | "bool" => {
                match DType::from_name(name) {
                    Some(dtype) => self.converted(&at, t, dtype),
                    None => Err(self.outside(&at, format!("`{name}` is no type of tensors here"))),
                }
            }
            "zero_" => self.filled(&at, t, Const::Int(0)),
            "fill_" => match args.get(0, "value") {
                Some(Value::Const(value)) if value.as_float().is_some() => {
                    self.filled(&at, t, value)
                }
                _ => Err(self.outside(&at, "`fill_` takes a number in a wrapper")),
            },
            "copy_" => match args.positional.first() {
                Some(Value::Tensor(from)) if from.shape == t.shape => {
                    let line = self.line(&at);
                    self.push_step(&at, Step::Copy { from: from.view(), to: t.view(), line })?;
                    same()
                }
                _ => Err(self.outside(&at, "`copy_` between tensors of one shape only")),
            },
            "data_ptr" => Err(self.address_error(&at)),
            "item" | "tolist" | "cpu" | "numpy" => Err(self.outside(
                &at,
                format!("`.{name}()` reads tensor data: a wrapper sees shapes only"),
            )),
            _ => {
                Err(self
                    .outside(&at, format!("`.{name}()` cannot be called on a tensor in a wrapper")))
            }
        }
    }

    pub(super) fn view(
        &mut self,
        t: &Rc<Tensor>,
        name: &str,
        args: &CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        let sizes = match args.positional.first() {
            Some(Value::Tensor(o)) if name.ends_with("_as") => o.shape.clone(),
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
        if name.starts_with("view") {
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

    pub(super) fn copied(&mut self, at: &impl Ranged, t: &Rc<Tensor>) -> Result<Value<'a>> {
        let copy =
            self.allocate(at, "copy", &t.shape, None, t.dtype, t.device, Init::Uninitialized)?;
        if let Value::Tensor(to) = &copy
            && t.numel() > 0
        {
            let line = self.line(at);
            self.push_step(at, Step::Copy { from: t.view(), to: to.view(), line })?;
        }
        Ok(copy)
    }

    /// A tensor with one number in all places. Where nothing has touched the buffer yet, it is made so.
    fn filled(&mut self, at: &impl Ranged, t: &Rc<Tensor>, value: Const) -> Result<Value<'a>> {
        if let Some((low, high)) = Elem::from_dtype(t.dtype).and_then(int_range) {
            let number = value.as_float().map_or(f64::NAN, f64::trunc);
            // Every bound but that of int64 is a float, too.
            if number.is_nan() || number < low as f64 || number > high as f64 {
                return Err(self.error(at, format!("{value} does not fit into {}", t.dtype)));
            }
        }
        let spec = &self.buffers[t.buffer];
        let whole = t.offset == 0 && u64::try_from(t.numel()) == Ok(spec.elements);
        let own = !matches!(spec.init, Init::Input(_));
        if whole && own && !self.plan_steps.iter().any(|step| step.touches(t.buffer)) {
            self.buffers[t.buffer].init = Init::Fill(value);
        } else if t.numel() > 0 {
            let line = self.line(at);
            self.push_step(at, Step::Fill { view: t.view(), value, line })?;
        }
        Ok(Value::Tensor(Rc::clone(t)))
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

    pub(super) fn new_like(
        &mut self,
        t: &Rc<Tensor>,
        name: &str,
        args: &CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        let dtype = self.dtype(args)?.unwrap_or(t.dtype);
        let device = match args.named("device") {
            None => t.device,
            some => self.device(&at, some)?,
        };
        let (shape, init) = match name {
            "new_full" => {
                let shape = self.shape(&at, &args.get(0, "size").unwrap_or(Value::NONE))?;
                match args.get(1, "fill_value") {
                    Some(Value::Const(c)) => (shape, Init::Fill(c)),
                    _ => return Err(self.error(&at, "`new_full` takes a number")),
                }
            }
            "new_empty_strided" => {
                let shape = self.shape(&at, &args.get(0, "size").unwrap_or(Value::NONE))?;
                let stride = self.shape(&at, &args.get(1, "stride").unwrap_or(Value::NONE))?;
                return self.allocate(
                    &at,
                    "buffer",
                    &shape,
                    Some(stride),
                    dtype,
                    device,
                    Init::Uninitialized,
                );
            }
            _ => {
                let init = match name {
                    "new_zeros" => Init::Fill(Const::Int(0)),
                    "new_ones" => Init::Fill(Const::Int(1)),
                    _ => Init::Uninitialized,
                };
                (self.sizes(args)?, init)
            }
        };
        self.allocate(&at, "buffer", &shape, None, dtype, device, init)
    }

    /// `to`, `type`, `type_as`: another dtype is a copy, another device is none of a wrapper's business.
    pub(super) fn to(&mut self, t: &Rc<Tensor>, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let mut dtype = t.dtype;
        let all = args.positional.iter().cloned().chain(args.named.iter().map(|(_, v)| v.clone()));
        for value in all {
            let device = match &value {
                Value::DType(wanted) => {
                    dtype = *wanted;
                    continue;
                }
                Value::Tensor(other) => {
                    dtype = other.dtype;
                    other.device
                }
                Value::Device(device) => *device,
                Value::Const(Const::Str(_)) => self.device(&at, Some(value.clone()))?,
                _ => continue,
            };
            if device.kind != t.device.kind {
                return Err(self.outside(&at, "a wrapper cannot move tensors between devices"));
            }
        }
        self.converted(&at, t, dtype)
    }

    /// The same elements as another type, in a buffer of their own.
    pub(super) fn converted(
        &mut self,
        at: &impl Ranged,
        t: &Rc<Tensor>,
        dtype: DType,
    ) -> Result<Value<'a>> {
        if dtype == t.dtype {
            return Ok(Value::Tensor(Rc::clone(t)));
        }
        let is_known = |dtype: DType| Elem::from_dtype(dtype).is_some();
        if !is_known(dtype) || !is_known(t.dtype) {
            return Err(
                self.outside(at, format!("a wrapper cannot convert {} to {dtype}", t.dtype))
            );
        }
        let stride = Some(preserved_strides(t));
        let init = Init::Uninitialized;
        let copy = self.allocate(at, "converted", &t.shape, stride, dtype, t.device, init)?;
        if let Value::Tensor(to) = &copy
            && t.numel() > 0
        {
            let line = self.line(at);
            self.push_step(at, Step::Copy { from: t.view(), to: to.view(), line })?;
        }
        Ok(copy)
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

fn int_range(elem: Elem) -> Option<(i128, i128)> {
    (elem.is_int() && elem != Elem::I1).then(|| elem.int_range())
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
