# wrapper: run
# input: x float32 [50, 72] normal
# input: y float32 [50, 72] normal
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def kernel(x_desc, y_desc, out_desc, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tl.static_assert(x_desc.block_shape[0] == ROWS and isinstance(x_desc, tl.tensor_descriptor))
    row = tl.program_id(0) * ROWS
    column = tl.program_id(1) * COLUMNS
    x = x_desc.load([row, column])
    y = y_desc.load([row, column])
    out_desc.store([row, column], x * y + x_desc.shape[1])


def run(x, y):
    out = torch.empty_like(x)
    block = [16, 32]
    x_desc = TensorDescriptor.from_tensor(x, block)
    y_desc = TensorDescriptor(y, y.shape, y.stride(), [1, 1])
    y_desc.block_shape = block
    out_desc = TensorDescriptor(out, shape=list(out.shape), strides=[72, 1], block_shape=block)
    kernel[(triton.cdiv(50, 16), triton.cdiv(72, 32))](x_desc, y_desc, out_desc, ROWS=16, COLUMNS=32)
    return out
