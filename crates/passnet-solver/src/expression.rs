//! Expressions of kernels as trees, printed once, with parentheses only where they are needed or help a reader.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// What a kernel computes for one element. `V` is what values are known by: operands by number while a graph is lowered,
/// names when the kernel is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr<V> {
    Value(V),
    Literal(Literal),
    Unary(Unary, Box<Expr<V>>),
    Binary(Binary, Box<Expr<V>>, Box<Expr<V>>),
    /// A function with its arguments and those that go by a name.
    Call(&'static str, Vec<Expr<V>>, Vec<(&'static str, Expr<V>)>),
    Cast(Type, Box<Expr<V>>),
    /// A row of lanes made a column of a tile, or a row of it.
    Lifted(Lift, Box<Expr<V>>),
}

/// An expression over operands that go by their numbers.
pub type Formula = Expr<usize>;

/// The first operands of a formula.
pub const A: Formula = Expr::Value(0);
pub const B: Formula = Expr::Value(1);
pub const C: Formula = Expr::Value(2);
pub const D: Formula = Expr::Value(3);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal {
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A constant of Triton's language.
    Constant(&'static str),
}

impl Literal {
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Literal::Bool(value) => Some(f64::from(value)),
            Literal::Int(value) => Some(value as f64),
            Literal::Float(value) => Some(value),
            Literal::Constant(_) => None,
        }
    }

    /// What a negative whole number is without its sign.
    pub fn negated(self) -> Option<i64> {
        match self {
            Literal::Int(value) if value < 0 => value.checked_neg(),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    Minus,
    Invert,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    Plus,
    Minus,
    Times,
    Over,
    /// Whole division, as the language does it.
    FloorOver,
    Modulo,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    And,
    Or,
    Xor,
}

/// What a value is converted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    Float32,
    Int32,
    Int64,
    /// A float's bits as a whole number.
    BitsOfFloat,
    /// The float whose bits a whole number has.
    FloatOfBits,
    /// That of the elements that a pointer points to.
    Pointed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lift {
    Rows,
    Columns,
}

/// How tightly an expression holds together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Other,
    Sum,
    Product,
    Atom,
}

impl<V> Expr<V> {
    pub fn int(value: i64) -> Self {
        Expr::Literal(Literal::Int(value))
    }

    pub fn float(value: f64) -> Self {
        Expr::Literal(Literal::Float(value))
    }

    pub fn bool(value: bool) -> Self {
        Expr::Literal(Literal::Bool(value))
    }

    pub fn binary(operator: Binary, left: Self, right: Self) -> Self {
        Expr::Binary(operator, Box::new(left), Box::new(right))
    }

    pub fn call<const N: usize>(function: &'static str, arguments: [Self; N]) -> Self {
        Expr::Call(function, arguments.into(), Vec::new())
    }

    /// The same call with one more argument that goes by a name.
    pub fn with(self, name: &'static str, value: Self) -> Self {
        match self {
            Expr::Call(function, arguments, mut named) => {
                named.push((name, value));
                Expr::Call(function, arguments, named)
            }
            other => other,
        }
    }

    /// `yes` where the condition holds, else `no`.
    pub fn select(condition: Self, yes: Self, no: Self) -> Self {
        Expr::call("tl.where", [condition, yes, no])
    }

    pub fn to(self, ty: Type) -> Self {
        Expr::Cast(ty, Box::new(self))
    }

    /// Whether it is one of Python's numbers, or arithmetic of them.
    pub fn is_number(&self) -> bool {
        match self {
            Expr::Literal(literal) => matches!(literal, Literal::Int(_) | Literal::Float(_)),
            Expr::Unary(_, inner) => inner.is_number(),
            Expr::Binary(_, a, b) => a.is_number() && b.is_number(),
            _ => false,
        }
    }

    pub fn lifted(self, lift: Lift) -> Self {
        Expr::Lifted(lift, Box::new(self))
    }

    pub fn equals(self, other: Self) -> Self {
        Expr::binary(Binary::Equal, self, other)
    }

    pub fn differs(self, other: Self) -> Self {
        Expr::binary(Binary::Unequal, self, other)
    }

    pub fn below(self, other: Self) -> Self {
        Expr::binary(Binary::Less, self, other)
    }

    pub fn above(self, other: Self) -> Self {
        Expr::binary(Binary::Greater, self, other)
    }

    pub fn and(self, other: Self) -> Self {
        Expr::binary(Binary::And, self, other)
    }

    pub fn or(self, other: Self) -> Self {
        Expr::binary(Binary::Or, self, other)
    }

    pub fn as_literal(&self) -> Option<Literal> {
        match self {
            Expr::Literal(literal) => Some(*literal),
            _ => None,
        }
    }

