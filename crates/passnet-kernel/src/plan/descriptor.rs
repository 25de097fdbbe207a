//! `TensorDescriptor` made by a wrapper: a tensor with the block that a kernel loads from it at once.

use super::call_args::CallArgs;
use super::interp::{Interp, Result};
use super::value::{Descriptor, Value};
use super::{ArgValue, LaunchArg};
use crate::consts::Const;
use crate::types::Elem;
use passnet_graph::syntax::Ranged;
use std::cell::RefCell;
use std::rc::Rc;

/// A GPU's own limit.
const MAX_RANK: usize = 5;

impl<'a> Interp<'a> {
    /// `TensorDescriptor(base, shape, strides, block_shape, padding)`, or `from_tensor` with what the tensor says itself.
    pub(super) fn make_descriptor(
        &mut self,
        args: &CallArgs<'a>,
        from_tensor: bool,
    ) -> Result<Value<'a>> {
        let at = args.range;
        let Some(Value::Tensor(tensor)) = args.get(0, if from_tensor { "tensor" } else { "base" })
        else {
            return Err(self.error(&at, "`TensorDescriptor` needs a tensor"));
        };
        let (shape, strides, place) = match from_tensor {
            true => (tensor.shape.clone(), tensor.stride.clone(), 1),
            false => (
                self.numbers(&at, args.get(1, "shape"), "shape")?,
                self.numbers(&at, args.get(2, "strides"), "strides")?,
                3,
            ),
        };
        let block = self.block_sizes(&at, args.get(place, "block_shape"))?;
        let nan = match args.get(place + 1, "padding") {
            None => false,
            Some(Value::Const(Const::Str(text))) if text == "zero" => false,
            Some(Value::Const(Const::Str(text))) if text == "nan" => true,
            Some(other) => {
                return Err(self.error(&at, format!("padding {}", other.describe())));
            }
        };
        let rank = shape.len();
        if rank == 0 || rank > MAX_RANK || strides.len() != rank || block.len() != rank {
            return Err(self.error(
                &at,
                format!(
                    "a descriptor has one to {MAX_RANK} sizes, and as many strides and block sizes"
                ),
            ));
        }
        if strides.last() != Some(&1) {
            return Err(self
                .error(&at, "the last stride of a descriptor is 1")
                .with_hint("call `.contiguous()` first, or load through pointers"));
        }
        let block = RefCell::new(block);
        Ok(Value::Descriptor(Rc::new(Descriptor { tensor, shape, strides, block, nan })))
    }

    fn numbers(
        &mut self,
        at: &impl Ranged,
        value: Option<Value<'a>>,
        what: &str,
    ) -> Result<Vec<i64>> {
        let items = match value {
            Some(value) => self.iterate(at, &value)?,
            None => return Err(self.error(at, format!("a descriptor needs `{what}`"))),
        };
        let numbers: Option<Vec<i64>> = items.iter().map(Value::as_int).collect();
        numbers.ok_or_else(|| self.error(at, format!("`{what}` holds integers")))
    }

    fn block_sizes(&mut self, at: &impl Ranged, value: Option<Value<'a>>) -> Result<Vec<i64>> {
        let sizes = self.numbers(at, value, "block_shape")?;
        match sizes.iter().find(|&&size| size <= 0 || size.count_ones() != 1) {
            Some(size) => Err(self
                .error(at, format!("block dimension {size} is not a power of two"))
                .with_hint(
                    "round it up with `triton.next_power_of_2`; what is outside reads as zero",
                )),
            None => Ok(sizes),
        }
    }

    pub(super) fn descriptor_attribute(
        &self,
        at: &impl Ranged,
        descriptor: &Descriptor,
        name: &str,
    ) -> Result<Value<'a>> {
        Ok(match name {
            "base" => Value::Tensor(Rc::clone(&descriptor.tensor)),
            "shape" => Value::ints(&descriptor.shape),
            "strides" => Value::ints(&descriptor.strides),
            "block_shape" => Value::ints(&descriptor.block.borrow()),
            _ => return Err(self.error(at, format!("a descriptor has no attribute `{name}`"))),
        })
    }

    /// `descriptor.block_shape = [...]`
    pub(super) fn set_descriptor_block(
        &mut self,
        at: &impl Ranged,
        descriptor: &Descriptor,
        name: &str,
        value: &Value<'a>,
    ) -> Result<()> {
        let numbers = self.block_sizes(at, Some(value.clone()))?;
        if name != "block_shape" || numbers.len() != descriptor.shape.len() {
            return Err(
                self.error(at, "only `block_shape` of a descriptor can be set, to as many sizes")
            );
        }
        *descriptor.block.borrow_mut() = numbers;
        Ok(())
    }
}

impl Descriptor {
    /// The arguments that a kernel is launched with for it.
    pub(super) fn launch_args(&self, name: &str, args: &mut Vec<LaunchArg>) {
        let mut push =
            |part: String, value| args.push(LaunchArg { name: format!("{name}.{part}"), value });
        push("base".into(), ArgValue::Buffer(self.tensor.view()));
        for (part, numbers) in [("shape", &self.shape), ("strides", &self.strides)] {
            for (d, &value) in numbers.iter().enumerate() {
                push(format!("{part}.{d}"), ArgValue::Int { value, elem: Elem::I64 });
            }
        }
        let block = self.block.borrow().iter().map(|&size| Const::Int(size)).collect();
        push("block".into(), ArgValue::Const(Const::Tuple(block)));
        push("nan".into(), ArgValue::Const(Const::Bool(self.nan)));
    }
}
