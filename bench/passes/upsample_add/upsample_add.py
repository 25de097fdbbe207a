# wrapper: upsample_add
# input: coarse float32 [2, 5, 9, 11] normal
# input: lateral float32 [2, 5, 18, 22] normal
"""Nearest-neighbour doubling and the lateral addition: the enlarged map is never written."""

import torch
import triton
import triton.language as tl


def pattern(coarse, lateral):
    doubled = torch.nn.functional.interpolate(coarse, None, 2.0, "nearest", None, None, False)
    return lateral + doubled


def replacement_args(coarse, lateral):
    return (coarse, lateral)


@triton.jit
def upsample_add_kernel(coarse_ptr, lateral_ptr, out_ptr, height, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    plane = tl.program_id(0)
    pixels = height * width * 4
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < pixels
    row = pixel // (2 * width)
    column = pixel % (2 * width)
    source = plane * height * width + row // 2 * width + column // 2
    coarse = tl.load(coarse_ptr + source, mask=inside, other=0.0).to(tl.float32)
    lateral = tl.load(lateral_ptr + plane * pixels + pixel, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + plane * pixels + pixel, (lateral + coarse).to(dtype), mask=inside)


@torch.fx.wrap
def upsample_add(coarse, lateral):
    coarse = coarse.contiguous()
    batch, channels, height, width = coarse.shape
    lateral = lateral.expand(batch, channels, 2 * height, 2 * width).contiguous()
    out = torch.empty_like(lateral)
    pixels = 4 * height * width
    block = min(triton.next_power_of_2(pixels), 1024)
    upsample_add_kernel[(batch * channels, triton.cdiv(pixels, block))](
        coarse, lateral, out, height, width, BLOCK=block
    )
    return out


def replacement_func():
    return upsample_add
