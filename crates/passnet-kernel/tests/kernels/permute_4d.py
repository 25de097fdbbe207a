# wrapper: run
# tolerance: 0
# input: x float32 [2, 6, 5, 8] normal
import torch
import triton
import triton.language as tl


@triton.jit
def permute_kernel(x_ptr, out_ptr, n, A, B, C, D, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    # Output is (A, C, B, D).
    d = i % D
    b = (i // D) % B
    c = (i // (D * B)) % C
    a = i // (D * B * C)
    x = tl.load(x_ptr + ((a * B + b) * C + c) * D + d, mask=mask)
    tl.store(out_ptr + i, x, mask=mask)


def run(x):
    A, B, C, D = x.shape
    out = torch.empty((A, C, B, D), dtype=x.dtype, device=x.device)
    n = x.numel()
    permute_kernel[(triton.cdiv(n, 128),)](x, out, n, A, B, C, D, BLOCK=128)
    return out
