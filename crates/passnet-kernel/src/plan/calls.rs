//! Calls: functions of the pass, lambdas, and everything with a name.

use super::call_args::CallArgs;
use super::interp::{Flow, Interp, Result};
use super::value::{FrameId, Value};
use crate::consts::Const;
use crate::modules::FunctionRef;
use passnet_graph::syntax::ast::{Expr, ExprCall, Parameters};
use passnet_graph::syntax::calling::{self, Given};
use passnet_graph::syntax::{Ranged, TextRange};
use std::rc::Rc;

/// Where Triton has descriptors of tensors.
const DESCRIPTOR: &str = "triton.tools.tensor_descriptor.TensorDescriptor";

impl<'a> Interp<'a> {
    pub(super) fn call(&mut self, c: &'a ExprCall) -> Result<Value<'a>> {
        let callee = self.expr(&c.func)?;
        let mut args = CallArgs::of(Vec::new(), c.range());
        for arg in &c.arguments.args {
            match arg {
                Expr::Starred(s) => {
                    let value = self.expr(&s.value)?;
                    args.positional.extend(self.iterate(arg, &value)?);
                }
                other => args.positional.push(self.expr(other)?),
            }
        }
        for keyword in &c.arguments.keywords {
            let value = self.expr(&keyword.value)?;
            match (&keyword.arg, value) {
                (Some(name), value) => args.named.push((name.to_string(), value)),
                (None, Value::Dict(id)) => {
                    for (key, value) in self.dicts[id.0].clone() {
                        let Value::Const(Const::Str(name)) = key else {
                            return Err(self.error(keyword, "keyword names are strings"));
                        };
                        args.named.push((name, value));
                    }
                }
                (None, other) => {
                    return Err(self.error(keyword, format!("cannot unpack {}", other.describe())));
                }
            }
        }
        self.call_value(&callee, args)
    }

    pub(super) fn call_value(
        &mut self,
        callee: &Value<'a>,
        args: CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        match callee {
            Value::Function(f, closure) => {
                self.call_function(*f, *closure, args.positional, args.named, at)
            }
            Value::Lambda(l, closure) => {
                let module = self.frame_module(*closure);
                let frame = self.new_frame(Some(*closure), module);
                if let Some(parameters) = &l.parameters {
                    self.bind_parameters("a lambda", parameters, frame, *closure, args)?;
                }
                self.in_frame(frame, at, |this| this.expr(&l.body))
            }
            Value::Launcher(f, grid) => self.launch(*f, grid, args),
            Value::Class(class) => self.call_class(*class, args),
            Value::Bound(f, this) => {
                let this = Rc::clone(this);
                self.call_on(*f, &this, args)
            }
            Value::Method(receiver, name) => {
                let (receiver, name) = (Rc::clone(receiver), Rc::clone(name));
                self.call_method(&receiver, &name, args)
            }
            Value::Path(path) => {
                let path = Rc::clone(path);
                self.call_path(&path, args)
            }
            Value::Kernel(f) => Err(self
                .error(&at, format!("the kernel `{}` is called without a grid", f.def.name))
                .with_hint("write `kernel[grid](...)`")),
            other => Err(self.error(&at, format!("{} cannot be called", other.describe()))),
        }
    }

    fn call_path(&mut self, path: &str, args: CallArgs<'a>) -> Result<Value<'a>> {
        if let Some(name) = path.strip_prefix("builtins.") {
            return self.python_builtin(name, args);
        }
        if let Some(value) = self.math_function(path, &args)? {
            return Ok(value);
        }
        match path {
            "triton.Config" => self.config(&args),
            DESCRIPTOR => self.make_descriptor(&args, false),
            _ if path.strip_suffix(".from_tensor") == Some(DESCRIPTOR) => {
                self.make_descriptor(&args, true)
            }
            "dataclasses.replace" => self.replace_fields(&args),
            "dataclasses.asdict" => self.as_dict(&args),
            "triton.language.constexpr" => args
                .positional
                .first()
                .cloned()
                .ok_or_else(|| self.error(&args.range, "`tl.constexpr` needs a value")),
            "triton.language.cdiv" => {
                let value = self.math_function("triton.cdiv", &args)?;
                Ok(value.unwrap_or(Value::NONE))
            }
            _ if path.starts_with("torch.") => self.torch_function(path, args),
            _ => Err(self.outside(&args.range, format!("`{path}` cannot be called in a wrapper"))),
        }
    }

    fn in_frame(
        &mut self,
        frame: FrameId,
        at: TextRange,
        run: impl FnOnce(&mut Self) -> Result<Value<'a>>,
    ) -> Result<Value<'a>> {
        self.enter_call(at)?;
        let outer = std::mem::replace(&mut self.frame, frame);
        let result = run(self);
        self.frame = outer;
        self.leave_call();
        result
    }

    pub(super) fn call_function(
        &mut self,
        f: FunctionRef<'a>,
        closure: Option<FrameId>,
        positional: Vec<Value<'a>>,
        named: Vec<(String, Value<'a>)>,
        at: TextRange,
    ) -> Result<Value<'a>> {
        let frame = self.new_frame(closure, f.module);
        let defaults = closure.unwrap_or(frame);
        let args = CallArgs { positional, named, range: at };
        self.bind_parameters(f.def.name.as_str(), &f.def.parameters, frame, defaults, args)?;
        self.in_frame(frame, at, |this| match this.block(&f.def.body)? {
            Flow::Return(value) => Ok(value),
            _ => Ok(Value::NONE),
        })
    }

    fn bind_parameters(
        &mut self,
        what: &str,
        parameters: &'a Parameters,
        frame: FrameId,
        defaults: FrameId,
        args: CallArgs<'a>,
    ) -> Result<()> {
        let at = args.range;
        let bound = calling::bind(parameters, args.positional, args.named)
            .map_err(|misfit| self.error(&at, misfit.of(what)))?;
        let outer = std::mem::replace(&mut self.frame, defaults);
        let values: Result<Vec<_>> = bound
            .given
            .into_iter()
            .map(|(name, given)| match given {
                Given::Value(value) => Ok((name, value)),
                Given::Default(default) => self.expr(default).map(|value| (name, value)),
            })
            .collect();
        self.frame = outer;
        let mut values = values?;
        if let Some(p) = &parameters.vararg {
            values.push((p.name.as_str(), Value::tuple(bound.rest)));
        }
        if let Some(p) = &parameters.kwarg {
            let items = bound.keywords.into_iter().map(|(k, v)| (Value::str(k), v)).collect();
            values.push((p.name.as_str(), self.new_dict(items)));
        }
        let outer = std::mem::replace(&mut self.frame, frame);
        for (name, value) in values {
            self.set(name, value);
        }
        self.frame = outer;
        Ok(())
    }
}
