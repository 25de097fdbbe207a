//! Single operations against PyTorch: types, shapes, memory order and values.
//!
//! Goldens: `python/goldens/op_goldens.py`, PyTorch 2.11 on the CPU.

mod support;

use passnet_engine::native::ops::attention::{
    Attention, MultiHead, multi_head_attention, scaled_dot_product_attention,
};
use passnet_engine::native::ops::conv::{
    Convolution, Padding, convolution, convolution_transposed,
};
use passnet_engine::native::ops::fft::{Normalization, fftn, irfft, rfft};
use passnet_engine::native::ops::fold::{Patches, fold, unfold};
use passnet_engine::native::ops::norm::{self, Statistics};
use passnet_engine::native::ops::pointwise::{self, Binary, Bitwise, Comparison, Logical, Unary};
use passnet_engine::native::ops::pool::{self, Pooling};
use passnet_engine::native::ops::reduce::{self, Extreme, Scan};
use passnet_engine::native::ops::resample::{
    GridMode, GridPadding, Interpolation, Mode, grid_sample, interpolate,
};
use passnet_engine::native::ops::{creation, einsum, indexing, matmul, movement};
use passnet_engine::native::random::Generator;
use passnet_engine::native::{Arg, Result, Scalar, Tensor};
use passnet_graph::DType;
use serde_json::Value;
use support::{assert_close, load, tensor};

/// The parameters of a case.
struct Params<'a>(&'a Value);

impl Params<'_> {
    fn int(&self, key: &str) -> i64 {
        self.0[key].as_i64().unwrap_or_else(|| panic!("no integer `{key}`"))
    }
    fn size(&self, key: &str) -> usize {
        self.int(key) as usize
    }
    fn float(&self, key: &str) -> Option<f64> {
        match &self.0[key] {
            Value::String(text) => text.parse().ok(),
            value => value.as_f64(),
        }
    }
    fn flag(&self, key: &str) -> bool {
        self.0[key].as_bool().unwrap_or(false)
    }
    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or("")
    }
    fn ints(&self, key: &str) -> Vec<i64> {
        self.0[key]
            .as_array()
            .map(|a| a.iter().filter_map(Value::as_i64).collect())
            .unwrap_or_default()
    }
    fn sizes(&self, key: &str) -> Vec<usize> {
        self.ints(key).into_iter().map(|v| v as usize).collect()
    }
    fn pair(&self, key: &str) -> [usize; 2] {
        self.sizes(key).try_into().unwrap()
    }
    fn scalar(&self, key: &str) -> Scalar {
        match self.0[key].as_i64() {
            Some(int) => Scalar::Int(int),
            None => Scalar::Float(self.float(key).unwrap()),
        }
    }
}

fn unary_of(op: &str) -> Option<Unary> {
    Some(match op {
        "abs" => Unary::Abs,
        "neg" => Unary::Neg,
        "sign" => Unary::Sign,
        "floor" => Unary::Floor,
        "ceil" => Unary::Ceil,
        "trunc" => Unary::Trunc,
        "round" => Unary::Round,
        "square" => Unary::Square,
        "sqrt" => Unary::Sqrt,
        "rsqrt" => Unary::Rsqrt,
        "reciprocal" => Unary::Reciprocal,
        "exp" => Unary::Exp,
        "exp2" => Unary::Exp2,
        "expm1" => Unary::Expm1,
        "log" => Unary::Log,
        "log2" => Unary::Log2,
        "log10" => Unary::Log10,
        "log1p" => Unary::Log1p,
        "sin" => Unary::Sin,
        "cos" => Unary::Cos,
        "tan" => Unary::Tan,
        "atan" => Unary::Atan,
        "sinh" => Unary::Sinh,
        "cosh" => Unary::Cosh,
        "tanh" => Unary::Tanh,
        "sigmoid" => Unary::Sigmoid,
        "logsigmoid" => Unary::LogSigmoid,
        "erf" => Unary::Erf,
        "erfc" => Unary::Erfc,
        "relu" => Unary::Relu,
        "relu6" => Unary::Relu6,
        "gelu" => Unary::Gelu,
        "gelu_tanh" => Unary::GeluTanh,
        "silu" => Unary::Silu,
        "mish" => Unary::Mish,
        "softsign" => Unary::Softsign,
        "hardswish" => Unary::Hardswish,
        "hardsigmoid" => Unary::Hardsigmoid,
        "hardtanh" => Unary::Hardtanh { min: -0.5, max: 2.0 },
        "leaky_relu" => Unary::LeakyRelu { slope: 0.1 },
        "elu" => Unary::Elu { alpha: 1.3, scale: 1.0, input_scale: 1.0 },
        "selu" => Unary::Elu {
            alpha: 1.673_263_242_354_377_2,
            scale: 1.050_700_987_355_480_5,
            input_scale: 1.0,
        },
        "softplus" => Unary::Softplus { beta: 2.0, threshold: 15.0 },
        "hardshrink" => Unary::Hardshrink { lambda: 0.5 },
        "softshrink" => Unary::Softshrink { lambda: 0.5 },
        _ => return None,
    })
}

