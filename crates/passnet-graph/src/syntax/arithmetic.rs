//! Python's arithmetic on numbers, for everyone who evaluates it. Integers have 128 bits: what computes with sizes may leave
//! 64 on the way.

use super::ast::Operator;

/// What an operator on integers gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Wider than any integer that is kept, so that overflow is seen.
    Int(i128),
    /// A float of Python.
    Float(f64),
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoResult {
    /// The result does not fit into what is kept.
    TooLarge,
    /// Python raises `ZeroDivisionError`.
    DivisionByZero,
    /// Python raises `ValueError`.
    NegativeShift,
    /// Numbers of this kind have no such operator.
    Unsupported,
}

/// Python's result for two integers, which may be a float.
pub fn integers(op: Operator, x: i128, y: i128) -> Result<Number, NoResult> {
    let divides = matches!(op, Operator::Div | Operator::FloorDiv | Operator::Mod);
    if divides && y == 0 {
        return Err(NoResult::DivisionByZero);
    }
    let shift = || u32::try_from(y).map_err(|_| NoResult::NegativeShift);
    let result = match op {
        Operator::Add => x.checked_add(y),
        Operator::Sub => x.checked_sub(y),
        Operator::Mult => x.checked_mul(y),
        Operator::Div => return Ok(Number::Float(x as f64 / y as f64)),
        Operator::FloorDiv => {
            x.checked_div(y).map(|quotient| quotient - i128::from(x % y != 0 && (x < 0) != (y < 0)))
        }
        Operator::Mod => {
            let rest = x.checked_rem(y).unwrap_or(0);
            Some(if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest })
        }
        Operator::Pow if y < 0 => return Ok(Number::Float((x as f64).powf(y as f64))),
        Operator::Pow => u32::try_from(y).ok().and_then(|exponent| x.checked_pow(exponent)),
        Operator::LShift if x == 0 => shift().map(|_| Some(0))?,
        Operator::LShift => {
            1i128.checked_shl(shift()?).filter(|m| *m > 0).and_then(|m| x.checked_mul(m))
        }
        Operator::RShift => Some(x >> shift()?.min(127)),
        Operator::BitAnd => Some(x & y),
        Operator::BitOr => Some(x | y),
        Operator::BitXor => Some(x ^ y),
        Operator::MatMult => return Err(NoResult::Unsupported),
    };
    result.map(Number::Int).ok_or(NoResult::TooLarge)
}

/// Python's result for two floats.
pub fn floats(op: Operator, x: f64, y: f64) -> Result<f64, NoResult> {
    let divides = matches!(op, Operator::Div | Operator::FloorDiv | Operator::Mod);
    if divides && y == 0.0 {
        return Err(NoResult::DivisionByZero);
    }
    Ok(match op {
        Operator::Add => x + y,
        Operator::Sub => x - y,
        Operator::Mult => x * y,
        Operator::Div => x / y,
        Operator::FloorDiv => (x / y).floor(),
        Operator::Mod => x - (x / y).floor() * y,
        Operator::Pow => x.powf(y),
        _ => return Err(NoResult::Unsupported),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_and_remainder_round_as_in_python() {
        for (x, y, quotient, rest) in
            [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1)]
        {
            assert_eq!(integers(Operator::FloorDiv, x, y), Ok(Number::Int(quotient)));
            assert_eq!(integers(Operator::Mod, x, y), Ok(Number::Int(rest)));
            assert_eq!(floats(Operator::FloorDiv, x as f64, y as f64), Ok(quotient as f64));
            assert_eq!(floats(Operator::Mod, x as f64, y as f64), Ok(rest as f64));
        }
        assert_eq!(integers(Operator::Div, 1, 2), Ok(Number::Float(0.5)));
        assert_eq!(integers(Operator::Pow, 2, -1), Ok(Number::Float(0.5)));
    }

    #[test]
    fn what_has_no_result_says_why() {
        assert_eq!(integers(Operator::Mod, 1, 0), Err(NoResult::DivisionByZero));
        assert_eq!(floats(Operator::Div, 1.0, 0.0), Err(NoResult::DivisionByZero));
        assert_eq!(integers(Operator::Pow, 10, 400), Err(NoResult::TooLarge));
        assert_eq!(integers(Operator::LShift, 1, 127), Err(NoResult::TooLarge));
        assert_eq!(integers(Operator::LShift, 0, 500), Ok(Number::Int(0)));
        assert_eq!(integers(Operator::RShift, -1, 500), Ok(Number::Int(-1)));
        assert_eq!(integers(Operator::LShift, 1, -1), Err(NoResult::NegativeShift));
        assert_eq!(integers(Operator::FloorDiv, i128::MIN, -1), Err(NoResult::TooLarge));
        assert_eq!(floats(Operator::BitAnd, 1.0, 1.0), Err(NoResult::Unsupported));
    }
}
