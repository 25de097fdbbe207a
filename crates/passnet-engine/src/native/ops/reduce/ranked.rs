//! Folds by rank: quantiles, and the element of one rank.

use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::layout::Dims;
use crate::native::tensor::{Buffer, Tensor};
use passnet_graph::DType;

/// What stands between two elements of neighbouring ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Between {
    Linear,
    Lower,
    Higher,
    Midpoint,
    Nearest,
}

impl Between {
    /// By torch's `interpolation` argument.
    pub fn from_name(name: Option<&str>) -> Result<Self> {
        Ok(match name {
            None | Some("linear") => Between::Linear,
            Some("lower") => Between::Lower,
            Some("higher") => Between::Higher,
            Some("midpoint") => Between::Midpoint,
            Some("nearest") => Between::Nearest,
            Some(other) => bail!(
                Value,
                "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {other}"
            ),
        })
    }

    fn of(self, sorted: &[f64], rank: f64) -> f64 {
        let rank = match self {
            Between::Lower => rank.floor(),
            Between::Higher => rank.ceil(),
            Between::Nearest => rank.round_ties_even(),
            _ => rank,
        };
        let last = sorted.len() - 1;
        let below = (rank.floor() as usize).min(last);
        let above = (rank.ceil() as usize).min(last);
        let weight = if self == Between::Midpoint { 0.5 } else { rank - rank.floor() };
        let (a, b) = (sorted[below], sorted[above]);
        match below == above {
            true => a,
            false if weight < 0.5 => a + weight * (b - a),
            false => b - (b - a) * (1.0 - weight),
        }
    }
}

/// `torch.quantile` at one place or, as a first dimension, at several.
pub fn quantile(
    input: &Tensor,
    places: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
    between: Between,
) -> Result<Tensor> {
    let dtype = input.dtype();
    ensure!(
        matches!(dtype, DType::Float32 | DType::Float64),
        DType,
        "quantile() input tensor must be either float or double dtype"
    );
    ensure!(
        places.ndim() <= 1 && input.numel() > 0,
        Shape,
        "quantile() q must be a scalar or 1D tensor, and the input must not be empty"
    );
    let narrow = |value: f64| if dtype == DType::Float32 { f64::from(value as f32) } else { value };
    let places: Vec<f64> = places.to_vec::<f64>()?.into_iter().map(narrow).collect();
    ensure!(
        places.iter().all(|place| (0.0..=1.0).contains(place)),
        Value,
        "quantile() q values must be in the range [0, 1]"
    );
    let flat = input.ndim() == 0 || dim.is_none();
    let view = match dim {
        Some(dim) if !flat => input.movedim(&[dim], &[-1])?,
        _ => input.reshape(&[-1])?,
    };
    let length = view.size(-1)?;
    let mut rows = view.to_vec::<f64>()?;
    let mut out = Buffer::<f64>::new(rows.len() / length * places.len())?;
    let results = out.chunks_mut(places.len().max(1));
    for (row, results) in rows.chunks_mut(length).zip(results) {
        row.sort_by(f64::total_cmp);
        let unknown = row.iter().any(|value| value.is_nan());
        for (result, place) in results.iter_mut().zip(&places) {
            let rank = narrow(place * (length - 1) as f64);
            *result = if unknown { f64::NAN } else { between.of(row, rank) };
        }
    }
    let mut shape: Dims = view.shape()[..view.ndim() - 1].into();
    if keepdim {
        match dim {
            Some(dim) if !flat => shape.insert(input.dim(dim)?, 1),
            _ => shape = input.shape().iter().map(|_| 1).collect(),
        }
    }
    shape.push(places.len());
    Tensor::from_buffer(out, &shape)?.to_dtype(dtype)?.movedim(&[-1], &[0])
}

/// `torch.kthvalue`: the element of a rank along a dimension, and where it stands. NaN comes last.
pub fn kth_value(input: &Tensor, k: usize, dim: i64, keepdim: bool) -> Result<(Tensor, Tensor)> {
    let length = if input.ndim() == 0 { 1 } else { input.size(dim)? };
    ensure!(
        (1..=length).contains(&k),
        Value,
        "kthvalue(): selected number k out of range for dimension {dim}"
    );
    if input.ndim() == 0 {
        return Ok((input.copy()?, Tensor::zeros(&[], DType::Int64)?));
    }
    let (values, places) = super::sort(input, dim, false)?;
    let pick = |sorted: Tensor| -> Result<Tensor> {
        let kth = sorted.narrow(dim, k as i64 - 1, 1)?;
        if keepdim { kth.contiguous()?.copy() } else { kth.squeeze(Some(&[dim]))?.contiguous() }
    };
    Ok((pick(values)?, pick(places)?))
}

/// `torch.logcumsumexp`: running sums of exponentials, as logarithms that do not overflow.
pub fn log_cum_sum_exp(input: &Tensor, dim: i64) -> Result<Tensor> {
    let dtype = input.dtype();
    ensure!(dtype.is_float(), DType, "logcumsumexp is not implemented for {dtype}");
    if input.ndim() == 0 {
        return input.dense_copy(dtype);
    }
    let dim = input.dim(dim)? as i64;
    let view = input.movedim(&[dim], &[-1])?;
    let length = view.size(-1)?;
    let mut values = view.to_vec::<f64>()?;
    for row in values.chunks_mut(length.max(1)) {
        let mut total = f64::NEG_INFINITY;
        for value in row {
            let (least, most) = (total.min(*value), total.max(*value));
            let apart = (least - most).exp().ln_1p();
            total = match total.is_nan() || value.is_nan() {
                true => f64::NAN,
                // Two infinities of one sign are as far as one.
                false if least == most && most.is_infinite() => most,
                false => most + apart,
            };
            *value = total;
        }
    }
    Tensor::from_slice(&values, view.shape())?.to_dtype(dtype)?.movedim(&[-1], &[dim])?.contiguous()
}
