//! Expressions: names, attributes, subscripts, operators, calls.

use super::arguments::Args;
use super::value::{Func, RangeKind, Scope, Value};
use super::{Compiler, MAX_CALL_DEPTH, Origin, Place, Result};
use crate::consts::Const;
use crate::ir::{Literal, Op};
use crate::modules::Binding;
use crate::types::{Elem, Shape, Type};
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{BoolOp, Expr, ExprCall, ExprListComp, Number};

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
            Expr::Compare(c) => {
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
            Expr::BoolOp(b) => {
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

    fn name(&mut self, at: &Expr, name: &str) -> Result<Value<'a>> {
        if let Some(value) = self.scope.get(name) {
            return Ok(value.clone());
        }
        let prelude = self.place.origin == Origin::Prelude;
        match self.module_set().lookup(self.place.module, name) {
            Some(Binding::Function(function)) => Ok(Value::Function(Func { function, prelude })),
            Some(Binding::External(path)) => {
                let value = external(path);
                // `from math import pi` makes a global of this module.
                self.may_be_read(at, name, &value, false)?;
                Ok(value)
            }
            Some(Binding::Module(index)) => Ok(Value::Module(index)),
            Some(Binding::Assigned(module, expression)) => {
                let value = self.global(at, module, expression)?;
                let wrapped = self.is_wrapped(module, expression, 0);
                self.may_be_read(at, name, &value, wrapped)?;
                Ok(value)
            }
            None => match name {
                "range" | "min" | "max" | "abs" | "len" | "float" | "int" | "bool" | "print"
                | "sum" | "slice" | "isinstance" | "tuple" | "list" => {
                    Ok(Value::Path(format!("builtins.{name}")))
                }
                _ if self.module_set().class(self.place.module, name).is_some() => Err(self
                    .error(at, format!("a kernel cannot use the class `{name}`: there are no aggregates here"))
                    .with_hint("pass its values as a tuple, and write its methods as `@triton.jit` functions")),
                _ => Err(self.error(at, format!("`{name}` is not defined here")).with_hint(
                    "a name set in one branch or only inside a loop is unknown afterwards",
                )),
            },
        }
    }

    /// An expression that Python evaluates before the kernel is compiled: it may use any name.
    pub(super) fn host_expr(&mut self, e: &'a Expr) -> Result<Value<'a>> {
        let was_host = std::mem::replace(&mut self.host, true);
        let value = self.expr(e);
        self.host = was_host;
        value
    }

    /// Triton compiles a kernel once and could not see that a plain global changed, so that kernels may read only globals that
    /// are `tl.constexpr` objects, element types, functions and what else has no value of its own.
    fn may_be_read(&self, at: &Expr, name: &str, value: &Value<'a>, wrapped: bool) -> Result<()> {
        let is_plain = match value {
            Value::Const(c) => !matches!(c, Const::Elem(_) | Const::Pointer(_)),
            Value::Tuple(_) => true,
            _ => false,
        };
        if !is_plain || wrapped || self.host || self.place.origin == Origin::Prelude {
            return Ok(());
        }
        Err(self
            .error(at, format!("a kernel cannot read the global `{name}`, which is no `tl.constexpr` object"))
            .with_hint(format!(
                "write `{name} = tl.constexpr(...)` where it is defined (an annotation alone does not do), or pass it as a `tl.constexpr` argument"
            )))
    }

    /// Whether a module-level expression gives a `tl.constexpr` object (a call of it, or arithmetic on one) or a member of
    /// Triton's own.
    fn is_wrapped(&self, module: usize, e: &Expr, depth: usize) -> bool {
        if depth > MAX_CALL_DEPTH {
            return false;
        }
        let is = |e: &Expr| self.is_wrapped(module, e, depth + 1);
        match e {
            Expr::Call(call) => is_constexpr(&call.func),
            Expr::Attribute(a) => match &*a.value {
                Expr::Name(n) => matches!(
                    self.module_set().lookup(module, n.id.as_str()),
                    Some(Binding::External(path)) if path.starts_with("triton")
                ),
                inner => is(inner),
            },
            Expr::BinOp(b) => is(&b.left) || is(&b.right),
            Expr::UnaryOp(u) => is(&u.operand),
            Expr::Compare(c) => is(&c.left) || c.comparators.iter().any(is),
            Expr::Name(n) => match self.module_set().lookup(module, n.id.as_str()) {
                Some(Binding::Assigned(module, e)) => self.is_wrapped(module, e, depth + 1),
                _ => false,
            },
            _ => false,
        }
    }

    /// A constant of the module; it must not depend on anything at run time.
    pub(super) fn global(
        &mut self,
        at: &Expr,
        module: usize,
        value: &'a Expr,
    ) -> Result<Value<'a>> {
        if self.depth > MAX_CALL_DEPTH {
            return Err(self.error(at, "constants refer to each other without end"));
        }
        let outer_scope = std::mem::take(&mut self.scope);
        let outer = self.place;
        self.place.module = module;
        self.depth += 1;
        let result = self.host_expr(value);
        self.depth -= 1;
        self.place = outer;
        self.scope = outer_scope;
        let result = result?;
        match &result {
            Value::Tensor(_) | Value::BlockPtr(_) => {
                Err(self.error(at, "a module-level name must be a constant"))
            }
            _ => Ok(result),
        }
    }

    /// `x[:, None]`, `shape[0]`.
    fn subscript(&mut self, at: &Expr, value: Value<'a>, index: &'a Expr) -> Result<Value<'a>> {
        match value {
            Value::Tuple(items) => {
                let i = self.expr(index)?;
                let i = self.const_int(index, &i, "an index")?;
                let resolved = if i < 0 { i + items.len() as i64 } else { i };
                usize::try_from(resolved)
                    .ok()
                    .and_then(|i| items.get(i).cloned())
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

    fn call(&mut self, c: &'a ExprCall) -> Result<Value<'a>> {
        let callee = self.expr(&c.func)?;
        let mut positional = Vec::new();
        for arg in &c.arguments.args {
            match arg {
                Expr::Starred(s) => match self.expr(&s.value)? {
                    Value::Tuple(items) => positional.extend(items),
                    other => {
                        return Err(self.error(arg, format!("cannot unpack {}", other.describe())));
                    }
                },
                other => positional.push(self.expr(other)?),
            }
        }
        let mut named = Vec::new();
        for keyword in &c.arguments.keywords {
            let Some(name) = &keyword.arg else {
                return Err(self.error(keyword, "`**` is not part of the Triton language"));
            };
            named.push((name.to_string(), self.expr(&keyword.value)?));
        }
        let text = self.module_set().source(self.place.module).slice(c.func.range()).to_string();
        let args = Args { positional, named, range: c.range(), callee: text };
        self.locate(c);
        self.call_value(callee, args)
    }

    pub(super) fn call_value(
        &mut self,
        callee: Value<'a>,
        mut args: Args<'a>,
    ) -> Result<Value<'a>> {
        match callee {
            Value::Function(func) => self.inline(func, args),
            Value::Path(path) => self.builtin(&path, args),
            Value::Method(receiver, name) => match *receiver {
                Value::Const(of @ (Const::Elem(_) | Const::Pointer(_))) => {
                    self.type_test(&of, &name, &args)
                }
                Value::TypeOf(v) => {
                    let ty = self.ty(v);
                    Ok(self.shape_test(&ty, &name))
                }
                receiver => {
                    args.positional.insert(0, receiver);
                    let path = format!("triton.language.{name}");
                    self.builtin(&path, args)
                }
            },
            Value::Const(Const::Elem(elem)) => {
                // `tl.float32(x)` converts.
                let [x] = self.bind(args, ["x"], 1)?;
                let x = x.unwrap_or(Value::NONE);
                let at = passnet_graph::syntax::TextRange::default();
                let v = self.tensor(&at, &x)?;
                Ok(Value::Tensor(self.cast(v, elem)))
            }
            other => Err(self.error(&args, format!("{} cannot be called", other.describe()))),
        }
    }

    /// Runs a helper's body in place.
    fn inline(&mut self, func: Func<'a>, args: Args<'a>) -> Result<Value<'a>> {
        let def = func.function.def;
        let computes_constants = func.function.decorator("constexpr_function").is_some();
        if !func.prelude && !func.function.is_kernel() && !computes_constants {
            return Err(self
                .error(&args, format!("`{}` is not a `@triton.jit` function", def.name))
                .with_hint("decorate the helper with `@triton.jit`"));
        }
        if self.depth >= MAX_CALL_DEPTH {
            return Err(self
                .error(&args, format!("calls nest more than {MAX_CALL_DEPTH} deep"))
                .with_hint("Triton functions cannot be recursive"));
        }
        let runs = |value: &Value<'a>| {
            value.to_const().is_none() && !matches!(value, Value::Function(_) | Value::Path(_))
        };
        if computes_constants
            && let Some(value) =
                args.positional.iter().chain(args.named.iter().map(|(_, v)| v)).find(|v| runs(v))
        {
            let text =
                format!("`{}` takes compile-time values, not {}", def.name, value.describe());
            return Err(self.error(&args, text));
        }
        let mut scope = Scope::default();
        let mut positional = args.positional.into_iter();
        let mut named = args.named;
        for parameter in def.parameters.iter_non_variadic_params() {
            let name = parameter.parameter.name.as_str();
            let by_name = named.iter().position(|(n, _)| n == name).map(|i| named.swap_remove(i).1);
            let value = match (positional.next(), by_name, &parameter.default) {
                (Some(v), None, _) | (None, Some(v), _) => v,
                (None, None, Some(default)) => self.host_expr(default)?,
                (Some(_), Some(_), _) => {
                    return Err(
                        self.error(&args.range, format!("`{}` got `{name}` twice", def.name))
                    );
                }
                (None, None, None) => {
                    return Err(self.error(
                        &args.range,
                        format!("`{}` needs the argument `{name}`", def.name),
                    ));
                }
            };
            scope.set(name, value);
        }
        match &def.parameters.vararg {
            Some(rest) => scope.set(rest.name.as_str(), Value::Tuple(positional.collect())),
            None if positional.next().is_some() => {
                let text = format!("too many arguments for `{}`", def.name);
                return Err(self.error(&args.range, text));
            }
            None => {}
        }
        if let Some((name, _)) = named.first() {
            return Err(self.error(&args.range, format!("`{}` has no argument `{name}`", def.name)));
        }
        let origin = if func.prelude { Origin::Prelude } else { Origin::Pass };
        let outer_scope = std::mem::replace(&mut self.scope, scope);
        let outer_place =
            std::mem::replace(&mut self.place, Place { origin, module: func.function.module });
        let outer_site = self.call_site;
        if func.prelude && outer_place.origin == Origin::Pass {
            self.call_site = Some((outer_place.module, args.range));
        }
        self.depth += 1;
        // Python itself runs such a function: it may use any name.
        let was_host = self.host;
        self.host |= computes_constants;
        let result = self.function_body(&def.body);
        self.host = was_host;
        self.depth -= 1;
        self.call_site = outer_site;
        self.place = outer_place;
        self.scope = outer_scope;
        result
    }

    /// A function of the prelude by name.
    pub(super) fn prelude_function(&self, name: &str) -> Option<Func<'a>> {
        self.prelude.function(0, name).map(|function| Func { function, prelude: true })
    }

    pub(super) fn range_value(&mut self, kind: RangeKind, args: Args<'a>) -> Result<Value<'a>> {
        let mut bounds = args.positional;
        for (name, value) in args.named {
            match name.as_str() {
                "arg1" | "arg2" | "step" => bounds.push(value),
                "num_stages"
                | "loop_unroll_factor"
                | "disallow_acc_multi_buffer"
                | "flatten"
                | "warp_specialize"
                | "disable_licm" => {}
                _ => {
                    return Err(
                        self.error(&args.range, format!("a range has no argument `{name}`"))
                    );
                }
            }
        }
        Ok(Value::Range(kind, bounds))
    }
}

