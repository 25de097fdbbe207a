//! Classes as configuration: constants, dataclasses, named tuples and enums, with the functions that belong to them.
//!
//! A class is evaluated like any other constant of its file, when it is first named. Nothing can be stored in it.

use super::calls::CallArgs;
use super::interp::{Interp, Result};
use super::state::Place;
use super::value::{ClassId, ObjectId, Value};
use crate::consts::Const;
use crate::modules::{ClassRef, FunctionRef};
use passnet_graph::Diagnostic;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::ast::{Expr, Stmt};
use std::rc::Rc;

const INSTEAD: &str =
    "a class of a pass may be a set of constants, a dataclass, a `NamedTuple` or an enum";

/// Base classes beyond this have no end.
const MAX_BASES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Dataclass {
        frozen: bool,
    },
    NamedTuple,
    /// Members are objects.
    Enum,
    /// Members are numbers or texts: `IntEnum`, `StrEnum`, `class Mode(int, Enum)`.
    ValueEnum,
}

#[derive(Debug)]
pub(super) struct Class<'a> {
    id: ClassId,
    def: ClassRef<'a>,
    kind: Kind,
    base: Option<ClassId>,
    attributes: Vec<(&'a str, Value<'a>)>,
    /// What a dataclass or named tuple is made of, base classes first.
    fields: Vec<Field<'a>>,
    /// Names of an enum's members.
    members: Vec<&'a str>,
}

impl<'a> Class<'a> {
    fn new(id: ClassId, def: ClassRef<'a>) -> Self {
        Class {
            id,
            def,
            kind: Kind::Plain,
            base: None,
            attributes: Vec::new(),
            fields: Vec::new(),
            members: Vec::new(),
        }
    }
}

#[derive(Debug, Clone)]
struct Field<'a> {
    name: &'a str,
    default: Option<Default<'a>>,
}

