//! What the loops of a kernel look like.

use crate::analysis::body::Body;
use crate::analysis::product;
use crate::analysis::space::Space;

/// What the loops of a kernel look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One loop, cut into blocks.
    Flat,
    /// Rows and columns, cut into tiles.
    Tiled,
    /// A product, whose result is cut into tiles.
    Product,
    /// Whole rows, several in a tile.
    Rows,
    /// Rows walked through in blocks, once for each reduction and once for the result.
    LongRows,
    /// Short rows side by side in memory: every lane walks through rows of its own, element by element.
    Walked,
}

impl Shape {
    /// Whether rows are walked through, so that nothing holds all of one.
    pub(super) fn is_walk(self) -> bool {
        matches!(self, Shape::LongRows | Shape::Walked)
    }

    pub(super) fn of(body: &Body, space: &Space, longest: i64) -> Shape {
        if space.reduced.is_empty() {
            return if space.kept.len() <= 1 { Shape::Flat } else { Shape::Tiled };
        }
        if body.in_tiles {
            return Shape::Product;
        }
        let sizes = space.reduced.iter().map(|axis| &body.axes[*axis]);
        let graphs = body.axes.first().map_or(1, |size| size.values().len());
        match product(sizes, graphs) {
            Ok(size) if size.largest() <= longest => Shape::Rows,
            _ => Shape::LongRows,
        }
    }
}
