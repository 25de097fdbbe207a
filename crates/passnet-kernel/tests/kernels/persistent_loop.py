# wrapper: run
# input: x float32 [1000] normal
import torch
import triton
import triton.language as tl


@triton.jit
def persistent_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    step = tl.num_programs(0)
    for block in range(pid, tl.cdiv(n, BLOCK), step):
        i = block * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) * 3.0, mask=mask)


def run(x):
    out = torch.empty_like(x)
    persistent_kernel[(3,)](x, out, x.numel(), BLOCK=64)
    return out
