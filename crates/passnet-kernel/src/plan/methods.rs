//! Attributes and methods: what a wrapper may ask of tensors, strings, lists and dicts.

use super::call_args::CallArgs;
use super::interp::{Interp, Result, external};
use super::tensor_methods::tensor_attribute;
use super::value::{DictId, Holder, ListId, Value};
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
            Value::Class(class) => self.class_attribute(at, *class, name),
            Value::Object(object) => self.object_attribute(at, *object, name),
            Value::Tensor(t) => Ok(tensor_attribute(t, name).unwrap_or_else(method)),
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
            Value::Config(config) => self.config_attribute(at, config, name),
            Value::Descriptor(descriptor) => self.descriptor_attribute(at, descriptor, name),
            Value::Kernel(_) if matches!(name, "run" | "warmup") => Ok(method()),
            // Members of an `IntEnum` are numbers.
            Value::Const(Const::Int(_) | Const::Str(_)) if name == "value" => Ok(value.clone()),
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
            Value::List(id) => self.list_method(receiver, *id, name, &args),
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
            Value::Dict(id) => self.dict_method(*id, name, args),
            Value::Const(Const::Int(i)) if name == "bit_length" => {
                Ok(Value::int(i64::from(64 - i.unsigned_abs().leading_zeros())))
            }
            Value::Const(Const::Str(s)) => self.string_method(s, name, &args),
            Value::Kernel(kernel) => self.run_kernel(*kernel, name, args),
            Value::Config(config) if name == "all_kwargs" => {
                let all = self.all_of(config);
                Ok(self.new_dict(all.into_iter().map(|(k, v)| (Value::str(k), v)).collect()))
            }
            other => Err(self.error(&at, format!("{} has no method `{name}`", other.describe()))),
        }
    }

    fn list_method(
        &mut self,
        receiver: &Value<'a>,
        id: ListId,
        name: &str,
        args: &CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        match (name, args.positional.first()) {
            ("append", Some(v)) => {
                self.note_store(Holder::list(id), &at);
                self.list_push(id, v.clone());
                Ok(Value::NONE)
            }
            ("extend", Some(v)) => {
                self.note_store(Holder::list(id), &at);
                for item in self.iterate(&at, &v.clone())? {
                    self.list_push(id, item);
                }
                Ok(Value::NONE)
            }
            ("insert", Some(i)) => {
                self.note_store(Holder::list(id), &at);
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
        }
    }

    fn dict_method(&mut self, id: DictId, name: &str, args: CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let items = self.dicts[id.0].clone();
        match name {
            "items" => Ok(Value::tuple(items.into_iter().map(|(k, v)| Value::tuple([k, v])))),
            "keys" => Ok(Value::tuple(items.into_iter().map(|(k, _)| k))),
            "values" => Ok(Value::tuple(items.into_iter().map(|(_, v)| v))),
            "copy" => Ok(self.new_dict(items)),
            "get" => {
                let key = args.get(0, "key").unwrap_or(Value::NONE);
                let found = items.iter().find(|(k, _)| self.equal(k, &key)).map(|(_, v)| v.clone());
                Ok(found.or_else(|| args.get(1, "default")).unwrap_or(Value::NONE))
            }
            "setdefault" => {
                let key = args.get(0, "key").unwrap_or(Value::NONE);
                let found = items.iter().find(|(k, _)| self.equal(k, &key)).map(|(_, v)| v.clone());
                if let Some(found) = found {
                    return Ok(found);
                }
                let value = args.get(1, "default").unwrap_or(Value::NONE);
                self.note_store(Holder::dict(id), &at);
                self.dict_set(id, key, value.clone());
                Ok(value)
            }
            "update" => {
                self.note_store(Holder::dict(id), &at);
                if let Some(Value::Dict(other)) = args.positional.first() {
                    for (k, v) in self.dicts[other.0].clone() {
                        self.dict_set(id, k, v);
                    }
                }
                for (k, v) in args.named {
                    self.dict_set(id, Value::str(k), v);
                }
                Ok(Value::NONE)
            }
            _ => Err(self.error(&at, format!("dicts have no method `{name}` here"))),
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
            ("replace", Some(from)) => match args.positional.get(1) {
                Some(Value::Const(Const::Str(to)))
                    if s.len().saturating_mul(to.len() + 1) < 1 << 16 =>
                {
                    Ok(Value::str(s.replace(from.as_str(), to)))
                }
                _ => Err(self.error(&at, "`replace` takes two short texts")),
            },
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
}
