//! Lays the arguments of a call out by the signature of its operation.

use super::{Alias, Class, Entry, Op, Param, Signature};
use crate::graph::arg::Arg;
use crate::graph::call::Call;
use crate::graph::target::Target;
use smallvec::SmallVec;
use std::fmt;

/// A call whose arguments have been assigned to parameters, defaults filled in.
#[derive(Debug)]
pub struct Bound<'a> {
    /// The operation that is called.
    pub op: Op,
    /// The first signature that fits the arguments.
    pub signature: &'static Signature,
    /// One value per parameter of the signature.
    pub values: SmallVec<[Value<'a>; 8]>,
    /// Whether the spelling itself (`add_`, `+=`) writes into the first argument.
    spelled_in_place: bool,
}

/// The value of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// The call says it.
    Given(&'a Arg),
    /// The signature says it.
    Default(&'static Arg),
    /// What a variadic parameter collected.
    Rest(&'a [Arg]),
}

impl<'a> Value<'a> {
    /// The one argument there is.
    pub fn arg(&self) -> Option<&'a Arg> {
        match self {
            Value::Given(arg) => Some(arg),
            Value::Default(arg) => Some(arg),
            Value::Rest(_) => None,
        }
    }
}

static NONE: Arg = Arg::None;

impl<'a> Bound<'a> {
    /// The value of a parameter; `None` for one this overload does not have.
    pub fn arg(&self, name: &str) -> &'a Arg {
        let value = self.signature.position(name).and_then(|index| self.values[index].arg());
        value.unwrap_or(&NONE)
    }

    /// What a variadic parameter collected.
    pub fn rest(&self, name: &str) -> &'a [Arg] {
        match self.signature.position(name).map(|index| self.values[index]) {
            Some(Value::Rest(args)) => args,
            Some(Value::Given(arg)) => arg.as_sequence().unwrap_or(std::slice::from_ref(arg)),
            _ => &[],
        }
    }

    /// Whether the signature has such a parameter.
    pub fn has(&self, name: &str) -> bool {
        self.signature.position(name).is_some()
    }

    /// A literal integer, given or by default.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.arg(name).as_int()
    }

    /// A literal number, given or by default.
    pub fn float(&self, name: &str) -> Option<f64> {
        self.arg(name).as_float()
    }

    /// A literal truth; one that is not known counts as false.
    pub fn flag(&self, name: &str) -> bool {
        self.arg(name).as_bool().unwrap_or(false)
    }

    /// The class of the operation.
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

    /// The running statistics that a normalisation in training updates beside its result.
    pub fn updated(&self) -> impl Iterator<Item = &'a Arg> {
        let trains = self.flag("training") || self.flag("use_input_stats");
        let names: &[&str] = if trains { &["running_mean", "running_var"] } else { &[] };
        names.iter().map(|name| self.arg(name)).filter(|arg| !arg.is_none())
    }

    /// Whether the call changes memory that was there before it.
    pub fn writes(&self) -> bool {
        self.mutated().is_some() || self.updated().next().is_some()
    }

    /// Whether the call draws random numbers: dropout does so only in training.
    pub fn is_random(&self) -> bool {
        match self.op.class() {
            Class::Random => !self.has("training") || self.flag("training"),
            Class::Attention => {
                self.float("dropout_p").is_some_and(|p| p > 0.0)
                    && (!self.has("training") || self.flag("training"))
            }
            // Recurrent layers drop between layers.
            Class::Transform => {
                self.flag("train")
                    && self.float("dropout").is_some_and(|p| p > 0.0)
                    && self.int("num_layers").is_none_or(|layers| layers > 1)
            }
            _ => false,
        }
    }

    /// Whether the call must stay even when nothing uses its result.
    pub fn has_effect(&self) -> bool {
        self.op.class() == Class::Effect || self.writes() || self.is_random()
    }

    /// Whether the result is a tuple of tensors, not one tensor.
    pub fn gives_tuple(&self) -> bool {
        match self.op {
            Op::Chunk | Op::Split | Op::TensorSplit | Op::Unbind => true,
            Op::Meshgrid | Op::BroadcastTensors | Op::VarMean | Op::StdMean => true,
            Op::Cummax | Op::Cummin | Op::Topk | Op::Sort | Op::Aminmax | Op::Kthvalue => true,
            Op::Lstm | Op::Gru | Op::RnnTanh | Op::RnnRelu | Op::LstmCell => true,
            // A node there is the other tensor of two: where types are not known both forms bind.
            Op::Max | Op::Min | Op::Median => {
                self.has("dim") && !matches!(self.arg("dim"), Arg::None | Arg::Node(_))
            }
            Op::Nonzero => self.flag("as_tuple"),
            Op::MaxPool1d | Op::MaxPool2d | Op::MaxPool3d => self.flag("return_indices"),
            Op::AdaptiveMaxPool1d | Op::AdaptiveMaxPool2d | Op::AdaptiveMaxPool3d => {
                self.flag("return_indices")
            }
            Op::Unique | Op::UniqueConsecutive => {
                self.flag("return_inverse") || self.flag("return_counts")
            }
            _ => false,
        }
    }

    /// What the result shares with the first argument.
    pub fn alias(&self) -> Alias {
        if self.is_in_place() { Alias::View } else { self.op.alias() }
    }
}

