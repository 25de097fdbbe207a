//! How much arithmetic a call does.

use super::{Class, Op};

/// Multiplications and additions of a call, from the shapes of its arguments in the order of the signature (none where
/// an argument is no tensor) and the number of elements it makes. One for each element where the operation is no sum
/// of products.
pub fn flops(op: Op, arguments: &[Option<Vec<u64>>], made: u64) -> u64 {
    let shape = |index: usize| arguments.get(index).and_then(Option::as_deref);
    let elements = |shape: &[u64]| shape.iter().product::<u64>();
    let last = |index: usize| shape(index).and_then(|shape| shape.last().copied()).unwrap_or(1);
    let taps = || shape(1).and_then(|weight| weight.get(1..)).map_or(1, elements);
    match op {
        Op::Linear | Op::Matmul | Op::Mm | Op::Bmm | Op::Mv | Op::Dot => 2 * made * last(0),
        Op::Addmm | Op::Baddbmm | Op::Addbmm => 2 * made * last(1),
        Op::Conv1d | Op::Conv2d | Op::Conv3d => 2 * made * taps(),
        Op::ConvTranspose1d | Op::ConvTranspose2d | Op::ConvTranspose3d => {
            2 * shape(0).map_or(0, elements) * taps()
        }
        Op::ScaledDotProductAttention => {
            let keys = shape(1).and_then(|keys| keys.iter().rev().nth(1).copied()).unwrap_or(1);
            4 * made * keys
        }
        op => match op.class() {
            Class::Pointwise => made,
            Class::Reduction | Class::Normalisation | Class::Pooling | Class::Scan => {
                shape(0).map_or(0, elements)
            }
            _ => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_count_twice_and_the_rest_once() {
        let shapes =
            |all: &[&[u64]]| all.iter().map(|shape| Some(shape.to_vec())).collect::<Vec<_>>();
        assert_eq!(flops(Op::Linear, &shapes(&[&[4, 8], &[16, 8]]), 64), 2 * 4 * 8 * 16);
        assert_eq!(flops(Op::Addmm, &shapes(&[&[16], &[4, 8], &[8, 16]]), 64), 2 * 4 * 8 * 16);
        assert_eq!(flops(Op::Conv2d, &shapes(&[&[1, 3, 8, 8], &[6, 3, 3, 3]]), 216), 2 * 216 * 27);
        assert_eq!(flops(Op::Relu, &shapes(&[&[4, 8]]), 32), 32);
        assert_eq!(flops(Op::Sum, &shapes(&[&[4, 8]]), 4), 32);
        assert_eq!(flops(Op::Transpose, &shapes(&[&[4, 8]]), 32), 0);
        assert_eq!(flops(Op::Conv2d, &[None], 216), 432, "what is not known counts as little");
    }
}
