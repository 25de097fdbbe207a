# wrapper: swiglu
# input: gate_up float32 [3, 17, 260] normal
"""A scratch buffer in which every program keeps to its own part."""

import torch
import triton
import triton.language as tl


def pattern(gate_up):
    gate, up = gate_up.chunk(2, dim=-1)
    return up * torch.nn.functional.silu(gate, inplace=False)


def replacement_args(gate_up):
    return (gate_up,)


@triton.jit
def swiglu_kernel(packed_ptr, gate_ptr, out_ptr, width, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    gate_place = row * 2 * width + column
    gate = tl.load(packed_ptr + gate_place, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(packed_ptr + gate_place + width, mask=inside, other=0.0).to(tl.float32)
    tl.store(gate_ptr + row * width + column, (gate * tl.sigmoid(gate)).to(dtype).to(tl.float32), mask=inside)
    # Every program reads back its own block only.
    silu = tl.load(gate_ptr + row * width + column, mask=inside, other=0.0)
    tl.store(out_ptr + row * width + column, (up * silu).to(dtype), mask=inside)


@torch.fx.wrap
def swiglu(gate_up):
    gate_up = gate_up.contiguous()
    *lead, packed = gate_up.shape
    width = packed // 2
    out = torch.empty((*lead, width), dtype=gate_up.dtype, device=gate_up.device)
    rows = gate_up.numel() // packed
    block = min(triton.next_power_of_2(width), 512)
    gates = torch.empty((rows, width), dtype=torch.float32, device=gate_up.device)
    swiglu_kernel[(rows, triton.cdiv(width, block))](gate_up, gates, out, width, BLOCK=block)
    return out


def replacement_func():
    return swiglu
