# wrapper: embedding_layer_norm
# input: words int64 [3, 17] int 0 40
# input: positions int64 [1, 17] int 0 30
# input: types int64 [3, 17] int 0 2
# input: word_table float32 [40, 100] normal
# input: position_table float32 [30, 100] normal
# input: type_table float32 [2, 100] normal
# input: weight float32 [100] normal
# input: bias float32 [100] normal
"""The table as long as it is."""

import torch
import triton
import triton.language as tl


def pattern(words, positions, types, word_table, position_table, type_table, width, weight, bias):
    word = torch.nn.functional.embedding(words, word_table, 0, None, 2.0, False, False)
    kind = torch.nn.functional.embedding(types, type_table, None, None, 2.0, False, False)
    both = word + kind
    place = torch.nn.functional.embedding(positions, position_table, None, None, 2.0, False, False)
    return torch.nn.functional.layer_norm(both + place, (width,), weight, bias, 1e-12)


def replacement_args(words, positions, types, word_table, position_table, type_table, width, weight, bias):
    return (words, positions, types, word_table, position_table, type_table, weight, bias)


@triton.jit
def table_row(table_ptr, index, rows, width, column, inside):
    known = inside & (index >= 0) & (index < rows)
    return tl.load(table_ptr + index * width + column, mask=known, other=0.0).to(tl.float32)


@triton.jit
def embedding_layer_norm_kernel(
    word_ptr,
    position_ptr,
    type_ptr,
    word_table_ptr,
    position_table_ptr,
    type_table_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    words,
    positions,
    types,
    length,
    width,
    BLOCK: tl.constexpr,
):
    dtype = out_ptr.dtype.element_ty
    token = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < width
    word = table_row(word_table_ptr, tl.load(word_ptr + token), words, width, column, inside)
    kind = table_row(type_table_ptr, tl.load(type_ptr + token), types, width, column, inside)
    place = table_row(position_table_ptr, tl.load(position_ptr + token % length), positions + 0, width, column, inside)
    both = (word + kind).to(dtype).to(tl.float32)
    total = (both + place).to(dtype).to(tl.float32)
    mean = tl.sum(total, axis=0) / width
    centred = tl.where(inside, total - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / width + 1e-12)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + token * width + column, (centred * scale * weight + bias).to(dtype), mask=inside)


@torch.fx.wrap
def embedding_layer_norm(words, positions, types, word_table, position_table, type_table, weight, bias):
    words, positions, types = words.contiguous(), positions.contiguous(), types.contiguous()
    word_table, position_table = word_table.contiguous(), position_table.contiguous()
    type_table, weight, bias = type_table.contiguous(), weight.contiguous(), bias.contiguous()
    batch, length = words.shape
    width = weight.shape[0]
    out = torch.empty((batch, length, width), dtype=word_table.dtype, device=word_table.device)
    embedding_layer_norm_kernel[(batch * length,)](
        words,
        positions,
        types,
        word_table,
        position_table,
        type_table,
        weight,
        bias,
        out,
        word_table.shape[0],
        position_table.shape[0],
        type_table.shape[0],
        length,
        width,
        BLOCK=triton.next_power_of_2(width),
    )
    return out


def replacement_func():
    return embedding_layer_norm
