# wrapper: squeeze_excite_add
# input: logits float32 [2, 10, 1, 1] normal
# input: features float32 [2, 10, 9, 11] normal
# input: shortcut float32 [2, 10, 9, 11] normal
"""A bound that nothing exceeds."""

import torch
import triton
import triton.language as tl


def pattern(logits, features, shortcut):
    return features * torch.nn.functional.hardsigmoid(logits, False) + shortcut


def replacement_args(logits, features, shortcut):
    return (logits, features, shortcut)


@triton.jit
def squeeze_excite_add_kernel(logit_ptr, feature_ptr, shortcut_ptr, out_ptr, pixels, BLOCK: tl.constexpr):
    dtype = out_ptr.dtype.element_ty
    plane = tl.program_id(0)
    logit = tl.load(logit_ptr + plane).to(tl.float32)
    # Comparisons, unlike minimum and maximum, let NaN through as eager does.
    gate = tl.where(logit < -3.0, 0.0, tl.where(logit > 3.0, 6.0, logit + 3.0)) / 6.0
    gate = gate.to(dtype).to(tl.float32)
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < pixels
    place = plane * pixels + pixel
    feature = tl.load(feature_ptr + place, mask=inside, other=0.0).to(tl.float32)
    shortcut = tl.load(shortcut_ptr + place, mask=inside, other=0.0).to(tl.float32)
    gated = (feature * gate).to(dtype).to(tl.float32)
    total = gated + shortcut
    total = tl.where(total > float("inf"), float("inf"), total)
    tl.store(out_ptr + place, total.to(dtype), mask=inside)


@torch.fx.wrap
def squeeze_excite_add(logits, features, shortcut):
    features = features.contiguous()
    batch, channels, height, width = features.shape
    logits = logits.expand(batch, channels, 1, 1).contiguous()
    shortcut = shortcut.expand(features.shape).contiguous()
    out = torch.empty_like(features)
    pixels = height * width
    block = min(triton.next_power_of_2(pixels), 1024)
    # No fused multiply-add: eager rounds in between.
    squeeze_excite_add_kernel[(batch * channels, triton.cdiv(pixels, block))](
        logits, features, shortcut, out, pixels, BLOCK=block, enable_fp_fusion=False
    )
    return out


def replacement_func():
    return squeeze_excite_add
