//! One result element from the elements at the same place.

use super::{Alias::Fresh, Class::Pointwise, Op, OpSpec, entry};

const fn pointwise(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Pointwise, Fresh, signatures, spellings)
}

const UNARY_SIGNATURE: &[&str] = &["input:T, *, out:T=None"];
const BINARY: &[&str] = &["input:S, other:S, *, out:T=None"];
const ACTIVATION: &[&str] = &["input:T, inplace:B=False"];

pub(super) static ARITHMETIC: &[OpSpec] = &[
    pointwise(
        Op::Add,
        &["input:S, other:S, *, alpha:N=1, out:T=None"],
        &["torch.add", ".add", ".add_", "op:add", "op:iadd", ".__add__", ".__iadd__", ".__radd__"],
    ),
    pointwise(
        Op::Sub,
        &["input:S, other:S, *, alpha:N=1, out:T=None"],
        &[
            "torch.sub",
            "torch.subtract",
            ".sub",
            ".sub_",
            ".subtract",
            "op:sub",
            "op:isub",
            ".__sub__",
        ],
    ),
    pointwise(Op::Rsub, &["input:S, other:S, *, alpha:N=1"], &["torch.rsub", ".__rsub__"]),
    pointwise(
        Op::Mul,
        // Python also repeats a list: `[None] * n`.
        &["input:S, other:S, *, out:T=None", "items:A, count:N"],
        &[
            "torch.mul",
            "torch.multiply",
            ".mul",
            ".mul_",
            ".multiply",
            "op:mul",
            "op:imul",
            ".__mul__",
            ".__rmul__",
        ],
    ),
    pointwise(
        Op::Div,
        &["input:S, other:S, *, rounding_mode:W=None, out:T=None"],
        &[
            "torch.div",
            "torch.divide",
            "torch.true_divide",
            ".div",
            ".div_",
            ".divide",
            ".true_divide",
            "op:truediv",
            "op:itruediv",
        ],
    ),
    pointwise(
        Op::FloorDivide,
        BINARY,
        &["torch.floor_divide", ".floor_divide", ".floor_divide_", "op:floordiv", "op:ifloordiv"],
    ),
    pointwise(
        Op::Remainder,
        BINARY,
        &["torch.remainder", ".remainder", ".remainder_", "op:mod", "op:imod"],
    ),
    pointwise(Op::Fmod, BINARY, &["torch.fmod", ".fmod", ".fmod_"]),
    pointwise(
        Op::Pow,
        &["input:S, exponent:S, *, out:T=None"],
        &["torch.pow", ".pow", ".pow_", "op:pow", "op:ipow", ".__pow__"],
    ),
    pointwise(Op::FloatPower, &["input:S, exponent:S"], &["torch.float_power", ".float_power"]),
    pointwise(Op::Maximum, BINARY, &["torch.maximum", ".maximum", "torch.fmax"]),
    pointwise(Op::Minimum, BINARY, &["torch.minimum", ".minimum", "torch.fmin"]),
    pointwise(Op::Atan2, BINARY, &["torch.atan2", "torch.arctan2", ".atan2", ".arctan2"]),
    pointwise(Op::Xlogy, BINARY, &["torch.xlogy", "torch.special.xlogy", ".xlogy"]),
    pointwise(Op::Hypot, BINARY, &["torch.hypot", ".hypot"]),
    pointwise(Op::Copysign, BINARY, &["torch.copysign", ".copysign"]),
    pointwise(
        Op::Heaviside,
        &["input:T, values:T, *, out:T=None"],
        &["torch.heaviside", ".heaviside"],
    ),
    pointwise(Op::Logaddexp, BINARY, &["torch.logaddexp", ".logaddexp"]),
    pointwise(Op::Logaddexp2, BINARY, &["torch.logaddexp2", ".logaddexp2"]),
    pointwise(
        Op::Addcmul,
        &["input:T, tensor1:T, tensor2:T, *, value:N=1"],
        &["torch.addcmul", ".addcmul", ".addcmul_"],
    ),
    pointwise(
        Op::Addcdiv,
        &["input:T, tensor1:T, tensor2:T, *, value:N=1"],
        &["torch.addcdiv", ".addcdiv", ".addcdiv_"],
    ),
    pointwise(Op::Lerp, &["input:T, end:T, weight:S"], &["torch.lerp", ".lerp", ".lerp_"]),
    pointwise(
        Op::Clamp,
        &["input:T, min:S=None, max:S=None"],
        &["torch.clamp", "torch.clip", ".clamp", ".clamp_", ".clip", ".clip_"],
    ),
    pointwise(Op::ClampMin, &["input:T, min:S"], &["torch.clamp_min", ".clamp_min", ".clamp_min_"]),
    pointwise(Op::ClampMax, &["input:T, max:S"], &["torch.clamp_max", ".clamp_max", ".clamp_max_"]),
    pointwise(Op::Where, &["condition:T, input:S, other:S"], &["torch.where"]),
    pointwise(Op::WhereMethod, &["input:S, condition:T, other:S"], &[".where"]),
    pointwise(
        Op::MaskedFill,
        &["input:T, mask:T, value:S"],
        &["torch.masked_fill", ".masked_fill", ".masked_fill_"],
    ),
    pointwise(
        Op::BitwiseAnd,
        BINARY,
        &[
            "torch.bitwise_and",
            ".bitwise_and",
            ".bitwise_and_",
            ".__and__",
            ".__iand__",
            "op:and_",
            "op:iand",
        ],
    ),
    pointwise(
        Op::BitwiseOr,
        BINARY,
        &[
            "torch.bitwise_or",
            ".bitwise_or",
            ".bitwise_or_",
            ".__or__",
            ".__ior__",
            "op:or_",
            "op:ior",
        ],
    ),
    pointwise(
        Op::BitwiseXor,
        BINARY,
        &["torch.bitwise_xor", ".bitwise_xor", ".__xor__", "op:xor", "op:ixor"],
    ),
    pointwise(
        Op::LeftShift,
        BINARY,
        &["torch.bitwise_left_shift", ".bitwise_left_shift", "op:lshift", ".__lshift__"],
    ),
    pointwise(
        Op::RightShift,
        BINARY,
        &["torch.bitwise_right_shift", ".bitwise_right_shift", "op:rshift", ".__rshift__"],
    ),
];

