//! Calls: functions of the pass run in place, everything else by its name.

use super::arguments::Args;
use super::value::{Func, RangeKind, Scope, Value};
use super::{Compiler, MAX_CALL_DEPTH, Origin, Result, SourceFile};
use crate::consts::Const;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{Expr, ExprCall};
use passnet_graph::syntax::calling::{self, Given, Misfit};

impl<'a> Compiler<'a> {
    pub(super) fn call(&mut self, c: &'a ExprCall) -> Result<Value<'a>> {
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
        let text = self.module_set().source(self.file.module).slice(c.func.range()).to_string();
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
        let misfit = |misfit: Misfit| self.error(&args.range, misfit.of(&def.name));
        let bound = calling::bind(&def.parameters, args.positional, args.named).map_err(misfit)?;
        if let Some((name, _)) = bound.keywords.first() {
            // A kernel has no dict to put it into.
            return Err(misfit(Misfit::Unknown(name.clone())));
        }
        let mut scope = Scope::default();
        for (name, given) in bound.given {
            let value = match given {
                Given::Value(value) => value,
                Given::Default(default) => self.host_expr(default)?,
            };
            scope.set(name, value);
        }
        if let Some(rest) = &def.parameters.vararg {
            scope.set(rest.name.as_str(), Value::Tuple(bound.rest));
        }
        let origin = if func.prelude { Origin::Prelude } else { Origin::Pass };
        let outer_scope = std::mem::replace(&mut self.scope, scope);
        let outer_file =
            std::mem::replace(&mut self.file, SourceFile { origin, module: func.function.module });
        let outer_site = self.call_site;
        if func.prelude && outer_file.origin == Origin::Pass {
            self.call_site = Some((outer_file.module, args.range));
        }
        self.depth += 1;
        // Python itself runs such a function: it may use any name.
        let was_host = self.host;
        self.host |= computes_constants;
        let result = self.function_body(&def.body);
        self.host = was_host;
        self.depth -= 1;
        self.call_site = outer_site;
        self.file = outer_file;
        self.scope = outer_scope;
        result
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
