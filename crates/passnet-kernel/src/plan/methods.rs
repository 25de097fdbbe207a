//! Attributes and methods: what a wrapper may ask of tensors, strings, lists and dicts.

use super::calls::CallArgs;
use super::interp::{Interp, Result, external};
use super::tensor::Tensor;
use super::value::Value;
use super::{Init, Step};
use crate::consts::Const;
use passnet_graph::DType;
use passnet_graph::syntax::Ranged;
use std::rc::Rc;

impl<'a> Interp<'a> {
    pub(super) fn attribute(
        &mut self,
        at: &impl Ranged,
        value: &Value<'a>,
        name: &str,
    ) -> Result<Value<'a>> {
        let method = || Value::Method(Rc::new(value.clone()), name.into());
        match value {
            Value::Path(p) if p.starts_with("finfo.") => self.dtype_limits(at, p, name),
            Value::Path(p) if &**p == "device_properties" => match name {
                "multi_processor_count" => Ok(Value::int(132)),
                "max_threads_per_multi_processor" => Ok(Value::int(2048)),
                "warp_size" => Ok(Value::int(32)),
                _ => Err(self.outside(
                    at,
                    format!("device property `{name}` is not available to a wrapper"),
                )),
            },
            Value::Path(p) => Ok(external(&format!("{p}.{name}"))),
            Value::Module(index) => self.global(at, *index, name),
            Value::Tensor(t) => match name {
                "shape" => Ok(Value::ints(&t.shape)),
                "dtype" => Ok(Value::DType(t.dtype)),
                "device" => Ok(Value::Device(t.device)),
                "ndim" => Ok(Value::int(t.shape.len() as i64)),
                "is_cuda" => Ok(Value::bool(t.device.kind == passnet_graph::DeviceKind::Cuda)),
                "requires_grad" => Ok(Value::bool(false)),
                "itemsize" => Ok(Value::int(t.dtype.size() as i64)),
                "T" | "mT" => {
                    let rank = t.shape.len();
                    let mut order: Vec<usize> = (0..rank).collect();
                    if name == "T" {
                        order.reverse();
                    } else if rank >= 2 {
                        order.swap(rank - 1, rank - 2);
                    }
                    Ok(permuted(t, &order))
                }
                "data" => Ok(value.clone()),
                _ => Ok(method()),
            },
            Value::Device(d) => match name {
                "type" => Ok(Value::str(d.kind_name())),
                "index" => Ok(d.index.map_or(Value::NONE, |i| Value::int(i64::from(i)))),
                _ => Err(self.error(at, format!("a device has no attribute `{name}`"))),
            },
            Value::DType(d) => match name {
                "itemsize" => Ok(Value::int(d.size() as i64)),
                "is_floating_point" => Ok(Value::bool(d.is_float())),
                _ => Err(self.error(at, format!("a dtype has no attribute `{name}`"))),
            },
            Value::List(_)
            | Value::Dict(_)
            | Value::Tuple(_)
            | Value::Const(Const::Str(_) | Const::Int(_)) => Ok(method()),
            Value::Const(_) if name == "value" => Ok(value.clone()),
            Value::Kernel(f) => Err(self.outside(
                at,
                format!(
                    "`{}.{name}` is not available: launch kernels with `kernel[grid](...)`",
                    f.def.name
                ),
            )),
            other => {
                Err(self.outside(at, format!("{} has no attribute `{name}`", other.describe())))
            }
        }
    }

    fn dtype_limits(&self, at: &impl Ranged, path: &str, name: &str) -> Result<Value<'a>> {
        let dtype = path.strip_prefix("finfo.").and_then(DType::from_name);
        let float = |v: f64| Ok(Value::Const(Const::Float(v)));
        let (max, min, eps, tiny) = match dtype {
            Some(DType::Float16) => (65504.0, -65504.0, 2f64.powi(-10), 2f64.powi(-14)),
            Some(DType::BFloat16) => {
                let max = 2f64.powi(127) * (2.0 - 2f64.powi(-7));
                (max, -max, 2f64.powi(-7), 2f64.powi(-126))
            }
            Some(DType::Float32) => {
                (f64::from(f32::MAX), f64::from(f32::MIN), f64::from(f32::EPSILON), 2f64.powi(-126))
            }
            Some(DType::Float64) => (f64::MAX, f64::MIN, f64::EPSILON, f64::MIN_POSITIVE),
            Some(d) if d.is_integer() => {
                let (low, high) =
                    crate::types::Elem::from_dtype(d).map_or((0, 0), crate::types::Elem::int_range);
                return match name {
                    "max" => Ok(Value::int(high as i64)),
                    "min" => Ok(Value::int(low as i64)),
                    _ => Err(self.error(at, format!("no attribute `{name}`"))),
                };
            }
            _ => return Err(self.error(at, "no limits for this dtype")),
        };
        match name {
            "max" => float(max),
            "min" => float(min),
            "eps" => float(eps),
            "tiny" | "smallest_normal" => float(tiny),
            _ => Err(self.error(at, format!("no attribute `{name}`"))),
        }
    }

    pub(super) fn call_method(
        &mut self,
        receiver: &Value<'a>,
        name: &str,
        args: CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        match receiver {
            Value::Tensor(t) => {
                let t = Rc::clone(t);
                self.tensor_method(&t, name, args)
            }
            Value::List(id) => match (name, args.positional.first()) {
                ("append", Some(v)) => {
                    self.list_push(*id, v.clone());
                    Ok(Value::NONE)
                }
                ("extend", Some(v)) => {
                    for item in self.iterate(&at, &v.clone())? {
                        self.list_push(*id, item);
                    }
                    Ok(Value::NONE)
                }
                ("insert", Some(i)) => {
                    let len = self.lists[id.0].len() as i64;
                    let i = i.as_int().unwrap_or(0);
                    let i = (if i < 0 { i + len } else { i }).clamp(0, len) as usize;
                    let value = args.positional.get(1).cloned().unwrap_or(Value::NONE);
                    self.lists[id.0].insert(i, value);
                    Ok(Value::NONE)
                }
                ("pop", i) => {
                    let len = self.lists[id.0].len();
                    let i = self.index(&at, &i.cloned().unwrap_or(Value::int(-1)), len)?;
                    Ok(self.lists[id.0].remove(i))
                }
                ("reverse", _) => {
                    self.lists[id.0].reverse();
                    Ok(Value::NONE)
                }
                ("copy", _) => {
                    let items = self.lists[id.0].clone();
                    Ok(self.new_list(items))
                }
                ("index" | "count", Some(v)) => self.find(&at, name, receiver, v),
                _ => Err(self.error(&at, format!("lists have no method `{name}` here"))),
            },
            Value::Tuple(_) => match (name, args.positional.first()) {
                ("index" | "count", Some(v)) => self.find(&at, name, receiver, v),
                ("numel", _) => {
                    let mut n = 1i64;
                    for item in self.iterate(&at, receiver)? {
                        n = n.saturating_mul(item.as_int().unwrap_or(1));
                    }
                    Ok(Value::int(n))
                }
                _ => Err(self.error(&at, format!("tuples have no method `{name}` here"))),
            },
            Value::Dict(id) => {
                let items = self.dicts[id.0].clone();
                match name {
                    "items" => {
                        Ok(Value::tuple(items.into_iter().map(|(k, v)| Value::tuple([k, v]))))
                    }
                    "keys" => Ok(Value::tuple(items.into_iter().map(|(k, _)| k))),
                    "values" => Ok(Value::tuple(items.into_iter().map(|(_, v)| v))),
                    "copy" => Ok(self.new_dict(items)),
                    "get" => {
                        let key = args.get(0, "key").unwrap_or(Value::NONE);
                        let found =
                            items.iter().find(|(k, _)| self.equal(k, &key)).map(|(_, v)| v.clone());
                        Ok(found.or_else(|| args.get(1, "default")).unwrap_or(Value::NONE))
                    }
                    "update" => {
                        if let Some(Value::Dict(other)) = args.positional.first() {
                            for (k, v) in self.dicts[other.0].clone() {
                                self.dict_set(*id, k, v);
                            }
                        }
                        for (k, v) in args.named {
                            self.dict_set(*id, Value::str(k), v);
                        }
                        Ok(Value::NONE)
                    }
                    _ => Err(self.error(&at, format!("dicts have no method `{name}` here"))),
                }
            }
            Value::Const(Const::Int(i)) if name == "bit_length" => {
                Ok(Value::int(i64::from(64 - i.unsigned_abs().leading_zeros())))
            }
            Value::Const(Const::Str(s)) => self.string_method(s, name, &args),
            other => Err(self.error(&at, format!("{} has no method `{name}`", other.describe()))),
        }
    }

    fn find(
        &mut self,
        at: &impl Ranged,
        name: &str,
        receiver: &Value<'a>,
        wanted: &Value<'a>,
    ) -> Result<Value<'a>> {
        let items = self.iterate(at, receiver)?;
        if name == "count" {
            return Ok(Value::int(items.iter().filter(|v| self.equal(v, wanted)).count() as i64));
        }
        match items.iter().position(|v| self.equal(v, wanted)) {
            Some(i) => Ok(Value::int(i as i64)),
            None => Err(self.error(at, "value is not in the sequence")),
        }
    }

    fn string_method(&mut self, s: &str, name: &str, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let text = match args.positional.first() {
            Some(Value::Const(Const::Str(t))) => Some(t.clone()),
            _ => None,
        };
        match (name, text) {
            ("startswith", Some(t)) => Ok(Value::bool(s.starts_with(&t))),
            ("endswith", Some(t)) => Ok(Value::bool(s.ends_with(&t))),
            ("lower", _) => Ok(Value::str(s.to_lowercase())),
            ("upper", _) => Ok(Value::str(s.to_uppercase())),
            ("strip", None) => Ok(Value::str(s.trim())),
            ("split", t) => {
                let parts: Vec<Value<'a>> = match t {
                    Some(t) if !t.is_empty() => s.split(t.as_str()).map(Value::str).collect(),
                    _ => s.split_whitespace().map(Value::str).collect(),
                };
                Ok(self.new_list(parts))
            }
            ("removeprefix", Some(t)) => Ok(Value::str(s.strip_prefix(t.as_str()).unwrap_or(s))),
            ("join", _) => {
                let items = args.positional.first().cloned().unwrap_or(Value::NONE);
                let items = self.iterate(&at, &items)?;
                let parts: Vec<String> = items.iter().map(|v| self.text(v)).collect();
                Ok(Value::str(parts.join(s)))
            }
            _ => Err(self.outside(&at, format!("strings have no method `{name}` in a wrapper"))),
        }
    }

    fn dim(&self, at: &impl Ranged, value: &Value<'a>, rank: usize) -> Result<usize> {
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
    fn sizes(&mut self, args: &CallArgs<'a>) -> Result<Vec<i64>> {
        match &args.positional[..] {
            [one] => self.shape(&args.range, one),
            many => self.shape(&args.range, &Value::tuple(many.to_vec())),
        }
    }

    fn tensor_method(
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
                if DType::from_name(name) == Some(t.dtype) {
                    return same();
                }
                Err(self.outside(&at, "a wrapper cannot convert tensors; a kernel can"))
            }
            "zero_" | "fill_" => {
                let value = match (name, args.positional.first()) {
                    ("zero_", _) => Const::Int(0),
                    (_, Some(Value::Const(c))) => c.clone(),
                    _ => return Err(self.error(&at, "`fill_` takes a number")),
                };
                let line = self.line(&at);
                self.push_step(&at, Step::Fill { view: t.view(), value, line })?;
                same()
            }
            "copy_" => match args.positional.first() {
                Some(Value::Tensor(from)) if from.shape == t.shape && from.dtype == t.dtype => {
                    let line = self.line(&at);
                    self.push_step(&at, Step::Copy { from: from.view(), to: t.view(), line })?;
                    same()
                }
                _ => Err(self.outside(&at, "`copy_` between tensors of one shape and dtype only")),
            },
            "item" | "tolist" | "cpu" | "numpy" | "data_ptr" => Err(self.outside(
                &at,
                format!("`.{name}()` reads tensor data: a wrapper sees shapes only"),
            )),
            _ => {
                Err(self
                    .outside(&at, format!("`.{name}()` cannot be called on a tensor in a wrapper")))
            }
        }
    }

    fn view(&mut self, t: &Rc<Tensor>, name: &str, args: &CallArgs<'a>) -> Result<Value<'a>> {
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

    fn reshaped(&mut self, at: &impl Ranged, t: &Rc<Tensor>, shape: &[i64]) -> Result<Value<'a>> {
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

    fn copied(&mut self, at: &impl Ranged, t: &Rc<Tensor>) -> Result<Value<'a>> {
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

    fn expanded(&mut self, at: &impl Ranged, t: &Rc<Tensor>, shape: &[i64]) -> Result<Value<'a>> {
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

    fn new_like(&mut self, t: &Rc<Tensor>, name: &str, args: &CallArgs<'a>) -> Result<Value<'a>> {
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

    fn to(&mut self, t: &Rc<Tensor>, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let all = args.positional.iter().cloned().chain(args.named.iter().map(|(_, v)| v.clone()));
        for value in all {
            let same = match &value {
                Value::DType(d) => *d == t.dtype,
                Value::Device(d) => d.kind == t.device.kind,
                Value::Tensor(o) => o.dtype == t.dtype && o.device == t.device,
                Value::Const(Const::Str(_)) => {
                    let device = self.device(&at, Some(value.clone()))?;
                    device.kind == t.device.kind
                }
                _ => true,
            };
            if !same {
                return Err(self.outside(
                    &at,
                    "a wrapper cannot convert or move tensors; a kernel can convert",
                ));
            }
        }
        Ok(Value::Tensor(Rc::clone(t)))
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

fn permuted<'a>(t: &Tensor, order: &[usize]) -> Value<'a> {
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