pub(super) static UNARY: &[OpSpec] = &[
    pointwise(
        Op::Neg,
        &["input:S"],
        &["torch.neg", "torch.negative", ".neg", ".neg_", ".negative", "op:neg"],
    ),
    pointwise(Op::Positive, &["input:S"], &["torch.positive", ".positive", "op:pos"]),
    pointwise(
        Op::Abs,
        UNARY_SIGNATURE,
        &["torch.abs", "torch.absolute", ".abs", ".abs_", ".absolute", "op:abs"],
    ),
    pointwise(Op::Sign, UNARY_SIGNATURE, &["torch.sign", "torch.sgn", ".sign", ".sign_", ".sgn"]),
    pointwise(Op::Ceil, UNARY_SIGNATURE, &["torch.ceil", ".ceil", ".ceil_"]),
    pointwise(Op::Floor, UNARY_SIGNATURE, &["torch.floor", ".floor", ".floor_"]),
    pointwise(Op::Round, &["input:T, *, decimals:I=0"], &["torch.round", ".round", ".round_"]),
    pointwise(Op::Trunc, UNARY_SIGNATURE, &["torch.trunc", "torch.fix", ".trunc", ".trunc_"]),
    pointwise(Op::Frac, UNARY_SIGNATURE, &["torch.frac", ".frac", ".frac_"]),
    pointwise(Op::Exp, UNARY_SIGNATURE, &["torch.exp", ".exp", ".exp_"]),
    pointwise(Op::Exp2, UNARY_SIGNATURE, &["torch.exp2", ".exp2", "torch.special.exp2"]),
    pointwise(
        Op::Expm1,
        UNARY_SIGNATURE,
        &["torch.expm1", ".expm1", ".expm1_", "torch.special.expm1"],
    ),
    pointwise(Op::Log, UNARY_SIGNATURE, &["torch.log", ".log", ".log_"]),
    pointwise(Op::Log2, UNARY_SIGNATURE, &["torch.log2", ".log2", ".log2_"]),
    pointwise(Op::Log10, UNARY_SIGNATURE, &["torch.log10", ".log10", ".log10_"]),
    pointwise(Op::Log1p, UNARY_SIGNATURE, &["torch.log1p", ".log1p", ".log1p_"]),
    pointwise(
        Op::Logit,
        &["input:T, eps:N=None"],
        &["torch.logit", "torch.special.logit", "torch._C._special.special_logit", ".logit"],
    ),
    pointwise(Op::Sqrt, UNARY_SIGNATURE, &["torch.sqrt", ".sqrt", ".sqrt_"]),
    pointwise(Op::Rsqrt, UNARY_SIGNATURE, &["torch.rsqrt", ".rsqrt", ".rsqrt_"]),
    pointwise(Op::Square, UNARY_SIGNATURE, &["torch.square", ".square", ".square_"]),
    pointwise(
        Op::Reciprocal,
        UNARY_SIGNATURE,
        &["torch.reciprocal", ".reciprocal", ".reciprocal_"],
    ),
    pointwise(Op::Sin, UNARY_SIGNATURE, &["torch.sin", ".sin", ".sin_"]),
    pointwise(Op::Cos, UNARY_SIGNATURE, &["torch.cos", ".cos", ".cos_"]),
    pointwise(Op::Tan, UNARY_SIGNATURE, &["torch.tan", ".tan"]),
    pointwise(Op::Asin, UNARY_SIGNATURE, &["torch.asin", "torch.arcsin", ".asin", ".arcsin"]),
    pointwise(Op::Acos, UNARY_SIGNATURE, &["torch.acos", "torch.arccos", ".acos", ".arccos"]),
    pointwise(Op::Atan, UNARY_SIGNATURE, &["torch.atan", "torch.arctan", ".atan", ".arctan"]),
    pointwise(Op::Sinh, UNARY_SIGNATURE, &["torch.sinh", ".sinh"]),
    pointwise(Op::Cosh, UNARY_SIGNATURE, &["torch.cosh", ".cosh"]),
    pointwise(
        Op::Tanh,
        UNARY_SIGNATURE,
        &["torch.tanh", "torch.nn.functional.tanh", ".tanh", ".tanh_", "torch.tanh_"],
    ),
    pointwise(Op::Erf, UNARY_SIGNATURE, &["torch.erf", "torch.special.erf", ".erf", ".erf_"]),
    pointwise(Op::Erfc, UNARY_SIGNATURE, &["torch.erfc", "torch.special.erfc", ".erfc"]),
    pointwise(Op::Erfinv, UNARY_SIGNATURE, &["torch.erfinv", ".erfinv", ".erfinv_"]),
    pointwise(Op::Asinh, UNARY_SIGNATURE, &["torch.asinh", "torch.arcsinh", ".asinh", ".arcsinh"]),
    pointwise(Op::Acosh, UNARY_SIGNATURE, &["torch.acosh", "torch.arccosh", ".acosh", ".arccosh"]),
    pointwise(Op::Atanh, UNARY_SIGNATURE, &["torch.atanh", "torch.arctanh", ".atanh", ".arctanh"]),
    pointwise(
        Op::Sinc,
        UNARY_SIGNATURE,
        &["torch.sinc", "torch.special.sinc", "torch._C._special.special_sinc", ".sinc"],
    ),
    pointwise(
        Op::Lgamma,
        UNARY_SIGNATURE,
        &["torch.lgamma", "torch.special.gammaln", "torch._C._special.special_gammaln", ".lgamma"],
    ),
    pointwise(
        Op::Digamma,
        UNARY_SIGNATURE,
        &[
            "torch.digamma",
            "torch.special.digamma",
            "torch._C._special.special_digamma",
            ".digamma",
        ],
    ),
    pointwise(
        Op::BesselI0,
        UNARY_SIGNATURE,
        &["torch.i0", "torch.special.i0", "torch._C._special.special_i0", ".i0"],
    ),
    pointwise(Op::Deg2rad, UNARY_SIGNATURE, &["torch.deg2rad", ".deg2rad"]),
    pointwise(Op::Rad2deg, UNARY_SIGNATURE, &["torch.rad2deg", ".rad2deg"]),
    pointwise(
        Op::Sigmoid,
        UNARY_SIGNATURE,
        &[
            "torch.sigmoid",
            "torch.nn.functional.sigmoid",
            "torch.special.expit",
            ".sigmoid",
            ".sigmoid_",
            "torch.sigmoid_",
        ],
    ),
    pointwise(
        Op::BitwiseNot,
        &["input:S"],
        &["torch.bitwise_not", ".bitwise_not", "op:invert", ".__invert__"],
    ),
    pointwise(Op::LogicalNot, UNARY_SIGNATURE, &["torch.logical_not", ".logical_not"]),
    pointwise(Op::IsNan, UNARY_SIGNATURE, &["torch.isnan", ".isnan"]),
    pointwise(Op::IsInf, UNARY_SIGNATURE, &["torch.isinf", ".isinf"]),
    pointwise(Op::IsFinite, UNARY_SIGNATURE, &["torch.isfinite", ".isfinite"]),
    pointwise(
        Op::NanToNum,
        &["input:T, nan:N=0.0, posinf:N=None, neginf:N=None"],
        &["torch.nan_to_num", ".nan_to_num", ".nan_to_num_"],
    ),
];

