//! Signatures in text, so that the table reads like torch's documentation.
//!
//! `input:T, dim:I=None, *, keepdim:B=False` — a name, a type letter, perhaps a default; `*` starts the
//! keyword-only part; `*size:I` takes the remaining positional arguments, or one sequence of them.

use crate::graph::arg::Arg;

/// The types that tell overloads apart. A reference to a node may turn out to be a tensor or a number, so it
/// fits wherever either could stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    /// `T`: a tensor.
    Tensor,
    /// `L`: a sequence of tensors.
    Tensors,
    /// `S`: a tensor or a number.
    Scalar,
    /// `N`: a number.
    Number,
    /// `I`: an integer.
    Int,
    /// `Z`: an integer or a sequence of integers.
    Ints,
    /// `B`: a bool.
    Bool,
    /// `W`: a string.
    Str,
    /// `D`: a dtype.
    Dtype,
    /// `V`: a device (or its name).
    Device,
    /// `A`: anything.
    Any,
}

/// A parameter of an overload.
#[derive(Debug)]
pub struct Param {
    /// As torch names it.
    pub name: &'static str,
    /// What it takes.
    pub ty: ParamType,
    /// What stands for it where a call leaves it out; `None`: a call must give it.
    pub default: Option<Arg>,
    /// Whether it stands behind the star.
    pub keyword_only: bool,
    /// Whether it also takes its items one by one, as in `x.view(2, 3)`.
    pub variadic: bool,
}

/// One overload of an operation.
#[derive(Debug)]
pub struct Signature {
    /// The notation it was parsed from.
    pub text: &'static str,
    /// Its parameters, in order.
    pub params: Vec<Param>,
}

impl Signature {
    pub(super) fn parse(text: &'static str) -> Self {
        let mut keyword_only = false;
        let mut params = Vec::new();
        for piece in split_top_level(text) {
            if piece == "*" {
                keyword_only = true;
                continue;
            }
            let (head, default) = match piece.split_once('=') {
                Some((head, default)) => (head, Some(parse_default(default))),
                None => (piece, None),
            };
            let (name, ty) = head.split_once(':').unwrap_or((head, "A"));
            let variadic = name.starts_with('*');
            params.push(Param {
                name: name.trim_start_matches('*'),
                ty: ParamType::parse(ty),
                default,
                keyword_only,
                variadic,
            });
            keyword_only |= variadic;
        }
        Signature { text, params }
    }

    /// The place of a parameter among all.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|param| param.name == name)
    }
}

impl ParamType {
    fn parse(letter: &str) -> Self {
        match letter.trim_end_matches('?') {
            "T" => ParamType::Tensor,
            "L" => ParamType::Tensors,
            "S" => ParamType::Scalar,
            "N" => ParamType::Number,
            "I" => ParamType::Int,
            "Z" => ParamType::Ints,
            "B" => ParamType::Bool,
            "W" => ParamType::Str,
            "D" => ParamType::Dtype,
            "V" => ParamType::Device,
            _ => ParamType::Any,
        }
    }

    /// Whether a value can stand here; `None` can stand wherever the default is `None` (checked by the caller).
    pub fn accepts(self, arg: &Arg) -> bool {
        match (self, arg) {
            (ParamType::Any, _) => true,
            (ParamType::Tensors, Arg::Tuple(items) | Arg::List(items)) => {
                items.iter().all(|item| matches!(item, Arg::Node(_) | Arg::None))
            }
            (ParamType::Dtype, Arg::Dtype(_)) => true,
            (ParamType::Device, Arg::Device(_) | Arg::Str(_) | Arg::Node(_)) => true,
            (ParamType::Dtype | ParamType::Device, _) => false,
            (_, Arg::Node(_)) => true,
            (ParamType::Tensor | ParamType::Tensors, _) => false,
            (ParamType::Scalar | ParamType::Number, Arg::Bool(_) | Arg::Int(_) | Arg::Float(_)) => {
                true
            }
            (ParamType::Int | ParamType::Ints | ParamType::Bool, Arg::Int(_) | Arg::Bool(_)) => {
                true
            }
            (ParamType::Ints, Arg::Tuple(items) | Arg::List(items)) => {
                items.iter().all(|item| matches!(item, Arg::Int(_) | Arg::Bool(_) | Arg::Node(_)))
            }
            (ParamType::Str, Arg::Str(_)) => true,
            _ => false,
        }
    }
}

/// Splits at commas outside parentheses.
fn split_top_level(text: &'static str) -> impl Iterator<Item = &'static str> {
    let mut depth = 0;
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|piece| !piece.is_empty())
}

fn parse_default(text: &str) -> Arg {
    let text = text.trim();
    match text {
        "None" => return Arg::None,
        "True" => return Arg::Bool(true),
        "False" => return Arg::Bool(false),
        "()" => return Arg::Tuple(Vec::new()),
        _ => {}
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        return Arg::Tuple(inner.split(',').map(parse_default).collect());
    }
    if let Some(inner) = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
        return Arg::Str(inner.into());
    }
    if let Ok(value) = text.parse::<i64>() {
        return Arg::Int(value);
    }
    text.parse().map_or(Arg::None, Arg::Float)
}
