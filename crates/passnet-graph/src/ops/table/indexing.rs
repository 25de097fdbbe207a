//! Reads and writes by index.

use super::{
    Alias::{Fresh, MayView, View},
    Class::Indexing,
    Op, OpSpec, entry,
};

const fn indexing(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Indexing, Fresh, signatures, spellings)
}

const MAX_UNPOOL: &[&str] =
    &["input:T, indices:T, kernel_size:Z, stride:Z=None, padding:Z=0, output_size:Z=None"];

pub(super) static SPECS: &[OpSpec] = &[
    // A view for integers and slices, a copy for tensor indices, an element for tuples and lists.
    entry(Op::GetItem, Indexing, MayView, &["input:A, index:A"], &["op:getitem", ".__getitem__"]),
    entry(Op::SetItem, Indexing, View, &["input:T, index:A, value:S"], &["op:setitem"]),
    indexing(
        Op::IndexTensors,
        &["input:T, indices:L"],
        &["torch.ops.aten.index", "torch.ops.aten.index.Tensor"],
    ),
    indexing(
        Op::IndexPut,
        &["input:T, indices:L, values:T, accumulate:B=False"],
        &["torch.index_put", ".index_put", ".index_put_", "torch.ops.aten.index_put"],
    ),
    indexing(
        Op::Embedding,
        &[
            "input:T, weight:T, padding_idx:I=None, max_norm:N=None, norm_type:N=2.0, scale_grad_by_freq:B=False, sparse:B=False",
        ],
        &["torch.nn.functional.embedding"],
    ),
    indexing(
        Op::EmbeddingBag,
        &[
            "input:T, weight:T, offsets:T=None, max_norm:N=None, norm_type:N=2, scale_grad_by_freq:B=False, mode:W='mean', sparse:B=False, per_sample_weights:T=None, include_last_offset:B=False, padding_idx:I=None",
        ],
        &["torch.nn.functional.embedding_bag"],
    ),
    indexing(
        Op::OneHot,
        &["tensor:T, num_classes:I=-1"],
        &["torch.nn.functional.one_hot", "torch._C._nn.one_hot"],
    ),
    indexing(Op::Gather, &["input:T, dim:I, index:T"], &["torch.gather", ".gather"]),
    indexing(
        Op::IndexSelect,
        &["input:T, dim:I, index:T"],
        &["torch.index_select", ".index_select"],
    ),
    indexing(
        Op::TakeAlongDim,
        &["input:T, indices:T, dim:I=None"],
        &["torch.take_along_dim", ".take_along_dim"],
    ),
    indexing(Op::Take, &["input:T, index:T"], &["torch.take", ".take"]),
    indexing(Op::MaskedSelect, &["input:T, mask:T"], &["torch.masked_select", ".masked_select"]),
    indexing(
        Op::MaskedScatter,
        &["input:T, mask:T, source:T"],
        &["torch.masked_scatter", ".masked_scatter", ".masked_scatter_"],
    ),
    indexing(
        Op::Scatter,
        &[
            "input:T, dim:I, index:T, src:S, *, reduce:W=None",
            "input:T, dim:I, index:T, value:N, *, reduce:W=None",
        ],
        &["torch.scatter", ".scatter", ".scatter_"],
    ),
    indexing(
        Op::ScatterAdd,
        &["input:T, dim:I, index:T, src:T"],
        &["torch.scatter_add", ".scatter_add", ".scatter_add_"],
    ),
    indexing(
        Op::ScatterReduce,
        &["input:T, dim:I, index:T, src:T, reduce:W, *, include_self:B=True"],
        &["torch.scatter_reduce", ".scatter_reduce", ".scatter_reduce_"],
    ),
    indexing(
        Op::IndexAdd,
        &["input:T, dim:I, index:T, source:T, *, alpha:N=1"],
        &["torch.index_add", ".index_add", ".index_add_"],
    ),
    indexing(
        Op::IndexCopy,
        &["input:T, dim:I, index:T, source:T"],
        &["torch.index_copy", ".index_copy", ".index_copy_"],
    ),
    indexing(
        Op::IndexFill,
        &["input:T, dim:I, index:T, value:S"],
        &["torch.index_fill", ".index_fill", ".index_fill_"],
    ),
    indexing(Op::MaxUnpool1d, MAX_UNPOOL, &["torch.nn.functional.max_unpool1d"]),
    indexing(Op::MaxUnpool2d, MAX_UNPOOL, &["torch.nn.functional.max_unpool2d"]),
    indexing(Op::MaxUnpool3d, MAX_UNPOOL, &["torch.nn.functional.max_unpool3d"]),
    indexing(
        Op::Nonzero,
        &["input:T, *, as_tuple:B=False"],
        &["torch.nonzero", ".nonzero", "torch.argwhere"],
    ),
    indexing(
        Op::Bincount,
        &["input:T, weights:T=None, minlength:I=0"],
        &["torch.bincount", ".bincount"],
    ),
    indexing(
        Op::Searchsorted,
        &[
            "sorted_sequence:T, values:S, *, out_int32:B=False, right:B=False, side:W=None, sorter:T=None",
        ],
        &["torch.searchsorted"],
    ),
    indexing(
        Op::Bucketize,
        &["input:S, boundaries:T, *, out_int32:B=False, right:B=False"],
        &["torch.bucketize"],
    ),
    indexing(
        Op::IsIn,
        &["elements:S, test_elements:S, *, assume_unique:B=False, invert:B=False"],
        &["torch.isin"],
    ),
    indexing(
        Op::Unique,
        &["input:T, sorted:B=True, return_inverse:B=False, return_counts:B=False, dim:I=None"],
        &["torch.unique", "torch.functional.unique", ".unique"],
    ),
    indexing(
        Op::UniqueConsecutive,
        &["input:T, return_inverse:B=False, return_counts:B=False, dim:I=None"],
        &["torch.unique_consecutive", "torch.functional.unique_consecutive", ".unique_consecutive"],
    ),
];
