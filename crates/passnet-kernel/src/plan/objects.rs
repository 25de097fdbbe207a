//! Objects of the pass's classes: made, looked into, changed, compared.

use super::call_args::CallArgs;
use super::class::{FieldDefault, Kind, Object};
use super::interp::{Interp, Result};
use super::value::{ClassId, Holder, ObjectId, Value};
use crate::consts::Const;
use crate::modules::FunctionRef;
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::calling::{Given, Misfit, bind_fields};
use std::rc::Rc;

/// Base classes beyond this have no end.
pub(super) const MAX_BASES: usize = 16;

impl<'a> Interp<'a> {
    pub(super) fn new_object(
        &mut self,
        class: ClassId,
        fields: Vec<(String, Value<'a>)>,
    ) -> Value<'a> {
        self.count_items(fields.len() + 1);
        self.objects.push(Object { class, fields });
        Value::Object(ObjectId(self.objects.len() - 1))
    }

    pub(super) fn depth_of(&self, class: ClassId) -> usize {
        std::iter::successors(Some(class), |id| self.classes[id.0].base).take(MAX_BASES).count()
    }

    fn found(&self, class: ClassId, name: &str) -> Option<Value<'a>> {
        let classes = std::iter::successors(Some(class), |id| self.classes[id.0].base);
        classes.take(MAX_BASES + 1).find_map(|id| self.classes[id.0].own(name)).cloned()
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
        self.note_store(Holder::Object(id.0), at);
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
        let fields = fields.into_iter().map(|field| (field.name, field.default));
        let bound = bind_fields(fields, args.positional, args.named)
            .map_err(|misfit| match misfit {
                Misfit::Unknown(name) => format!("`{owner}` has no field `{name}`"),
                other => other.of(owner),
            })
            .map_err(|message| self.error(&at, message))?;
        let value = |(name, given): (&str, _)| {
            let value = match given {
                Given::Value(value) | Given::Default(FieldDefault::Value(value)) => value,
                Given::Default(FieldDefault::Factory(factory)) => {
                    self.call_value(&factory, CallArgs::of(Vec::new(), at))?
                }
            };
            Ok((name.to_string(), value))
        };
        bound.given.into_iter().map(value).collect()
    }

    /// The members of an enum, in order; nothing for other classes.
    pub(super) fn class_members(&self, class: ClassId) -> Vec<Value<'a>> {
        let known = &self.classes[class.0];
        known.members.iter().filter_map(|name| known.own(name)).cloned().collect()
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
