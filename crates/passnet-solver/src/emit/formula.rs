//! Formulas of sizes as a reader would write them.
//!
//! A formula is a tree ([`Dim`]) until a wrapper is written: what it is made of is asked of the tree, never of a text.

use super::name_of;
use crate::analysis::{Piece, dimension};
use passnet_graph::NodeId;
use passnet_graph::infer::Dim;
use std::collections::BTreeMap;

/// The dimensions of a piece's parameters, by what formulas call them; `None` for a parameter that is itself a number.
#[derive(Debug, Default)]
pub(super) struct Dimensions<'p>(BTreeMap<String, Option<Dimension<'p>>>);

#[derive(Debug, Clone, Copy)]
struct Dimension<'p> {
    param: &'p str,
    at: usize,
    rank: usize,
}

impl<'p> Dimensions<'p> {
    pub(super) fn of(piece: &'p Piece) -> Self {
        let mut dimensions = Dimensions::default();
        for param in (0..piece.params.len()).map(NodeId::new) {
            let name = name_of(piece, param);
            match piece.shape(param) {
                Err(_) => drop(dimensions.0.insert(name.to_string(), None)),
                // Nothing is divided by the length of a row that is empty in some graph.
                Ok(shape) if shape.last().is_some_and(|size| size.values().contains(&0)) => {}
                Ok(shape) => dimensions.add(name, shape.len()),
            }
        }
        dimensions
    }

    fn add(&mut self, param: &'p str, rank: usize) {
        let each = (0..rank).map(|at| (dimension(param, at), Some(Dimension { param, at, rank })));
        self.0.extend(each);
    }
}

/// A formula with room around its operators; products over the dimensions of one tensor are told by `numel`, so that
/// the text, and the kernel's launch, do not depend on how many dimensions there are.
pub(super) fn readable(formula: &Dim, dimensions: &Dimensions<'_>) -> String {
    whole_dimensions(formula, dimensions).unwrap_or_else(|| format!("{formula:#}"))
}

/// A product in which all dimensions of a tensor, or all but the last, are factors.
fn whole_dimensions(formula: &Dim, dimensions: &Dimensions<'_>) -> Option<String> {
    let (symbols, number) = formula.symbols().filter(|(_, number)| *number >= 0)?;
    let known = symbols.iter().map(|symbol| dimensions.0.get(*symbol).copied());
    let known = known.collect::<Option<Vec<Option<Dimension<'_>>>>>()?;
    let mut rest: Vec<Dimension<'_>> = known.iter().copied().flatten().collect();
    let mut parts: Vec<String> = Vec::new();
    let mut quotients = 0;
    while let Some(Dimension { param, rank, .. }) = rest.first().copied() {
        let mut own: Vec<usize> =
            rest.extract_if(.., |factor| factor.param == param).map(|factor| factor.at).collect();
        own.sort_unstable();
        let last = rank.checked_sub(1)?;
        if own.iter().copied().eq(0..rank) {
            parts.push(format!("{param}.numel()"));
        } else if own.iter().copied().eq(0..last) && last > 0 {
            quotients += 1;
            // In front: what follows multiplies an exact quotient.
            parts.insert(0, format!("{param}.numel() // {param}.shape[-1]"));
        } else if own == [last] {
            parts.push(format!("{param}.shape[-1]"));
        } else {
            parts.extend(own.iter().map(|at| dimension(param, *at)));
        }
    }
    let numbers = symbols.iter().zip(&known).filter(|(_, dimension)| dimension.is_none());
    parts.extend(numbers.map(|(symbol, _)| symbol.to_string()));
    if number != 1 || parts.is_empty() {
        parts.push(number.to_string());
    }
    // A second quotient would divide the product before it.
    (quotients < 2).then(|| parts.join(" * "))
}

#[cfg(test)]
mod tests {
    use super::{Dimensions, readable};
    use passnet_graph::infer::Dim;

    #[test]
    fn products_over_whole_tensors_do_not_name_dimensions() {
        let mut dimensions = Dimensions::default();
        dimensions.add("x", 3);
        dimensions.add("y", 1);
        dimensions.0.insert("n".into(), None);
        let product = |factors: &[&str], number: i64| {
            let number = Dim::fixed(number);
            factors.iter().fold(number, |all, name| all.mul(&Dim::symbol(name, 6)).unwrap())
        };
        let (a, b, c) = ("x.shape[0]", "x.shape[1]", "x.shape[2]");
        for (formula, text) in [
            (product(&[a, b, c], 1), "x.numel()"),
            (product(&[a, b], 1), "x.numel() // x.shape[-1]"),
            (product(&["y.shape[0]", a, b], 1), "x.numel() // x.shape[-1] * y.numel()"),
            (product(&[c], 1), "x.shape[-1]"),
            (product(&[b], 1), "x.shape[1]"),
            (product(&[b, c], 4), "x.shape[1] * x.shape[2] * 4"),
            (product(&[a], 1).offset(1).unwrap().divided(2).unwrap(), "(x.shape[0] + 1) // 2"),
            (product(&["z.shape[0]"], 2), "z.shape[0] * 2"),
            (
                product(&["x.stride(0)", a, b, c], 1),
                "x.shape[0] * x.shape[1] * x.shape[2] * x.stride(0)",
            ),
            (product(&["n", a, b], 3), "x.numel() // x.shape[-1] * n * 3"),
            (product(&[], 7), "7"),
        ] {
            assert_eq!(readable(&formula, &dimensions), text, "{formula}");
        }
    }
}
