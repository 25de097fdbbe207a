//! Truth, comparison, arithmetic, subscripts.

use super::{Interp, Result};
use crate::consts::{self, Const};
use crate::plan::tensor::Tensor;
use crate::plan::value::{DictId, Value};
use passnet_graph::syntax::ast::{CmpOp, Expr, ExprBinOp, Operator};
use passnet_graph::syntax::{Ranged, sequence};
use passnet_graph::{Device, Diagnostic};
use std::rc::Rc;

/// Larger remainders would say more about an address than its alignment.
const MAX_ALIGNMENT: u64 = 128;

impl<'a> Interp<'a> {
    pub(in crate::plan) fn truthy(&self, at: &impl Ranged, value: &Value<'a>) -> Result<bool> {
        Ok(match value {
            Value::Const(c) => c.truthy(),
            Value::Tuple(items) => !items.is_empty(),
            Value::List(id) => !self.lists[id.0].is_empty(),
            Value::Dict(id) => !self.dicts[id.0].is_empty(),
            Value::Tensor(_) => {
                return Err(
                    self.outside(at, "a wrapper cannot branch on tensor data: it sees shapes only")
                );
            }
            _ => true,
        })
    }

    pub(in crate::plan) fn equal(&self, a: &Value<'a>, b: &Value<'a>) -> bool {
        match (a, b) {
            (Value::Const(x), Value::Const(y)) => consts::equal(x, y),
            (Value::DType(x), Value::DType(y)) => x == y,
            (Value::Device(x), Value::Device(y)) => x == y,
            (Value::Device(d), Value::Const(Const::Str(s)))
            | (Value::Const(Const::Str(s)), Value::Device(d)) => Device::from_name(s) == Some(*d),
            (Value::Tuple(x), Value::Tuple(y)) => {
                x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| self.equal(x, y))
            }
            (Value::Tensor(x), Value::Tensor(y)) => Rc::ptr_eq(x, y),
            (Value::Path(x), Value::Path(y)) => x == y,
            (Value::Kernel(x), Value::Kernel(y)) => std::ptr::eq(x.def, y.def),
            (Value::Function(x, _), Value::Function(y, _)) => std::ptr::eq(x.def, y.def),
            (Value::Class(x), Value::Class(y)) => x == y,
            (Value::Object(x), Value::Object(y)) => x == y,
            _ => false,
        }
    }

    /// A list or tuple index, negative ones from the end.
    pub(in crate::plan) fn index(
        &self,
        at: &impl Ranged,
        key: &Value<'a>,
        len: usize,
    ) -> Result<usize> {
        let Some(i) = key.as_int() else {
            return Err(self.error(at, format!("an index is an integer, not {}", key.describe())));
        };
        sequence::position(i, len)
            .ok_or_else(|| self.error(at, format!("index {i} is out of range for {len} items")))
    }

    /// As Python's `str` shows it.
    pub(in crate::plan) fn text(&self, value: &Value<'a>) -> String {
        match value {
            Value::Const(c) => c.to_string(),
            Value::DType(d) => d.to_string(),
            Value::Device(d) => d.to_string(),
            Value::Tuple(items) => {
                let items: Vec<String> = items.iter().take(64).map(|v| self.text(v)).collect();
                format!("({}{})", items.join(", "), if items.len() == 1 { "," } else { "" })
            }
            other => other.describe(),
        }
    }

    pub(in crate::plan) fn arithmetic_error(
        &self,
        at: &impl Ranged,
        value: &Value<'a>,
    ) -> Diagnostic {
        match value {
            Value::Tensor(_) => {
                self.outside(at, "a wrapper cannot compute with tensors; a kernel can")
            }
            other => self.error(at, format!("cannot compute with {}", other.describe())),
        }
    }

    pub(in crate::plan) fn binary(
        &mut self,
        at: &impl Ranged,
        op: Operator,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<Value<'a>> {
        match (a, b) {
            (Value::Const(x), Value::Const(y)) => {
                consts::binary(op, x, y).map(Value::Const).map_err(|m| self.error(at, m))
            }
            (Value::Tensor(_), _) | (_, Value::Tensor(_)) => {
                Err(self.outside(at, "a wrapper cannot compute with tensors; a kernel can"))
            }
            (Value::Tuple(_), Value::Tuple(_)) | (Value::List(_), Value::List(_))
                if op == Operator::Add =>
            {
                let mut items = self.iterate(at, a)?;
                items.extend(self.iterate(at, b)?);
                Ok(if matches!(a, Value::Tuple(_)) {
                    Value::tuple(items)
                } else {
                    self.new_list(items)
                })
            }
            (Value::Tuple(_) | Value::List(_), Value::Const(Const::Int(n)))
            | (Value::Const(Const::Int(n)), Value::Tuple(_) | Value::List(_))
                if op == Operator::Mult =>
            {
                let sequence = if matches!(a, Value::Const(_)) { b } else { a };
                let items = self.iterate(at, sequence)?;
                let n = usize::try_from(*n).unwrap_or(0);
                if items.len().saturating_mul(n) > 1 << 16 {
                    return Err(self.error(at, "sequence is too long"));
                }
                let repeated: Vec<Value<'a>> =
                    items.iter().cycle().take(items.len() * n).cloned().collect();
                Ok(if matches!(sequence, Value::Tuple(_)) {
                    Value::tuple(repeated)
                } else {
                    self.new_list(repeated)
                })
            }
            _ => {
                let culprit = if matches!(a, Value::Const(_)) { b } else { a };
                Err(self.arithmetic_error(at, culprit))
            }
        }
    }

    pub(super) fn compare(
        &mut self,
        at: &impl Ranged,
        op: CmpOp,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<bool> {
        match op {
            CmpOp::Is | CmpOp::IsNot => {
                let same = match (a, b) {
                    (Value::Const(x), Value::Const(y)) => {
                        x.type_name() == y.type_name() && consts::equal(x, y)
                    }
                    (Value::List(x), Value::List(y)) => x == y,
                    (Value::Object(x), Value::Object(y)) => x == y,
                    _ => self.deep_equal(at, a, b)?,
                };
                Ok(same == (op == CmpOp::Is))
            }
            CmpOp::Eq | CmpOp::NotEq => {
                if matches!(a, Value::Tensor(_)) || matches!(b, Value::Tensor(_)) {
                    return Err(self
                        .outside(at, "a wrapper cannot compare tensor data: it sees shapes only"));
                }
                Ok(self.deep_equal(at, a, b)? == (op == CmpOp::Eq))
            }
            CmpOp::In | CmpOp::NotIn => {
                let found = match (a, b) {
                    (Value::Const(x), Value::Const(y @ Const::Str(_))) => {
                        consts::compare(CmpOp::In, x, y).map_err(|m| self.error(at, m))?
                    }
                    _ => {
                        let items = self.iterate(at, b)?;
                        let mut found = false;
                        for item in &items {
                            found |= self.deep_equal(at, a, item)?;
                        }
                        found
                    }
                };
                Ok(found == (op == CmpOp::In))
            }
            _ => {
                match (a, b) {
                    (Value::Const(x), Value::Const(y)) => {
                        consts::compare(op, x, y).map_err(|m| self.error(at, m))
                    }
                    (Value::Tensor(_), _) | (_, Value::Tensor(_)) => Err(self
                        .outside(at, "a wrapper cannot compare tensor data: it sees shapes only")),
                    _ => Err(self
                        .error(at, format!("cannot order {} and {}", a.describe(), b.describe()))),
                }
            }
        }
    }

    /// Equality that looks into sequences.
    pub(super) fn deep_equal(
        &mut self,
        at: &impl Ranged,
        a: &Value<'a>,
        b: &Value<'a>,
    ) -> Result<bool> {
        self.step(at)?;
        if let (Value::Object(x), Value::Object(y)) = (a, b)
            && let Some([x, y]) = self.comparable(*x, *y)
        {
            return self.equal_items(at, &x, &y);
        }
        if let (Value::Dict(x), Value::Dict(y)) = (a, b) {
            return self.equal_dicts(at, *x, *y);
        }
        let sequences = |v: &Value<'a>| matches!(v, Value::Tuple(_) | Value::List(_));
        if !(sequences(a) && sequences(b)) {
            return Ok(self.equal(a, b));
        }
        let (x, y) = (self.iterate(at, a)?, self.iterate(at, b)?);
        self.equal_items(at, &x, &y)
    }

    /// Equal keys with equal values, in whatever order.
    fn equal_dicts(&mut self, at: &impl Ranged, x: DictId, y: DictId) -> Result<bool> {
        let (x, y) = (self.dicts[x.0].clone(), self.dicts[y.0].clone());
        if x.len() != y.len() {
            return Ok(false);
        }
        self.nesting += 1;
        let mut same = true;
        for (key, value) in &x {
            let found = y.iter().find(|(known, _)| self.equal(known, key));
            same &= match found {
                Some((_, other)) => self.deep_equal(at, value, other)?,
                None => false,
            };
        }
        self.nesting -= 1;
        Ok(same)
    }

    fn equal_items(&mut self, at: &impl Ranged, x: &[Value<'a>], y: &[Value<'a>]) -> Result<bool> {
        if x.len() != y.len() {
            return Ok(false);
        }
        self.nesting += 1;
        let mut same = true;
        for (x, y) in x.iter().zip(y) {
            same &= self.deep_equal(at, x, y)?;
        }
        self.nesting -= 1;
        Ok(same)
    }

    /// `x.data_ptr() % 16`, `x.data_ptr() & 15`: all that a wrapper may know of an address.
    pub(super) fn address_remainder(&mut self, b: &'a ExprBinOp) -> Result<Option<Value<'a>>> {
        let Expr::Call(call) = &*b.left else { return Ok(None) };
        let Expr::Attribute(method) = &*call.func else { return Ok(None) };
        let asks = matches!(b.op, Operator::Mod | Operator::BitAnd)
            && method.attr.as_str() == "data_ptr"
            && call.arguments.is_empty();
        if !asks {
            return Ok(None);
        }
        let Value::Tensor(tensor) = self.expr(&method.value)? else { return Ok(None) };
        let right = self.expr(&b.right)?.as_int();
        let alignment =
            if b.op == Operator::Mod { right } else { right.map(|m| m.wrapping_add(1)) };
        match alignment.and_then(|alignment| u64::try_from(alignment).ok()) {
            Some(alignment) if alignment.is_power_of_two() && alignment <= MAX_ALIGNMENT => {
                Ok(Some(Value::int(self.remainder(&tensor, alignment) as i64)))
            }
            _ => Err(self.address_error(call)),
        }
    }

    pub(in crate::plan) fn address_error(&self, at: &impl Ranged) -> Diagnostic {
        self.error(at, "an address is no value in a wrapper; only its alignment may be asked for")
            .with_hint("write `x.data_ptr() % 16 == 0`, with a power of two up to 128")
    }

    /// The remainder of a tensor's address, as far as its alignment is known; beyond that, the remainder of a tensor that
    /// is not aligned.
    fn remainder(&self, tensor: &Tensor, alignment: u64) -> u64 {
        let size = tensor.dtype.size() as u64;
        let known = if self.unaligned.contains(&tensor.buffer) { size.min(16) } else { 16 };
        let offset = (tensor.offset as u64).wrapping_mul(size);
        match offset % known.min(alignment) {
            0 if alignment > known => known,
            remainder => remainder,
        }
    }

    pub(super) fn subscript(
        &mut self,
        at: &Expr,
        value: &Value<'a>,
        key: Value<'a>,
    ) -> Result<Value<'a>> {
        match value {
            Value::Kernel(f) => Ok(Value::Launcher(*f, Rc::new(key))),
            Value::Tensor(t) => {
                let t = Rc::clone(t);
                self.tensor_index(at, &t, &key)
            }
            Value::Tuple(_) | Value::List(_) | Value::Const(Const::Str(_)) => {
                let items = self.iterate(at, value)?;
                if let Value::Slice(parts) = &key {
                    let picked = self.slice(at, &items, parts)?;
                    return Ok(match value {
                        Value::List(_) => self.new_list(picked),
                        Value::Tuple(_) => Value::tuple(picked),
                        _ => Value::str(picked.iter().map(|v| self.text(v)).collect::<String>()),
                    });
                }
                let index = self.index(at, &key, items.len())?;
                Ok(items[index].clone())
            }
            Value::Dict(id) => {
                let found = self.dicts[id.0].iter().position(|(k, _)| self.equal(k, &key));
                let found = match found {
                    Some(i) => Some(i),
                    None => {
                        let keys: Vec<Value<'a>> =
                            self.dicts[id.0].iter().map(|(k, _)| k.clone()).collect();
                        let mut hit = None;
                        for (i, k) in keys.iter().enumerate() {
                            if self.deep_equal(at, k, &key)? {
                                hit = Some(i);
                            }
                        }
                        hit
                    }
                };
                match found {
                    Some(i) => Ok(self.dicts[id.0][i].1.clone()),
                    None => Err(self.error(at, format!("no key {} in the dict", self.text(&key)))),
                }
            }
            Value::Object(id) => match self.tuple_items(*id) {
                Some(items) => {
                    let index = self.index(at, &key, items.len())?;
                    Ok(items[index].clone())
                }
                None => Err(self.error(at, "an object cannot be indexed")),
            },
            Value::Class(id) if self.is_enum(*id) => {
                let name = self.text(&key);
                self.class_attribute(at, *id, &name)
            }
            // `typing.Tuple[int]` and the like.
            Value::Path(p) => Ok(Value::Path(Rc::clone(p))),
            other => Err(self.error(at, format!("{} cannot be indexed", other.describe()))),
        }
    }

    pub(in crate::plan) fn slice(
        &self,
        at: &impl Ranged,
        items: &[Value<'a>],
        parts: &[Value<'a>; 3],
    ) -> Result<Vec<Value<'a>>> {
        let [start, stop, step] = parts.each_ref().map(Value::as_int);
        let step = if parts[2].is_none() { 1 } else { step.unwrap_or(0) };
        let picked = sequence::slice(items.len(), start, stop, step);
        let picked = picked.ok_or_else(|| self.error(at, "slice step cannot be zero"))?;
        Ok(picked.map(|index| items[index].clone()).collect())
    }
}