fn two_operands(op: &str, a: &Arg, b: &Arg) -> Option<Result<Tensor>> {
    let comparison = match op {
        "eq" => Some(Comparison::Eq),
        "ne" => Some(Comparison::Ne),
        "lt" => Some(Comparison::Lt),
        "le" => Some(Comparison::Le),
        "gt" => Some(Comparison::Gt),
        "ge" => Some(Comparison::Ge),
        _ => None,
    };
    if let Some(comparison) = comparison {
        return Some(pointwise::compare(comparison, a, b));
    }
    let binary = match op {
        "add" => Binary::Add { alpha: 1.0 },
        "sub" => Binary::Add { alpha: -1.0 },
        "mul" => Binary::Mul,
        "div" => Binary::Div,
        "pow" => Binary::Pow,
        "maximum" => Binary::Maximum,
        "minimum" => Binary::Minimum,
        "fmod" => Binary::Fmod,
        "remainder" => Binary::Remainder,
        "floor_divide" => Binary::FloorDivide,
        "trunc_divide" => Binary::TruncDivide,
        _ => return None,
    };
    Some(pointwise::binary(binary, a, b))
}

fn run_pointwise(op: &str, x: &[Tensor], p: &Params<'_>) -> Result<Tensor> {
    if let Some(unary) = unary_of(op) {
        return pointwise::unary(unary, &x[0]);
    }
    if let Some(name) = op.strip_suffix("_number") {
        return two_operands(name, &(&x[0]).into(), &Arg::Scalar(p.scalar("number"))).unwrap();
    }
    if x.len() == 2
        && let Some(result) = two_operands(op, &(&x[0]).into(), &(&x[1]).into())
    {
        return result;
    }
    let power = |exponent: f64| pointwise::binary(Binary::Pow, &(&x[0]).into(), &exponent.into());
    match op {
        "pow3" => power(3.0),
        "pow_half" => power(0.5),
        "pow_1.7" => power(1.7),
        "add_alpha" => pointwise::add(&(&x[0]).into(), &(&x[1]).into(), p.scalar("alpha")),
        "where" => pointwise::where_select(&x[0], &(&x[1]).into(), &(&x[2]).into()),
        "masked_fill" => pointwise::masked_fill(&x[0], &x[1], &Arg::Scalar(p.scalar("number"))),
        "clamp" => pointwise::clamp_scalar(&x[0], Some(p.scalar("min")), Some(p.scalar("max"))),
        "addcmul" => pointwise::addcmul(&x[0], &x[1], &x[2], p.scalar("number")),
        "lerp" => pointwise::lerp(&x[0], &x[1], &Arg::Scalar(p.scalar("number"))),
        "logical_and" => pointwise::logical(Logical::And, &(&x[0]).into(), &(&x[1]).into()),
        "bitwise_xor" => pointwise::bitwise(Bitwise::Xor, &(&x[0]).into(), &(&x[1]).into()),
        "bitwise_not" => pointwise::bitwise_not(&x[0]),
        "isnan" => pointwise::isnan(&x[0]),
        "isinf" => pointwise::isinf(&x[0]),
        "isfinite" => pointwise::isfinite(&x[0]),
        "nan_to_num" => pointwise::nan_to_num(&x[0], None, None, None),
        "to" => x[0].to_dtype(DType::from_name(p.text("dtype")).unwrap()),
        _ => panic!("unknown operation `{op}`"),
    }
}

