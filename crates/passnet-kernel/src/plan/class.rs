//! A class of a pass, as it was read.

use super::value::{ClassId, Value};
use crate::modules::ClassRef;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
    pub(super) id: ClassId,
    pub(super) def: ClassRef<'a>,
    pub(super) kind: Kind,
    pub(super) base: Option<ClassId>,
    pub(super) attributes: Vec<(&'a str, Value<'a>)>,
    /// What a dataclass or named tuple is made of, base classes first.
    pub(super) fields: Vec<Field<'a>>,
    /// Names of an enum's members.
    pub(super) members: Vec<&'a str>,
}

impl<'a> Class<'a> {
    pub(super) fn new(id: ClassId, def: ClassRef<'a>) -> Self {
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

    /// What the class itself says of a name.
    pub(super) fn own(&self, name: &str) -> Option<&Value<'a>> {
        self.attributes.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) default: Option<FieldDefault<'a>>,
}

#[derive(Debug, Clone)]
pub(super) enum FieldDefault<'a> {
    Value(Value<'a>),
    /// Called for every object.
    Factory(Value<'a>),
}

#[derive(Debug)]
pub(super) struct Object<'a> {
    pub(super) class: ClassId,
    pub(super) fields: Vec<(String, Value<'a>)>,
}
