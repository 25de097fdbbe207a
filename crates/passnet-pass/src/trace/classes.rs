//! Classes as configuration: constants, enums and dataclasses that a pattern takes numbers from.

use super::interpreter::{Frame, Interpreter};
use super::value::{Arguments, Class, Locals, Object, Value};
use crate::load::{Binding, ModuleId};
use passnet_graph::Diagnostic;
use passnet_graph::syntax::calling::{Given, Misfit, bind_fields};
use passnet_graph::syntax::{Ranged, TextRange, ast};

const HINT: &str =
    "a class of a pass may be a set of constants, a dataclass, a `NamedTuple` or an enum";

impl<'a> Interpreter<'a> {
    /// `Config.EPS`, `Mode.FAST`.
    pub(super) fn class_attribute(
        &mut self,
        class: Class<'a>,
        name: &str,
        module: ModuleId,
        range: TextRange,
    ) -> Result<Value<'a>, Diagnostic> {
        self.enter(module, range)?;
        let mut constants = self.class_constants(class)?;
        let found = match constants.remove(name) {
            Some(value) => Ok(value),
            None => match self.base_class(class) {
                Some(base) => self.class_attribute(base, name, module, range),
                None => Err(self
                    .error(module, range, format!("`{}` has no constant `{name}`", class.def.name))
                    .with_hint(HINT)),
            },
        };
        self.depth -= 1;
        found
    }

    fn base_class(&self, class: Class<'a>) -> Option<Class<'a>> {
        let arguments = class.def.arguments.as_ref()?;
        arguments.args.iter().find_map(|base| {
            let name = base.as_name_expr()?.id.as_str();
            match self.bindings.resolve(class.module, name)? {
                (module, Binding::Class(def)) => Some(Class { module, def }),
                _ => None,
            }
        })
    }

    /// Everything that the body of a class assigns, in the order in which it is written. Members of an enum stand for
    /// their values.
    fn class_constants(&mut self, class: Class<'a>) -> Result<Locals<'a>, Diagnostic> {
        let outer = std::mem::replace(&mut self.in_constant, true);
        let mut frame = Frame { module: class.module, locals: Locals::default(), captured: None };
        let mut last = 0;
        let mut result = Ok(());
        for stmt in &class.def.body {
            let (targets, value) = match stmt {
                ast::Stmt::Assign(assign) => (assign.targets.as_slice(), &*assign.value),
                ast::Stmt::AnnAssign(assign) => match &assign.value {
                    Some(value) => (std::slice::from_ref(&*assign.target), &**value),
                    None => continue,
                },
                _ => continue,
            };
            let evaluated = match value {
                ast::Expr::Call(call) if self.is_outside(call, class.module, "enum.auto") => {
                    Ok(Value::int(last + 1))
                }
                value => self.expression(value, &mut frame),
            };
            result = evaluated.and_then(|value| {
                if let Value::Arg(arg) = &value {
                    last = arg.as_int().unwrap_or(last);
                }
                targets.iter().try_for_each(|target| self.assign(target, value.clone(), &mut frame))
            });
            if result.is_err() {
                break;
            }
        }
        self.in_constant = outer;
        result.map(|()| frame.locals)
    }

    /// Whether a call is one of a function outside the folder, named by its path.
    fn is_outside(&self, call: &ast::ExprCall, module: ModuleId, path: &str) -> bool {
        let (root, member) = match &*call.func {
            ast::Expr::Name(name) => (name.id.as_str(), None),
            ast::Expr::Attribute(attribute) => match &*attribute.value {
                ast::Expr::Name(name) => (name.id.as_str(), Some(attribute.attr.as_str())),
                _ => return false,
            },
            _ => return false,
        };
        match (self.bindings.resolve(module, root), member) {
            (Some((_, Binding::Outside(found))), None) => found == path,
            (Some((_, Binding::Outside(found))), Some(member)) => {
                path.strip_prefix(found.as_str()).and_then(|rest| rest.strip_prefix('.'))
                    == Some(member)
            }
            _ => false,
        }
    }

    /// `Config(eps=1e-6)`.
    pub(super) fn make_object(
        &mut self,
        class: Class<'a>,
        arguments: Arguments<'a>,
        module: ModuleId,
        range: TextRange,
    ) -> Result<Value<'a>, Diagnostic> {
        let owner = class.def.name.as_str();
        let mut constants = self.class_constants(class)?;
        let names = class.def.body.iter().filter_map(|stmt| match stmt {
            ast::Stmt::AnnAssign(assign) => {
                assign.target.as_name_expr().map(|name| name.id.as_str())
            }
            _ => None,
        });
        let fields = names.map(|name| (name, constants.remove(name)));
        let bound = bind_fields(fields, arguments.positional, arguments.keywords);
        let bound = bound.map_err(|misfit| match misfit {
            Misfit::TooMany | Misfit::Unknown(_) => {
                let message = format!("`{owner}` has no such field");
                self.error(module, range, message).with_hint(HINT)
            }
            misfit => self.error(module, range, misfit.of(owner)),
        })?;
        let fields = bound.given.into_iter().map(|(name, given)| match given {
            Given::Value(value) | Given::Default(value) => (name, value),
        });
        let fields = fields.collect();
        Ok(Value::Object(Box::new(Object { class, fields })))
    }

    /// `config.eps`.
    pub(super) fn object_attribute(
        &mut self,
        object: Object<'a>,
        name: &str,
        at: &ast::ExprAttribute,
        module: ModuleId,
    ) -> Result<Value<'a>, Diagnostic> {
        match object.fields.into_iter().find(|(field, _)| *field == name) {
            Some((_, value)) => Ok(value),
            None => self.class_attribute(object.class, name, module, at.range()),
        }
    }
}
