# wrapper: run
# input: x float32 [4096, 1024] normal
import torch
import triton
import triton.language as tl


@triton.jit
def gelu_erf_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=mask)


def run(x):
    out = torch.empty_like(x)
    n = x.numel()
    gelu_erf_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out


def reference(x):
    return torch.nn.functional.gelu(x)
