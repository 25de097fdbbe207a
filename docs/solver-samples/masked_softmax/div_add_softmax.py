"""Fused: div, add, softmax.

One kernel: whole rows folded in one block. Arithmetic in float32, rounded where eager stores.
"""

import torch
import triton
import triton.language as tl


def pattern(in_0, in_1):
    tmp_0 = in_0 / 8.0
    tmp_1 = tmp_0 + in_1
    tmp_2 = torch.nn.functional.softmax(tmp_1, -1, 3, None)
    return tmp_2


def replacement_args(in_0, in_1):
    return (in_0, in_1)


@triton.jit
def div_add_softmax_kernel(
    in_0_ptr,
    in_1_ptr,
    out_ptr,
    rows,
    columns,
    stride,
    stride_2,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    tiles = tl.cdiv(rows, ROWS)
    slab = tl.program_id(0) // tiles
    row = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    row_inside = row < rows
    column_inside = column < columns
    inside = row_inside & column_inside
    in_0 = tl.load(in_0_ptr + slab * stride + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    tmp_0 = (in_0 / 8.0).to(out_ptr.dtype.element_ty).to(tl.float32)
    in_1 = tl.load(in_1_ptr + slab * stride_2 + column, mask=column_inside, other=0.0).to(tl.float32)
    tmp_1 = (tmp_0 + in_1).to(out_ptr.dtype.element_ty).to(tl.float32)
    extreme_1 = tl.max(tl.where(column_inside, tmp_1, float("-inf")), axis=1, keep_dims=True)
    powers = tl.exp(tmp_1 - extreme_1)
    total_2 = tl.sum(tl.where(column_inside, powers, 0.0), axis=1, keep_dims=True)
    tmp_2 = powers / total_2
    tl.store(out_ptr + slab * stride + row * columns + column, tmp_2, mask=inside)


@torch.fx.wrap
def div_add_softmax(in_0, in_1):
    in_0, in_1 = in_0.contiguous(), in_1.contiguous()
    out = torch.empty_like(in_0)
    rows = in_0.shape[1] * in_0.shape[2]
    slabs = in_0.shape[0]
    columns = in_0.shape[-1]
    stride = in_0.shape[1] * in_0.shape[2] * in_0.shape[3]
    stride_2 = in_1.shape[1] * in_1.shape[2] * in_1.shape[3]
    width = triton.next_power_of_2(columns)
    height = min(triton.next_power_of_2(rows), max(1, 1024 // width))
    div_add_softmax_kernel[(slabs * triton.cdiv(rows, height),)](
        in_0, in_1, out, rows, columns, stride, stride_2, ROWS=height, COLUMNS=width, enable_fp_fusion=False,
    )
    return out


def replacement_func():
    return div_add_softmax
