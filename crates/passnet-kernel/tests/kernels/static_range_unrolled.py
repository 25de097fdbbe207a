# wrapper: run
# input: x float32 [6, 64] normal
import torch
import triton
import triton.language as tl


@triton.jit
def moving_kernel(x_ptr, out_ptr, N, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for t in tl.static_range(TAPS):
        acc += tl.load(x_ptr + row * N + i + t, mask=i + t < N, other=0.0) * (t + 1)
    tl.store(out_ptr + row * N + i, acc / TAPS, mask=i < N)


def run(x):
    out = torch.empty_like(x)
    moving_kernel[(x.shape[0],)](x, out, x.shape[1], TAPS=5, BLOCK=64)
    return out
