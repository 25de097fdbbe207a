"""Fused: mul, getitem, getitem, neg, cat, mul, add.

One kernel: pointwise over rows and columns. Arithmetic in float32, rounded where eager stores.
"""

import torch
import triton
import triton.language as tl


def pattern(in_0, in_1, in_2):
    tmp_0 = in_0 * in_1
    tmp_1 = in_0[Ellipsis, slice(None, 32, None)]
    tmp_2 = in_0[Ellipsis, slice(32, None, None)]
    tmp_3 = -tmp_2
    tmp_4 = torch.cat((tmp_3, tmp_1), dim=-1)
    tmp_5 = tmp_4 * in_2
    tmp_6 = tmp_0 + tmp_5
    return tmp_6


def replacement_args(in_0, in_1, in_2):
    return (in_0, in_1, in_2)


@triton.jit
def mul_neg_cat_mul_add_kernel(
    in_0_ptr,
    in_1_ptr,
    in_2_ptr,
    out_ptr,
    rows,
    columns,
    stride,
    stride_2,
    high,
    offset,
    stride_3,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    tiles = tl.cdiv(rows, ROWS)
    slab = tl.program_id(0) // tiles
    row = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    row_inside = row < rows
    column_inside = column < columns
    inside = row_inside & column_inside
    in_0 = tl.load(in_0_ptr + slab * stride + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    in_1 = tl.load(in_1_ptr + row * stride_2 + column, mask=inside, other=0.0).to(tl.float32)
    tmp_0 = (in_0 * in_1).to(out_ptr.dtype.element_ty).to(tl.float32)
    in_0_2 = tl.load(in_0_ptr + slab * stride + row * columns + column + 32, mask=inside & (column < high), other=0.0).to(tl.float32)
    tmp_3 = (-in_0_2).to(out_ptr.dtype.element_ty).to(tl.float32)
    in_0_3 = tl.load(in_0_ptr + slab * stride + row * columns + column + offset, mask=inside & (column >= high), other=0.0).to(tl.float32)
    tmp_4 = tl.where(column < high, tmp_3, in_0_3)
    in_2 = tl.load(in_2_ptr + row * stride_3 + column, mask=inside, other=0.0).to(tl.float32)
    tmp_5 = (tmp_4 * in_2).to(out_ptr.dtype.element_ty).to(tl.float32)
    tmp_6 = tmp_0 + tmp_5
    tl.store(out_ptr + slab * stride + row * columns + column, tmp_6, mask=inside)


@torch.fx.wrap
def mul_neg_cat_mul_add(in_0, in_1, in_2):
    in_0, in_1, in_2 = in_0.contiguous(), in_1.contiguous(), in_2.contiguous()
    out = torch.empty_like(in_0)
    rows = in_0.shape[2]
    slabs = in_0.shape[0] * in_0.shape[1]
    columns = in_0.shape[-1]
    stride = in_0.shape[2] * in_0.shape[3]
    stride_2 = in_1.shape[-1]
    high = in_0.shape[3] - 32
    offset = -in_0.shape[3] + 32
    stride_3 = in_2.shape[-1]
    # A power of two that divides a row, where one does: masked lanes are work, too.
    width = max(64, columns & -columns)
    width = min(width, triton.next_power_of_2(columns), 1024)
    height = min(triton.next_power_of_2(rows), max(1, 1024 // width))
    mul_neg_cat_mul_add_kernel[(slabs * triton.cdiv(rows, height), triton.cdiv(columns, width))](
        in_0, in_1, in_2, out, rows, columns, stride, stride_2, high, offset, stride_3, ROWS=height, COLUMNS=width, enable_fp_fusion=False,
    )
    return out


def replacement_func():
    return mul_neg_cat_mul_add
