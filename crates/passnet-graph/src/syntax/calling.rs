//! How the arguments of a call meet the parameters of a function, for everyone who evaluates Python.
//!
//! Values are whatever the evaluator computes with; defaults are handed back unevaluated, for only it knows where.

use super::ast::{Expr, Parameters};
use std::fmt;

/// Where the value of a parameter comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Given<V, D> {
    /// The call gave it.
    Value(V),
    /// The function's own default.
    Default(D),
}

/// Arguments laid out by parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound<'p, V, D> {
    /// Each parameter, in order, with what stands for it.
    pub given: Vec<(&'p str, Given<V, D>)>,
    /// What no parameter took, by position: the items of `*args`.
    pub rest: Vec<V>,
    /// What no parameter took, by name: the items of `**kwargs`.
    pub keywords: Vec<(String, V)>,
}

/// Why arguments do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// A parameter is given by place and by name.
    Twice(String),
    /// A parameter without a default is not given.
    Missing(String),
    /// More values by place than there are parameters.
    TooMany,
    /// A name that no parameter has.
    Unknown(String),
}

/// Gives every parameter of a function its value: by position, by name, or its default.
pub fn bind<V>(
    parameters: &Parameters,
    positional: Vec<V>,
    keywords: Vec<(String, V)>,
) -> Result<Bound<'_, V, &Expr>, Misfit> {
    let by_position = parameters.posonlyargs.iter().chain(&parameters.args).map(|p| (p, true));
    let all = by_position.chain(parameters.kwonlyargs.iter().map(|p| (p, false)));
    let all = all.map(|(p, takes_position)| {
        (p.parameter.name.as_str(), takes_position, p.default.as_deref())
    });
    let bound = lay_out(all, positional, keywords)?;
    bound.fits(parameters.vararg.is_some(), parameters.kwarg.is_some())
}

/// The same for the fields of a dataclass, with their defaults.
pub fn bind_fields<'p, V, D>(
    fields: impl IntoIterator<Item = (&'p str, Option<D>)>,
    positional: Vec<V>,
    keywords: Vec<(String, V)>,
) -> Result<Bound<'p, V, D>, Misfit> {
    let all = fields.into_iter().map(|(name, default)| (name, true, default));
    lay_out(all, positional, keywords)?.fits(false, false)
}

/// Names with whether they take a position and their default.
fn lay_out<'p, V, D>(
    parameters: impl Iterator<Item = (&'p str, bool, Option<D>)>,
    positional: Vec<V>,
    mut keywords: Vec<(String, V)>,
) -> Result<Bound<'p, V, D>, Misfit> {
    let mut positional = positional.into_iter();
    let mut given = Vec::new();
    for (name, takes_position, default) in parameters {
        let by_position = if takes_position { positional.next() } else { None };
        let by_name = keywords.iter().position(|(known, _)| known == name);
        let by_name = by_name.map(|index| keywords.remove(index).1);
        let value = match (by_position, by_name, default) {
            (Some(value), None, _) | (None, Some(value), _) => Given::Value(value),
            (None, None, Some(default)) => Given::Default(default),
            (Some(_), Some(_), _) => return Err(Misfit::Twice(name.into())),
            (None, None, None) => return Err(Misfit::Missing(name.into())),
        };
        given.push((name, value));
    }
    Ok(Bound { given, rest: positional.collect(), keywords })
}

impl<V, D> Bound<'_, V, D> {
    fn fits(self, takes_rest: bool, takes_keywords: bool) -> Result<Self, Misfit> {
        match self.keywords.first() {
            _ if !takes_rest && !self.rest.is_empty() => Err(Misfit::TooMany),
            Some((name, _)) if !takes_keywords => Err(Misfit::Unknown(name.clone())),
            _ => Ok(self),
        }
    }
}

impl Misfit {
    /// The same in words, of the function that was called.
    pub fn of(&self, function: impl fmt::Display) -> String {
        match self {
            Misfit::Twice(name) => format!("`{function}` got `{name}` twice"),
            Misfit::Missing(name) => format!("`{function}` needs the argument `{name}`"),
            Misfit::TooMany => format!("too many arguments for `{function}`"),
            Misfit::Unknown(name) => format!("`{function}` has no argument `{name}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::ast::Stmt;
    use crate::syntax::{Source, parse};

    /// What `def f(...)` makes of arguments, as `a=1 b=default *[2] **[c=3]`.
    fn called(signature: &str, positional: Vec<i64>, named: &[(&str, i64)]) -> String {
        let module = parse(&Source::new("f.py", format!("def f({signature}): pass"))).unwrap();
        let Stmt::FunctionDef(def) = &module.body[0] else { panic!("no function") };
        let named = named.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        match bind(&def.parameters, positional, named) {
            Err(misfit) => misfit.of("f"),
            Ok(bound) => {
                let value = |given: &Given<i64, &Expr>| match given {
                    Given::Value(value) => value.to_string(),
                    Given::Default(_) => "default".into(),
                };
                let given = bound.given.iter().map(|(name, v)| format!("{name}={}", value(v)));
                let given: Vec<String> = given.collect();
                format!("{} {:?} {:?}", given.join(" "), bound.rest, bound.keywords)
            }
        }
    }

    #[test]
    fn arguments_meet_parameters_as_in_python() {
        assert_eq!(called("a, b=0", vec![1], &[]), "a=1 b=default [] []");
        assert_eq!(called("a, b=0", vec![], &[("b", 2), ("a", 1)]), "a=1 b=2 [] []");
        assert_eq!(called("a, *rest, b=0", vec![1, 2, 3], &[]), "a=1 b=default [2, 3] []");
        assert_eq!(called("a, **more", vec![1], &[("c", 3)]), "a=1 [] [(\"c\", 3)]");
        assert_eq!(called("a, *, b", vec![1, 2], &[]), "`f` needs the argument `b`");
        assert_eq!(called("a", vec![1], &[("a", 1)]), "`f` got `a` twice");
        assert_eq!(called("a", vec![1, 2], &[]), "too many arguments for `f`");
        assert_eq!(called("a", vec![1], &[("b", 2)]), "`f` has no argument `b`");
    }

    #[test]
    fn fields_take_nothing_beside_them() {
        let fields = || [("a", None), ("b", Some("seven"))];
        let bound = bind_fields(fields(), vec![1], Vec::new()).unwrap();
        assert_eq!(bound.given, [("a", Given::Value(1)), ("b", Given::Default("seven"))]);
        assert_eq!(bind_fields(fields(), vec![1, 2, 3], Vec::new()), Err(Misfit::TooMany));
        let unknown = bind_fields(fields(), vec![1], vec![("c".into(), 2)]);
        assert_eq!(unknown, Err(Misfit::Unknown("c".into())));
    }
}
