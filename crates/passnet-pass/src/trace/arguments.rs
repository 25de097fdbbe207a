//! Arguments of a call as Python passes them, and their binding to the parameters of a function of the pass.

use super::interpreter::{Frame, Interpreter};
use super::value::{Arguments, Callable, Locals, Value};
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
        let mut locals = Locals::default();
        let mut positional = arguments.positional.into_iter();
        let mut keywords = arguments.keywords;
        let by_position = parameters.posonlyargs.iter().chain(&parameters.args).map(|p| (p, true));
        let by_keyword = parameters.kwonlyargs.iter().map(|p| (p, false));
        let positional_count = parameters.posonlyargs.len() + parameters.args.len();
        for (index, (parameter, takes_position)) in by_position.chain(by_keyword).enumerate() {
            if index == positional_count
                && let Some(vararg) = &parameters.vararg
            {
                locals.insert(vararg.name.as_str(), Value::tuple(positional.by_ref().collect()));
            }
            let name = parameter.parameter.name.as_str();
            let keyword = keywords.iter().position(|(known, _)| known == name);
            let given = if takes_position { positional.next() } else { None };
            let value = match (given, keyword) {
                (Some(_), Some(_)) => {
                    return Err(self.error(
                        frame.module,
                        call.range(),
                        format!("two values for `{name}`"),
                    ));
                }
                (Some(value), None) => value,
                (None, Some(index)) => keywords.swap_remove(index).1,
                (None, None) => match &parameter.default {
                    Some(default) => {
                        let mut home = Frame {
                            module: callable.module,
                            locals: Locals::default(),
                            captured: callable.captured.clone(),
                        };
                        self.expression(default, &mut home)?
                    }
                    None => {
                        return Err(self.error(
                            frame.module,
                            call.range(),
                            format!("no value for `{name}`"),
                        ));
                    }
                },
            };
            locals.insert(name, value);
        }
        if let Some(vararg) = &parameters.vararg
            && !locals.contains_key(vararg.name.as_str())
        {
            locals.insert(vararg.name.as_str(), Value::tuple(positional.by_ref().collect()));
        }
        if positional.next().is_some() {
            return Err(self.error(frame.module, call.range(), "too many positional arguments"));
        }
        match &parameters.kwarg {
            Some(kwarg) => {
                let items = keywords
                    .into_iter()
                    .map(|(name, value)| (Value::Arg(Arg::Str(name.into())), value));
                locals.insert(kwarg.name.as_str(), Value::Dict(items.collect()));
            }
            None => {
                if let Some((name, _)) = keywords.first() {
                    return Err(self.error(
                        frame.module,
                        call.range(),
                        format!("no parameter `{name}`"),
                    ));
                }
            }
        }
        Ok(locals)
    }
}
