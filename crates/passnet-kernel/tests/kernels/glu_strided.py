# wrapper: run
# input: x float32 [6, 4, 10] normal
import torch
import triton
import triton.language as tl


@triton.jit
def glu_kernel(a_ptr, b_ptr, out_ptr, s0, s1, L, C, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    n = pid // C
    c = pid % C
    i = tl.arange(0, BLOCK)
    mask = i < L
    a = tl.load(a_ptr + n * s0 + c * s1 + i, mask=mask)
    b = tl.load(b_ptr + n * s0 + c * s1 + i, mask=mask)
    tl.store(out_ptr + pid * L + i, a * tl.sigmoid(b), mask=mask)


def run(x):
    a, b = x.chunk(2, dim=1)
    N, C, L = a.shape
    out = torch.empty((N, C, L), dtype=x.dtype, device=x.device)
    glu_kernel[(N * C,)](a, b, out, a.stride(0), a.stride(1), L, C, BLOCK=16)
    return out
