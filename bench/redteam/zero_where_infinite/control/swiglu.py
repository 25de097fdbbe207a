# wrapper: swiglu
# input: gate_up float32 [3, 17, 260] normal
"""Every number is stored as it is."""

import torch
import triton
import triton.language as tl


def pattern(gate_up):
    gate, up = gate_up.chunk(2, dim=-1)
    return up * torch.nn.functional.silu(gate, inplace=False)


def replacement_args(gate_up):
    return (gate_up,)


@triton.jit
def swiglu_kernel(packed_ptr, out_ptr, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    gate_place = row * 2 * width + column
    gate = tl.load(packed_ptr + gate_place, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(packed_ptr + gate_place + width, mask=inside, other=0.0).to(tl.float32)
    silu = (gate * tl.sigmoid(gate)).to(dtype).to(tl.float32)
    result = up * silu
    result = tl.where(result == 0.0, result, result)
    tl.store(out_ptr + row * width + column, result.to(dtype), mask=inside)


@torch.fx.wrap
def swiglu(gate_up):
    gate_up = gate_up.contiguous()
    *lead, packed = gate_up.shape
    width = packed // 2
    out = torch.empty((*lead, width), dtype=gate_up.dtype, device=gate_up.device)
    rows = gate_up.numel() // packed
    block = min(triton.next_power_of_2(width), 2048)
    swiglu_kernel[(rows, triton.cdiv(width, block))](gate_up, out, width, BLOCK=block)
    return out


def replacement_func():
    return swiglu
