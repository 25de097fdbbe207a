//! Expressions, names and comprehensions.

use super::{Interp, MAX_TUPLE_DEPTH, MAX_TUPLE_NODES, Result, external};
use crate::consts::{self, Const};
use crate::modules::Binding;
use crate::plan::value::Value;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{
    BoolOp, Comprehension, Expr, ExprCompare, ExprDict, ExprDictComp, ExprUnaryOp, Number, UnaryOp,
};
use std::rc::Rc;

impl<'a> Interp<'a> {
    pub(in crate::plan) fn expr(&mut self, e: &'a Expr) -> Result<Value<'a>> {
        self.step(e)?;
        self.nesting += 1;
        let value = self.expr_kind(e);
        self.nesting -= 1;
        if let Ok(Value::Tuple(t)) = &value
            && (t.depth > MAX_TUPLE_DEPTH || t.nodes > MAX_TUPLE_NODES)
        {
            return Err(self.error(e, "tuple is nested too deep or too large"));
        }
        value
    }

    pub(super) fn expr_kind(&mut self, e: &'a Expr) -> Result<Value<'a>> {
        match e {
            Expr::NumberLiteral(n) => match &n.value {
                Number::Int(i) => i
                    .as_i64()
                    .map(Value::int)
                    .ok_or_else(|| self.error(e, "integer does not fit in 64 bits")),
                Number::Float(f) => Ok(Value::Const(Const::Float(*f))),
                Number::Complex { .. } => Err(self.outside(e, "no complex numbers in wrappers")),
            },
            Expr::BooleanLiteral(b) => Ok(Value::bool(b.value)),
            Expr::NoneLiteral(_) => Ok(Value::NONE),
            Expr::EllipsisLiteral(_) => Ok(Value::Ellipsis),
            Expr::StringLiteral(s) => Ok(Value::str(s.value.to_str())),
            Expr::FString(f) => self.fstring(f),
            Expr::Name(n) => self.name(e, n.id.as_str()),
            Expr::Attribute(a) => {
                let value = self.expr(&a.value)?;
                self.attribute(a, &value, a.attr.as_str())
            }
            Expr::Tuple(t) => Ok(Value::tuple(self.sequence_items(&t.elts)?)),
            Expr::List(l) => {
                let items = self.sequence_items(&l.elts)?;
                Ok(self.new_list(items))
            }
            Expr::Set(s) => {
                let items = self.sequence_items(&s.elts)?;
                self.new_set(e, items)
            }
            Expr::Dict(d) => self.dict_display(d),
            Expr::BinOp(b) => {
                if let Some(remainder) = self.address_remainder(b)? {
                    return Ok(remainder);
                }
                let left = self.expr(&b.left)?;
                let right = self.expr(&b.right)?;
                self.binary(e, b.op, &left, &right)
            }
            Expr::UnaryOp(u) => self.unary(e, u),
            Expr::Compare(c) => self.comparison(e, c),
            Expr::BoolOp(b) => {
                let mut last = Value::NONE;
                for value in &b.values {
                    last = self.expr(value)?;
                    if self.truthy(value, &last)? != (b.op == BoolOp::And) {
                        break;
                    }
                }
                Ok(last)
            }
            Expr::If(i) => {
                let test = self.expr(&i.test)?;
                if self.truthy(&*i.test, &test)? {
                    self.expr(&i.body)
                } else {
                    self.expr(&i.orelse)
                }
            }
            Expr::Lambda(l) => Ok(Value::Lambda(l, self.frame)),
            Expr::Named(n) => {
                let value = self.expr(&n.value)?;
                self.assign(&n.target, value.clone())?;
                Ok(value)
            }
            Expr::Subscript(s) => {
                let value = self.expr(&s.value)?;
                let key = self.expr(&s.slice)?;
                self.subscript(e, &value, key)
            }
            Expr::Slice(s) => {
                let mut part = |p: &'a Option<Box<Expr>>| match p {
                    Some(p) => self.expr(p),
                    None => Ok(Value::NONE),
                };
                Ok(Value::Slice(Rc::new([part(&s.lower)?, part(&s.upper)?, part(&s.step)?])))
            }
            Expr::Call(c) => self.call(c),
            Expr::ListComp(c) => {
                let items = self.collected(&c.generators, &c.elt)?;
                Ok(self.new_list(items))
            }
            Expr::SetComp(c) => {
                let items = self.collected(&c.generators, &c.elt)?;
                self.new_set(e, items)
            }
            Expr::Generator(c) => Ok(Value::tuple(self.collected(&c.generators, &c.elt)?)),
            Expr::DictComp(c) => self.dict_comprehension(e, c),
            other => Err(self.outside(other, "this expression is not allowed in a wrapper")),
        }
    }

    /// `{a: b, **c}`
    fn dict_display(&mut self, d: &'a ExprDict) -> Result<Value<'a>> {
        let mut items = Vec::new();
        for item in &d.items {
            match &item.key {
                Some(key) => items.push((self.expr(key)?, self.expr(&item.value)?)),
                None => match self.expr(&item.value)? {
                    Value::Dict(id) => items.extend(self.dicts[id.0].clone()),
                    other => {
                        return Err(
                            self.error(&item.value, format!("cannot unpack {}", other.describe()))
                        );
                    }
                },
            }
        }
        let dict = self.new_dict(Vec::new());
        if let Value::Dict(id) = dict {
            for (key, value) in items {
                self.dict_set(id, key, value);
            }
        }
        Ok(dict)
    }

    /// `a < b <= c`
    fn comparison(&mut self, e: &Expr, c: &'a ExprCompare) -> Result<Value<'a>> {
        let mut left = self.expr(&c.left)?;
        for (op, right) in c.ops.iter().zip(&c.comparators) {
            let right = self.expr(right)?;
            if !self.compare(e, *op, &left, &right)? {
                return Ok(Value::bool(false));
            }
            left = right;
        }
        Ok(Value::bool(true))
    }

    fn dict_comprehension(&mut self, e: &Expr, c: &'a ExprDictComp) -> Result<Value<'a>> {
        let dict = self.new_dict(Vec::new());
        let Value::Dict(id) = dict else { return Ok(dict) };
        let Some(key) = &c.key else {
            return Err(self.outside(e, "no `**` in a dict comprehension"));
        };
        self.comprehension(&c.generators, &mut |this| {
            let key = this.expr(key)?;
            let value = this.expr(&c.value)?;
            this.dict_set(id, key, value);
            Ok(())
        })?;
        Ok(dict)
    }

    fn unary(&mut self, e: &Expr, u: &'a ExprUnaryOp) -> Result<Value<'a>> {
        let value = self.expr(&u.operand)?;
        if u.op == UnaryOp::Not {
            return Ok(Value::bool(!self.truthy(e, &value)?));
        }
        match &value {
            Value::Const(c) => {
                consts::unary(u.op, c).map(Value::Const).map_err(|m| self.error(e, m))
            }
            other => Err(self.arithmetic_error(e, other)),
        }
    }

    /// What a comprehension gives for each round, in order.
    fn collected(
        &mut self,
        generators: &'a [Comprehension],
        element: &'a Expr,
    ) -> Result<Vec<Value<'a>>> {
        let mut items = Vec::new();
        self.comprehension(generators, &mut |this| {
            items.push(this.expr(element)?);
            Ok(())
        })?;
        Ok(items)
    }

    /// A set: a list in which each value is once, in order of appearance.
    pub(in crate::plan) fn new_set(
        &mut self,
        at: &impl Ranged,
        items: Vec<Value<'a>>,
    ) -> Result<Value<'a>> {
        let mut distinct: Vec<Value<'a>> = Vec::new();
        for item in items {
            let mut is_new = true;
            for known in &distinct {
                self.step(at)?;
                is_new &= !self.equal(known, &item);
            }
            if is_new {
                distinct.push(item);
            }
        }
        Ok(self.new_list(distinct))
    }

    pub(super) fn sequence_items(&mut self, items: &'a [Expr]) -> Result<Vec<Value<'a>>> {
        let mut out = Vec::new();
        for item in items {
            match item {
                Expr::Starred(s) => {
                    let value = self.expr(&s.value)?;
                    out.extend(self.iterate(item, &value)?);
                }
                other => out.push(self.expr(other)?),
            }
        }
        Ok(out)
    }

    pub(super) fn comprehension(
        &mut self,
        generators: &'a [Comprehension],
        emit: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Some((first, rest)) = generators.split_first() else { return emit(self) };
        let iter = self.expr(&first.iter)?;
        for item in self.iterate(&first.iter, &iter)? {
            self.step(&first.target)?;
            self.assign(&first.target, item)?;
            let mut keep = true;
            for condition in &first.ifs {
                let value = self.expr(condition)?;
                keep &= self.truthy(condition, &value)?;
            }
            if keep {
                self.comprehension(rest, emit)?;
            }
        }
        Ok(())
    }

    pub(super) fn fstring(
        &mut self,
        f: &'a passnet_graph::syntax::ast::ExprFString,
    ) -> Result<Value<'a>> {
        use passnet_graph::syntax::ast::{FStringPart, InterpolatedStringElement};
        let mut out = String::new();
        for part in f.value.iter() {
            match part {
                FStringPart::Literal(s) => out.push_str(s.as_str()),
                FStringPart::FString(f) => {
                    for element in f.elements.iter() {
                        match element {
                            InterpolatedStringElement::Literal(l) => out.push_str(&l.value),
                            InterpolatedStringElement::Interpolation(i) => {
                                let value = self.expr(&i.expression)?;
                                out.push_str(&self.text(&value));
                            }
                        }
                    }
                }
            }
            if out.len() > 1 << 16 {
                return Err(self.error(f, "string is too long"));
            }
        }
        Ok(Value::str(out))
    }

    pub(super) fn name(&mut self, at: &'a Expr, name: &str) -> Result<Value<'a>> {
        let mut frame = Some(self.frame);
        while let Some(id) = frame {
            if let Some(value) = self.frames[id.0].names.get(name) {
                return Ok(value.clone());
            }
            if self.frames[id.0].globals.contains(&name) {
                break;
            }
            frame = self.frames[id.0].parent;
        }
        self.global(at, self.module(), name)
    }

    /// A name at the top level of a module, evaluated once.
    pub(in crate::plan) fn global(
        &mut self,
        at: &impl Ranged,
        module: usize,
        name: &str,
    ) -> Result<Value<'a>> {
        let key = (module, name.to_string());
        if let Some(known) = self.globals.get(&key) {
            return Ok(known.clone());
        }
        match self.modules.lookup(module, name) {
            Some(Binding::Function(f)) if f.is_kernel() => Ok(Value::Kernel(f)),
            Some(Binding::Function(f)) => Ok(Value::Function(f, None)),
            Some(Binding::External(path)) => Ok(external(&path)),
            Some(Binding::Module(index)) => Ok(Value::Module(index)),
            Some(Binding::Assigned(owner, value)) => {
                let frame = self.new_frame(None, owner);
                let outer = std::mem::replace(&mut self.frame, frame);
                let result = self.expr(value);
                self.frame = outer;
                let result = result?;
                self.globals.insert(key, result.clone());
                Ok(result)
            }
            None => self.class_or_builtin(at, key),
        }
    }

    fn class_or_builtin(&mut self, at: &impl Ranged, key: (usize, String)) -> Result<Value<'a>> {
        let name = key.1.as_str();
        match self.modules.class(key.0, name) {
            Some(class) => {
                let class = self.make_class(class)?;
                self.globals.insert(key, class.clone());
                Ok(class)
            }
            None if crate::plan::builtins::is_builtin(name) => {
                Ok(Value::Path(format!("builtins.{name}").into()))
            }
            None => Err(self.error(at, format!("`{name}` is not defined"))),
        }
    }
}
