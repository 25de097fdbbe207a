//! Classes as configuration: constants, dataclasses, named tuples and enums, with the functions that belong to them.
//!
//! A class is evaluated like any other constant of its file, when it is first named. Nothing can be stored in it.

use super::class::{Class, Field, FieldDefault, Kind};
use super::interp::{Interp, Result};
use super::objects::MAX_BASES;
use super::value::{ClassId, Value};
use crate::modules::{ClassRef, FunctionRef};
use passnet_graph::Diagnostic;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{Expr, Stmt};

const INSTEAD: &str =
    "a class of a pass may be a set of constants, a dataclass, a `NamedTuple` or an enum";

impl<'a> Interp<'a> {
    /// Evaluates a class of the pass.
    pub(super) fn make_class(&mut self, def: ClassRef<'a>) -> Result<Value<'a>> {
        let id = ClassId(self.classes.len());
        self.classes.push(Class::new(id, def));
        let frame = self.new_frame(None, def.module);
        let outer = std::mem::replace(&mut self.frame, frame);
        let made = self.enter_call(def.def.name.range()).and_then(|()| self.class_body(id, def));
        self.leave_call();
        self.frame = outer;
        self.classes[id.0] = made?;
        Ok(Value::Class(id))
    }

    fn class_body(&mut self, id: ClassId, def: ClassRef<'a>) -> Result<Class<'a>> {
        let (kind, base) = self.class_kind(def)?;
        let fields = base.map(|base| self.classes[base.0].fields.clone()).unwrap_or_default();
        let mut class = Class { kind, base, fields, ..Class::new(id, def) };
        for stmt in &def.def.body {
            self.step(stmt)?;
            match stmt {
                Stmt::Pass(_) => {}
                Stmt::Expr(s) if s.value.is_string_literal_expr() => {}
                Stmt::FunctionDef(function) => {
                    let function = FunctionRef { module: def.module, def: function };
                    let value = Value::Function(function, None);
                    class.attributes.push((function.def.name.as_str(), value));
                }
                Stmt::Assign(assign) => {
                    for target in &assign.targets {
                        let Expr::Name(name) = target else {
                            return Err(self.class_error(def, target, "this assignment"));
                        };
                        self.constant_of_class(&mut class, name.id.as_str(), &assign.value)?;
                    }
                }
                Stmt::AnnAssign(assign) => {
                    let Expr::Name(name) = &*assign.target else {
                        return Err(self.class_error(def, stmt, "this assignment"));
                    };
                    let name = name.id.as_str();
                    let is_record = matches!(kind, Kind::Dataclass { .. } | Kind::NamedTuple);
                    match &assign.value {
                        _ if is_record && !is_class_variable(&assign.annotation) => {
                            self.field(&mut class, name, assign.value.as_deref())?;
                        }
                        Some(value) => self.constant_of_class(&mut class, name, value)?,
                        None => {}
                    }
                }
                other => return Err(self.class_error(def, other, "this statement")),
            }
        }
        Ok(class)
    }

    fn class_error(&self, def: ClassRef<'a>, at: &impl Ranged, what: &str) -> Diagnostic {
        let name = def.def.name.as_str();
        self.error(at, format!("class `{name}`: {what} cannot be read as configuration"))
            .with_hint(INSTEAD)
    }

    fn class_kind(&mut self, def: ClassRef<'a>) -> Result<(Kind, Option<ClassId>)> {
        let (mut kind, mut base, mut is_value) = (Kind::Plain, None, false);
        if let Some(arguments) = &def.def.arguments {
            if let Some(keyword) = arguments.keywords.first() {
                return Err(self.class_error(def, keyword, "this argument"));
            }
            for expr in &arguments.args {
                if matches!(expr, Expr::Name(name) if name.id.as_str() == "object") {
                    continue;
                }
                match self.expr(expr)? {
                    Value::Path(path) => match &*path {
                        "enum.Enum" => kind = Kind::Enum,
                        "enum.IntEnum" | "enum.StrEnum" => kind = Kind::ValueEnum,
                        "typing.NamedTuple" => kind = Kind::NamedTuple,
                        "builtins.int" | "builtins.str" => is_value = true,
                        _ => return Err(self.class_error(def, expr, "this base class")),
                    },
                    Value::Class(id) if base.is_none() && self.depth_of(id) < MAX_BASES => {
                        base = Some(id);
                        kind = match self.classes[id.0].kind {
                            Kind::Plain | Kind::Dataclass { .. } => Kind::Plain,
                            _ => return Err(self.class_error(def, expr, "this base class")),
                        };
                    }
                    _ => return Err(self.class_error(def, expr, "this base class")),
                }
            }
        }
        kind = match (kind, is_value) {
            (Kind::Enum, true) => Kind::ValueEnum,
            (kind, false) => kind,
            _ => return Err(self.class_error(def, &def.def.name, "this base class")),
        };
        for decorator in &def.def.decorator_list {
            let (callee, call) = match &decorator.expression {
                Expr::Call(call) => (&*call.func, Some(call)),
                other => (other, None),
            };
            let path = self.expr(callee)?;
            match &path {
                Value::Path(path) if &**path == "dataclasses.dataclass" && kind == Kind::Plain => {
                    let mut frozen = false;
                    for keyword in call.into_iter().flat_map(|call| &call.arguments.keywords) {
                        let value = self.expr(&keyword.value)?;
                        match keyword.arg.as_ref().map(|name| name.as_str()) {
                            Some("frozen") => frozen = self.truthy(keyword, &value)?,
                            Some("slots" | "kw_only" | "repr" | "eq" | "order" | "unsafe_hash") => {
                            }
                            _ => {
                                return Err(self.class_error(
                                    def,
                                    keyword,
                                    "this option of a dataclass",
                                ));
                            }
                        }
                    }
                    kind = Kind::Dataclass { frozen };
                }
                Value::Path(path) if &**path == "enum.unique" => {}
                _ => return Err(self.class_error(def, decorator, "this decorator")),
            }
        }
        Ok((kind, base))
    }

    fn constant_of_class(
        &mut self,
        class: &mut Class<'a>,
        name: &'a str,
        expr: &'a Expr,
    ) -> Result<()> {
        let is_enum = matches!(class.kind, Kind::Enum | Kind::ValueEnum) && !name.starts_with('_');
        let value = match expr {
            Expr::Call(call) if is_enum && self.is_path(&call.func, "enum.auto")? => {
                let last = class.members.last().and_then(|last| class.own(last));
                let last = match last {
                    Some(Value::Object(id)) => {
                        self.objects[id.0].fields.iter().find(|(n, _)| n == "value").map(|f| &f.1)
                    }
                    other => other,
                };
                Value::int(last.and_then(Value::as_int).unwrap_or(0).saturating_add(1))
            }
            _ => self.expr(expr)?,
        };
        self.set(name, value.clone());
        let value = match class.kind {
            Kind::Enum if is_enum => {
                let fields = vec![("name".into(), Value::str(name)), ("value".into(), value)];
                self.new_object(class.id, fields)
            }
            Kind::ValueEnum if is_enum && !matches!(value, Value::Const(_)) => {
                return Err(self.class_error(class.def, expr, "this value of an enum"));
            }
            _ => value,
        };
        if is_enum {
            class.members.push(name);
        }
        class.attributes.push((name, value));
        Ok(())
    }

    fn is_path(&mut self, expr: &'a Expr, path: &str) -> Result<bool> {
        Ok(matches!(self.expr(expr)?, Value::Path(found) if &*found == path))
    }

    fn field(
        &mut self,
        class: &mut Class<'a>,
        name: &'a str,
        expr: Option<&'a Expr>,
    ) -> Result<()> {
        let default = match expr {
            None => None,
            Some(Expr::Call(call)) if self.is_path(&call.func, "dataclasses.field")? => {
                let mut default = None;
                for keyword in &call.arguments.keywords {
                    let value = self.expr(&keyword.value)?;
                    match keyword.arg.as_ref().map(|name| name.as_str()) {
                        Some("default") => default = Some(FieldDefault::Value(value)),
                        Some("default_factory") => default = Some(FieldDefault::Factory(value)),
                        Some("repr" | "compare" | "hash" | "metadata" | "kw_only") => {}
                        _ => {
                            return Err(self.class_error(
                                class.def,
                                keyword,
                                "this option of a field",
                            ));
                        }
                    }
                }
                default
            }
            Some(expr) => Some(FieldDefault::Value(self.expr(expr)?)),
        };
        if let Some(FieldDefault::Value(value)) = &default {
            self.set(name, value.clone());
            class.attributes.push((name, value.clone()));
        }
        match class.fields.iter_mut().find(|field| field.name == name) {
            Some(known) => known.default = default,
            None => class.fields.push(Field { name, default }),
        }
        Ok(())
    }
}

/// `LIMIT: ClassVar[int] = 4` is a constant of the class, not a field.
fn is_class_variable(annotation: &Expr) -> bool {
    match annotation {
        Expr::Name(name) => name.id.as_str() == "ClassVar",
        Expr::Attribute(attribute) => attribute.attr.as_str() == "ClassVar",
        Expr::Subscript(subscript) => is_class_variable(&subscript.value),
        _ => false,
    }
}
