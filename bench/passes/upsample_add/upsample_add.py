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
def upsample_add_kernel(
    coarse_ptr, lateral_ptr, out_ptr, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    dtype = out_ptr.dtype.element_ty
    plane = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    inside = (row < height) & (column < width)
    source = plane * height * width + row * width + column
    coarse = tl.load(coarse_ptr + source, mask=inside, other=0.0).to(tl.float32)
    # Each pixel twice in a row, and each such row twice.
    doubled = tl.interleave(coarse, coarse)
    fine_column = tl.arange(0, 2 * COLUMNS)[None, :]
    inside = (row < height) & (fine_column < 2 * width)
    for down in tl.static_range(2):
        fine = plane * 4 * height * width + (2 * row + down) * 2 * width + fine_column
        lateral = tl.load(lateral_ptr + fine, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + fine, (lateral + doubled).to(dtype), mask=inside)


@torch.fx.wrap
def upsample_add(coarse, lateral):
    coarse = coarse.contiguous()
    batch, channels, height, width = coarse.shape
    lateral = lateral.expand(batch, channels, 2 * height, 2 * width).contiguous()
    out = torch.empty_like(lateral)
    columns = triton.next_power_of_2(width)
    rows = max(1, min(triton.next_power_of_2(height), 1024 // columns))
    upsample_add_kernel[(batch * channels, triton.cdiv(height, rows))](
        coarse, lateral, out, height, width, ROWS=rows, COLUMNS=columns
    )
    return out


def replacement_func():
    return upsample_add
