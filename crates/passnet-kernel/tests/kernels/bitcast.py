# wrapper: run
# tolerance: 0
# input: x float32 [777] normal
import torch
import triton
import triton.language as tl


@triton.jit
def bitcast_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1)
    bits = x.to(tl.int32, bitcast=True)
    tl.store(out_ptr + offs, (bits ^ 0x7fffff).to(tl.float32, bitcast=True), mask=mask)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    bitcast_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