pub(super) static ACTIVATIONS: &[OpSpec] = &[
    pointwise(
        Op::Relu,
        ACTIVATION,
        &[
            "torch.relu",
            "torch.nn.functional.relu",
            ".relu",
            ".relu_",
            "torch.relu_",
            "torch.nn.functional.relu_",
        ],
    ),
    pointwise(Op::Relu6, ACTIVATION, &["torch.nn.functional.relu6", "torch._C._nn.relu6"]),
    pointwise(
        Op::Silu,
        ACTIVATION,
        &["torch.nn.functional.silu", "torch._C._nn.silu", "torch._C._nn.silu_"],
    ),
    pointwise(Op::Mish, ACTIVATION, &["torch.nn.functional.mish", "torch._C._nn.mish"]),
    pointwise(
        Op::Hardswish,
        ACTIVATION,
        &["torch.nn.functional.hardswish", "torch._C._nn.hardswish", "torch._C._nn.hardswish_"],
    ),
    pointwise(
        Op::Hardsigmoid,
        ACTIVATION,
        &["torch.nn.functional.hardsigmoid", "torch._C._nn.hardsigmoid"],
    ),
    pointwise(
        Op::Hardtanh,
        &["input:T, min_val:N=-1.0, max_val:N=1.0, inplace:B=False"],
        &["torch.nn.functional.hardtanh", "torch.nn.functional.hardtanh_", "torch._C._nn.hardtanh"],
    ),
    pointwise(
        Op::LeakyRelu,
        &["input:T, negative_slope:N=0.01, inplace:B=False"],
        &[
            "torch.nn.functional.leaky_relu",
            "torch.nn.functional.leaky_relu_",
            "torch._C._nn.leaky_relu",
        ],
    ),
    pointwise(
        Op::Elu,
        &["input:T, alpha:N=1.0, inplace:B=False"],
        &["torch.nn.functional.elu", "torch.nn.functional.elu_", "torch._C._nn.elu"],
    ),
    pointwise(
        Op::Celu,
        &["input:T, alpha:N=1.0, inplace:B=False"],
        &["torch.nn.functional.celu", "torch.celu"],
    ),
    pointwise(Op::Selu, ACTIVATION, &["torch.nn.functional.selu", "torch.selu"]),
    pointwise(
        Op::Gelu,
        &["input:T, *, approximate:W='none'"],
        &["torch.nn.functional.gelu", "torch._C._nn.gelu"],
    ),
    pointwise(
        Op::Softplus,
        &["input:T, beta:N=1, threshold:N=20"],
        &["torch.nn.functional.softplus", "torch._C._nn.softplus"],
    ),
    pointwise(Op::Softsign, UNARY_SIGNATURE, &["torch.nn.functional.softsign"]),
    pointwise(Op::Tanhshrink, &["input:T"], &["torch.nn.functional.tanhshrink"]),
    pointwise(
        Op::LogSigmoid,
        UNARY_SIGNATURE,
        &["torch.nn.functional.logsigmoid", "torch._C._nn.log_sigmoid"],
    ),
    pointwise(
        Op::Hardshrink,
        &["input:T, lambd:N=0.5"],
        &["torch.nn.functional.hardshrink", "torch.hardshrink"],
    ),
    pointwise(
        Op::Softshrink,
        &["input:T, lambd:N=0.5"],
        &["torch.nn.functional.softshrink", "torch._C._nn.softshrink"],
    ),
    pointwise(
        Op::Threshold,
        &["input:T, threshold:N, value:N, inplace:B=False"],
        &["torch.nn.functional.threshold", "torch.threshold"],
    ),
    pointwise(
        Op::Prelu,
        &["input:T, weight:T"],
        &["torch.prelu", "torch.nn.functional.prelu", ".prelu"],
    ),
];

