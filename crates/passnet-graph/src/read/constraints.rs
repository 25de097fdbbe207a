//! `input_tensor_constraints.py`: which input sizes are symbols, and their example values.

use super::literal;
use crate::Diagnostic;
use crate::graph::Arg;
use crate::syntax::{Ranged, Source, ast, parse};

/// The two assignments that are read; the others follow from them.
pub(super) const EXAMPLES: &str = "dynamic_dim_constraint_symbol2example_value";
pub(super) const INPUT_SHAPES: &str = "dynamic_dim_constraint_input_shapes";

/// The dynamic sizes of a graph's inputs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constraints {
    /// Symbols with their example values, in file order.
    pub symbols: Vec<(String, i64)>,
    /// Symbolic shapes of arguments, by argument name, in file order.
    pub input_shapes: Vec<(String, Vec<ShapeDim>)>,
}

/// A size as `input_tensor_constraints.py` writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShapeDim {
    /// A number.
    Size(i64),
    /// The name of a symbol.
    Symbol(String),
}

impl Constraints {
    /// A symbol that stands in a shape and has no example value.
    pub(super) fn undefined_symbol(&self) -> Option<&str> {
        self.input_shapes.iter().flat_map(|(_, shape)| shape).find_map(|dim| match dim {
            ShapeDim::Symbol(name) if self.symbols.iter().all(|(known, _)| known != name) => {
                Some(name.as_str())
            }
            _ => None,
        })
    }
}

/// What a file says, through the Python parser.
pub(super) fn parse_constraints(source: &Source) -> Result<Constraints, Diagnostic> {
    let module = parse(source)?;
    let mut constraints = Constraints::default();
    for stmt in &module.body {
        let assign = match stmt {
            ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_) => continue,
            ast::Stmt::Assign(assign) => assign,
            other => return Err(source.at(other.range(), "expected an assignment")),
        };
        let [ast::Expr::Name(target)] = assign.targets.as_slice() else {
            return Err(source.at(assign.range(), "expected `name = value`"));
        };
        match target.id.as_str() {
            EXAMPLES => {
                constraints.symbols = examples(source, &assign.value)?;
            }
            INPUT_SHAPES => {
                constraints.input_shapes = shapes(source, &assign.value)?;
            }
            // Symbol definitions, their list and the (always empty) relations add nothing to these two.
            _ => {}
        }
    }
    if let Some(name) = constraints.undefined_symbol() {
        let message = format!("symbol `{name}` has no example value");
        return Err(Diagnostic::file(source.path(), message));
    }
    Ok(constraints)
}

fn examples(source: &Source, value: &ast::Expr) -> Result<Vec<(String, i64)>, Diagnostic> {
    let ast::Expr::Dict(dict) = value else {
        return Err(source.at(value.range(), "expected a dictionary of symbols and sizes"));
    };
    let entries = dict.items.iter().map(|item| {
        let error = || source.at(item.value.range(), "expected `symbol: size`");
        let name = match &item.key {
            Some(ast::Expr::Name(name)) => name.id.to_string(),
            _ => return Err(error()),
        };
        Ok((name, integer(&item.value).ok_or_else(error)?))
    });
    entries.collect()
}

fn shapes(source: &Source, value: &ast::Expr) -> Result<Vec<(String, Vec<ShapeDim>)>, Diagnostic> {
    let ast::Expr::List(list) = value else {
        return Err(source.at(value.range(), "expected a list of (shape, name)"));
    };
    let entries = list.elts.iter().map(|item| {
        let error = || source.at(item.range(), "expected `([size, ...], \"name\")`");
        let ast::Expr::Tuple(pair) = item else { return Err(error()) };
        let [ast::Expr::List(dims), ast::Expr::StringLiteral(name)] = pair.elts.as_slice() else {
            return Err(error());
        };
        let dims = dims.elts.iter().map(|dim| match dim {
            ast::Expr::Name(symbol) => Ok(ShapeDim::Symbol(symbol.id.to_string())),
            other => integer(other)
                .map(ShapeDim::Size)
                .ok_or_else(|| source.at(other.range(), "a size is an integer or a symbol")),
        });
        Ok((name.value.to_str().to_string(), dims.collect::<Result<_, _>>()?))
    });
    entries.collect()
}

fn integer(expr: &ast::Expr) -> Option<i64> {
    match literal::literal(expr) {
        Ok(Some(Arg::Int(value))) => Some(value),
        _ => None,
    }
}
