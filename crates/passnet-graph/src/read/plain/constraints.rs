//! `input_tensor_constraints.py` as extraction writes it.

use super::Scanner;
use crate::read::constraints::{Constraints, EXAMPLES, INPUT_SHAPES, ShapeDim};

/// The assignments that repeat what the other two say.
const IMPLIED: [&str; 2] = ["dynamic_dim_constraint_symbols", "dynamic_dim_constraint_relations"];

/// The constraints of a file, if it holds nothing but imports of sympy, symbols and the four lists.
pub(in crate::read) fn constraints(text: &str) -> Option<Constraints> {
    let mut scanner = Scanner::new(text)?;
    let mut found = Constraints::default();
    loop {
        scanner.blank_lines();
        if scanner.is_at_end() {
            return found.undefined_symbol().is_none().then_some(found);
        }
        statement(&mut scanner, &mut found)?;
        scanner.line_end()?;
    }
}

fn statement(scanner: &mut Scanner<'_>, found: &mut Constraints) -> Option<()> {
    if scanner.take("from sympy import Symbol").is_some() {
        // With or without more names that nothing here uses.
        let _ = scanner.take(", Expr, Rel, Eq");
        return Some(());
    }
    let name = scanner.identifier()?;
    scanner.take(" = ")?;
    if name == EXAMPLES {
        found.symbols = scanner.items(["{", "}"], |scanner| {
            let name = symbol(scanner)?.to_owned();
            scanner.take(": ")?;
            Some((name, scanner.int()?))
        })?;
    } else if name == INPUT_SHAPES {
        found.input_shapes = scanner.items(["[", "]"], input_shape)?;
    } else if IMPLIED.contains(&name) {
        scanner.items(["[", "]"], symbol)?;
    } else if is_symbol(name) {
        scanner.take("Symbol(")?;
        scanner.string()?;
        scanner.take(")")?;
    } else {
        return None;
    }
    Some(())
}

/// `([64, S0], "name")`
fn input_shape(scanner: &mut Scanner<'_>) -> Option<(String, Vec<ShapeDim>)> {
    scanner.take("(")?;
    scanner.layout();
    let shape = scanner.items(["[", "]"], |scanner| match scanner.peek()? {
        b'S' => Some(ShapeDim::Symbol(symbol(scanner)?.to_owned())),
        _ => scanner.int().map(ShapeDim::Size),
    })?;
    scanner.take(",")?;
    scanner.layout();
    let name = scanner.string()?.to_owned();
    scanner.layout();
    let _ = scanner.take(",");
    scanner.layout();
    scanner.take(")")?;
    Some((name, shape))
}

fn symbol<'a>(scanner: &mut Scanner<'a>) -> Option<&'a str> {
    scanner.identifier().filter(|name| is_symbol(name))
}

fn is_symbol(name: &str) -> bool {
    let digits = name.strip_prefix('S').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
