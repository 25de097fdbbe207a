//! Expressions as Python: `S0*4 + 1`, and with room around the operators (`{:#}`) `S0 * 4 + 1`.

use super::{Atom, Dim, Expr, Nonlinear};
use std::fmt::{self, Display as _};
use std::sync::Arc;

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.expr {
            Some(expr) => expr.fmt(f),
            None => self.size.fmt(f),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        let times = if f.alternate() { " * " } else { "*" };
        // Constants sort first and read best last.
        let (constants, symbolic): (Vec<_>, Vec<_>) =
            self.terms.iter().partition(|(atoms, _)| atoms.is_empty());
        for (index, (atoms, coefficient)) in symbolic.into_iter().chain(constants).enumerate() {
            let magnitude = coefficient.unsigned_abs();
            match (index, *coefficient < 0) {
                (0, true) => f.write_str("-")?,
                (0, false) => {}
                (_, true) => f.write_str(" - ")?,
                (_, false) => f.write_str(" + ")?,
            }
            for (place, atom) in atoms.iter().enumerate() {
                if place > 0 {
                    f.write_str(times)?;
                }
                // Python divides and multiplies from left to right.
                match place > 0 && atom.is_division() {
                    true => write_in_parentheses(f, atom)?,
                    false => atom.fmt(f)?,
                }
            }
            match (atoms.is_empty(), magnitude) {
                (true, _) => write!(f, "{magnitude}")?,
                (false, 1) => {}
                (false, _) => write!(f, "{times}{magnitude}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, a, b) = match self {
            Atom::Symbol(name) => return f.write_str(name),
            Atom::Opaque => return f.write_str("?"),
            Atom::Group(inner) => return write_in_parentheses(f, &**inner),
            Atom::Binary(Nonlinear::FloorDiv, a, b) => return operation(f, "//", a, b),
            Atom::Binary(Nonlinear::Mod, a, b) => return operation(f, "%", a, b),
            Atom::Binary(Nonlinear::Max, a, b) => ("max", a, b),
            Atom::Binary(Nonlinear::Min, a, b) => ("min", a, b),
        };
        write!(f, "{name}(")?;
        a.fmt(f)?;
        f.write_str(", ")?;
        b.fmt(f)?;
        f.write_str(")")
    }
}

fn operation(f: &mut fmt::Formatter<'_>, operator: &str, a: &Expr, b: &Expr) -> fmt::Result {
    let operand = |f: &mut fmt::Formatter<'_>, expr: &Expr, is_bare: bool| match is_bare {
        true => expr.fmt(f),
        false => write_in_parentheses(f, expr),
    };
    operand(f, a, a.is_bare_operand() || a.is_product_of_group())?;
    let room = if f.alternate() { " " } else { "" };
    write!(f, "{room}{operator}{room}")?;
    operand(f, b, b.is_bare_divisor())
}

fn write_in_parentheses(f: &mut fmt::Formatter<'_>, part: &impl fmt::Display) -> fmt::Result {
    f.write_str("(")?;
    part.fmt(f)?;
    f.write_str(")")
}

/// The operators in the text of an expression.
#[derive(Default)]
struct Operators {
    /// Outside of all parentheses.
    divides: bool,
    multiplies: bool,
    /// In some parentheses.
    divides_inside: bool,
}

impl Operators {
    fn add(&mut self, expr: &Expr) {
        for (atoms, coefficient) in &expr.terms {
            let has_number = coefficient.unsigned_abs() != 1 && !atoms.is_empty();
            self.multiplies |= atoms.len() + usize::from(has_number) > 1;
            for atom in atoms {
                match atom {
                    Atom::Symbol(_) | Atom::Opaque => {}
                    Atom::Group(inner) => self.divides_inside |= inner.divides(),
                    Atom::Binary(Nonlinear::Max | Nonlinear::Min, a, b) => {
                        self.divides_inside |= a.divides() || b.divides();
                    }
                    Atom::Binary(Nonlinear::FloorDiv | Nonlinear::Mod, a, b) => {
                        self.divides = true;
                        let operands = [(a, a.is_bare_operand()), (b, b.is_bare_divisor())];
                        for (operand, is_bare) in operands {
                            match is_bare {
                                true => self.add(operand),
                                false => self.divides_inside |= operand.divides(),
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Atom {
    fn is_division(&self) -> bool {
        matches!(self, Atom::Binary(Nonlinear::FloorDiv | Nonlinear::Mod, ..))
    }
}

impl Expr {
    /// Whether it is written without parentheses on the right of a division.
    fn is_bare_divisor(&self) -> bool {
        let divides = self.terms.iter().flat_map(|(atoms, _)| atoms).any(Atom::is_division);
        self.is_bare_operand() && !divides
    }

    /// Whether it is written without parentheses on the left of a division.
    fn is_bare_operand(&self) -> bool {
        match self.terms.as_slice() {
            [] => true,
            [(atoms, 1)] if atoms.len() == 1 => true,
            [(atoms, value)] => atoms.is_empty() && *value >= 0,
            _ => false,
        }
    }

    /// Whether it is a product that begins with parentheses: on the left of a division it reads well without others.
    fn is_product_of_group(&self) -> bool {
        let begins = |atoms: &[Atom]| matches!(atoms.first(), Some(Atom::Group(_)));
        matches!(self.terms.as_slice(), [(atoms, 1..)] if begins(atoms))
    }

    fn divides(&self) -> bool {
        self.any(&Atom::is_division)
    }
}

impl Dim {
    /// The same as one factor, in parentheses where it divides. `None` where products and divisions stand side by side:
    /// their order cannot be read off the text.
    pub fn as_factor(&self) -> Option<Dim> {
        let Some(expr) = self.expr.as_ref().filter(|expr| expr.divides()) else {
            return Some(self.clone());
        };
        let mut operators = Operators::default();
        operators.add(expr);
        if operators.divides_inside || operators.divides && operators.multiplies {
            return None;
        }
        Some(Dim { size: self.size, expr: Some(Arc::new(expr.copy().in_parentheses())) })
    }
}
