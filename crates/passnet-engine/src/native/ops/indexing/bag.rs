//! `torch.nn.functional.embedding_bag`, and rows bounded in length before they are read.

use super::{checked_indices, embedding};
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::{pointwise, reduce};
use crate::native::tensor::{Arg, Scalar, Tensor};
use passnet_graph::DType;

/// How the rows of a bag become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "torch's names")]
pub enum BagMode {
    Sum,
    Mean,
    Max,
}

/// Options of `torch.nn.functional.embedding_bag`.
#[derive(Debug, Clone)]
pub struct Bag<'a> {
    /// How the rows of a bag become one.
    pub mode: BagMode,
    /// Where each bag begins, for a flat list of indices.
    pub offsets: Option<&'a Tensor>,
    /// A factor for each index.
    pub weights: Option<&'a Tensor>,
    /// The last offset is an end, not a bag.
    pub include_last_offset: bool,
    /// Rows of this index are left out.
    pub padding_index: Option<i64>,
}

/// `torch.nn.functional.embedding_bag`.
pub fn embedding_bag(index: &Tensor, table: &Tensor, bag: &Bag<'_>) -> Result<Tensor> {
    ensure!(table.ndim() == 2, Shape, "'weight' must be 2-D");
    let starts = bag_starts(index, bag)?;
    let rows = checked_indices(&index.reshape(&[-1])?, table.shape()[0], "embedding_bag()")?;
    if let Some(weights) = bag.weights {
        ensure!(
            bag.mode == BagMode::Sum,
            Value,
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum'"
        );
        ensure!(
            weights.shape() == index.shape() && weights.dtype() == table.dtype(),
            Shape,
            "embedding_bag: If per_sample_weights is not None, then it must have the same shape and the table's type"
        );
    }
    let padding = match bag.padding_index {
        Some(padding) => {
            let count = table.shape()[0] as i64;
            ensure!(
                padding >= -count && padding < count,
                Index,
                "padding_idx must be within the number of embeddings"
            );
            Some((if padding < 0 { padding + count } else { padding }) as usize)
        }
        None => None,
    };
    let ends = starts[1..].iter().copied().chain([rows.len()]);
    let width = table.shape()[1];
    let bags = starts.iter().copied().zip(ends).take(bag_count(&starts, bag));
    let parts = bags
        .map(|(start, end)| {
            ensure!(
                start <= end && end <= rows.len(),
                Value,
                "embedding_bag: offsets must not decrease and must lie inside the input"
            );
            let kept: Vec<i64> =
                (start..end).filter(|at| Some(rows[*at]) != padding).map(|at| at as i64).collect();
            one_bag(&rows, &kept, table, bag, width)
        })
        .collect::<Result<Vec<_>>>()?;
    if parts.is_empty() {
        return Tensor::zeros(&[0, width], table.dtype());
    }
    crate::native::ops::movement::stack(&parts, 0)
}

/// The bag made of the rows at the positions `kept`.
fn one_bag(
    rows: &[usize],
    kept: &[i64],
    table: &Tensor,
    bag: &Bag<'_>,
    width: usize,
) -> Result<Tensor> {
    if kept.is_empty() {
        return Tensor::zeros(&[width], table.dtype());
    }
    let chosen: Vec<i64> = kept.iter().map(|at| rows[*at as usize] as i64).collect();
    let found = embedding(&Tensor::from_slice(&chosen, &[chosen.len()])?, table)?;
    let scaled = match bag.weights {
        Some(weights) => {
            let places = Tensor::from_slice(kept, &[kept.len()])?;
            let weights = super::index_select(&weights.reshape(&[-1])?, 0, &places)?;
            // Sums of half-precision products are rounded once.
            let wide =
                |t: Tensor| if t.dtype().size() == 2 { t.to_dtype(DType::Float32) } else { Ok(t) };
            pointwise::mul(&wide(found)?.into(), &wide(weights)?.unsqueeze(1)?.into())?
        }
        None => found,
    };
    match bag.mode {
        BagMode::Sum => reduce::sum(&scaled, Some(&[0]), false, Some(table.dtype())),
        BagMode::Mean => reduce::mean(&scaled, Some(&[0]), false, None),
        BagMode::Max => reduce::extreme(&scaled, reduce::Extreme::Max, Some(&[0]), false),
    }
}

fn bag_count(starts: &[usize], bag: &Bag<'_>) -> usize {
    if bag.include_last_offset { starts.len().saturating_sub(1) } else { starts.len() }
}

fn bag_starts(index: &Tensor, bag: &Bag<'_>) -> Result<Vec<usize>> {
    match (index.ndim(), bag.offsets) {
        (2, None) => Ok((0..index.shape()[0]).map(|row| row * index.shape()[1]).collect()),
        (2, Some(_)) => bail!(
            Value,
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences."
        ),
        (1, Some(offsets)) => {
            ensure!(offsets.ndim() == 1, Shape, "offsets has to be a 1D Tensor");
            let starts =
                checked_indices(offsets, index.numel().saturating_add(1), "embedding_bag()")?;
            ensure!(
                starts.first().is_none_or(|first| *first == 0),
                Value,
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0."
            );
            ensure!(
                !bag.include_last_offset || !starts.is_empty(),
                Value,
                "include_last_offset: number of offsets should be at least 1"
            );
            Ok(starts)
        }
        (1, None) => bail!(Value, "offsets has to be a 1D Tensor but got None"),
        (ndim, _) => {
            bail!(Shape, "input has to be 1D or 2D Tensor, but got Tensor of dimension {ndim}")
        }
    }
}

/// Shortens the named rows of `table`, in place, to at most `most` by the `order` norm.
pub fn bound_rows(table: &Tensor, index: &Tensor, most: f64, order: f64) -> Result<()> {
    ensure!(table.ndim() == 2, Shape, "'weight' must be 2-D");
    let mut rows = checked_indices(index, table.shape()[0], "embedding()")?;
    rows.sort_unstable();
    rows.dedup();
    for row in rows {
        let row = table.select(0, row as i64)?;
        let length = reduce::vector_norm(&row, order, None, false, None)?.item()?.to_f64();
        if length > most {
            let scale = Arg::Scalar(Scalar::Float(most / (length + 1e-7)));
            row.copy_from(&pointwise::mul(&(&row).into(), &scale)?)?;
        }
    }
    Ok(())
}
