//! Calls: torch functions and tensor methods become nodes, functions of the pass are inlined, a few builtins
//! are evaluated.

use super::interpreter::{CONSTANT_OF_MODULE, Frame, Interpreter, constant_of_module};
use super::value::{Arguments, Callable, Code, Locals, Value};
use super::{Dialect, builtins};
use passnet_graph::graph::{CalleeKind, Target};
use passnet_graph::ops;
use passnet_graph::read::python;
use passnet_graph::syntax::{Ranged, ast};
use passnet_graph::{Arg, Diagnostic};

impl<'a> Interpreter<'a> {
    pub(super) fn call(
        &mut self,
        call: &'a ast::ExprCall,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        if let ast::Expr::Attribute(attribute) = &*call.func {
            let receiver = self.expression(&attribute.value, frame)?;
            match receiver {
                Value::Arg(Arg::Node(_)) => return self.method(receiver, attribute, call, frame),
                Value::Sequence { .. } | Value::Dict(_) => {
                    return self.container_method(receiver, attribute, call, frame);
                }
                _ => {}
            }
        }
        match self.expression(&call.func, frame)? {
            Value::Path(path) => self.outside_call(&path, call, frame),
            Value::Function(callable) => {
                let arguments = self.arguments(call, frame)?;
                self.inline(&callable, arguments, call, frame)
            }
            Value::Class(class) => {
                let arguments = self.arguments(call, frame)?;
                self.make_object(class, arguments, frame.module, call.range())
            }
            other => Err(self.error(
                frame.module,
                call.func.range(),
                format!("{} cannot be called", other.describe()),
            )),
        }
    }

    fn method(
        &mut self,
        receiver: Value<'a>,
        attribute: &'a ast::ExprAttribute,
        call: &'a ast::ExprCall,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        let mut arguments = self.arguments(call, frame)?;
        arguments.positional.insert(0, receiver);
        let target = Target::resolve(CalleeKind::Method, attribute.attr.as_str());
        self.operation(target, arguments, call, frame)
    }

    /// A function that is not the pass's own.
    fn outside_call(
        &mut self,
        path: &str,
        call: &'a ast::ExprCall,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        if matches!(path, "torch.device" | "device")
            && let Some(device) = python::device(call)
        {
            return Ok(Value::Arg(Arg::Device(device)));
        }
        let arguments = self.arguments(call, frame)?;
        if !arguments.has_node()
            && let Some(result) = builtins::evaluate(path, &arguments)
        {
            return result.map_err(|message| self.error(frame.module, call.range(), message));
        }
        if builtins::works_on_sequences(path)
            && let Some(result) = builtins::evaluate(path, &arguments)
        {
            return result.map_err(|message| self.error(frame.module, call.range(), message));
        }
        if path == "getattr" {
            return self.getattr_call(arguments, call, frame);
        }
        if let Some(name) = path.strip_prefix("operator.") {
            // What torch.fx hands to these functions has no update in place, so they compute a new value.
            let fx = self.dialect == Dialect::Fx;
            let in_place =
                fx && ops::spelling(CalleeKind::Operator, name).is_some_and(|s| s.mutates);
            let name = if in_place { name.trim_start_matches('i') } else { name };
            let target = Target::resolve(CalleeKind::Operator, name);
            return self.operation(target, arguments, call, frame);
        }
        let known = ops::spelling(CalleeKind::Function, path).is_some();
        if !known && path.split('.').next() != Some("torch") {
            return Err(self
                .error(
                    frame.module,
                    call.func.range(),
                    format!("`{path}` is code from outside the pass"),
                )
                .with_hint(
                    "torch operations, tensor methods and functions of this folder can be traced",
                ));
        }
        if self.dialect == Dialect::Fx && !arguments.has_node() {
            // torch.fx runs such a call while tracing. A tensor is stored as a constant of the module; a call
            // made for its effect leaves nothing.
            let spelling = ops::spelling(CalleeKind::Function, path);
            if spelling.is_some_and(|spelling| spelling.op.class() == ops::Class::Effect) {
                return Ok(Value::none());
            }
            return self.operation(constant_of_module(), Arguments::default(), call, frame);
        }
        self.operation(Target::resolve(CalleeKind::Function, path), arguments, call, frame)
    }

    fn getattr_call(
        &mut self,
        arguments: Arguments<'a>,
        call: &'a ast::ExprCall,
        frame: &Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        match arguments.positional.as_slice() {
            [Value::Arg(node @ Arg::Node(_)), Value::Arg(Arg::Str(name))] => {
                let target = Target::resolve(CalleeKind::Attribute, name);
                self.push(frame.module, call.range(), target, vec![node.clone()], Vec::new())
            }
            _ => Err(self
                .error(
                    frame.module,
                    call.range(),
                    "only an attribute of a tensor can be read by `getattr`",
                )
                .with_hint("write the name out: `torch.relu`")),
        }
    }

    fn operation(
        &mut self,
        target: Target,
        arguments: Arguments<'a>,
        call: &'a ast::ExprCall,
        frame: &Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        let describe = |what: String| {
            self.error(
                frame.module,
                call.range(),
                format!("{what} cannot be an argument of an operation"),
            )
        };
        let args = arguments.positional.iter().map(|value| value.to_arg().map_err(describe));
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let mut kwargs: Vec<(Box<str>, Arg)> = Vec::with_capacity(arguments.keywords.len());
        for (name, value) in &arguments.keywords {
            kwargs.push((name.as_str().into(), value.to_arg().map_err(describe)?));
        }
        if let Target::Unknown { kind, path } = &target
            && **path != *CONSTANT_OF_MODULE
        {
            let mut warning = self.error(
                frame.module,
                call.func.range(),
                format!(
                    "`{path}` is not in the operation table: it can only match the same spelling"
                ),
            );
            if let Some(near) = ops::nearest_spelling(*kind, path) {
                warning = warning.with_hint(format!("did you mean `{}`?", near.path));
            }
            self.warn(warning);
        }
        self.push(frame.module, call.range(), target, args, kwargs)
    }

    /// `list.append` and the like, on a local variable.
    fn container_method(
        &mut self,
        receiver: Value<'a>,
        attribute: &'a ast::ExprAttribute,
        call: &'a ast::ExprCall,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        let arguments = self.arguments(call, frame)?;
        let mut positional = arguments.positional.into_iter();
        match (receiver, attribute.attr.as_str(), positional.next()) {
            (Value::Sequence { items, is_list: true }, "append" | "extend", Some(value)) => {
                let ast::Expr::Name(name) = &*attribute.value else {
                    return Err(self.error(
                        frame.module,
                        call.range(),
                        "only a named list can be changed here",
                    ));
                };
                let mut items = items;
                match value {
                    Value::Sequence { items: more, .. } if attribute.attr.as_str() == "extend" => {
                        items.extend(more);
                    }
                    value => items.push(value),
                }
                frame.locals.insert(name.id.as_str(), Value::list(items));
                Ok(Value::none())
            }
            (Value::Dict(items), "get", Some(key)) => {
                let default = positional.next().unwrap_or_else(Value::none);
                let found =
                    items.into_iter().find(|(known, _)| super::concrete::equal(known, &key));
                Ok(found.map_or(default, |(_, value)| value))
            }
            (Value::Dict(items), "items", None) => {
                Ok(Value::list(items.into_iter().map(|(k, v)| Value::tuple(vec![k, v])).collect()))
            }
            (Value::Dict(items), "keys", None) => {
                Ok(Value::list(items.into_iter().map(|(key, _)| key).collect()))
            }
            (Value::Dict(items), "values", None) => {
                Ok(Value::list(items.into_iter().map(|(_, value)| value).collect()))
            }
            (receiver, name, _) => Err(self.error(
                frame.module,
                call.range(),
                format!("`{name}` of {} cannot be traced", receiver.describe()),
            )),
        }
    }

    /// Runs a function of the pass in the middle of the trace.
    fn inline(
        &mut self,
        callable: &Callable<'a>,
        arguments: Arguments<'a>,
        call: &'a ast::ExprCall,
        frame: &Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        self.enter(frame.module, call.range())?;
        let parameters = match callable.code {
            Code::Def(def) => {
                self.check_decorators(callable, def, call, frame)?;
                Some(&*def.parameters)
            }
            Code::Lambda(lambda) => lambda.parameters.as_deref(),
        };
        let mut locals = match parameters {
            Some(parameters) => {
                self.bind_parameters(callable, parameters, arguments, call, frame)?
            }
            None => Locals::default(),
        };
        if let (Code::Def(def), Some(_)) = (callable.code, &callable.captured) {
            // A nested function can call itself, but was not defined yet when it captured its surroundings.
            let own_name = def.name.as_str();
            locals.entry(own_name).or_insert_with(|| Value::Function(callable.clone()));
        }
        let mut inner =
            Frame { module: callable.module, locals, captured: callable.captured.clone() };
        let result = match callable.code {
            Code::Def(def) => self.body(&def.body, &mut inner)?,
            Code::Lambda(lambda) => self.expression(&lambda.body, &mut inner)?,
        };
        self.depth -= 1;
        Ok(result)
    }

    fn check_decorators(
        &mut self,
        callable: &Callable<'a>,
        def: &'a ast::StmtFunctionDef,
        call: &'a ast::ExprCall,
        frame: &Frame<'a>,
    ) -> Result<(), Diagnostic> {
        let name = def.name.as_str();
        let Some(decorator) = def.decorator_list.first() else { return Ok(()) };
        let text = self.program.module(callable.module).source.slice(decorator.expression.range());
        Err(self
            .error(
                frame.module,
                call.func.range(),
                format!("`{name}` is decorated with `{text}` and cannot be traced"),
            )
            .with_hint("only plain functions that compute with torch operations are inlined"))
    }
}