pub(crate) fn is_constexpr(annotation: &Expr) -> bool {
    match annotation {
        Expr::Attribute(a) => a.attr.as_str() == "constexpr",
        Expr::Name(n) => n.id.as_str() == "constexpr",
        Expr::StringLiteral(s) => s.value.to_str().ends_with("constexpr"),
        _ => false,
    }
}

/// A path outside the pass; element types and constants are recognised at once.
pub(super) fn external<'a>(path: String) -> Value<'a> {
    let elem = path
        .strip_prefix("triton.language.")
        .map(|name| name.strip_prefix("core.").unwrap_or(name));
    let elem = elem.and_then(Elem::from_language_name).or_else(|| {
        let dtype = path.strip_prefix("torch.").and_then(passnet_graph::DType::from_name)?;
        Elem::from_dtype(dtype)
    });
    match (elem, path.as_str()) {
        (Some(elem), _) => Value::Const(Const::Elem(elem)),
        (None, "triton.language.PropagateNan.ALL") => Value::Const(Const::Str("all".into())),
        (None, "triton.language.PropagateNan.NONE") => Value::Const(Const::Str("none".into())),
        (None, "math.pi") => Value::Const(Const::Float(std::f64::consts::PI)),
        (None, "math.e") => Value::Const(Const::Float(std::f64::consts::E)),
        (None, "math.inf" | "torch.inf") => Value::Const(Const::Float(f64::INFINITY)),
        (None, "math.nan" | "torch.nan") => Value::Const(Const::Float(f64::NAN)),
        _ => Value::Path(path),
    }
}
