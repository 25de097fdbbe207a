# wrapper: masked_mean_pool
# input: x float32 [3, 17, 100] normal
# input: mask int64 [3, 17] int 0 2
"""The length of every vector, computed."""

import torch
import triton
import triton.language as tl


def pattern(x, mask, batch, length, width):
    wide = mask.unsqueeze(-1).expand(batch, length, width).type_as(x)
    total = torch.sum(x * wide, 1)
    count = torch.clamp(wide.sum(1), min=0.001)
    return torch.nn.functional.normalize(total / count, p=2, dim=1)


def replacement_args(x, mask, batch, length, width):
    return (x, mask)


@triton.jit
def pool_kernel(x_ptr, mask_ptr, out_ptr, length, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    batch = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    total = tl.zeros([BLOCK], dtype=tl.float32)
    count = 0.0
    for token in range(0, length):
        weight = tl.load(mask_ptr + batch * length + token).to(dtype).to(tl.float32)
        x = tl.load(x_ptr + (batch * length + token) * width + column, mask=inside, other=0.0).to(tl.float32)
        total += (x * weight).to(dtype).to(tl.float32)
        count += weight
    count = tl.maximum(count.to(dtype).to(tl.float32), 0.001).to(dtype).to(tl.float32)
    mean = total.to(dtype).to(tl.float32) / count
    tl.store(out_ptr + batch * width + column, mean.to(dtype), mask=inside)


@triton.jit
def normalize_kernel(mean_ptr, out_ptr, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    column = tl.arange(0, BLOCK)
    inside = column < width
    place = tl.program_id(0) * width + column
    mean = tl.load(mean_ptr + place, mask=inside, other=0.0).to(tl.float32)
    known = tl.sqrt(tl.sum(mean * mean, axis=0))
    length = known.to(dtype).to(tl.float32)
    length = tl.where(length < 1e-12, 1e-12, length).to(dtype).to(tl.float32)
    tl.store(out_ptr + place, (mean / length).to(dtype), mask=inside)


@torch.fx.wrap
def masked_mean_pool(x, mask):
    x, mask = x.contiguous(), mask.contiguous()
    batch, length, width = x.shape
    mean = torch.empty((batch, width), dtype=x.dtype, device=x.device)
    out = torch.empty((batch, width), dtype=x.dtype, device=x.device)
    pool_kernel[(batch, triton.cdiv(width, 256))](x, mask, mean, length, width, BLOCK=256)
    normalize_kernel[(batch,)](mean, out, width, BLOCK=triton.next_power_of_2(width))
    return out


def replacement_func():
    return masked_mean_pool
