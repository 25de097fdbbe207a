# wrapper: gelu_dropout_add
# input: x bfloat16 [3, 50, 100] normal
# input: residual bfloat16 [3, 50, 100] normal
"""Takes every tensor as it lies in memory."""

import torch
import triton
import triton.language as tl


def pattern(x, residual):
    activated = torch.nn.functional.gelu(x)
    return activated + residual


def replacement_args(x, residual):
    return (x, residual)


@triton.jit
def gelu_add_kernel(
    x_ptr,
    residual_ptr,
    out_ptr,
    rows,
    columns,
    x_batch,
    x_row,
    x_column,
    residual_batch,
    residual_row,
    residual_column,
    out_batch,
    out_row,
    out_column,
    BLOCK: tl.constexpr,
):
    dtype = out_ptr.dtype.element_ty
    batch = tl.program_id(1)
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < rows * columns
    row = place // columns
    column = place % columns
    x = tl.load(x_ptr + batch * x_batch + row * x_row + column * x_column, mask=inside, other=0.0).to(tl.float32)
    other = residual_ptr + batch * residual_batch + row * residual_row + column * residual_column
    residual = tl.load(other, mask=inside, other=0.0).to(tl.float32)
    gelu = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    out = out_ptr + batch * out_batch + row * out_row + column * out_column
    # Eager stores the activation before it adds: round it the same way.
    tl.store(out, (gelu.to(dtype).to(tl.float32) + residual).to(dtype), mask=inside)


@torch.fx.wrap
def gelu_dropout_add(x, residual):
    residual = residual.expand(x.shape)
    # Laid out as its first operand is, as eager does it.
    out = torch.empty_like(x)
    batch, rows, columns = x.shape
    gelu_add_kernel[(triton.cdiv(rows * columns, 1024), batch)](
        x, residual, out, rows, columns, *x.stride(), *residual.stride(), *out.stride(), BLOCK=1024
    )
    return out


def replacement_func():
    return gelu_dropout_add
