# wrapper: run
# input: x uint8 [777] int 0 256
import torch
import triton
import triton.language as tl


@triton.jit
def uint8_ops_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1)
    tl.store(out_ptr + offs, (x * 2) // 3, mask=mask)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    uint8_ops_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
