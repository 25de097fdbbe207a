# wrapper: run
# input: x float32 [16, 64, 56, 56] normal
# input: mean float32 [64] normal
# input: var float32 [64] uniform 0.5 2
# input: weight float32 [64] normal
# input: bias float32 [64] normal
import torch
import triton
import triton.language as tl


@triton.jit
def batch_norm_relu_kernel(x_ptr, mean_ptr, var_ptr, weight_ptr, bias_ptr, out_ptr, C, HW, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    channel = plane % C
    mean = tl.load(mean_ptr + channel)
    scale = tl.load(weight_ptr + channel) / tl.sqrt(tl.load(var_ptr + channel) + 1e-5)
    shift = tl.load(bias_ptr + channel)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < HW
    x = tl.load(x_ptr + plane * HW + offs, mask=mask)
    tl.store(out_ptr + plane * HW + offs, tl.maximum((x - mean) * scale + shift, 0.0), mask=mask)


def run(x, mean, var, weight, bias):
    N, C, H, W = x.shape
    out = torch.empty_like(x)
    batch_norm_relu_kernel[(N * C, triton.cdiv(H * W, 1024))](x, mean, var, weight, bias, out, C, H * W, BLOCK=1024)
    return out


def reference(x, mean, var, weight, bias):
    return torch.relu(torch.nn.functional.batch_norm(x, mean, var, weight, bias, False, 0.1, 1e-5))
