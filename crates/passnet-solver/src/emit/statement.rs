//! The statements of a kernel, as a tree that is printed once.

use crate::expression::{Expr, Type};
use std::collections::BTreeSet;
use std::fmt;

/// What a kernel's values are known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    Word(String),
    /// The number of the program along one dimension of the grid.
    Program(usize),
}

/// An expression of a kernel.
pub(super) type Term = Expr<Name>;

pub(super) fn word(name: impl Into<String>) -> Term {
    Expr::Value(Name::Word(name.into()))
}

pub(super) fn program(dimension: usize) -> Term {
    Expr::Value(Name::Program(dimension))
}

#[derive(Debug)]
pub(super) enum Statement {
    Let {
        name: String,
        value: Term,
    },
    /// Adds to a value.
    Add {
        name: String,
        value: Term,
    },
    /// A call for what it does.
    Do(Term),
    Repeat {
        variable: String,
        over: Term,
        body: Vec<Statement>,
    },
}

impl Statement {
    fn for_each_term(&self, visit: &mut impl FnMut(&Term)) {
        match self {
            Statement::Let { value, .. } | Statement::Add { value, .. } | Statement::Do(value) => {
                visit(value);
            }
            Statement::Repeat { over, body, .. } => {
                visit(over);
                body.iter().for_each(|statement| statement.for_each_term(visit));
            }
        }
    }

    fn renamed(&self, name: &impl Fn(&Name) -> Term) -> Statement {
        match self {
            Statement::Let { name: own, value } => {
                Statement::Let { name: own.clone(), value: value.map(name) }
            }
            Statement::Add { name: own, value } => {
                Statement::Add { name: own.clone(), value: value.map(name) }
            }
            Statement::Do(value) => Statement::Do(value.map(name)),
            Statement::Repeat { variable, over, body } => Statement::Repeat {
                variable: variable.clone(),
                over: over.map(name),
                body: body.iter().map(|statement| statement.renamed(name)).collect(),
            },
        }
    }

    fn print(&self, indent: usize, lines: &mut Vec<String>) {
        let line = match self {
            Statement::Let { name, value } => format!("{name} = {value}"),
            Statement::Add { name, value } => format!("{name} += {value}"),
            Statement::Do(value) => value.to_string(),
            Statement::Repeat { variable, over, .. } => format!("for {variable} in {over}:"),
        };
        lines.push(format!("{}{line}", "    ".repeat(indent)));
        if let Statement::Repeat { body, .. } = self {
            body.iter().for_each(|statement| statement.print(indent + 1, lines));
        }
    }
}

/// The statements of a function.
#[derive(Debug, Default)]
pub(super) struct Block(pub(super) Vec<Statement>);

impl Block {
    /// The names that occur, those of pointers among them whose type something is converted to.
    pub(super) fn names(&self) -> BTreeSet<Name> {
        let mut names = BTreeSet::new();
        for statement in &self.0 {
            statement.for_each_term(&mut |term| {
                term.for_each(&mut |part| match part {
                    Expr::Value(name) => drop(names.insert(name.clone())),
                    Expr::Cast(Type::Pointed(pointer), _) => {
                        names.insert(Name::Word(pointer.clone()));
                    }
                    _ => {}
                });
            });
        }
        names
    }

    /// Whether a function of a library is called.
    pub(super) fn calls(&self, library: &str) -> bool {
        let mut calls = false;
        for statement in &self.0 {
            statement.for_each_term(&mut |term| {
                term.for_each(&mut |part| {
                    calls |=
                        matches!(part, Expr::Call(function, ..) if function.starts_with(library));
                });
            });
        }
        calls
    }

    pub(super) fn renamed(&self, name: &impl Fn(&Name) -> Term) -> Block {
        Block(self.0.iter().map(|statement| statement.renamed(name)).collect())
    }

    /// Leaves out the definitions of these names that nothing after them needs.
    pub(super) fn drop_unused(&mut self, names: &BTreeSet<String>) {
        drop_unused(&mut self.0, names, &mut BTreeSet::new());
    }
}

fn drop_unused(
    statements: &mut Vec<Statement>,
    names: &BTreeSet<String>,
    used: &mut BTreeSet<String>,
) {
    let use_all = |term: &Term, used: &mut BTreeSet<String>| {
        term.for_each_value(&mut |name| {
            if let Name::Word(word) = name
                && names.contains(word)
            {
                used.insert(word.clone());
            }
        });
    };
    let mut kept = Vec::with_capacity(statements.len());
    for mut statement in statements.drain(..).rev() {
        match &mut statement {
            Statement::Let { name, .. } if names.contains(name) && !used.remove(name) => continue,
            Statement::Let { value, .. } | Statement::Add { value, .. } | Statement::Do(value) => {
                use_all(value, used);
            }
            Statement::Repeat { over, body, .. } => {
                drop_unused(body, names, used);
                use_all(over, used);
            }
        }
        kept.push(statement);
    }
    kept.reverse();
    *statements = kept;
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Word(word) => f.write_str(word),
            Name::Program(dimension) => write!(f, "tl.program_id({dimension})"),
        }
    }
}

/// As the body of a function.
impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        self.0.iter().for_each(|statement| statement.print(1, &mut lines));
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, Statement, Term, program, word};
    use crate::expression::Expr;
    use std::collections::BTreeSet;

    fn let_(name: &str, value: Term) -> Statement {
        Statement::Let { name: name.into(), value }
    }

    /// A loop number is taken out of a running one before, inside and after a walk.
    fn walk(in_walk: Term, after: Term) -> Block {
        Block(vec![
            let_("row_0", word("row") * word("n")),
            let_("row_1", word("row") + word("n")),
            Statement::Repeat {
                variable: "start".into(),
                over: Expr::call("range", [Expr::int(0), word("n")]),
                body: vec![
                    let_("row_0", word("start") - word("row")),
                    Statement::Add { name: "sum".into(), value: in_walk },
                ],
            },
            Statement::Do(Expr::call("tl.store", [word("out"), after])),
        ])
    }

    #[test]
    fn a_definition_stays_where_something_after_it_needs_it() {
        let names = BTreeSet::from(["row_0".to_string(), "row_1".to_string()]);
        let mut block = walk(word("row_0"), word("row_1") * program(0));
        block.drop_unused(&names);
        assert_eq!(
            block.to_string(),
            "    row_1 = row + n\n    for start in range(0, n):\n        row_0 = start - row\n        \
             sum += row_0\n    tl.store(out, row_1 * tl.program_id(0))"
        );
        let mut block = walk(word("row"), word("row"));
        block.drop_unused(&names);
        assert_eq!(
            block.to_string(),
            "    for start in range(0, n):\n        sum += row\n    tl.store(out, row)"
        );
    }
}
