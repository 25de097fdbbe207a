# wrapper: run
# input: x float32 [4096, 1024] normal
# input: bias float32 [1024] normal
# input: residual float32 [4096, 1024] normal
import torch
import triton
import triton.language as tl


@triton.jit
def bias_relu_residual_kernel(x_ptr, bias_ptr, residual_ptr, out_ptr, n, N: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    bias = tl.load(bias_ptr + offs % N, mask=mask)
    residual = tl.load(residual_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.maximum(x + bias, 0.0) + residual, mask=mask)


def run(x, bias, residual):
    out = torch.empty_like(x)
    n = x.numel()
    bias_relu_residual_kernel[(triton.cdiv(n, 1024),)](x, bias, residual, out, n, N=x.shape[-1], BLOCK=1024)
    return out


def reference(x, bias, residual):
    return torch.relu(x + bias) + residual
