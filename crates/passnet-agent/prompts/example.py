import torch
import triton
import triton.language as tl


def pattern(x, y):
    return torch.nn.functional.relu(x * y, inplace=False)


def replacement_args(x, y):
    return (x, y)


@triton.jit
def mul_relu_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    dtype = out_ptr.dtype.element_ty
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + place, mask=inside, other=0.0).to(tl.float32)
    product = (x * y).to(dtype)
    tl.store(out_ptr + place, tl.where(product < 0, 0.0, product).to(dtype), mask=inside)


@torch.fx.wrap
def mul_relu(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    mul_relu_kernel[(triton.cdiv(n, 4096),)](x, y, out, n, BLOCK=4096)
    return out


def replacement_func():
    return mul_relu
