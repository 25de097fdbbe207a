"""SiLU of the tokens that are no padding."""

import torch
import triton
import triton.language as tl


def pattern(ids, x):
    kept = ids.ne(1).unsqueeze(-1).type_as(x)
    return torch.nn.functional.silu(x, inplace=False) * kept


def replacement_args(ids, x):
    return (ids, x)


@triton.jit
def padding_masked_kernel(ids_ptr, x_ptr, out_ptr, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    token = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < width
    x = tl.load(x_ptr + token * width + column, mask=inside, other=0.0).to(tl.float32)
    silu = (x * tl.sigmoid(x)).to(dtype).to(tl.float32)
    kept = tl.where(tl.load(ids_ptr + token) != 1, 1.0, 0.0)
    tl.store(out_ptr + token * width + column, (silu * kept).to(dtype), mask=inside)


@torch.fx.wrap
def padding_masked(ids, x):
    ids, x = ids.contiguous(), x.contiguous()
    batch, length, width = x.shape
    out = torch.empty_like(x)
    padding_masked_kernel[(batch * length,)](
        ids, x, out, width, BLOCK=triton.next_power_of_2(width)
    )
    return out


def replacement_func():
    return padding_masked
