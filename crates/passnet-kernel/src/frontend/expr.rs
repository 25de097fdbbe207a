//! Expressions: literals, operators, conditions, subscripts.

use super::value::Value;
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{Literal, Op};
use crate::types::{Elem, Shape, Type};
use passnet_graph::syntax::ast::{BoolOp, Expr, ExprBoolOp, ExprCompare, ExprListComp, Number};
use passnet_graph::syntax::sequence::position;

impl<'a> Compiler<'a> {
    pub(super) fn expr(&mut self, e: &'a Expr) -> Result<Value<'a>> {
        self.step(e)?;
        self.nesting += 1;
        let value = self.expr_kind(e);
        self.nesting -= 1;
        value
    }

    fn expr_kind(&mut self, e: &'a Expr) -> Result<Value<'a>> {
        match e {
            Expr::NumberLiteral(n) => match &n.value {
                Number::Int(i) => match (i.as_i64(), i.as_u64()) {
                    (Some(i), _) => Ok(Value::int(i)),
                    // Triton gives what only fits without a sign that type.
                    (None, Some(i)) if !self.host => {
                        let ty = Type::scalar(Elem::U64);
                        let literal = Literal::Int(i as i64);
                        Ok(Value::Tensor(self.b.emit(Op::Const(literal), &[], ty)))
                    }
                    _ => Err(self.error(e, "integer does not fit in 64 bits").with_hint(
                        "an integer of a kernel lies between -2**63 and 2**64 - 1",
                    )),
                },
                Number::Float(f) => Ok(Value::Const(Const::Float(*f))),
                Number::Complex { .. } => Err(self.error(e, "kernels have no complex numbers")),
            },
            Expr::BooleanLiteral(b) => Ok(Value::Const(Const::Bool(b.value))),
            Expr::NoneLiteral(_) => Ok(Value::NONE),
            Expr::StringLiteral(s) => Ok(Value::Const(Const::Str(s.value.to_str().to_string()))),
            Expr::FString(_) => Ok(Value::Const(Const::Str(String::new()))),
            Expr::Name(n) => self.name(e, n.id.as_str()),
            Expr::Attribute(a) => self.attribute(a),
            Expr::Tuple(t) => self.items(&t.elts),
            Expr::List(l) => self.items(&l.elts),
            Expr::BinOp(b) => {
                let left = self.expr(&b.left)?;
                let right = self.expr(&b.right)?;
                self.locate(e);
                self.binary_operator(e, b.op, &left, &right)
            }
            Expr::UnaryOp(u) => {
                let value = self.expr(&u.operand)?;
                self.unary_operator(e, u.op, &value)
            }
            Expr::Compare(c) => self.comparison(e, c),
            Expr::BoolOp(b) => self.boolean(e, b),
            Expr::If(i) => self.conditional(i),
            Expr::Call(c) => self.call(c),
            Expr::Subscript(s) => {
                let value = self.expr(&s.value)?;
                self.subscript(e, value, &s.slice)
            }
            Expr::Named(n) => {
                let value = self.expr(&n.value)?;
                self.assign(&n.target, value.clone())?;
                Ok(value)
            }
            Expr::ListComp(c) => self.comprehension(c),
            Expr::Lambda(_) => Err(self
                .error(e, "a kernel cannot make a lambda")
                .with_hint("write a `@triton.jit` function at the top level of the file")),
            Expr::Dict(_) | Expr::Set(_) | Expr::DictComp(_) | Expr::SetComp(_) => Err(self
                .error(e, "kernels have no dicts and no sets")
                .with_hint("use `tl.constexpr` arguments, or a tuple and an index")),
            other => Err(self
                .error(other, "this expression is not part of the Triton language")
                .with_hint("kernels may use arithmetic, comparisons, tuples, indexing with `None` and `:`, and calls")),
        }
    }

    /// `a < b <= c`
    fn comparison(&mut self, e: &Expr, c: &'a ExprCompare) -> Result<Value<'a>> {
        let mut left = self.expr(&c.left)?;
        let mut result: Option<Value<'a>> = None;
        for (op, right) in c.ops.iter().zip(&c.comparators) {
            let right = self.expr(right)?;
            self.locate(e);
            let this = self.compare_operator(e, *op, &left, &right)?;
            result = Some(match result {
                None => this,
                Some(before) => self.both(e, true, before, this)?,
            });
            left = right;
        }
        result.ok_or_else(|| self.error(e, "empty comparison"))
    }

    /// `a and b`, `a or b`
    fn boolean(&mut self, e: &Expr, b: &'a ExprBoolOp) -> Result<Value<'a>> {
        let and = b.op == BoolOp::And;
        let mut result: Option<Value<'a>> = None;
        for value in &b.values {
            // Compile-time values short-circuit, as in Python.
            if let Some(known) = result.as_ref().and_then(Value::to_const)
                && known.truthy() != and
            {
                break;
            }
            let value = match self.expr(value)? {
                Value::Tensor(v) if self.is_address(v) => Value::Const(Const::Bool(true)),
                other => other,
            };
            result = Some(match result {
                None => value,
                Some(before) => self.both(e, and, before, value)?,
            });
        }
        result.ok_or_else(|| self.error(e, "empty condition"))
    }

    fn items(&mut self, items: &'a [Expr]) -> Result<Value<'a>> {
        items.iter().map(|i| self.expr(i)).collect::<Result<Vec<_>>>().map(Value::Tuple)
    }

    /// `[f(i) for i in values]` over what is known while compiling.
    fn comprehension(&mut self, c: &'a ExprListComp) -> Result<Value<'a>> {
        let [generator] = &c.generators[..] else {
            return Err(self
                .error(c, "a list comprehension of a kernel has one `for`")
                .with_hint("write it as nested comprehensions or as `tl.static_range` loops"));
        };
        let items = match self.expr(&generator.iter)? {
            Value::Tuple(items) => items,
            Value::Range(_, bounds) => {
                let mut numbers = Vec::new();
                for bound in &bounds {
                    numbers.push(self.const_int(&generator.iter, bound, "the end of the range")?);
                }
                self.range_numbers(&generator.iter, &numbers)?
            }
            other => {
                let text = format!("cannot go through {} in a kernel", other.describe());
                return Err(self.error(&generator.iter, text));
            }
        };
        let outer = self.scope.clone();
        let mut made = Vec::new();
        for item in items {
            self.step(c)?;
            self.assign(&generator.target, item)?;
            let mut kept = true;
            for test in &generator.ifs {
                let value = self.expr(test)?;
                kept &= self.const_of(test, &value, "a condition here")?.truthy();
            }
            if kept {
                made.push(self.expr(&c.elt)?);
            }
        }
        self.scope = outer;
        Ok(Value::Tuple(made))
    }

    pub(super) fn range_numbers(&self, at: &Expr, bounds: &[i64]) -> Result<Vec<Value<'a>>> {
        let (low, high, step) = match *bounds {
            [high] => (0, high, 1),
            [low, high] => (low, high, 1),
            [low, high, step] if step > 0 => (low, high, step),
            _ => {
                return Err(
                    self.error(at, "this range needs one to three numbers, its step above 0")
                );
            }
        };
        if high.saturating_sub(low) / step > super::MAX_INSTS as i64 {
            return Err(self.error(at, "this range is too long to go through while compiling"));
        }
        Ok((low..high).step_by(step as usize).map(Value::int).collect())
    }

    /// `a and b` / `a or b` where either may be known already.
    fn both(&mut self, at: &Expr, and: bool, a: Value<'a>, b: Value<'a>) -> Result<Value<'a>> {
        match (a.to_const(), b.to_const()) {
            (Some(x), _) if matches!(a, Value::Const(_)) => {
                Ok(if x.truthy() == and { b } else { a })
            }
            (_, Some(y)) if matches!(b, Value::Const(_)) => {
                Ok(if y.truthy() == and { a } else { b })
            }
            _ => self.logical(at, and, &a, &b),
        }
    }

    fn conditional(&mut self, i: &'a passnet_graph::syntax::ast::ExprIf) -> Result<Value<'a>> {
        let test = self.expr(&i.test)?;
        if let Some(known) = self.known_truth(&test) {
            return if known { self.expr(&i.body) } else { self.expr(&i.orelse) };
        }
        let condition = self.tensor(&*i.test, &test)?;
        if !self.ty(condition).is_scalar() {
            return Err(self
                .error(&*i.test, "`a if b else c` needs a scalar condition")
                .with_hint("use `tl.where` for blocks"));
        }
        let a = self.expr(&i.body)?;
        let b = self.expr(&i.orelse)?;
        self.where_(&*i.test, &test, &a, &b)
    }

    /// `x[:, None]`, `shape[0]`.
    fn subscript(&mut self, at: &Expr, value: Value<'a>, index: &'a Expr) -> Result<Value<'a>> {
        match value {
            Value::Tuple(items) => {
                let i = self.expr(index)?;
                let i = self.const_int(index, &i, "an index")?;
                position(i, items.len())
                    .map(|i| items[i].clone())
                    .ok_or_else(|| self.error(index, format!("index {i} is out of range")))
            }
            Value::Tensor(v) => {
                let ty = self.ty(v);
                let single = std::slice::from_ref(index);
                let parts = match index {
                    Expr::Tuple(t) => &t.elts[..],
                    _ => single,
                };
                let mut shape: Shape = ty.shape.clone();
                for (place, part) in parts.iter().enumerate() {
                    match part {
                        // Of a scalar there is nothing to count: each `None` is one dimension more.
                        Expr::NoneLiteral(_) if place <= shape.len() || ty.is_scalar() => {
                            shape.insert(place.min(shape.len()), 1);
                        }
                        Expr::NoneLiteral(_) => {
                            return Err(self.error(part, "more `:` than the block has dimensions"));
                        }
                        Expr::Slice(s)
                            if s.lower.is_none() && s.upper.is_none() && s.step.is_none() => {}
                        other => {
                            return Err(self
                                .error(other, "a block is indexed with `:` and `None` only")
                                .with_hint(
                                    "load the element through a pointer, or use `tl.gather`",
                                ));
                        }
                    }
                }
                if shape.len() > 8 {
                    return Err(self.error(at, "blocks have at most eight dimensions"));
                }
                let ty = ty.with_shape(&shape);
                let is_scalar = self.ty(v).is_scalar();
                let op = if is_scalar { Op::Splat } else { Op::Reshape };
                Ok(Value::Tensor(self.b.emit(op, &[v], ty)))
            }
            // A list of dtypes by name and the like stay outside the language.
            other => Err(self.error(at, format!("{} cannot be indexed", other.describe()))),
        }
    }
}
