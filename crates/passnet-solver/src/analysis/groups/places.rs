//! Where a last bit decides: the place of an extreme, or an order, among values that functions gave.

use super::is_pair;
use crate::graph_family::GraphFamily;
use passnet_graph::NodeId;
use passnet_graph::ops::{Bound, Class, Op};

/// For every node whether a place or an order is looked for in it, or in what follows from it element by element. Where tanh is
/// flat, hundreds of elements differ by a last bit or not at all.
pub(super) fn decide_places(family: &GraphFamily) -> Vec<bool> {
    let graph = family.graph();
    let mut decides = vec![false; graph.nodes().len()];
    for (id, call) in graph.calls().rev() {
        let Ok(bound) = call.bind() else { continue };
        let is_carried = decides[id.index()]
            && matches!(
                bound.class(),
                Class::Pointwise | Class::View | Class::Movement | Class::Indexing
            );
        if is_carried || looks_for_places(family, id, bound.op) {
            call.for_each_input(|input| decides[input.index()] = true);
        }
    }
    decides
}

fn looks_for_places(family: &GraphFamily, id: NodeId, op: Op) -> bool {
    use Op::{Argmax, Argmin, Argsort, Cummax, Cummin, Sort, Topk};
    matches!(op, Argmax | Argmin | Argsort | Cummax | Cummin | Sort | Topk) || is_pair(family, id)
}

/// Whether a kernel gives the bits that eager gives: elements are chosen, moved or rounded once.
pub(super) fn is_exact(bound: &Bound<'_>) -> bool {
    use Op::{
        Abs, Add, BitwiseAnd, BitwiseNot, BitwiseOr, BitwiseXor, Ceil, Clamp, ClampMax, ClampMin,
        Eq, Floor, Ge, Gt, Hardtanh, IsFinite, IsInf, IsNan, Le, LeakyRelu, LogicalAnd, LogicalNot,
        LogicalOr, LogicalXor, Lt, MaskedFill, Maximum, Minimum, Mul, NanToNum, Ne, Neg, Positive,
        Relu, Relu6, Rsub, Sign, Sub, Threshold, Trunc, Where, WhereMethod,
    };
    match bound.class() {
        Class::View | Class::Movement | Class::Indexing | Class::Creation => true,
        Class::Reduction => matches!(
            bound.op,
            Op::Max | Op::Min | Op::Amax | Op::Amin | Op::Argmax | Op::Argmin | Op::All | Op::Any
        ),
        Class::Pointwise => matches!(
            bound.op,
            Abs | Add
                | BitwiseAnd
                | BitwiseNot
                | BitwiseOr
                | BitwiseXor
                | Ceil
                | Clamp
                | ClampMax
                | ClampMin
                | Eq
                | Floor
                | Ge
                | Gt
                | Hardtanh
                | IsFinite
                | IsInf
                | IsNan
                | Le
                | LeakyRelu
                | LogicalAnd
                | LogicalNot
                | LogicalOr
                | LogicalXor
                | Lt
                | MaskedFill
                | Maximum
                | Minimum
                | Mul
                | NanToNum
                | Ne
                | Neg
                | Positive
                | Relu
                | Relu6
                | Rsub
                | Sign
                | Sub
                | Threshold
                | Trunc
                | Where
                | WhereMethod
        ),
        _ => false,
    }
}
