# wrapper: run
# input: x float32 [9, 80] normal
import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    gate = tl.load(x_ptr + row * 2 * N + cols, mask=mask)
    up = tl.load(x_ptr + row * 2 * N + N + cols, mask=mask)
    tl.store(out_ptr + row * N + cols, gate * tl.sigmoid(gate) * up, mask=mask)


def run(x):
    M, N2 = x.shape
    N = N2 // 2
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    swiglu_kernel[(M,)](x, out, N, BLOCK=triton.next_power_of_2(N))
    return out