    /// Visits every part, the whole first.
    pub fn for_each(&self, visit: &mut impl FnMut(&Expr<V>)) {
        visit(self);
        match self {
            Expr::Value(_) | Expr::Literal(_) => {}
            Expr::Unary(_, inner) | Expr::Cast(_, inner) | Expr::Lifted(_, inner) => {
                inner.for_each(visit);
            }
            Expr::Binary(_, left, right) => {
                left.for_each(visit);
                right.for_each(visit);
            }
            Expr::Call(_, arguments, named) => {
                arguments.iter().for_each(|argument| argument.for_each(visit));
                named.iter().for_each(|(_, argument)| argument.for_each(visit));
            }
        }
    }

    pub fn for_each_value(&self, visit: &mut impl FnMut(&V)) {
        self.for_each(&mut |part| {
            if let Expr::Value(value) = part {
                visit(value);
            }
        });
    }

    /// The same expression over other values.
    pub fn map<W>(&self, value: &impl Fn(&V) -> Expr<W>) -> Expr<W> {
        let inner = |expr: &Expr<V>| Box::new(expr.map(value));
        match self {
            Expr::Value(known) => value(known),
            Expr::Literal(literal) => Expr::Literal(*literal),
            Expr::Unary(operator, of) => Expr::Unary(*operator, inner(of)),
            Expr::Binary(operator, left, right) => {
                Expr::Binary(*operator, inner(left), inner(right))
            }
            Expr::Call(function, arguments, named) => Expr::Call(
                function,
                arguments.iter().map(|argument| argument.map(value)).collect(),
                named.iter().map(|(name, argument)| (*name, argument.map(value))).collect(),
            ),
            Expr::Cast(ty, of) => Expr::Cast(ty.clone(), inner(of)),
            Expr::Lifted(lift, of) => Expr::Lifted(*lift, inner(of)),
        }
    }

    fn binding(&self) -> Binding {
        match self {
            Expr::Literal(Literal::Int(value)) if *value < 0 => Binding::Other,
            Expr::Literal(Literal::Float(value))
                if value.is_finite() && value.is_sign_negative() =>
            {
                Binding::Other
            }
            Expr::Binary(operator, ..) => operator.binding(),
            Expr::Unary(..) => Binding::Other,
            _ => Binding::Atom,
        }
    }

    fn operator(&self) -> Option<Binary> {
        match self {
            Expr::Binary(operator, ..) => Some(*operator),
            _ => None,
        }
    }
}

impl Binary {
    fn binding(self) -> Binding {
        use Binary::{FloorOver, Minus, Modulo, Over, Plus, Times};
        match self {
            Plus | Minus => Binding::Sum,
            Times | Over | FloorOver | Modulo => Binding::Product,
            _ => Binding::Other,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Binary::Plus => "+",
            Binary::Minus => "-",
            Binary::Times => "*",
            Binary::Over => "/",
            Binary::FloorOver => "//",
            Binary::Modulo => "%",
            Binary::Equal => "==",
            Binary::Unequal => "!=",
            Binary::Less => "<",
            Binary::AtMost => "<=",
            Binary::Greater => ">",
            Binary::AtLeast => ">=",
            Binary::And => "&",
            Binary::Or => "|",
            Binary::Xor => "^",
        }
    }

    /// Whether an operand stands beside the sign as it is. Sums and products keep their order from left to right; whole
    /// quotients and everything inside comparisons have parentheses of their own, for the reader.
    fn takes<V>(self, operand: &Expr<V>, is_left: bool) -> bool {
        use Binary::{And, FloorOver, Minus, Modulo, Over, Plus, Times};
        use Binary::{AtLeast, AtMost, Equal, Greater, Less, Unequal};
        let binding = operand.binding();
        if binding == Binding::Atom {
            return true;
        }
        match self {
            Equal | Unequal | Less | AtMost | Greater | AtLeast => {
                !is_left && operand.as_literal().is_some()
            }
            Plus | Minus => binding == Binding::Product || (binding == Binding::Sum && is_left),
            Times | Over => {
                binding == Binding::Product && is_left && operand.operator() != Some(FloorOver)
            }
            Modulo => is_left && operand.operator() == Some(FloorOver),
            And => is_left && operand.operator() == Some(And),
            _ => false,
        }
    }
}

impl<V: fmt::Display> Expr<V> {
    fn fmt_operand(&self, is_bare: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_bare { write!(f, "{self}") } else { write!(f, "({self})") }
    }
}