fn run_reduction(op: &str, x: &[Tensor], p: &Params<'_>) -> Result<Vec<Tensor>> {
    let dims = p.ints("dim");
    let (dims, keep) = (Some(dims.as_slice()), p.flag("keepdim"));
    let pair = |pair: (Tensor, Tensor)| vec![pair.0, pair.1];
    let one = match op {
        "sum" => reduce::sum(&x[0], dims, keep, None),
        "mean" => reduce::mean(&x[0], dims, keep, None),
        "amax" => reduce::extreme(&x[0], Extreme::Max, dims, keep),
        "amin" => reduce::extreme(&x[0], Extreme::Min, dims, keep),
        "var" => reduce::var(&x[0], dims, 1.0, keep),
        "std" => reduce::std(&x[0], dims, 1.0, keep),
        "prod" => reduce::prod(&x[0], Some(p.int("dim")), false, None),
        "vector_norm" => {
            reduce::vector_norm(&x[0], p.float("order").unwrap(), Some(&[1]), false, None)
        }
        "max" => {
            return reduce::extreme_with_index(&x[0], Extreme::Max, p.int("dim"), false).map(pair);
        }
        "min" => {
            return reduce::extreme_with_index(&x[0], Extreme::Min, p.int("dim"), false).map(pair);
        }
        "argmax" => reduce::arg_extreme(&x[0], Extreme::Max, p.0["dim"].as_i64(), false),
        "argmin" => reduce::arg_extreme(&x[0], Extreme::Min, p.0["dim"].as_i64(), false),
        "all" => reduce::all(&x[0], dims, false),
        "any" => reduce::any(&x[0], dims, false),
        "softmax" => reduce::softmax(&x[0], p.int("dim"), None),
        "log_softmax" => reduce::log_softmax(&x[0], p.int("dim"), None),
        "logsumexp" => reduce::logsumexp(&x[0], &p.ints("dim"), false),
        "cumsum" => reduce::scan(&x[0], Scan::Sum, p.int("dim"), None),
        "cumprod" => reduce::scan(&x[0], Scan::Product, p.int("dim"), None),
        "sort" => return reduce::sort(&x[0], p.int("dim"), p.flag("descending")).map(pair),
        "topk" => {
            return reduce::topk(&x[0], p.size("k"), p.int("dim"), p.flag("largest"), true)
                .map(pair);
        }
        _ => panic!("unknown operation `{op}`"),
    };
    Ok(vec![one?])
}

fn run_product(op: &str, x: &[Tensor], p: &Params<'_>) -> Result<Vec<Tensor>> {
    let one = match op {
        "matmul" => matmul::matmul(&x[0], &x[1]),
        "linear" => matmul::linear(&x[0], &x[1], x.get(2)),
        "addmm" => matmul::addmm(&x[0], &x[1], &x[2], p.scalar("beta"), p.scalar("alpha")),
        "baddbmm" => matmul::baddbmm(&x[0], &x[1], &x[2], p.scalar("beta"), p.scalar("alpha")),
        "outer" => matmul::outer(&x[0], &x[1]),
        "einsum" => einsum::einsum(p.text("equation"), x),
        "attention" => {
            let options = Attention {
                mask: x.get(3).cloned(),
                causal: p.flag("causal"),
                scale: p.float("scale"),
                grouped: false,
            };
            scaled_dot_product_attention(&x[0], &x[1], &x[2], &options)
        }
        "multi_head" => {
            let layer = MultiHead {
                heads: p.size("heads"),
                in_weights: vec![x[2].clone()],
                in_bias: Some(x[3].clone()),
                bias_k: None,
                bias_v: None,
                add_zero_attn: false,
                out_weight: x[4].clone(),
                out_bias: Some(x[5].clone()),
                key_padding_mask: Some(x[6].clone()),
                need_weights: p.flag("need_weights"),
                attn_mask: None,
                average_weights: true,
                causal: false,
                static_k: None,
                static_v: None,
                dropout: 0.0,
            };
            let (out, weights) =
                multi_head_attention(&x[0], &x[1], &x[1], &layer, &mut Generator::new(0))?;
            return Ok(std::iter::once(out).chain(weights).collect());
        }
        _ => panic!("unknown operation `{op}`"),
    };
    Ok(vec![one?])
}

