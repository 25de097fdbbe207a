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
    if x.dtype.primitive_bitwidth == 64:
        y = tl.cast(x, tl.int64, bitcast=True)
        y = tl.where(y < 0, -y - 1, y)
        return y * 1.0842020432385337e-19
    else:
        y = tl.cast(x, tl.int32, bitcast=True)
        y = tl.where(y < 0, -y - 1, y)
        return y * 4.6566127342e-10


def uint32_to_uniform_float(x):
    return uint_to_uniform_float(x)


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


def topk(x, k, dim=None):
    ordered = tl.sort(x, dim, descending=True)
    if len(x.shape) == 1:
        return tl.gather(ordered, tl.arange(0, k), 0)
    elif len(x.shape) == 2:
        return tl.gather(ordered, tl.broadcast_to(tl.arange(0, k)[None, :], [x.shape[0], k]), 1)
    else:
        places = tl.arange(0, k)[None, None, :]
        return tl.gather(ordered, tl.broadcast_to(places, [x.shape[0], x.shape[1], k]), 2)


# One step back where rounding went away from zero; an infinity so made is the largest number again.
def round_to_zero_16(x, dtype):
    y = tl.cast(x, dtype)
    bits = tl.cast(y, tl.uint16, bitcast=True)
    bits = tl.where(tl.abs(tl.cast(y, x.dtype)) > tl.abs(x), bits - 1, bits)
    return tl.cast(bits, dtype, bitcast=True)


def round_to_zero_32(x, dtype):
    y = tl.cast(x, dtype)
    bits = tl.cast(y, tl.uint32, bitcast=True)
    bits = tl.where(tl.abs(tl.cast(y, x.dtype)) > tl.abs(x), bits - 1, bits)
    return tl.cast(bits, dtype, bitcast=True)


# Functions of libdevice that are made of others. Where rounding would show they compute in float64.
def libdevice_llrint(x):
    return tl.cast(tl.math.rint(x), tl.int64)


def libdevice_llround(x):
    return tl.cast(tl.math.round(x), tl.int64)


def libdevice_float2int_rn(x):
    return tl.cast(tl.math.rint(x), tl.int32)


def libdevice_float2int_rz(x):
    return tl.cast(tl.math.trunc(x), tl.int32)


def libdevice_float2int_rd(x):
    return tl.cast(tl.math.floor(x), tl.int32)


def libdevice_float2int_ru(x):
    return tl.cast(tl.math.ceil(x), tl.int32)


def libdevice_float2ll_rn(x):
    return tl.cast(tl.math.rint(x), tl.int64)


def libdevice_float2ll_rz(x):
    return tl.cast(tl.math.trunc(x), tl.int64)


def libdevice_int2float_rn(x):
    return tl.cast(x, tl.float32)


def libdevice_float_as_int(x):
    return tl.cast(x, tl.int32, bitcast=True)


def libdevice_int_as_float(x):
    return tl.cast(x, tl.float32, bitcast=True)


def libdevice_rcbrt(x):
    return 1 / tl.math.cbrt(x)


def libdevice_rhypot(x, y):
    return 1 / tl.math.hypot(x, y)


def libdevice_fdim(x, y):
    return tl.where(x <= y, 0.0, x - y)


def libdevice_remainder(x, y):
    a = tl.cast(x, tl.float64)
    b = tl.cast(y, tl.float64)
    return tl.cast(a - b * tl.math.rint(a / b), x.dtype)


def libdevice_ldexp(x, n):
    return tl.cast(tl.cast(x, tl.float64) * tl.exp2(tl.cast(n, tl.float64)), x.dtype)


def libdevice_scalbn(x, n):
    return libdevice_ldexp(x, n)


def libdevice_exp10(x):
    return tl.cast(tl.exp2(tl.cast(x, tl.float64) * 3.321928094887362), x.dtype)


def libdevice_fast_exp10f(x):
    return libdevice_exp10(x)


def libdevice_sinpi(x):
    a = tl.cast(x, tl.float64)
    return tl.cast(tl.sin((a - 2.0 * tl.math.rint(a * 0.5)) * 3.141592653589793), x.dtype)


def libdevice_cospi(x):
    a = tl.cast(x, tl.float64)
    return tl.cast(tl.cos((a - 2.0 * tl.math.rint(a * 0.5)) * 3.141592653589793), x.dtype)


def libdevice_tgamma(x):
    a = tl.cast(x, tl.float64)
    mirrored = 3.141592653589793 / (tl.sin(a * 3.141592653589793) * tl.exp(tl.math.lgamma(1.0 - a)))
    positive = tl.exp(tl.math.lgamma(a))
    pole = tl.math.floor(a) == a
    value = tl.where(a > 0, positive, tl.where(pole, float("nan"), mirrored))
    return tl.cast(tl.where(a == 0, 1 / a, value), x.dtype)


