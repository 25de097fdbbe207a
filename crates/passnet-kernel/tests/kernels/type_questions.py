# wrapper: run
# input: x float16 [70] normal
# input: i int32 [70] int 0 9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, i_ptr, out_ptr, n, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    i = tl.load(i_ptr + at, mask=at < n, other=0)
    y = x.to(tl.float32)
    if x.dtype.is_fp16() and not x.dtype.is_fp32():
        y += x.dtype.primitive_bitwidth
    if i.dtype.is_int32() and i.dtype.is_int_signed() and not i.dtype.is_uint8():
        y += i.dtype.itemsize * 100
    if x_ptr.dtype.element_ty.is_floating() and x_ptr.dtype.is_ptr():
        y += 1000
    if x.type.is_block() and x.type.scalar == tl.float16:
        y += x.dtype.fp_mantissa_width * 10000
    tl.store(out_ptr + at, y.to(DTYPE), mask=at < n)


def run(x, i):
    out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    kernel[(1,)](x, i, out, x.numel(), DTYPE=tl.float32, BLOCK=128)
    return out
