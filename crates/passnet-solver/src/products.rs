//! Which products kernels compute, and what that costs. All others are a library's business.

use crate::graph_family::TypedGraph;
use passnet_graph::infer::TensorType;
use passnet_graph::ops::{Bound, Op};
use passnet_graph::{Arg, NodeId};

/// How a kernel computes a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Product {
    /// Nothing is added up: every element is one number times another.
    Pointwise,
    /// A convolution in which every channel has a small window of its own.
    Window,
    /// Every element is a sum of its own, for which the matrix is read once for every row: so many bytes.
    Sum { bytes: f64 },
}

/// Rows of a product that kernels are tried for whatever the size of the matrix.
const MOST_ROWS: i64 = 4;
/// Multiplications up to which they are tried for any number of rows: a library takes longer to begin.
const FEW_MULTIPLICATIONS: f64 = 4e6;
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
        let multiplications = result.elements() as f64 * inner as f64;
        (rows <= MOST_ROWS || multiplications <= FEW_MULTIPLICATIONS)
            .then_some(Product::Sum { bytes: multiplications * left.dtype.size() as f64 })
    }

    /// The same for two graphs; none where it is not of one kind.
    pub(crate) fn or_more(self, other: Product) -> Option<Product> {
        match (self, other) {
            (Product::Sum { bytes }, Product::Sum { bytes: more }) => {
                Some(Product::Sum { bytes: bytes.max(more) })
            }
            (one, other) => (one == other).then_some(one),
        }
    }
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
    let [out, 1, ref window @ ..] = weight.shape.iter().map(|size| size.size).collect::<Vec<_>>()[..]
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
