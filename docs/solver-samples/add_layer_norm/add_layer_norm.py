"""Fused: add, layer_norm.

One kernel: whole rows folded in one block. Arithmetic in float32, rounded where eager stores.
"""

import torch
import triton
import triton.language as tl


def pattern(in_1, in_0, w_0, w_1, given_0):
    tmp_0 = in_1 + in_0
    tmp_1 = torch.nn.functional.layer_norm(tmp_0, (given_0,), w_0, w_1, 1e-05)
    return tmp_0, tmp_1


def replacement_args(in_1, in_0, w_0, w_1, given_0):
    return (in_1, in_0, w_0, w_1)


@triton.jit
def add_layer_norm_kernel(
    in_1_ptr,
    in_0_ptr,
    w_0_ptr,
    w_1_ptr,
    out_0_ptr,
    out_1_ptr,
    rows,
    columns,
    stride,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    row_inside = row < rows
    column_inside = column < columns
    inside = row_inside & column_inside
    in_1 = tl.load(in_1_ptr + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    in_0 = tl.load(in_0_ptr + row * stride + column, mask=inside, other=0.0).to(tl.float32)
    tmp_0 = (in_1 + in_0).to(out_0_ptr.dtype.element_ty).to(tl.float32)
    tl.store(out_0_ptr + row * columns + column, tmp_0, mask=inside)
    total_1 = tl.sum(tl.where(column_inside, tmp_0, 0.0), axis=1, keep_dims=True)
    centred = tmp_0 - total_1 / columns
    total_2 = tl.sum(tl.where(column_inside, centred * centred, 0.0), axis=1, keep_dims=True)
    w_0 = tl.load(w_0_ptr + column, mask=column_inside, other=0.0).to(tl.float32)
    w_1 = tl.load(w_1_ptr + column, mask=column_inside, other=0.0).to(tl.float32)
    tmp_1 = centred * tl.rsqrt(total_2 / columns + 1e-5) * w_0 + w_1
    tl.store(out_1_ptr + row * columns + column, tmp_1, mask=inside)


@torch.fx.wrap
def add_layer_norm(in_1, in_0, w_0, w_1):
    in_1, in_0, w_0, w_1 = in_1.contiguous(), in_0.contiguous(), w_0.contiguous(), w_1.contiguous()
    out_0 = torch.empty_like(in_1)
    out_1 = torch.empty_like(in_1)
    rows = in_1.numel() // in_1.shape[-1]
    columns = in_1.shape[-1]
    stride = in_0.shape[-1]
    width = triton.next_power_of_2(columns)
    height = min(triton.next_power_of_2(rows), max(1, 1024 // width))
    add_layer_norm_kernel[(triton.cdiv(rows, height),)](
        in_1, in_0, w_0, w_1, out_0, out_1, rows, columns, stride, ROWS=height, COLUMNS=width, enable_fp_fusion=False,
    )
    return out_0, out_1


def replacement_func():
    return add_layer_norm
