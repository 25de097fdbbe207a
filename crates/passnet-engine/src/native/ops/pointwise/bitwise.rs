//! Operations on bits and on truth values.

use super::blocks;
use super::unary::pick;
use crate::native::error::{Result, ensure};
use crate::native::tensor::{Arg, Tensor, promote};
use passnet_graph::DType;

/// Operations on the bits of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the operators of Python")]
pub enum Bitwise {
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// Operations on truths, for any type of operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "torch's names, after `logical_`")]
pub enum Logical {
    And,
    Or,
    Xor,
}

/// `&`, `|`, `^`, `<<`, `>>` of integers and bools.
pub fn bitwise(op: Bitwise, a: &Arg, b: &Arg) -> Result<Tensor> {
    let dtype = promote::result_type([a, b]);
    ensure!(
        !dtype.is_float() && !dtype.is_complex(),
        DType,
        "\"bitwise_{op:?}\" not implemented for '{dtype}'"
    );
    let (a, b) = (a.to_tensor()?, b.to_tensor()?);
    let bits = (dtype.size() * 8) as i64;
    blocks::map::<i64>(&[&a, &b], dtype, &|inputs, out| {
        for (at, o) in out.iter_mut().enumerate() {
            let (a, b) = (pick(&inputs[0], at), pick(&inputs[1], at));
            *o = match op {
                Bitwise::And => a & b,
                Bitwise::Or => a | b,
                Bitwise::Xor => a ^ b,
                Bitwise::ShiftLeft if (0..bits).contains(&b) => a.wrapping_shl(b as u32),
                Bitwise::ShiftLeft => 0,
                Bitwise::ShiftRight => a >> b.clamp(0, 63),
            };
        }
    })
}

/// `~`: the complement of integers, the negation of bools.
pub fn bitwise_not(input: &Tensor) -> Result<Tensor> {
    let dtype = input.dtype();
    ensure!(
        !dtype.is_float() && !dtype.is_complex(),
        DType,
        "\"bitwise_not_cpu\" not implemented for '{dtype}'"
    );
    let truth = dtype == DType::Bool;
    blocks::map::<i64>(&[input], dtype, &|inputs, out| {
        for (at, o) in out.iter_mut().enumerate() {
            let value = pick(&inputs[0], at);
            *o = if truth { 1 - value } else { !value };
        }
    })
}

/// Truth of elements, any type.
fn truth(input: &Tensor) -> Result<Tensor> {
    input.to_dtype(DType::Bool)
}

/// `torch.logical_and` and its like: zero is false, all else is true.
pub fn logical(op: Logical, a: &Arg, b: &Arg) -> Result<Tensor> {
    let (a, b) = (truth(&a.to_tensor()?)?, truth(&b.to_tensor()?)?);
    let op = match op {
        Logical::And => Bitwise::And,
        Logical::Or => Bitwise::Or,
        Logical::Xor => Bitwise::Xor,
    };
    bitwise(op, &a.into(), &b.into())
}

/// `torch.logical_not`.
pub fn logical_not(input: &Tensor) -> Result<Tensor> {
    bitwise_not(&truth(input)?)
}
