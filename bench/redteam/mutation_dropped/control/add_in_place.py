"""The sum goes where eager puts it, and its rectified values into the result."""

import torch
import triton
import triton.language as tl


def pattern(x, update):
    x += update
    return torch.nn.functional.relu(x, False)


def replacement_args(x, update):
    return (x, update)


@triton.jit
def add_in_place_kernel(x_ptr, update_ptr, out_ptr, count, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    update = tl.load(update_ptr + place, mask=inside, other=0.0).to(tl.float32)
    total = (x + update).to(dtype)
    tl.store(x_ptr + place, total, mask=inside)
    tl.store(out_ptr + place, tl.where(total < 0, 0.0, total), mask=inside)


@torch.fx.wrap
def add_in_place(x, update):
    update = update.contiguous()
    out = torch.empty_like(x)
    count = x.numel()
    add_in_place_kernel[(triton.cdiv(count, 1024),)](x, update, out, count, BLOCK=1024)
    return out


def replacement_func():
    return add_in_place