def libdevice_normcdf(x):
    return tl.cast(0.5 * tl.math.erfc(tl.cast(x, tl.float64) * -0.7071067811865476), x.dtype)


# The place at which erf is x, given 1 - x and 1 + x: a guess, then Newton's steps on whichever side is small.
def inverse_erf(below, above):
    logarithm = tl.log(below * above)
    half = 4.330746750799873 + logarithm * 0.5
    guess = tl.sqrt(tl.sqrt(half * half - logarithm * 6.802721088435374) - half)
    y = tl.where(below < above, guess, -guess)
    for _ in tl.static_range(5):
        slope = 1.1283791670955126 * tl.exp(-y * y)
        off = tl.where(below < above, below - tl.math.erfc(y), tl.math.erfc(-y) - above)
        step = tl.where(slope > 0, off / slope, 0.0)
        y = y - step
    y = tl.where(below == 0, float("inf"), tl.where(above == 0, float("-inf"), y))
    return tl.where((below < 0) | (above < 0), float("nan"), y)


def libdevice_erfinv(x):
    a = tl.cast(x, tl.float64)
    return tl.cast(inverse_erf(1.0 - a, 1.0 + a), x.dtype)


def libdevice_erfcinv(x):
    a = tl.cast(x, tl.float64)
    return tl.cast(inverse_erf(a, 2.0 - a), x.dtype)


def libdevice_normcdfinv(x):
    a = tl.cast(x, tl.float64)
    return tl.cast(inverse_erf(2.0 * a, 2.0 - 2.0 * a) * -1.4142135623730951, x.dtype)


def libdevice_ffs(x):
    return tl.where(x == 0, 0, tl.math.popc((x & -x) - 1) + 1)


def libdevice_hadd(x, y):
    return (x & y) + ((x ^ y) >> 1)


def libdevice_rhadd(x, y):
    return (x | y) - ((x ^ y) >> 1)


def libdevice_sad(x, y, z):
    return tl.where(x > y, x - y, y - x) + z


# Formats of `tl.dot_scaled`: two numbers in a byte, the first in its low half, along the last dimension.
def half_byte(code):
    steps = code & 7
    small = tl.cast(steps, tl.float32) * 0.5
    large = tl.cast((steps & 1) + 2, tl.float32) * tl.exp2(tl.cast(steps >> 1, tl.float32) - 2.0)
    value = tl.where(steps < 2, small, large)
    return tl.where((code & 8) != 0, -value, value)


def scaled_operand(x, scale, format):
    if format == "e2m1":
        bytes = tl.cast(x, tl.int32)
        rows: tl.constexpr = x.shape[0]
        joined = tl.join(half_byte(bytes & 15), half_byte((bytes >> 4) & 15))
        values = tl.reshape(joined, [rows, 2 * x.shape[1]])
    elif format == "e4m3":
        values = tl.cast(tl.cast(x, tl.float8e4nv, bitcast=True), tl.float32)
    elif format == "e5m2":
        values = tl.cast(tl.cast(x, tl.float8e5, bitcast=True), tl.float32)
    else:
        tl.static_assert(format == "bf16" or format == "fp16", "a format of tl.dot_scaled: e2m1, e4m3, e5m2, bf16 or fp16")
        values = tl.cast(x, tl.float32)
    if scale is None:
        return values
    if scale.dtype == tl.float8e4nv:
        factors = tl.cast(scale, tl.float32)
    else:
        powers = tl.cast(scale, tl.int32) & 255
        factors = tl.where(powers == 255, float("nan"), tl.exp2(tl.cast(powers, tl.float32) - 127.0))
    rows: tl.constexpr = values.shape[0]
    length: tl.constexpr = values.shape[1]
    groups: tl.constexpr = factors.shape[1]
    spread = tl.broadcast_to(factors[:, :, None], [rows, groups, length // groups])
    return values * tl.reshape(spread, [rows, length])


def dot_scaled(lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, acc=None, fast_math=False, lhs_k_pack=True,
               rhs_k_pack=True, out_dtype=tl.float32):
    tl.static_assert(lhs_k_pack and rhs_k_pack, "tl.dot_scaled packs along K here")
    a = scaled_operand(lhs, lhs_scale, lhs_format)
    b = tl.trans(scaled_operand(tl.trans(rhs), rhs_scale, rhs_format))
    return tl.dot(a, b, acc, out_dtype=out_dtype)
