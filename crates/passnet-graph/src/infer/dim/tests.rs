use super::*;
use proptest::prelude::*;

fn s(size: i64) -> Dim {
    Dim::symbol("S0", size)
}

#[test]
fn expressions_simplify_and_print() -> Result<(), Problem> {
    assert_eq!(s(5).scaled(4)?.to_string(), "S0*4");
    assert_eq!(s(5).divided(2)?.offset(1)?.to_string(), "S0//2 + 1");
    assert_eq!(s(5).scaled(4)?.divided(2)?.to_string(), "S0*2");
    assert_eq!(s(5).offset(3)?.sub(&s(5))?.to_string(), "3");
    assert!(!s(5).sub(&s(5))?.is_symbolic());
    let area = s(4).mul(&Dim::symbol("S1", 6))?;
    assert_eq!(area.floor_div(&s(4))?.to_string(), "S1");
    assert_eq!(Dim::fixed(0).sub(&s(3))?.offset(-1)?.to_string(), "-S0 - 1");
    assert_eq!(s(7).offset(1)?.divided(2)?.to_string(), "(S0 + 1)//2");
    assert_eq!(s(7).scaled(8)?.divided(48)?.to_string(), "S0//6");
    Ok(())
}

#[test]
fn parentheses_make_one_factor() -> Result<(), Problem> {
    let (x, y) = (s(12), Dim::symbol("S1", 3));
    let quotient = x.scaled(4)?.quotient(&Dim::fixed(8))?;
    assert_eq!((quotient.to_string().as_str(), quotient.size), ("((S0*4)//8)", 6));
    let product = y.mul(&quotient)?;
    assert_eq!(product.to_string(), "((S0*4)//8)*S1");
    assert_eq!(format!("{product:#}"), "((S0 * 4) // 8) * S1");
    let values = |name: &str| Some(if name == "S0" { 12 } else { 3 });
    assert_eq!(product.evaluate(&values), Some(18));
    assert_eq!(product.floor_div(&y)?, quotient);
    assert!(product.has_quotient() && !x.mul(&y)?.has_quotient());
    let factor = |dim: Dim| dim.as_factor().map(|dim| format!("{dim:#}"));
    assert_eq!(factor(x.mul(&y)?).as_deref(), Some("S0 * S1"));
    assert_eq!(factor(x.offset(1)?.divided(5)?.offset(2)?).as_deref(), Some("((S0 + 1) // 5 + 2)"));
    assert_eq!(factor(x.divided(5)?.mul(&y)?), None);
    assert_eq!(factor(x.divided(5)?.offset(1)?.divided(2)?), None);
    assert!(x.quotient(&Dim::fixed(0)).is_err());
    Ok(())
}

#[test]
fn text_is_read_from_left_to_right_as_python_does() -> Result<(), Problem> {
    let (x, y) = (s(12), Dim::symbol("A", 30));
    let half = x.divided(5)?;
    assert_eq!(y.floor_div(&half)?.to_string(), "A//(S0//5)");
    assert_eq!(y.modulo(&half)?.to_string(), "A%(S0//5)");
    assert_eq!(half.divided(3)?.to_string(), "S0//5//3");
    assert_eq!(y.mul(&half)?.to_string(), "A*(S0//5)");
    assert_eq!(y.floor_div(&half)?.as_factor(), None, "not even in parentheses of its own");
    Ok(())
}

#[test]
fn what_is_a_product_of_symbols_says_so() -> Result<(), Problem> {
    let area = s(4).mul(&Dim::symbol("S1", 6))?;
    assert_eq!(area.scaled(2)?.symbols(), Some((vec!["S0", "S1"], 2)));
    assert_eq!(Dim::fixed(7).symbols(), Some((vec![], 7)));
    assert_eq!(area.offset(1)?.symbols(), None);
    assert_eq!(area.divided(5)?.symbols(), None);
    Ok(())
}

#[test]
fn overflow_and_division_by_zero_are_errors() {
    assert!(Dim::fixed(i64::MAX).offset(1).is_err());
    assert!(Dim::fixed(i64::MIN).divided(-1).is_err());
    assert!(s(3).divided(0).is_err());
    assert!(s(3).modulo(&Dim::fixed(0)).is_err());
}

#[test]
fn growth_is_bounded() -> Result<(), Problem> {
    let mut dim = s(1);
    for step in 0..10_000 {
        dim = dim.offset(step % 3)?.divided(2)?.max(&s(1))?;
    }
    assert!(dim.to_string().len() < 10_000);
    assert!(!dim.is_known() && s(1).is_known());
    Ok(())
}

proptest! {
    /// The expression evaluated at the example value is the size, and Python's `//` and `%` are kept.
    #[test]
    fn expression_and_size_agree(
        a in -50i64..50, b in 1i64..50, steps in proptest::collection::vec((0..7, -9i64..9), 0..12),
    ) {
        let (x, y) = (Dim::symbol("A", a), Dim::symbol("B", b));
        let mut dim = x.clone();
        for (kind, constant) in steps {
            let next = match kind {
                0 => dim.add(&y),
                1 => dim.sub(&x),
                2 => dim.scaled(constant),
                3 => dim.floor_div(&y),
                4 => dim.modulo(&y),
                5 => dim.max(&Dim::fixed(constant)),
                _ => dim.min(&y),
            };
            prop_assume!(next.is_ok());
            dim = next.unwrap_or(dim);
        }
        let symbols = |name: &str| Some(if name == "A" { a } else { b });
        if let Some(value) = dim.evaluate(&symbols) {
            prop_assert_eq!(value, dim.size, "{}", dim);
        }
    }
}
