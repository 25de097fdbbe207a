//! The different elements, or slices, of a tensor.

use super::index_select;
use crate::native::error::Result;
use crate::native::tensor::Tensor;
use passnet_graph::DType;
use std::cmp::Ordering;

/// What is different, where each of the input's elements or slices went, and how many went there.
pub(crate) struct Unique {
    pub(crate) values: Tensor,
    pub(crate) inverse: Tensor,
    pub(crate) counts: Tensor,
}

/// The different elements of `input`, or its different slices along `dim`: all of them, in ascending order, or only
/// neighbours compared, in the order in which they stand. A NaN differs from every other.
pub(crate) fn unique(input: &Tensor, dim: Option<i64>, consecutive: bool) -> Result<Unique> {
    let rows = match dim {
        Some(dim) => input.movedim(&[dim], &[0])?.contiguous()?,
        None => input.reshape(&[-1])?,
    };
    let count = rows.shape().first().copied().unwrap_or(1);
    let width = rows.numel().checked_div(count).unwrap_or(0);
    let groups = match input.dtype().is_float() {
        true => {
            let values: Vec<f64> = rows.to_vec()?;
            let compare = |a: &f64, b: &f64| match a.partial_cmp(b) {
                Some(order) => order,
                // NaN comes last.
                None => a.is_nan().cmp(&b.is_nan()),
            };
            Groups::of(&values, count, width, consecutive, compare)
        }
        false => {
            let values: Vec<i64> = rows.to_dtype(DType::Int64)?.to_vec()?;
            Groups::of(&values, count, width, consecutive, i64::cmp)
        }
    };
    let chosen = Tensor::from_slice(&groups.first, &[groups.first.len()])?;
    let values = index_select(&rows, 0, &chosen)?;
    let inverse_shape = if dim.is_some() { vec![count] } else { input.shape().to_vec() };
    Ok(Unique {
        values: match dim {
            Some(dim) => values.movedim(&[0], &[dim])?,
            None => values,
        },
        inverse: Tensor::from_slice(&groups.inverse, &inverse_shape)?,
        counts: Tensor::from_slice(&groups.counts, &[groups.counts.len()])?,
    })
}

#[derive(Default)]
struct Groups {
    /// The first row of each group.
    first: Vec<i64>,
    /// The group of each row.
    inverse: Vec<i64>,
    counts: Vec<i64>,
}

impl Groups {
    fn of<T: PartialEq>(
        values: &[T],
        count: usize,
        width: usize,
        consecutive: bool,
        compare: impl Fn(&T, &T) -> Ordering,
    ) -> Self {
        let row = |index: usize| &values[index * width..][..width];
        let mut order: Vec<usize> = (0..count).collect();
        if !consecutive {
            order.sort_by(|a, b| {
                let pairs = row(*a).iter().zip(row(*b));
                pairs
                    .map(|(a, b)| compare(a, b))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            });
        }
        let mut groups = Groups { inverse: vec![0; count], ..Groups::default() };
        let mut before: Option<usize> = None;
        for index in order {
            if before.is_none_or(|before| row(before) != row(index)) {
                groups.first.push(index as i64);
                groups.counts.push(0);
            }
            groups.inverse[index] = groups.first.len() as i64 - 1;
            if let Some(count) = groups.counts.last_mut() {
                *count += 1;
            }
            before = Some(index);
        }
        groups
    }
}
