//! What operations do with Python's own numbers, where no tensor is involved: inference and the native engine ask here.

use super::Op;
use std::cmp::Ordering;

/// Why two floats have no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFloat {
    /// Python raises `ZeroDivisionError`.
    DivisionByZero,
    /// The operation takes no floats.
    Undefined,
}

/// The result of an operation on two floats.
pub fn floats(op: Op, a: f64, b: f64) -> Result<f64, NoFloat> {
    if b == 0.0 && matches!(op, Op::Div | Op::FloorDivide | Op::Remainder) {
        return Err(NoFloat::DivisionByZero);
    }
    Ok(match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Rsub => b - a,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::FloorDivide => (a / b).floor(),
        Op::Remainder => a - b * (a / b).floor(),
        Op::Pow | Op::FloatPower => a.powf(b),
        Op::Maximum | Op::SymMax => a.max(b),
        Op::Minimum | Op::SymMin => a.min(b),
        _ => return Err(NoFloat::Undefined),
    })
}

/// Whether a comparison holds for numbers in this order (`None`: one is NaN); `None` where the operation compares nothing.
pub fn holds(op: Op, order: Option<Ordering>) -> Option<bool> {
    use Ordering::{Equal, Greater, Less};
    Some(match op {
        Op::Eq => order == Some(Equal),
        Op::Ne => order != Some(Equal),
        Op::Lt => order == Some(Less),
        Op::Le => matches!(order, Some(Less | Equal)),
        Op::Gt => order == Some(Greater),
        Op::Ge => matches!(order, Some(Greater | Equal)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_divide_as_in_python() {
        assert_eq!(floats(Op::FloorDivide, -7.0, 2.0), Ok(-4.0));
        assert_eq!(floats(Op::Remainder, -7.0, 2.0), Ok(1.0));
        assert_eq!(floats(Op::Div, 1.0, 0.0), Err(NoFloat::DivisionByZero));
        assert_eq!(floats(Op::BitwiseAnd, 1.0, 1.0), Err(NoFloat::Undefined));
    }

    #[test]
    fn nothing_but_unequal_holds_for_nan() {
        let holding = [Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge].map(|op| holds(op, None));
        assert_eq!(holding, [false, true, false, false, false, false].map(Some));
        assert_eq!(holds(Op::Add, None), None);
    }
}
