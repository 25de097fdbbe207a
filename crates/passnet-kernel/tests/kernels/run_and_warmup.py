# wrapper: run
# input: x float32 [100] normal
import torch
import triton
import triton.language as tl


@triton.jit
def total(*parts):
    result = parts[0]
    for i in tl.static_range(1, len(parts)):
        result += parts[i]
    return result


@triton.jit
def kernel(x_ptr, out_ptr, n, SKIP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    if n > 10 and not SKIP:
        scale = undefined_name
    half: tl.constexpr = 1.0 / tl.sqrt(4.0)
    tl.store(out_ptr + at, total(x, x * half, tl.to_tensor(1)), mask=at < n)


def run(x):
    out = torch.empty_like(x)
    kernel.run(x, out, 100, SKIP=True, BLOCK=32, grid=(triton.cdiv(100, 32),), warmup=False)
    return out
