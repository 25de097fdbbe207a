# wrapper: run
# input: x int32 [256] int 0 9
# expect: race
import torch
import triton
import triton.language as tl


# Whoever comes first sets the sum to zero.
@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(out_ptr, 0)
    x = tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


def run(x):
    out = torch.zeros((1,), dtype=x.dtype, device=x.device)
    kernel[(4,)](x, out, BLOCK=64)
    return out
