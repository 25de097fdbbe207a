# wrapper: run
# input: x float32 [8, 512, 1024] normal
# input: bias float32 [512, 1024] normal
import torch
import triton
import triton.language as tl


@triton.jit
def masked_softmax_kernel(x_ptr, bias_ptr, out_ptr, S, N, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=-float("inf"))
    bias = tl.load(bias_ptr + (row % S) * N + cols, mask=mask, other=0.0)
    x = x * scale + bias
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * N + cols, e / tl.sum(e, axis=0), mask=mask)


def run(x, bias):
    out = torch.empty_like(x)
    B, S, N = x.shape
    masked_softmax_kernel[(B * S,)](x, bias, out, S, N, 0.125, BLOCK=triton.next_power_of_2(N))
    return out


def reference(x, bias):
    return torch.softmax(x * 0.125 + bias, -1)
