//! Which products kernels compute, and what that costs. All others are a library's business.

use crate::graph_family::TypedGraph;
use passnet_graph::infer::TensorType;
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, DType, NodeId};

/// How a kernel computes a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Product {
    /// Nothing is added up: every element is one number times another.
    Pointwise,
    /// A convolution in which every channel has a small window of its own.
    Window,
    /// Every element is a sum of its own, for which the matrix is read once for every row: so many bytes.
    Sum { bytes: f64 },
    /// Tiles of the result, for which tiles of both matrices are multiplied one after the other.
    Tiles { extent: Extent, is_convolution: bool },
}

/// What a product computes: so many matrices of rows and columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extent {
    pub(crate) matrices: i64,
    pub(crate) rows: i64,
    pub(crate) columns: i64,
}

/// Rows of a product that kernels are tried for whatever the size of the matrix.
const MOST_ROWS: i64 = 4;
/// Multiplications up to which they are tried for any number of rows: a library takes longer to begin.
const FEW_MULTIPLICATIONS: f64 = 4e6;
/// Numbers to add up to which an element of a tile is one program's work: a library shares longer sums among several.
const MOST_INNER: i64 = 896;
/// Sides of a kernel's tiles, one of which a program computes.
pub(crate) const SIDES: [i64; 2] = [32, 64];
/// Rows and columns of the tiles that a library's programs compute of float32, whatever the size of the result.
const LIBRARY_TILE: [i64; 2] = [128, 64];
/// How much more a library computes in the same time, where both keep a multiprocessor busy.
const LIBRARY_SPEED: f64 = 1.6;
/// Elements of a window, which a kernel's loop is unrolled for.
pub(crate) const MOST_WINDOW: i64 = 64;

impl Product {
    /// What a node is in one graph; `None` where it is no product, or one for a library.
    pub(crate) fn of(graph: &TypedGraph, id: NodeId) -> Option<Product> {
        let bound = graph.graph.call(id)?.bind().ok()?;
        let operand = |name: &str| graph.types.value(bound.arg(name).as_node()?).as_tensor();
        let result = graph.types.value(id).as_tensor()?;
        let left = operand("input")?;
        let size = |tensor: &TensorType, dim: usize| tensor.shape.get(dim).map(|size| size.size);
        let (columns, inner) = match bound.op {
            Op::Outer => return Some(Product::Pointwise),
            Op::Linear => {
                let weight = operand("weight").filter(|weight| weight.rank() == 2)?;
                (size(weight, 0)?, size(weight, 1)?)
            }
            Op::Conv1d | Op::Conv2d => {
                let weight = operand("weight")?;
                if is_depthwise(&bound, left, weight) {
                    return Some(Product::Window);
                }
                let is_matrix = weight.shape[2..].iter().all(|size| size.size == 1);
                (size(weight, 0).filter(|_| is_matrix && is_plain(&bound))?, size(weight, 1)?)
            }
            Op::Matmul | Op::Mm | Op::Bmm => {
                let right = operand(second(bound.op))?;
                if left.rank() < 2 || right.rank() < 2 {
                    return None;
                }
                (size(right, right.rank() - 1)?, size(left, left.rank() - 1)?)
            }
            _ => return None,
        };
        if inner == 1 {
            return Some(Product::Pointwise);
        }
        let rows = result.elements() / columns.max(1);
        if rows <= MOST_ROWS || !is_large(result.elements(), inner) {
            let multiplications = result.elements() as f64 * inner as f64;
            return Some(Product::Sum { bytes: multiplications * left.dtype.size() as f64 });
        }
        // Of convolutions each image is a matrix; several rows of a batch are rows of one.
        let images = match bound.op {
            Op::Conv1d | Op::Conv2d => size(result, 0)?,
            Op::Bmm | Op::Matmul => {
                result.shape[..result.rank() - 2].iter().map(|dim| dim.size).product()
            }
            _ => 1,
        };
        let extent = Extent { matrices: images, rows: rows / images.max(1), columns };
        let is_convolution = matches!(bound.op, Op::Conv1d | Op::Conv2d);
        (left.dtype == DType::Float32 && inner <= MOST_INNER)
            .then_some(Product::Tiles { extent, is_convolution })
    }
}

impl Extent {
    /// The side of the tiles that keep so many multiprocessors busy best.
    pub(crate) fn side(self, multiprocessors: usize) -> i64 {
        let [small, large] = SIDES;
        let is_small =
            self.rounds([small; 2], multiprocessors) < self.rounds([large; 2], multiprocessors);
        if is_small { small } else { large }
    }

    /// Whether tiles are computed faster than a library computes larger ones, for which there are too few programs.
    pub(crate) fn is_for_tiles(self, multiprocessors: usize) -> bool {
        let side = self.side(multiprocessors);
        let own = self.rounds([side; 2], multiprocessors) * LIBRARY_SPEED;
        self.rows >= SIDES[0] / 2
            && self.columns >= SIDES[0] / 2
            && own < self.rounds(LIBRARY_TILE, multiprocessors)
    }

    /// Elements that the busiest multiprocessor computes in tiles of a size.
    fn rounds(self, [rows, columns]: [i64; 2], multiprocessors: usize) -> f64 {
        let tiles = |size: i64, side: i64| ((size + side - 1) / side) as f64;
        let all = self.matrices as f64 * tiles(self.rows, rows) * tiles(self.columns, columns);
        (all / multiprocessors.max(1) as f64).ceil() * (rows * columns) as f64
    }
}

/// Whether a product of so many elements is more than a sum for each of them.
pub(crate) fn is_large(elements: i64, inner: i64) -> bool {
    elements as f64 * inner as f64 > FEW_MULTIPLICATIONS
}

/// What an operation calls its second matrix.
pub(crate) fn second(op: Op) -> &'static str {
    match op {
        Op::Matmul => "other",
        Op::Outer => "vec2",
        Op::Mm | Op::Bmm => "mat2",
        _ => "weight",
    }
}

/// Whether every element of a convolution of single pixels is one row of the matrix times one of the input.
pub(crate) fn is_plain(bound: &Bound<'_>) -> bool {
    let all = |name: &str, value: i64| match bound.arg(name) {
        Arg::None => true,
        arg => match arg.as_sequence() {
            Some(items) => items.iter().all(|item| item.as_int() == Some(value)),
            None => arg.as_int() == Some(value),
        },
    };
    all("stride", 1) && all("padding", 0) && all("groups", 1)
}

/// Whether every channel of a convolution is computed from itself alone, by a window that is small.
fn is_depthwise(bound: &Bound<'_>, input: &TensorType, weight: &TensorType) -> bool {
    let [out, 1, ref window @ ..] =
        weight.shape.iter().map(|size| size.size).collect::<Vec<_>>()[..]
    else {
        return false;
    };
    let is_batched = input.rank() == weight.rank();
    let channels = input.shape.get(1).map(|size| size.size);
    let elements = window.iter().product::<i64>();
    is_batched
        && out > 1
        && channels == Some(out)
        && bound.arg("groups").as_int() == Some(out)
        && (2..=MOST_WINDOW).contains(&elements)
}