impl<V: fmt::Display> fmt::Display for Expr<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Value(value) => value.fmt(f),
            Expr::Literal(literal) => literal.fmt(f),
            Expr::Unary(operator, of) => {
                f.write_str(if *operator == Unary::Minus { "-" } else { "~" })?;
                of.fmt_operand(of.binding() == Binding::Atom, f)
            }
            Expr::Binary(operator, left, right) => {
                left.fmt_operand(operator.takes(left, true), f)?;
                write!(f, " {} ", operator.sign())?;
                right.fmt_operand(operator.takes(right, false), f)
            }
            Expr::Call(function, arguments, named) => {
                write!(f, "{function}(")?;
                for (number, argument) in arguments.iter().enumerate() {
                    let comma = if number > 0 { ", " } else { "" };
                    write!(f, "{comma}{argument}")?;
                }
                for (number, (name, argument)) in named.iter().enumerate() {
                    let comma = if arguments.len() + number > 0 { ", " } else { "" };
                    write!(f, "{comma}{name}={argument}")?;
                }
                f.write_str(")")
            }
            Expr::Cast(ty, of) => {
                of.fmt_operand(of.binding() == Binding::Atom, f)?;
                write!(f, ".to({ty})")
            }
            Expr::Lifted(lift, of) => {
                of.fmt_operand(of.binding() == Binding::Atom, f)?;
                f.write_str(if *lift == Lift::Rows { "[:, None]" } else { "[None, :]" })
            }
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Bool(true) => f.write_str("True"),
            Literal::Bool(false) => f.write_str("False"),
            Literal::Int(value) => write!(f, "{value}"),
            Literal::Float(value) if value.is_nan() => f.write_str("float(\"nan\")"),
            Literal::Float(f64::INFINITY) => f.write_str("float(\"inf\")"),
            Literal::Float(f64::NEG_INFINITY) => f.write_str("float(\"-inf\")"),
            Literal::Float(value) => write!(f, "{value:?}"),
            Literal::Constant(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Float32 => f.write_str("tl.float32"),
            Type::Int32 => f.write_str("tl.int32"),
            Type::Int64 => f.write_str("tl.int64"),
            Type::BitsOfFloat => f.write_str("tl.int32, bitcast=True"),
            Type::FloatOfBits => f.write_str("tl.float32, bitcast=True"),
            Type::Pointed(pointer) => write!(f, "{pointer}.dtype.element_ty"),
        }
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $operator:ident),*) => { $(
        impl<V> $trait for Expr<V> {
            type Output = Expr<V>;

            fn $method(self, other: Expr<V>) -> Expr<V> {
                Expr::binary(Binary::$operator, self, other)
            }
        }
    )* };
}
operators!(Add add Plus, Sub sub Minus, Mul mul Times, Div div Over);

impl<V> Neg for Expr<V> {
    type Output = Expr<V>;

    fn neg(self) -> Expr<V> {
        Expr::Unary(Unary::Minus, Box::new(self))
    }
}

#[cfg(test)]
mod tests {
    use super::{Binary, Expr, Lift, Type};

    fn name(text: &'static str) -> Expr<&'static str> {
        Expr::Value(text)
    }

    #[test]
    fn parentheses_stand_where_the_order_needs_them() {
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let [a, b, c] = [&a, &b, &c].map(|value| || value.clone());
        let over = |x, y| Expr::binary(Binary::FloorOver, x, y);
        let modulo = |x, y| Expr::binary(Binary::Modulo, x, y);
        for (tree, text) in [
            (a() + b() * c(), "a + b * c"),
            ((a() + b()) * c(), "(a + b) * c"),
            (a() - (b() - c()), "a - (b - c)"),
            (a() - b() - c(), "a - b - c"),
            (a() / (b() * c()), "a / (b * c)"),
            (a() / b() * c(), "a / b * c"),
            (-(a() + b()), "-(a + b)"),
            (a() * Expr::float(-1.5), "a * (-1.5)"),
            (a() * -b(), "a * (-b)"),
            ((a() * b()).below(Expr::int(-3)), "(a * b) < -3"),
            (a().below(b()).and(b().below(c())).and(c()), "(a < b) & (b < c) & c"),
            (a().and(b().and(c())), "a & (b & c)"),
            (over(a() + b(), c()) * c(), "((a + b) // c) * c"),
            (modulo(over(a(), b()), c()), "a // b % c"),
            (modulo(a(), b()) * c() + a(), "a % b * c + a"),
            (Expr::select(a().above(b()), a() + b(), Expr::int(-1)), "tl.where(a > b, a + b, -1)"),
            ((a() + b()).to(Type::Float32), "(a + b).to(tl.float32)"),
            (Expr::float(-2.0).to(Type::Int64), "(-2.0).to(tl.int64)"),
            (a().to(Type::Pointed("x_ptr".into())), "a.to(x_ptr.dtype.element_ty)"),
            (a().lifted(Lift::Rows) + b().lifted(Lift::Columns), "a[:, None] + b[None, :]"),
            (Expr::call("f", [a() + b()]).with("axis", Expr::int(1)), "f(a + b, axis=1)"),
            (a() + Expr::float(f64::NEG_INFINITY), "a + float(\"-inf\")"),
            (Expr::bool(true).or(a()), "True | a"),
        ] {
            assert_eq!(tree.to_string(), text);
        }
    }

    #[test]
    fn values_are_found_and_replaced() {
        let tree = Expr::select(Expr::Value(0) + Expr::Value(1), Expr::Value(0), Expr::int(3));
        let mut found = Vec::new();
        tree.for_each_value(&mut |value| found.push(*value));
        assert_eq!(found, [0, 1, 0]);
        let named = tree.map(&|value| match value {
            0 => name("x") * name("y"),
            _ => name("z"),
        });
        assert_eq!(named.to_string(), "tl.where(x * y + z, x * y, 3)");
    }
}