fn pooling(p: &Params<'_>) -> Pooling {
    let kernel = p.sizes("kernel_size");
    let dilation =
        if p.0.get("dilation").is_some() { p.sizes("dilation") } else { vec![1; kernel.len()] };
    Pooling {
        stride: p.sizes("stride"),
        padding: p.sizes("padding"),
        dilation,
        ceil_mode: p.flag("ceil_mode"),
        kernel,
    }
}

fn run_convolution(op: &str, x: &[Tensor], p: &Params<'_>) -> Result<Vec<Tensor>> {
    let adaptive: Vec<Option<usize>> = p.sizes("output_size").into_iter().map(Some).collect();
    let patches = || Patches {
        kernel: p.pair("kernel_size"),
        dilation: p.pair("dilation"),
        padding: p.pair("padding"),
        stride: p.pair("stride"),
    };
    let pair = |pair: (Tensor, Tensor)| vec![pair.0, pair.1];
    let one = match op {
        "conv" => {
            let padding = match p.text("padding") {
                "same" => Padding::Same,
                _ => Padding::Explicit(p.sizes("padding")),
            };
            let options = Convolution {
                stride: p.sizes("stride"),
                padding,
                dilation: p.sizes("dilation"),
                groups: p.size("groups"),
            };
            convolution(&x[0], &x[1], x.get(2), &options)
        }
        "conv_transpose" => convolution_transposed(
            &x[0],
            &x[1],
            x.get(2),
            &p.sizes("stride"),
            &p.sizes("padding"),
            &p.sizes("output_padding"),
            p.size("groups"),
            &p.sizes("dilation"),
        ),
        "max_pool" => pool::max_pool(&x[0], &pooling(p)),
        "max_pool_indices" => return pool::max_pool_with_indices(&x[0], &pooling(p)).map(pair),
        "avg_pool" => pool::avg_pool(&x[0], &pooling(p), p.flag("count_include_pad"), None),
        "adaptive_avg_pool" => pool::adaptive_avg_pool(&x[0], &adaptive),
        "adaptive_max_pool" => return pool::adaptive_max_pool(&x[0], &adaptive).map(pair),
        "unfold" => unfold(&x[0], &patches()),
        "fold" => fold(&x[0], p.pair("output_size"), &patches()),
        _ => panic!("unknown operation `{op}`"),
    };
    Ok(vec![one?])
}

fn run_norm(op: &str, x: &[Tensor], p: &Params<'_>) -> Result<Vec<Tensor>> {
    let at = |i: usize| x.get(i).cloned();
    let statistics =
        || Statistics { running_mean: at(1), running_var: at(2), weight: at(3), bias: at(4) };
    let one = match op {
        "batch_norm" => norm::batch_norm(&x[0], &statistics(), false, 0.1, 1e-5),
        "batch_norm_training" => {
            let out = norm::batch_norm(&x[0], &statistics(), true, 0.3, 1e-5)?;
            return Ok(vec![out, x[1].clone(), x[2].clone()]);
        }
        "instance_norm" => {
            let own = Statistics { weight: at(1), bias: at(2), ..Statistics::default() };
            norm::instance_norm(&x[0], &own, true, 0.1, 1e-5)
        }
        "layer_norm" => {
            norm::layer_norm(&x[0], &p.sizes("shape"), x.get(1), x.get(2), p.float("eps").unwrap())
        }
        "group_norm" => norm::group_norm(&x[0], p.size("groups"), x.get(1), x.get(2), 1e-5),
        "rms_norm" => norm::rms_norm(&x[0], &p.sizes("shape"), x.get(1), p.float("eps")),
        "normalize" => norm::normalize(&x[0], 2.0, &[p.int("dim")], 1e-12),
        "weight_norm" => norm::weight_norm(&x[0], &x[1], p.int("dim")),
        _ => panic!("unknown operation `{op}`"),
    };
    Ok(vec![one?])
}