#[derive(Debug, Clone)]
enum Default<'a> {
    Value(Value<'a>),
    /// Called for every object.
    Factory(Value<'a>),
}

#[derive(Debug)]
pub(super) struct Object<'a> {
    class: ClassId,
    pub(super) fields: Vec<(String, Value<'a>)>,
}

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

    fn depth_of(&self, class: ClassId) -> usize {
        std::iter::successors(Some(class), |id| self.classes[id.0].base).take(MAX_BASES).count()
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
                let last = class.members.last().and_then(|last| own(class, last));
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
                        Some("default") => default = Some(Default::Value(value)),
                        Some("default_factory") => default = Some(Default::Factory(value)),
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
            Some(expr) => Some(Default::Value(self.expr(expr)?)),
        };
        if let Some(Default::Value(value)) = &default {
            self.set(name, value.clone());
            class.attributes.push((name, value.clone()));
        }
        match class.fields.iter_mut().find(|field| field.name == name) {
            Some(known) => known.default = default,
            None => class.fields.push(Field { name, default }),
        }
        Ok(())
    }

    fn new_object(&mut self, class: ClassId, fields: Vec<(String, Value<'a>)>) -> Value<'a> {
        self.count_items(fields.len() + 1);
        self.objects.push(Object { class, fields });
        Value::Object(ObjectId(self.objects.len() - 1))
    }

    fn found(&self, class: ClassId, name: &str) -> Option<Value<'a>> {
        let classes = std::iter::successors(Some(class), |id| self.classes[id.0].base);
        classes.take(MAX_BASES + 1).find_map(|id| own(&self.classes[id.0], name)).cloned()
    }

    /// The kind of the class or of the nearest of its base classes that is more than a set of constants.
    fn kind_of(&self, class: ClassId) -> Kind {
        let classes = std::iter::successors(Some(class), |id| self.classes[id.0].base);
        let mut kinds = classes.take(MAX_BASES + 1).map(|id| self.classes[id.0].kind);
        kinds.find(|kind| *kind != Kind::Plain).unwrap_or(Kind::Plain)
    }

    /// `Config.BLOCK`, `Mode.FAST`, `Config.grid`.
    pub(super) fn class_attribute(
        &mut self,
        at: &impl Ranged,
        class: ClassId,
        name: &str,
    ) -> Result<Value<'a>> {
        let Some(value) = self.found(class, name) else {
            let owner = self.classes[class.0].def.def.name.as_str();
            return Err(self.error(at, format!("class `{owner}` has no attribute `{name}`")));
        };
        Ok(match value {
            Value::Function(f, None) if f.decorator("classmethod").is_some() => {
                Value::Bound(f, Rc::new(Value::Class(class)))
            }
            other => other,
        })
    }

    /// `config.block`, `config.grid`.
    pub(super) fn object_attribute(
        &mut self,
        at: &impl Ranged,
        object: ObjectId,
        name: &str,
    ) -> Result<Value<'a>> {
        let known = &self.objects[object.0];
        if let Some((_, value)) = known.fields.iter().find(|(field, _)| field == name) {
            return Ok(value.clone());
        }
        let class = known.class;
        let value = self.class_attribute(at, class, name)?;
        let Value::Function(f, None) = value else { return Ok(value) };
        if f.decorator("staticmethod").is_some() {
            return Ok(value);
        }
        let this = Value::Object(object);
        if f.decorator("property").is_some() {
            return self.call_function(f, None, vec![this], Vec::new(), at.range());
        }
        Ok(Value::Bound(f, Rc::new(this)))
    }

    pub(super) fn set_attribute(
        &mut self,
        at: &impl Ranged,
        owner: &Value<'a>,
        name: &str,
        value: Value<'a>,
    ) -> Result<()> {
        let Value::Object(id) = owner else {
            return Err(self
                .error(at, format!("an attribute of {} would outlive the call", owner.describe()))
                .with_hint("keep the value in a variable of the wrapper"));
        };
        match self.kind_of(self.objects[id.0].class) {
            Kind::Plain | Kind::Dataclass { frozen: false } => {}
            _ => return Err(self.error(at, "this object cannot be changed: it is frozen")),
        }
        self.note_store(Place::Object(id.0), at);
        self.count_items(1);
        let fields = &mut self.objects[id.0].fields;
        match fields.iter_mut().find(|(field, _)| field == name) {
            Some((_, slot)) => *slot = value,
            None => fields.push((name.to_string(), value)),
        }
        Ok(())
    }

    /// `Config(block=64)`, `Mode(1)`.
    pub(super) fn call_class(&mut self, class: ClassId, args: CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        match self.kind_of(class) {
            Kind::Enum | Kind::ValueEnum => {
                let wanted = args.positional.first().cloned().unwrap_or(Value::NONE);
                for member in self.class_members(class) {
                    let value = match &member {
                        Value::Object(_) => self.attribute(&at, &member, "value")?,
                        other => other.clone(),
                    };
                    if self.equal(&value, &wanted) {
                        return Ok(member);
                    }
                }
                Err(self.error(&at, format!("{} is no member of this enum", self.text(&wanted))))
            }
            Kind::Plain => {
                let object = self.new_object(class, Vec::new());
                match self.found(class, "__init__") {
                    Some(Value::Function(f, None)) => self.call_on(f, &object, args)?,
                    _ if args.positional.is_empty() && args.named.is_empty() => Value::NONE,
                    _ => return Err(self.error(&at, "this class takes no arguments")),
                };
                Ok(object)
            }
            Kind::Dataclass { .. } | Kind::NamedTuple => {
                let fields = self.field_values(class, args)?;
                let object = self.new_object(class, fields);
                if let Some(Value::Function(f, None)) = self.found(class, "__post_init__") {
                    self.call_on(f, &object, CallArgs::of(Vec::new(), at))?;
                }
                Ok(object)
            }
        }
    }

    /// Calls a function of a class on an object of it, or on the class.
    pub(super) fn call_on(
        &mut self,
        f: FunctionRef<'a>,
        this: &Value<'a>,
        mut args: CallArgs<'a>,
    ) -> Result<Value<'a>> {
        args.positional.insert(0, this.clone());
        self.call_function(f, None, args.positional, args.named, args.range)
    }

    fn field_values(
        &mut self,
        class: ClassId,
        args: CallArgs<'a>,
    ) -> Result<Vec<(String, Value<'a>)>> {
        let at = args.range;
        let fields = self.classes[class.0].fields.clone();
        let owner = self.classes[class.0].def.def.name.as_str();
        let mut positional = args.positional.into_iter();
        let mut named = args.named;
        let mut values = Vec::with_capacity(fields.len());
        for field in fields {
            let name = field.name;
            let by_name = named.iter().position(|(n, _)| n == name).map(|i| named.remove(i).1);
            let value = match (positional.next(), by_name, field.default) {
                (Some(value), None, _) | (None, Some(value), _) => value,
                (None, None, Some(Default::Value(value))) => value,
                (None, None, Some(Default::Factory(factory))) => {
                    self.call_value(&factory, CallArgs::of(Vec::new(), at))?
                }
                (Some(_), Some(_), _) => {
                    return Err(self.error(&at, format!("`{owner}` got `{name}` twice")));
                }
                (None, None, None) => {
                    return Err(self.error(&at, format!("`{owner}` needs the argument `{name}`")));
                }
            };
            values.push((name.to_string(), value));
        }
        if positional.next().is_some() {
            return Err(self.error(&at, format!("too many arguments for `{owner}`")));
        }
        if let Some((name, _)) = named.first() {
            return Err(self.error(&at, format!("`{owner}` has no field `{name}`")));
        }
        Ok(values)
    }

    /// The members of an enum, in order; nothing for other classes.
    pub(super) fn class_members(&self, class: ClassId) -> Vec<Value<'a>> {
        let known = &self.classes[class.0];
        known.members.iter().filter_map(|name| own(known, name)).cloned().collect()
    }

    pub(super) fn is_enum(&self, class: ClassId) -> bool {
        matches!(self.kind_of(class), Kind::Enum | Kind::ValueEnum)
    }

    /// The values of a named tuple, which is a sequence.
    pub(super) fn tuple_items(&self, object: ObjectId) -> Option<Vec<Value<'a>>> {
        let known = &self.objects[object.0];
        (self.kind_of(known.class) == Kind::NamedTuple)
            .then(|| known.fields.iter().map(|(_, value)| value.clone()).collect())
    }

    /// Objects that are equal when their fields are: the values of both, if they are of one such class.
    pub(super) fn comparable(&self, a: ObjectId, b: ObjectId) -> Option<[Vec<Value<'a>>; 2]> {
        let (a, b) = (&self.objects[a.0], &self.objects[b.0]);
        let is_record = matches!(self.kind_of(a.class), Kind::Dataclass { .. } | Kind::NamedTuple);
        let values = |object: &Object<'a>| object.fields.iter().map(|f| f.1.clone()).collect();
        (is_record && a.class == b.class).then(|| [values(a), values(b)])
    }

    /// Whether an object is of a class, or a value a member of an enum.
    pub(super) fn is_of_class(&self, value: &Value<'a>, class: ClassId) -> bool {
        match value {
            Value::Object(id) => {
                let own = self.objects[id.0].class;
                std::iter::successors(Some(own), |id| self.classes[id.0].base)
                    .take(MAX_BASES + 1)
                    .any(|known| known == class)
            }
            Value::Const(_) => {
                self.class_members(class).iter().any(|member| self.equal(member, value))
            }
            _ => false,
        }
    }

    /// `dataclasses.replace(config, block=64)`.
    pub(super) fn replace_fields(&mut self, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let Some(Value::Object(id)) = args.positional.first() else {
            return Err(self.error(&at, "`dataclasses.replace` needs an object of a dataclass"));
        };
        let (class, mut fields) = (self.objects[id.0].class, self.objects[id.0].fields.clone());
        for (name, value) in &args.named {
            match fields.iter_mut().find(|(field, _)| field == name) {
                Some((_, slot)) => *slot = value.clone(),
                None => return Err(self.error(&at, format!("there is no field `{name}`"))),
            }
        }
        Ok(self.new_object(class, fields))
    }

    /// `dataclasses.asdict(config)`.
    pub(super) fn as_dict(&mut self, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let Some(Value::Object(id)) = args.positional.first() else {
            let message = "`dataclasses.asdict` needs an object of a dataclass";
            return Err(self.error(&args.range, message));
        };
        let fields = self.objects[id.0].fields.clone();
        let items = fields.into_iter().map(|(name, value)| (Value::Const(Const::Str(name)), value));
        let items = items.collect();
        Ok(self.new_dict(items))
    }
}

fn own<'c, 'a>(class: &'c Class<'a>, name: &str) -> Option<&'c Value<'a>> {
    class.attributes.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value)
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
