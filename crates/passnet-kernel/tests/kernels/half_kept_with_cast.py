# wrapper: run
# input: x float16 [6, 40] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, centred_ptr, copy_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < N
    x = tl.load(x_ptr + row * N + i, mask=mask, other=0.0)
    wide = x.to(tl.float32)
    mean = tl.sum(wide, axis=0) / N
    tl.store(centred_ptr + row * N + i, wide - mean, mask=mask)
    tl.store(copy_ptr + row * N + i, x, mask=mask)


def run(x):
    M, N = x.shape
    centred = torch.empty((M, N), dtype=torch.float32, device=x.device)
    copy = torch.empty_like(x)
    kernel[(M,)](x, centred, copy, N, BLOCK=triton.next_power_of_2(N))
    return centred, copy