/// Index tensors at their axes, `:` elsewhere.
fn indices(tensors: &[Tensor], axes: &[i64]) -> Vec<Option<Tensor>> {
    let mut result = Vec::new();
    for (tensor, &axis) in tensors.iter().zip(axes) {
        while result.len() < axis as usize {
            result.push(None);
        }
        result.push(Some(tensor.clone()));
    }
    result
}

fn run_movement(op: &str, x: &[Tensor], p: &Params<'_>) -> Result<Vec<Tensor>> {
    use indexing::ScatterOp;
    let dim = p.0["dim"].as_i64().unwrap_or(0);
    let one = match op {
        "cat" => movement::cat(x, dim),
        "stack" => movement::stack(x, dim),
        "pad" => {
            let mode = match p.text("mode") {
                "reflect" => movement::PadMode::Reflect,
                "replicate" => movement::PadMode::Replicate,
                "circular" => movement::PadMode::Circular,
                _ => movement::PadMode::Constant(Scalar::Int(0)),
            };
            movement::pad(&x[0], &p.ints("amounts"), mode)
        }
        "roll" => movement::roll(&x[0], &p.ints("shifts"), &p.ints("dims")),
        "flip" => movement::flip(&x[0], &p.ints("dims")),
        "tril" => movement::triangle(&x[0], movement::Triangle::Lower, p.int("diagonal")),
        "triu" => movement::triangle(&x[0], movement::Triangle::Upper, p.int("diagonal")),
        "repeat" => movement::repeat(&x[0], &p.sizes("counts")),
        "repeat_interleave" => movement::repeat_interleave(&x[0], p.size("count"), Some(dim)),
        "one_hot" => movement::one_hot(&x[0], p.int("classes")),
        "pixel_shuffle" => movement::pixel_shuffle(&x[0], p.size("factor")),
        "pixel_unshuffle" => movement::pixel_unshuffle(&x[0], p.size("factor")),
        "index_select" => indexing::index_select(&x[0], dim, &x[1]),
        "gather" => indexing::gather(&x[0], dim, &x[1]),
        "embedding" => indexing::embedding(&x[0], &x[1]),
        "scatter" => {
            let how = match p.text("reduce") {
                "add" => ScatterOp::Add,
                "multiply" => ScatterOp::Multiply,
                "mean" => ScatterOp::Mean,
                "maximum" => ScatterOp::Maximum,
                "minimum" => ScatterOp::Minimum,
                _ => ScatterOp::Assign,
            };
            let target = x[0].copy()?;
            indexing::scatter(&target, dim, &x[1], &x[2], how, p.flag("include_self"))?;
            Ok(target)
        }
        "index" => indexing::index(&x[0], &indices(&x[1..], &p.ints("axes"))),
        "index_put" => {
            let target = x[0].copy()?;
            let (index, values) = (&x[1..x.len() - 1], &x[x.len() - 1]);
            indexing::index_put(
                &target,
                &indices(index, &p.ints("axes")),
                values,
                p.flag("accumulate"),
            )?;
            Ok(target)
        }
        "nonzero" => indexing::nonzero(&x[0]),
        "masked_select" => indexing::masked_select(&x[0], &x[1]),
        "index_add" => {
            let target = x[0].copy()?;
            indexing::index_add(&target, dim, &x[1], &x[2], p.scalar("alpha"))?;
            Ok(target)
        }
        "arange" => creation::arange(
            p.scalar("start"),
            p.scalar("end"),
            p.scalar("step"),
            DType::from_name(p.text("dtype")).unwrap(),
        ),
        "linspace" => creation::linspace(
            p.float("start").unwrap(),
            p.float("end").unwrap(),
            p.size("steps"),
            DType::Float32,
        ),
        "eye" => creation::eye(p.size("rows"), p.size("columns"), DType::Float32),
        _ => panic!("unknown operation `{op}`"),
    };
    Ok(vec![one?])
}

