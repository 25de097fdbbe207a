//! Matrices as such: inverses, factorisations, equations, and the products that belong to no contraction.

use super::{
    Alias::Fresh,
    Class::{Contraction, Transform},
    Op, OpSpec, entry,
};

const fn of_matrices(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Transform, Fresh, signatures, spellings)
}

const fn product(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Contraction, Fresh, signatures, spellings)
}

pub(super) static SPECS: &[OpSpec] = &[
    product(Op::Inner, &["input:T, other:T"], &["torch.inner", ".inner"]),
    product(
        Op::Addmv,
        &["input:T, mat:T, vec:T, *, beta:N=1, alpha:N=1"],
        &["torch.addmv", ".addmv"],
    ),
    product(
        Op::Addr,
        &["input:T, vec1:T, vec2:T, *, beta:N=1, alpha:N=1"],
        &["torch.addr", ".addr"],
    ),
    product(
        Op::MultiDot,
        &["tensors:L", "*tensors:T"],
        &[
            "torch.linalg.multi_dot",
            "torch._C._linalg.linalg_multi_dot",
            "torch.chain_matmul",
            "torch.functional.chain_matmul",
        ],
    ),
    product(
        Op::PairwiseDistance,
        &["x1:T, x2:T, p:N=2.0, eps:N=1e-06, keepdim:B=False"],
        &["torch.pairwise_distance", "torch.nn.functional.pairwise_distance"],
    ),
    of_matrices(Op::Kron, &["input:T, other:T"], &["torch.kron", ".kron"]),
    of_matrices(Op::Cross, &["input:T, other:T, dim:I=None"], &["torch.cross", ".cross"]),
    of_matrices(
        Op::LinalgCross,
        &["input:T, other:T, *, dim:I=-1"],
        &["torch.linalg.cross", "torch._C._linalg.linalg_cross"],
    ),
    of_matrices(Op::Trace, &["input:T"], &["torch.trace", ".trace"]),
    of_matrices(
        Op::Inverse,
        &["A:T"],
        &["torch.linalg.inv", "torch._C._linalg.linalg_inv", "torch.inverse", ".inverse"],
    ),
    of_matrices(
        Op::Det,
        &["A:T"],
        &["torch.linalg.det", "torch._C._linalg.linalg_det", "torch.det", ".det"],
    ),
    of_matrices(
        Op::Cholesky,
        &["A:T, *, upper:B=False", "input:T, upper:B=False"],
        &[
            "torch.linalg.cholesky",
            "torch._C._linalg.linalg_cholesky",
            "torch.cholesky",
            ".cholesky",
        ],
    ),
    of_matrices(
        Op::Solve,
        &["A:T, B:T, *, left:B=True"],
        &["torch.linalg.solve", "torch._C._linalg.linalg_solve"],
    ),
    of_matrices(
        Op::SolveTriangular,
        &["A:T, B:T, *, upper:B, left:B=True, unitriangular:B=False"],
        &["torch.linalg.solve_triangular", "torch._C._linalg.linalg_solve_triangular"],
    ),
];
