//! A graph's inputs, drawn by the reference's rules; `python/passnet/graphs/replay.py` states the same rules in Python.
//!
//! All tensors that are given by a range or by data are made first, then the random ones, each in the order of class names.
//! The order matters because every draw advances one generator.

use super::error::Result;
use super::ops::{creation, pointwise};
use super::random::{BLOCK, Generator};
use super::tensor::convert;
use super::tensor::layout::numel;
use super::tensor::{Buffer, Element, Scalar, Tensor};
use half::{bf16, f16};
use passnet_graph::DType;
use std::sync::atomic::{AtomicBool, Ordering};

/// The reference seeds every generator with this.
pub const DEFAULT_SEED: u64 = 123;

/// What the metadata files say about one input.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "fields are those of a class in `weight_meta.py`")]
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
        let (value, is_ordinary) = drawn(shape, dtype, std, mean, generator)?;
        if is_ordinary && meta.min_val.is_none() && meta.max_val.is_none() {
            return Ok(value);
        }
        value
    };
    if meta.min_val.is_some() {
        value = pointwise::clamp_scalar(&value, meta.min_val, None)?;
    }
    if meta.max_val.is_some() {
        value = pointwise::clamp_scalar(&value, None, meta.max_val)?;
    }
    if dtype.is_float() {
        value = replace_non_finite(&value, generator)?;
        let limit = f64::from(LIMIT);
        value = pointwise::clamp_scalar(&value, Some((-limit).into()), Some(limit.into()))?;
    }
    value.to_dtype(dtype)
}

/// The largest magnitude an input may have.
const LIMIT: f32 = 100.0;

/// `randn · std · 0.2 + mean`, every step rounded to the type, and whether it is known that all of it lies within the
/// limit, so that no value needs to be replaced.
fn drawn(
    shape: &[usize],
    dtype: DType,
    std: f64,
    mean: f64,
    generator: &mut Generator,
) -> Result<(Tensor, bool)> {
    match dtype {
        DType::Float32 if numel(shape)? >= BLOCK => {
            drawn_as::<f32>(shape, std, mean, generator, |_| {})
        }
        DType::Float16 if numel(shape)? >= BLOCK => {
            drawn_as::<f16>(shape, std, mean, generator, through::<f16>)
        }
        DType::BFloat16 if numel(shape)? >= BLOCK => {
            drawn_as::<bf16>(shape, std, mean, generator, through::<bf16>)
        }
        _ => {
            let drawn = generator.randn(shape, DType::Float32)?.to_dtype(dtype)?;
            let scaled = pointwise::mul(&drawn.into(), &std.into())?;
            let scaled = pointwise::mul(&scaled.into(), &0.2.into())?;
            Ok((pointwise::add(&scaled.into(), &mean.into(), 1.0.into())?, false))
        }
    }
}

/// The same in one pass over memory: what is drawn is scaled while it is in the cache.
fn drawn_as<T: Element>(
    shape: &[usize],
    std: f64,
    mean: f64,
    generator: &mut Generator,
    round: fn(&mut [f32]),
) -> Result<(Tensor, bool)> {
    // A number that is added is rounded first; one that is multiplied with is not.
    let mut mean = [mean as f32];
    round(&mut mean);
    let mut buffer = Buffer::<T>::new(numel(shape)?)?;
    let is_ordinary = AtomicBool::new(true);
    generator.normals_into(&mut buffer, |piece, out| {
        round(piece);
        for factor in [std as f32, 0.2] {
            piece.iter_mut().for_each(|value| *value *= factor);
            round(piece);
        }
        piece.iter_mut().for_each(|value| *value += mean[0]);
        // What rounds up to the limit is within it.
        if !piece.iter().fold(true, |all, value| all & (value.abs() <= LIMIT)) {
            is_ordinary.store(false, Ordering::Relaxed);
        }
        convert::narrow(piece, out);
    });
    Ok((Tensor::from_buffer(buffer, shape)?, is_ordinary.into_inner()))
}

/// Rounds to a narrower type.
fn through<T: Element>(values: &mut [f32]) {
    let mut narrow = [T::from_f32(0.0); 256];
    for values in values.chunks_mut(narrow.len()) {
        let narrow = &mut narrow[..values.len()];
        convert::narrow(values, narrow);
        convert::widen(narrow, values);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawing_in_one_pass_rounds_like_one_operation_after_the_other() {
        let shapes = [vec![3, 3001], vec![64, 128], vec![17], vec![3, 5]];
        for dtype in [DType::Float16, DType::BFloat16, DType::Float32, DType::Float64] {
            for (std, mean, is_ordinary) in
                [(5.0, 0.1, true), (0.013, -3.7, true), (9000.0, 0.0, false)]
            {
                for shape in &shapes {
                    let mut generator = Generator::new(7);
                    let randn = generator.randn(shape, DType::Float32).unwrap();
                    let randn = randn.to_dtype(dtype).unwrap();
                    let expected = pointwise::mul(&(&randn).into(), &std.into()).unwrap();
                    let expected = pointwise::mul(&expected.into(), &0.2.into()).unwrap();
                    let expected =
                        pointwise::add(&expected.into(), &mean.into(), 1.0.into()).unwrap();
                    let mut other = Generator::new(7);
                    let (found, ordinary) = drawn(shape, dtype, std, mean, &mut other).unwrap();
                    let what = format!("{dtype} {std} {mean} {shape:?}");
                    assert!(found.same_bits(&expected).unwrap(), "{what}");
                    let in_one_pass = dtype != DType::Float64 && found.numel() >= BLOCK;
                    assert_eq!(ordinary, is_ordinary && in_one_pass, "{what}");
                    let next = |generator: &mut Generator| generator.randn(&[16], dtype).unwrap();
                    assert!(next(&mut generator).same_bits(&next(&mut other)).unwrap(), "{what}");
                }
            }
        }
    }
}