fn run_resampling(op: &str, x: &[Tensor], p: &Params<'_>) -> Result<Vec<Tensor>> {
    let normalization = Normalization::from_name(p.0["norm"].as_str())?;
    let one = match op {
        "interpolate" => {
            let options = Interpolation {
                mode: match p.text("mode") {
                    "nearest" => Mode::Nearest,
                    "nearest-exact" => Mode::NearestExact,
                    "bicubic" => Mode::Bicubic,
                    "area" => Mode::Area,
                    _ => Mode::Linear,
                },
                size: p.sizes("size"),
                scales: p.0["scales"]
                    .as_array()
                    .map(|a| a.iter().filter_map(Value::as_f64).collect()),
                align_corners: p.flag("align_corners"),
                antialias: p.flag("antialias"),
            };
            interpolate(&x[0], &options)
        }
        "grid_sample" => {
            let mode = match p.text("mode") {
                "nearest" => GridMode::Nearest,
                "bicubic" => GridMode::Bicubic,
                _ => GridMode::Bilinear,
            };
            let padding = match p.text("padding") {
                "border" => GridPadding::Border,
                "reflection" => GridPadding::Reflection,
                _ => GridPadding::Zeros,
            };
            grid_sample(&x[0], &x[1], mode, padding, p.flag("align_corners"))
        }
        "rfft" => rfft(&x[0], None, -1, normalization)?.view_as_real(),
        "irfft" => irfft(&x[0].view_as_complex()?, None, -1, normalization),
        "fftn" => fftn(&x[0], None, Some(&p.ints("dims")), normalization, false)?.view_as_real(),
        _ => panic!("unknown operation `{op}`"),
    };
    Ok(vec![one?])
}

fn check(file: &str, run: impl Fn(&str, &[Tensor], &Params<'_>) -> Result<Vec<Tensor>>) {
    let mut failures = Vec::new();
    for (i, case) in load(file).iter().enumerate() {
        let op = case["op"].as_str().unwrap();
        let inputs: Vec<Tensor> = case["inputs"].as_array().unwrap().iter().map(tensor).collect();
        let params = Params(&case["params"]);
        let what = format!("{file} case {i}: {op} {inputs:?} {}", case["params"]);
        let wanted: Vec<Tensor> = case["outputs"].as_array().unwrap().iter().map(tensor).collect();
        match run(op, &inputs, &params) {
            Err(error) => failures.push(format!("{what}: {error}")),
            Ok(got) if got.len() != wanted.len() => {
                failures.push(format!("{what}: {} outputs", got.len()))
            }
            Ok(got) => {
                for (got, wanted) in got.iter().zip(&wanted) {
                    let strides = !params.flag("values_only");
                    if let Err(difference) = assert_close(got, wanted, strides) {
                        failures.push(format!("{what}: {difference}"));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn pointwise_operations() {
    check("pointwise.json", |op, x, p| run_pointwise(op, x, p).map(|t| vec![t]));
}

#[test]
fn reductions() {
    check("reductions.json", run_reduction);
}

#[test]
fn products() {
    check("products.json", run_product);
}

#[test]
fn convolutions_and_pooling() {
    check("convolutions.json", run_convolution);
}

#[test]
fn norms() {
    check("norms.json", run_norm);
}

#[test]
fn moving_and_indexing() {
    check("movement.json", run_movement);
}

#[test]
fn resampling_and_transforms() {
    check("resampling.json", run_resampling);
}
