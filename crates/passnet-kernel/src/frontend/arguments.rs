//! Binding call arguments to the parameter names of a builtin.

use super::value::Value;
use super::{Compiler, Result};
use crate::consts::Const;
use crate::types::{Elem, Shape};
use passnet_graph::syntax::sequence::position;
use passnet_graph::syntax::{Ranged, TextRange};

/// Evaluated arguments of one call.
#[derive(Debug)]
pub(super) struct Args<'a> {
    pub(super) positional: Vec<Value<'a>>,
    pub(super) named: Vec<(String, Value<'a>)>,
    pub(super) range: TextRange,
    /// As written, for messages.
    pub(super) callee: String,
}

impl Ranged for Args<'_> {
    fn range(&self) -> TextRange {
        self.range
    }
}

impl<'a> Compiler<'a> {
    /// Positions the arguments by name. The first `required` must be there; the others may be `None`.
    pub(super) fn bind<const N: usize>(
        &self,
        args: Args<'a>,
        names: [&str; N],
        required: usize,
    ) -> Result<[Option<Value<'a>>; N]> {
        let mut bound: [Option<Value<'a>>; N] = std::array::from_fn(|_| None);
        if args.positional.len() > N {
            let message = format!("`{}` takes at most {N} arguments", args.callee);
            return Err(self.error(&args.range, message));
        }
        for (slot, value) in bound.iter_mut().zip(args.positional) {
            *slot = Some(value);
        }
        for (name, value) in args.named {
            let Some(index) = names.iter().position(|n| *n == name) else {
                let message = format!("`{}` has no argument `{name}`", args.callee);
                return Err(self
                    .error(&args.range, message)
                    .with_hint(format!("it takes {}", names.join(", "))));
            };
            if bound[index].replace(value).is_some() {
                let message = format!("`{}` got `{name}` twice", args.callee);
                return Err(self.error(&args.range, message));
            }
        }
        for (index, slot) in bound.iter().enumerate().take(required) {
            if slot.is_none() {
                let message = format!("`{}` needs the argument `{}`", args.callee, names[index]);
                return Err(self.error(&args.range, message));
            }
        }
        Ok(bound)
    }

    pub(super) fn const_of(
        &self,
        at: &impl Ranged,
        value: &Value<'a>,
        what: &str,
    ) -> Result<Const> {
        value.to_const().ok_or_else(|| {
            self.error(
                at,
                format!("{what} must be known at compile time, not {}", value.describe()),
            )
            .with_hint("declare it as `tl.constexpr`")
        })
    }

    pub(super) fn const_int(&self, at: &impl Ranged, value: &Value<'a>, what: &str) -> Result<i64> {
        let c = self.const_of(at, value, what)?;
        c.as_int().ok_or_else(|| {
            self.error(at, format!("{what} must be an integer, not {}", c.type_name()))
        })
    }

    pub(super) fn const_bool(
        &self,
        at: &impl Ranged,
        value: Option<Value<'a>>,
        default: bool,
    ) -> Result<bool> {
        match value {
            None => Ok(default),
            Some(v) => Ok(self.const_of(at, &v, "this flag")?.truthy()),
        }
    }

    pub(super) fn const_elem(&self, at: &impl Ranged, value: &Value<'a>) -> Result<Elem> {
        match value {
            Value::Const(Const::Elem(e)) => Ok(*e),
            Value::TypeOf(v) if !self.b.ty(*v).is_ptr() => Ok(self.b.ty(*v).elem()),
            other => {
                Err(self.error(at, format!("expected an element type, not {}", other.describe())))
            }
        }
    }

    /// A block shape: a tuple of powers of two, or one of them.
    pub(super) fn const_shape(&self, at: &impl Ranged, value: &Value<'a>) -> Result<Shape> {
        let dims = match value {
            Value::Tuple(items) => items.clone(),
            other => vec![other.clone()],
        };
        let mut shape = Shape::new();
        let mut lanes = 1usize;
        for dim in dims {
            let dim = self.const_int(at, &dim, "a block dimension")?;
            let fits = u32::try_from(dim).ok().filter(|d| d.is_power_of_two());
            let Some(dim) = fits else {
                return Err(self
                    .error(at, format!("block dimension {dim} is not a power of two"))
                    .with_hint("round it up with `triton.next_power_of_2` and mask the rest"));
            };
            lanes = lanes.saturating_mul(dim as usize);
            shape.push(dim);
        }
        let ranks = crate::ir::verify::MAX_RANK;
        if shape.len() > ranks {
            return Err(self.error(at, format!("a block has at most {ranks} dimensions")));
        }
        if lanes > crate::ir::verify::MAX_LANES {
            let limit = crate::ir::verify::MAX_LANES;
            return Err(self.error(at, format!("block of {lanes} lanes; Triton allows {limit}")));
        }
        Ok(shape)
    }

    /// A list of dimension numbers.
    pub(super) fn const_ints(&self, at: &impl Ranged, value: &Value<'a>) -> Result<Vec<i64>> {
        match value {
            Value::Tuple(items) => {
                items.iter().map(|v| self.const_int(at, v, "a dimension")).collect()
            }
            other => Ok(vec![self.const_int(at, other, "a dimension")?]),
        }
    }

    /// An axis, negative ones counted from the end.
    pub(super) fn axis(&self, at: &impl Ranged, axis: i64, rank: usize) -> Result<u8> {
        position(axis, rank).map(|axis| axis as u8).ok_or_else(|| {
            self.error(at, format!("axis {axis} is out of range for a block of {rank} dimensions"))
        })
    }
}
