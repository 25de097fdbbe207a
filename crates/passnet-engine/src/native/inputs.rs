//! A graph's inputs, drawn by the reference's rules; the Python statement of the same rules is `python/passnet/replay.py`.
//!
//! All tensors that are given by a range or by data are made first, then the random ones, each in the order of class names.
//! The order matters because every draw advances one generator.

use super::error::Result;
use super::ops::{creation, pointwise};
use super::random::Generator;
use super::tensor::{Scalar, Tensor};
use passnet_graph::DType;

/// The reference seeds every generator with this.
pub const DEFAULT_SEED: u64 = 123;

/// What the metadata files say about one input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputMeta {
    pub class_name: String,
    pub name: String,
    pub shape: Vec<usize>,
    pub dtype: DType,
    pub mean: Option<f64>,
    pub std: Option<f64>,
    pub data: Option<Vec<Scalar>>,
    pub min_val: Option<Scalar>,
    pub max_val: Option<Scalar>,
}

/// Draws all inputs. `input_metas` come from `input_meta.py`, `weight_metas` from `weight_meta.py`, both in any order.
///
/// A later input of the same name replaces an earlier one, at the earlier one's place.
pub fn materialise(
    input_metas: &[InputMeta],
    weight_metas: &[InputMeta],
    seed: u64,
) -> Result<Vec<(String, Tensor)>> {
    let mut generator = Generator::new(seed);
    let mut ordered: Vec<(&InputMeta, Option<Tensor>)> = Vec::new();
    for metas in [input_metas, weight_metas] {
        let mut sorted: Vec<&InputMeta> = metas.iter().collect();
        sorted.sort_by(|a, b| a.class_name.cmp(&b.class_name));
        for meta in sorted {
            let value = convert(meta, &mut generator)?;
            match ordered.iter_mut().find(|(known, _)| known.name == meta.name) {
                Some(slot) => *slot = (meta, value),
                None => ordered.push((meta, value)),
            }
        }
    }
    ordered
        .into_iter()
        .map(|(meta, value)| {
            let value = match value {
                Some(value) => value,
                None => replay(meta, &mut generator)?,
            };
            Ok((meta.name.clone(), value))
        })
        .collect()
}

fn convert(meta: &InputMeta, generator: &mut Generator) -> Result<Option<Tensor>> {
    let by_range = matches!(meta.dtype, DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64);
    if let (true, Some(low), Some(high)) = (by_range, meta.min_val, meta.max_val) {
        let high = high.to_i64().saturating_add(1);
        return generator.randint(low.to_i64(), high, &meta.shape, meta.dtype).map(Some);
    }
    let Some(data) = &meta.data else { return Ok(None) };
    creation::tensor(data, &meta.shape, meta.dtype).map(Some)
}

fn replay(meta: &InputMeta, generator: &mut Generator) -> Result<Tensor> {
    let dtype = meta.dtype;
    let shape = &meta.shape;
    if dtype == DType::Bool {
        let drawn = generator.randn(shape, DType::Float32)?;
        return pointwise::compare(pointwise::Comparison::Gt, &drawn.into(), &0.5.into());
    }
    let mean = meta.mean.unwrap_or(0.0);
    let std = meta.std.unwrap_or(0.1);
    let mut value = if std == 0.0 {
        Tensor::full(shape, Scalar::Float(mean), dtype)?
    } else {
        let drawn = generator.randn(shape, DType::Float32)?.to_dtype(dtype)?;
        let scaled = pointwise::mul(&drawn.into(), &std.into())?;
        let scaled = pointwise::mul(&scaled.into(), &0.2.into())?;
        pointwise::add(&scaled.into(), &mean.into(), 1.0.into())?
    };
    if meta.min_val.is_some() {
        value = pointwise::clamp_scalar(&value, meta.min_val, None)?;
    }
    if meta.max_val.is_some() {
        value = pointwise::clamp_scalar(&value, None, meta.max_val)?;
    }
    if dtype.is_float() {
        value = replace_non_finite(&value, generator)?;
        value = pointwise::clamp_scalar(&value, Some((-100i64).into()), Some(100i64.into()))?;
    }
    value.to_dtype(dtype)
}

fn replace_non_finite(value: &Tensor, generator: &mut Generator) -> Result<Tensor> {
    if is_all_finite(value)? {
        return Ok(value.clone());
    }
    let finite = pointwise::isfinite(value)?;
    let noise = generator.randn(value.shape(), DType::Float32)?.to_dtype(value.dtype())?;
    let noise = pointwise::mul(&noise.into(), &0.01.into())?;
    pointwise::where_select(&finite, &value.into(), &noise.into())
}
/// Whether no element is infinite or NaN: the exponent's bits tell, in a loop without branches.
fn is_all_finite(value: &Tensor) -> Result<bool> {
    let half = |exponent: u16| -> Result<bool> {
        let words = value.words::<u16>()?;
        Ok(words.iter().fold(true, |all, word| all & (word & exponent != exponent)))
    };
    match value.dtype() {
        DType::Float16 => half(0x7c00),
        DType::BFloat16 => half(0x7f80),
        DType::Float32 => Ok(value.words::<f32>()?.iter().fold(true, |all, x| all & x.is_finite())),
        _ => Ok(value.to_vec::<f64>()?.iter().all(|x| x.is_finite())),
    }
}
