# Functions of `tl` that are themselves written in the language.
import triton
import triton.language as tl


def cdiv(x, div):
    return (x + (div - 1)) // div


def sigmoid(x):
    return 1 / (1 + tl.exp(-x))


def softmax(x, dim=None, keep_dims=False, ieee_rounding=False):
    if dim is None:
        axis = 0
    else:
        axis = dim
    z = x - tl.max(x, axis, keep_dims=keep_dims)
    num = tl.exp(z)
    den = tl.sum(num, axis, keep_dims=keep_dims)
    return num / den


def ravel(x, can_reorder=False):
    return tl.reshape(x, [x.numel])


def swizzle2d(i, j, size_i, size_j, size_g):
    ij = i * size_j + j
    size_gj = size_g * size_j
    group_id = ij // size_gj
    off_i = group_id * size_g
    rows = tl.minimum(size_i - off_i, size_g)
    inside = ij % size_gj
    return off_i + inside % rows, inside // rows


def zeros(shape, dtype):
    return tl.full(shape, 0, dtype)


def zeros_like(input):
    return tl.full(input.shape, 0, input.dtype)



def philox_round(c0, c1, c2, c3, k0, k1):
    a = tl.full(c0.shape, 0xD2511F53, tl.uint32)
    b = tl.full(c0.shape, 0xCD9E8D57, tl.uint32)
    n0 = tl.umulhi(b, c2) ^ c1 ^ k0
    n2 = tl.umulhi(a, c0) ^ c3 ^ k1
    return n0, b * c2, n2, a * c0


def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds):
    for _ in tl.static_range(n_rounds):
        c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
        k0 = k0 + 0x9E3779B9
        k1 = k1 + 0xBB67AE85
    return c0, c1, c2, c3


def philox(seed, c0, c1, c2, c3, n_rounds=10):
    seed = tl.cast(seed, tl.uint64)
    k0 = tl.cast(seed, tl.uint32)
    k1 = tl.cast(seed >> 32, tl.uint32)
    c0 = tl.cast(c0, tl.uint32)
    c1 = tl.cast(c1, tl.uint32)
    c2 = tl.cast(c2, tl.uint32)
    c3 = tl.cast(c3, tl.uint32)
    return philox_impl(c0, c1, c2, c3, k0, k1, n_rounds)


def randint4x(seed, offset, n_rounds=10):
    zero = offset * 0
    return philox(seed, offset, zero, zero, zero, n_rounds)


def randint(seed, offset, n_rounds=10):
    r0, r1, r2, r3 = randint4x(seed, offset, n_rounds)
    return r0


def uint_to_uniform_float(x):
    y = tl.cast(x, tl.int32, bitcast=True)
    y = tl.where(y < 0, -y - 1, y)
    return y * 4.6566127342e-10


def rand(seed, offset, n_rounds=10):
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


def rand4x(seed, offsets, n_rounds=10):
    a, b, c, d = randint4x(seed, offsets, n_rounds)
    return (
        uint_to_uniform_float(a),
        uint_to_uniform_float(b),
        uint_to_uniform_float(c),
        uint_to_uniform_float(d),
    )


def pair_uniform_to_normal(u1, u2):
    u1 = tl.maximum(1.0e-7, u1)
    th = 6.283185307179586 * u2
    r = tl.sqrt(-2.0 * tl.log(u1))
    return r * tl.cos(th), r * tl.sin(th)


def randn4x(seed, offset, n_rounds=10):
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    n1, n2 = pair_uniform_to_normal(u1, u2)
    n3, n4 = pair_uniform_to_normal(u3, u4)
    return n1, n2, n3, n4


def randn(seed, offset, n_rounds=10):
    a, b, c, d = randint4x(seed, offset, n_rounds)
    n1, _ = pair_uniform_to_normal(uint_to_uniform_float(a), uint_to_uniform_float(b))
    return n1
