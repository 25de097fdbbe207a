//! Arguments of a call as Python passes them, and their binding to the parameters of a function of the pass.

use super::interpreter::{Frame, Interpreter};
use super::value::{Arguments, Callable, Locals, Value};
use passnet_graph::syntax::calling::{self, Given};
use passnet_graph::syntax::{Ranged, ast};
use passnet_graph::{Arg, Diagnostic};

impl<'a> Interpreter<'a> {
    pub(super) fn arguments(
        &mut self,
        call: &'a ast::ExprCall,
        frame: &mut Frame<'a>,
    ) -> Result<Arguments<'a>, Diagnostic> {
        let mut arguments = Arguments::default();
        for arg in &call.arguments.args {
            match arg {
                ast::Expr::Starred(starred) => {
                    let value = self.expression(&starred.value, frame)?;
                    arguments.positional.extend(self.items(value, &starred.value, frame)?);
                }
                other => arguments.positional.push(self.expression(other, frame)?),
            }
        }
        for keyword in &call.arguments.keywords {
            let value = self.expression(&keyword.value, frame)?;
            match (&keyword.arg, value) {
                (Some(name), value) => {
                    self.keyword(name.to_string(), value, keyword, &mut arguments, frame)?;
                }
                (None, Value::Dict(items)) => {
                    for (key, value) in items {
                        let Value::Arg(Arg::Str(name)) = key else {
                            return Err(self.error(
                                frame.module,
                                keyword.range(),
                                "a keyword must be a string",
                            ));
                        };
                        self.keyword(name.into(), value, keyword, &mut arguments, frame)?;
                    }
                }
                (None, other) => {
                    let message = format!("{} cannot be passed as keywords", other.describe());
                    return Err(self.error(frame.module, keyword.range(), message));
                }
            }
        }
        Ok(arguments)
    }

    fn keyword(
        &self,
        name: String,
        value: Value<'a>,
        keyword: &'a ast::Keyword,
        arguments: &mut Arguments<'a>,
        frame: &Frame<'a>,
    ) -> Result<(), Diagnostic> {
        if arguments.keywords.iter().any(|(seen, _)| *seen == name) {
            return Err(self.error(
                frame.module,
                keyword.range(),
                format!("`{name}` is given twice"),
            ));
        }
        arguments.keywords.push((name, value));
        Ok(())
    }

    /// Gives every parameter its value: position, keyword or default.
    pub(super) fn bind_parameters(
        &mut self,
        callable: &Callable<'a>,
        parameters: &'a ast::Parameters,
        arguments: Arguments<'a>,
        call: &'a ast::ExprCall,
        frame: &Frame<'a>,
    ) -> Result<Locals<'a>, Diagnostic> {
        let bound = calling::bind(parameters, arguments.positional, arguments.keywords)
            .map_err(|misfit| self.error(frame.module, call.range(), misfit.of(callable.name())))?;
        let mut locals = Locals::default();
        for (name, given) in bound.given {
            let value = match given {
                Given::Value(value) => value,
                Given::Default(default) => {
                    let mut home = Frame {
                        module: callable.module,
                        locals: Locals::default(),
                        captured: callable.captured.clone(),
                    };
                    self.expression(default, &mut home)?
                }
            };
            locals.insert(name, value);
        }
        if let Some(rest) = &parameters.vararg {
            locals.insert(rest.name.as_str(), Value::tuple(bound.rest));
        }
        if let Some(more) = &parameters.kwarg {
            let items = bound.keywords.into_iter();
            let items = items.map(|(name, value)| (Value::Arg(Arg::Str(name.into())), value));
            locals.insert(more.name.as_str(), Value::Dict(items.collect()));
        }
        Ok(locals)
    }
}
