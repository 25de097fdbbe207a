//! Names: of the function, of its file, of what lies outside the pass.

use super::value::{Func, Value};
use super::{Compiler, MAX_CALL_DEPTH, Origin, Result};
use crate::consts::Const;
use crate::modules::Binding;
use crate::types::Elem;
use passnet_graph::syntax::ast::Expr;

impl<'a> Compiler<'a> {
    pub(super) fn name(&mut self, at: &Expr, name: &str) -> Result<Value<'a>> {
        if let Some(value) = self.scope.get(name) {
            return Ok(value.clone());
        }
        let prelude = self.file.origin == Origin::Prelude;
        match self.module_set().lookup(self.file.module, name) {
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
                _ if self.module_set().class(self.file.module, name).is_some() => Err(self
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
        if !is_plain || wrapped || self.host || self.file.origin == Origin::Prelude {
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
        let outer = self.file;
        self.file.module = module;
        self.depth += 1;
        let result = self.host_expr(value);
        self.depth -= 1;
        self.file = outer;
        self.scope = outer_scope;
        let result = result?;
        match &result {
            Value::Tensor(_) | Value::BlockPtr(_) => {
                Err(self.error(at, "a module-level name must be a constant"))
            }
            _ => Ok(result),
        }
    }

    /// A function of the prelude by name.
    pub(super) fn prelude_function(&self, name: &str) -> Option<Func<'a>> {
        self.prelude.function(0, name).map(|function| Func { function, prelude: true })
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
