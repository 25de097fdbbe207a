# wrapper: run
# input: x float32 [16] normal
# value: 5
import torch
import triton
import triton.language as tl


@triton.jit
def swap_kernel(x_ptr, out_ptr, steps, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x_ptr + i)
    b = a * 0.5
    for _ in range(steps):
        c = a + b
        a = b
        b = c
    tl.store(out_ptr + i, a)
    tl.store(out_ptr + N + i, b)


def run(x, steps):
    out = torch.empty((2, x.numel()), dtype=x.dtype, device=x.device)
    swap_kernel[(1,)](x, out, steps, N=x.numel())
    return out