pub(super) static COMPARISONS: &[OpSpec] = &[
    pointwise(Op::Eq, BINARY, &["torch.eq", ".eq", "op:eq", ".__eq__"]),
    pointwise(
        Op::Ne,
        BINARY,
        &["torch.ne", "torch.not_equal", ".ne", ".not_equal", "op:ne", ".__ne__"],
    ),
    pointwise(Op::Lt, BINARY, &["torch.lt", "torch.less", ".lt", ".less", "op:lt", ".__lt__"]),
    pointwise(
        Op::Le,
        BINARY,
        &["torch.le", "torch.less_equal", ".le", ".less_equal", "op:le", ".__le__"],
    ),
    pointwise(
        Op::Gt,
        BINARY,
        &["torch.gt", "torch.greater", ".gt", ".greater", "op:gt", ".__gt__"],
    ),
    pointwise(
        Op::Ge,
        BINARY,
        &["torch.ge", "torch.greater_equal", ".ge", ".greater_equal", "op:ge", ".__ge__"],
    ),
    pointwise(
        Op::IsClose,
        &["input:T, other:T, rtol:N=1e-05, atol:N=1e-08, equal_nan:B=False"],
        &["torch.isclose", ".isclose"],
    ),
    pointwise(Op::LogicalAnd, BINARY, &["torch.logical_and", ".logical_and", ".logical_and_"]),
    pointwise(Op::LogicalOr, BINARY, &["torch.logical_or", ".logical_or", ".logical_or_"]),
    pointwise(Op::LogicalXor, BINARY, &["torch.logical_xor", ".logical_xor"]),
];