impl Call {
    /// The arguments laid out by the operation's signature, or why no overload takes them.
    pub fn bind(&self) -> Result<Bound<'_>, String> {
        let Target::Known(spelling) = &self.target else {
            return Err(format!("unknown operation `{}`", self.target.path()));
        };
        let entry: &'static Entry = spelling.op.entry();
        let mut reason = None;
        for signature in &entry.signatures {
            match try_bind(self, signature) {
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
        let path = self.target.path();
        match reason {
            Some(why) => Err(format!("`{path}` does not take these arguments: {why}")),
            None => Err(format!("`{path}` does not take these arguments: it has no signature")),
        }
    }
}

/// Why a signature does not take the arguments of a call; put into words only if no other one does either.
#[derive(Debug, Clone, Copy)]
enum Mismatch<'a> {
    TooMany { takes: usize, got: usize },
    NoParameter(&'a str),
    TwoValues(&'a str),
    Missing(&'static str),
    Type(&'static Param),
}

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::TooMany { takes, got } => {
                write!(f, "takes at most {takes} positional arguments, got {got}")
            }
            Mismatch::NoParameter(name) => write!(f, "has no parameter `{name}`"),
            Mismatch::TwoValues(name) => write!(f, "got two values for `{name}`"),
            Mismatch::Missing(name) => write!(f, "misses `{name}`"),
            Mismatch::Type(param) => {
                let ty = format!("{:?}", param.ty).to_lowercase();
                write!(f, "`{}` must be a {ty}", param.name.to_lowercase())
            }
        }
    }
}

fn try_bind<'a>(
    call: &'a Call,
    signature: &'static Signature,
) -> Result<SmallVec<[Value<'a>; 8]>, Mismatch<'a>> {
    let mut values: SmallVec<[Value<'a>; 8]> = SmallVec::new();
    let mut rest = &call.args[..];
    while let Some((arg, later)) = rest.split_first() {
        let place = signature.params.get(values.len()).filter(|param| !param.keyword_only);
        let Some(param) = place else {
            return Err(Mismatch::TooMany { takes: values.len(), got: call.args.len() });
        };
        if param.variadic {
            values.push(bind_rest(rest, param)?);
            break;
        }
        check_type(arg, param)?;
        values.push(Value::Given(arg));
        rest = later;
    }
    let positional = values.len();
    every_keyword_fits(call, signature, positional)?;
    for param in &signature.params[positional..] {
        let keyword = call.kwargs.iter().find(|(name, _)| names(name, param, signature));
        values.push(match (keyword, &param.default) {
            (Some((_, arg)), _) if param.variadic => bind_rest(std::slice::from_ref(arg), param)?,
            (Some((_, arg)), _) => {
                check_type(arg, param)?;
                Value::Given(arg)
            }
            (None, _) if param.variadic => Value::Rest(&[]),
            (None, Some(default)) => Value::Default(default),
            (None, None) => return Err(Mismatch::Missing(param.name)),
        });
    }
    Ok(values)
}

/// Whether a keyword of a call means this parameter.
fn names(keyword: &str, param: &Param, signature: &Signature) -> bool {
    !is_ignored_keyword(keyword)
        && (keyword == param.name
            || (keyword_alias(keyword) == Some(param.name)
                && signature.position(keyword).is_none()))
}

/// Every keyword names a parameter that neither a positional argument nor another keyword has filled.
fn every_keyword_fits<'a>(
    call: &'a Call,
    signature: &'static Signature,
    positional: usize,
) -> Result<(), Mismatch<'a>> {
    for (index, (keyword, _)) in call.kwargs.iter().enumerate() {
        if is_ignored_keyword(keyword) {
            continue;
        }
        let named = |param: &Param| names(keyword, param, signature);
        let Some(place) = signature.params.iter().position(named) else {
            return Err(Mismatch::NoParameter(keyword));
        };
        let param = &signature.params[place];
        let before = call.kwargs[..index].iter();
        if place < positional || before.into_iter().any(|(other, _)| names(other, param, signature))
        {
            return Err(Mismatch::TwoValues(keyword));
        }
    }
    Ok(())
}

/// A variadic parameter takes `f(1, 2)` and `f((1, 2))` alike.
fn bind_rest<'a>(args: &'a [Arg], param: &'static Param) -> Result<Value<'a>, Mismatch<'a>> {
    let items = match args {
        [Arg::Tuple(items) | Arg::List(items)] => items,
        _ => args,
    };
    for item in items {
        check_type(item, param)?;
    }
    Ok(Value::Rest(items))
}

fn check_type(arg: &Arg, param: &'static Param) -> Result<(), Mismatch<'static>> {
    let none_allowed = arg.is_none() && matches!(param.default, Some(Arg::None));
    if none_allowed || param.ty.accepts(arg) { Ok(()) } else { Err(Mismatch::Type(param)) }
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
