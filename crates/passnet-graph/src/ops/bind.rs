//! Lays the arguments of a call out by the signature of its operation.

use super::{Alias, Class, Entry, Op, Param, Signature};
use crate::graph::{Arg, Call, Target};
use smallvec::SmallVec;

/// A call whose arguments have been assigned to parameters, defaults filled in.
#[derive(Debug)]
pub struct Bound<'a> {
    pub op: Op,
    pub signature: &'static Signature,
    /// One value per parameter of the signature.
    pub values: SmallVec<[Value<'a>; 8]>,
    /// Whether the spelling itself (`add_`, `+=`) writes into the first argument.
    spelled_in_place: bool,
}

#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    Given(&'a Arg),
    Default(&'static Arg),
    /// What a variadic parameter collected.
    Rest(&'a [Arg]),
}

static NONE: Arg = Arg::None;

impl<'a> Bound<'a> {
    /// The value of a parameter; `None` for one this overload does not have.
    pub fn arg(&self, name: &str) -> &'a Arg {
        match self.signature.position(name).map(|index| self.values[index]) {
            Some(Value::Given(arg)) => arg,
            Some(Value::Default(arg)) => arg,
            Some(Value::Rest(_)) | None => &NONE,
        }
    }

    /// What a variadic parameter collected.
    pub fn rest(&self, name: &str) -> &'a [Arg] {
        match self.signature.position(name).map(|index| self.values[index]) {
            Some(Value::Rest(args)) => args,
            Some(Value::Given(arg)) => arg.as_sequence().unwrap_or(std::slice::from_ref(arg)),
            _ => &[],
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.signature.position(name).is_some()
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        self.arg(name).as_int()
    }

    pub fn float(&self, name: &str) -> Option<f64> {
        self.arg(name).as_float()
    }

    pub fn flag(&self, name: &str) -> bool {
        self.arg(name).as_bool().unwrap_or(false)
    }

    pub fn class(&self) -> Class {
        self.op.class()
    }

    /// Whether the call writes its result into its first argument.
    pub fn is_in_place(&self) -> bool {
        self.spelled_in_place || self.flag("inplace")
    }

    /// The argument that the call writes into, if any.
    pub fn mutated(&self) -> Option<&'a Arg> {
        if self.is_in_place() {
            return match self.values.first() {
                Some(Value::Given(arg)) => Some(arg),
                _ => None,
            };
        }
        let out = self.arg("out");
        (!out.is_none()).then_some(out)
    }

    /// Whether the call draws random numbers: dropout does so only in training.
    pub fn is_random(&self) -> bool {
        match self.op.class() {
            Class::Random => !self.has("training") || self.flag("training"),
            Class::Attention => {
                self.float("dropout_p").is_some_and(|p| p > 0.0)
                    && (!self.has("training") || self.flag("training"))
            }
            _ => false,
        }
    }

    /// Whether the call must stay even when nothing uses its result.
    pub fn has_effect(&self) -> bool {
        self.op.class() == Class::Effect || self.mutated().is_some() || self.is_random()
    }

    /// What the result shares with the first argument.
    pub fn alias(&self) -> Alias {
        if self.is_in_place() { Alias::View } else { self.op.alias() }
    }
}

/// Binds a call, or says why no overload of its operation takes these arguments.
pub fn bind(call: &Call) -> Result<Bound<'_>, String> {
    let Target::Known(spelling) = &call.target else {
        return Err(format!("unknown operation `{}`", call.target.path()));
    };
    let entry: &'static Entry = spelling.op.entry();
    let mut reason = None;
    for signature in &entry.signatures {
        match try_bind(call, signature) {
            Ok(values) => {
                return Ok(Bound {
                    op: spelling.op,
                    signature,
                    values,
                    spelled_in_place: spelling.mutates,
                });
            }
            Err(why) => reason = Some(reason.unwrap_or(why)),
        }
    }
    let why = reason.unwrap_or_else(|| "it has no signature".into());
    Err(format!("`{}` does not take these arguments: {why}", call.target.path()))
}

fn try_bind<'a>(
    call: &'a Call,
    signature: &'static Signature,
) -> Result<SmallVec<[Value<'a>; 8]>, String> {
    let mut slots: SmallVec<[Option<Value<'a>>; 8]> =
        SmallVec::from_elem(None, signature.params.len());
    let mut next = 0;
    let mut position = 0;
    while position < call.args.len() {
        let arg = &call.args[position];
        let Some(param) = signature.params.get(next).filter(|param| !param.keyword_only) else {
            return Err(format!(
                "takes at most {next} positional arguments, got {}",
                call.args.len()
            ));
        };
        if param.variadic {
            slots[next] = Some(bind_rest(&call.args[position..], param)?);
            position = call.args.len();
        } else {
            check_type(arg, param)?;
            slots[next] = Some(Value::Given(arg));
            position += 1;
        }
        next += 1;
    }
    for (name, arg) in &call.kwargs {
        if is_ignored_keyword(name) {
            continue;
        }
        let index = signature
            .position(name)
            .or_else(|| signature.position(keyword_alias(name)?))
            .ok_or_else(|| format!("has no parameter `{name}`"))?;
        let param = &signature.params[index];
        if slots[index].is_some() {
            return Err(format!("got two values for `{name}`"));
        }
        slots[index] = Some(if param.variadic {
            bind_rest(std::slice::from_ref(arg), param)?
        } else {
            check_type(arg, param)?;
            Value::Given(arg)
        });
    }
    let filled = slots.into_iter().zip(&signature.params).map(|(slot, param)| match slot {
        Some(value) => Ok(value),
        None if param.variadic => Ok(Value::Rest(&[])),
        None => match &param.default {
            Some(default) => Ok(Value::Default(default)),
            None => Err(format!("misses `{}`", param.name)),
        },
    });
    filled.collect()
}

/// A variadic parameter takes `f(1, 2)` and `f((1, 2))` alike.
fn bind_rest<'a>(args: &'a [Arg], param: &Param) -> Result<Value<'a>, String> {
    let items = match args {
        [Arg::Tuple(items) | Arg::List(items)] => items,
        _ => args,
    };
    for item in items {
        check_type(item, param)?;
    }
    Ok(Value::Rest(items))
}

fn check_type(arg: &Arg, param: &Param) -> Result<(), String> {
    let none_allowed = arg.is_none() && matches!(param.default, Some(Arg::None));
    if none_allowed || param.ty.accepts(arg) {
        Ok(())
    } else {
        Err(format!("`{}` must be a {:?}", param.name, param.ty).to_lowercase())
    }
}

/// NumPy's names, which torch accepts too.
fn keyword_alias(name: &str) -> Option<&'static str> {
    Some(match name {
        "axis" => "dim",
        "keepdims" => "keepdim",
        "x" | "a" | "self" => "input",
        "x2" => "other",
        _ => return None,
    })
}

/// Keywords that change neither values nor shapes.
fn is_ignored_keyword(name: &str) -> bool {
    matches!(name, "_stacklevel" | "requires_grad" | "pin_memory" | "layout" | "non_blocking")
}
