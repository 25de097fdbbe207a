//! Sizes and orders of dimensions, without memory: what a call's arguments mean for a tensor of a given shape.
//!
//! Where a rule needs two numbers to be equal it asks `same`: inference notes there what it assumes about symbols.

use super::error::refuse;
use super::{List, Number, Result, Size, ViewError};
use smallvec::SmallVec;

/// A dimension as torch takes it: negative ones count from the end, and a 0-d tensor counts as having one.
pub fn axis(dim: i64, rank: usize) -> Result<usize> {
    let extent = (rank as i64).max(1);
    if dim < -extent || dim >= extent {
        refuse!(
            Index,
            "Dimension out of range (expected to be in range of [{}, {}], but got {dim})",
            -extent,
            extent - 1
        );
    }
    Ok(if dim < 0 { dim + extent } else { dim } as usize)
}

/// The order that `permute` asks for.
pub fn order(dims: &[i64], rank: usize) -> Result<List<usize>> {
    if dims.len() != rank {
        refuse!(
            Shape,
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {rank} is not equal to len(dims) = {}",
            dims.len()
        );
    }
    let mut order = List::new();
    for dim in dims {
        let axis = axis(*dim, rank)?;
        if order.contains(&axis) {
            refuse!(Value, "permute(): duplicate dims are not allowed.");
        }
        order.push(axis);
    }
    Ok(order)
}

/// The order that `transpose` asks for.
pub fn swapped(a: usize, b: usize, rank: usize) -> List<usize> {
    let mut order: List<usize> = (0..rank).collect();
    if rank > 0 {
        order.swap(a, b);
    }
    order
}

/// The order of `Tensor.t`: a matrix turned; vectors and numbers as they are.
pub fn turned_matrix(rank: usize) -> Result<List<usize>> {
    if rank > 2 {
        refuse!(Shape, "t() expects a tensor with <= 2 dimensions, but self is {rank}D");
    }
    Ok((0..rank).rev().collect())
}

/// The order of `Tensor.mT`: every matrix turned.
pub fn turned_matrices(rank: usize) -> Result<List<usize>> {
    if rank < 2 {
        refuse!(
            Shape,
            "tensor.mT is only supported on matrices or batches of matrices. Got {rank}-D tensor."
        );
    }
    Ok(swapped(rank - 2, rank - 1, rank))
}

/// The order that `movedim` asks for.
pub fn moved(source: &[i64], destination: &[i64], rank: usize) -> Result<List<usize>> {
    if source.len() != destination.len() {
        refuse!(
            Value,
            "movedim: Invalid source or destination dims: source ({source:?} dims) should contain the same number of dims as destination ({destination:?} dims)"
        );
    }
    let resolve = |dims: &[i64]| -> Result<List<usize>> {
        let axes = dims.iter().map(|dim| axis(*dim, rank)).collect::<Result<List<usize>>>()?;
        if (1..axes.len()).any(|i| axes[..i].contains(&axes[i])) {
            refuse!(Value, "movedim: repeated dim in `source` or `destination` ({dims:?})");
        }
        Ok(axes)
    };
    let (sources, targets) = (resolve(source)?, resolve(destination)?);
    let mut rest = (0..rank).filter(|axis| !sources.contains(axis));
    let at = |place: usize| targets.iter().position(|target| *target == place);
    Ok((0..rank)
        .filter_map(|place| at(place).map(|i| sources[i]).or_else(|| rest.next()))
        .collect())
}

/// The number of elements.
pub fn product<S: Size>(shape: &[S]) -> Result<S::Number> {
    shape.iter().try_fold(S::Number::fixed(1), |product, size| product.times(&size.number()))
}

/// The values of sizes, for messages: `[2, 3]`.
pub fn describe<S: Size>(shape: &[S]) -> String {
    let sizes: List<i64> = shape.iter().map(Size::value).collect();
    format!("{:?}", sizes.as_slice())
}

/// The shape that operands broadcast to.
pub fn broadcast<'a, S: Size + 'a>(
    shapes: impl IntoIterator<Item = &'a [S]>,
    same: impl Fn(&S::Number, &S::Number) -> bool,
) -> Result<List<S>> {
    let one = || S::from_number(S::Number::fixed(1));
    let mut result: List<S> = List::new();
    for shape in shapes {
        if shape.len() > result.len() {
            let missing = shape.len() - result.len();
            result.insert_many(0, std::iter::repeat_with(one).take(missing));
        }
        let missing = result.len() - shape.len();
        for (axis, size) in shape.iter().enumerate() {
            let seen = &mut result[missing + axis];
            let (has, wants) = (seen.value(), size.value());
            if has == wants {
                let (known, new) = (seen.number(), size.number());
                if wants != 1 {
                    same(&known, &new);
                }
                if new.is_symbolic() && !known.is_symbolic() {
                    *seen = size.clone();
                }
            } else if has == 1 {
                *seen = size.clone();
            } else if wants != 1 {
                refuse!(
                    Shape,
                    "The size of tensor a ({has}) must match the size of tensor b ({wants}) at non-singleton dimension {}",
                    missing + axis
                );
            }
        }
    }
    Ok(result)
}

/// Fills in `-1` and checks that the elements fit.
pub fn resolved<S: Size>(
    shape: &[S],
    wanted: &[S::Number],
    same: impl Fn(&S::Number, &S::Number) -> bool,
) -> Result<List<S>> {
    let elements = product(shape)?;
    let described = || {
        let sizes: List<i64> = wanted.iter().map(Number::value).collect();
        format!("{:?}", sizes.as_slice())
    };
    let mismatch = || {
        let count = elements.value();
        ViewError::Shape(format!("shape '{}' is invalid for input of size {count}", described()))
    };
    let mut inferred = None;
    let mut rest = S::Number::fixed(1);
    for (axis, size) in wanted.iter().enumerate() {
        match size.value() {
            -1 if inferred.is_some() => refuse!(Value, "only one dimension can be inferred"),
            -1 => inferred = Some(axis),
            size if size < 0 => refuse!(Shape, "invalid shape dimension {size}"),
            _ => rest = rest.times(size).map_err(|_| mismatch())?,
        }
    }
    let Some(axis) = inferred else {
        if !same(&elements, &rest) {
            return Err(mismatch());
        }
        return Ok(wanted.iter().cloned().map(S::from_number).collect());
    };
    if rest.value() == 0 && elements.value() == 0 {
        refuse!(
            Shape,
            "cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size -1 can be any value and is ambiguous",
            described()
        );
    }
    if rest.value() == 0 || elements.value() % rest.value() != 0 {
        return Err(mismatch());
    }
    let mut sizes: List<S::Number> = wanted.into();
    sizes[axis] = elements.over(&rest)?;
    Ok(sizes.into_iter().map(S::from_number).collect())
}

/// The shape after `flatten`; `None` where the tensor stays as it is.
pub fn flattened<S: Size>(shape: &[S], start: usize, end: usize) -> Result<Option<List<S>>> {
    if start > end {
        refuse!(Value, "flatten() has invalid args: start_dim cannot come after end_dim");
    }
    if shape.is_empty() {
        return Ok(Some(SmallVec::from_iter([S::from_number(S::Number::fixed(1))])));
    }
    if start == end {
        return Ok(None);
    }
    let mut merged: List<S> = shape[..start].into();
    merged.push(S::from_number(product(&shape[start..=end])?));
    merged.extend(shape[end + 1..].iter().cloned());
    Ok(Some(merged))
}

/// The shape after `unflatten`.
pub fn unflattened<S: Size>(
    shape: &[S],
    axis: usize,
    sizes: &[S::Number],
    same: impl Fn(&S::Number, &S::Number) -> bool,
) -> Result<List<S>> {
    if sizes.is_empty() {
        refuse!(Value, "unflatten: sizes must be non-empty");
    }
    let Some(own) = shape.get(axis..=axis) else {
        refuse!(Index, "unflatten: a 0-d tensor has no dimensions to split");
    };
    let mut split: List<S> = shape[..axis].into();
    split.extend(resolved(own, sizes, same)?);
    split.extend(shape[axis + 1..].iter().cloned());
    Ok(split)
}

/// Places of one dimension: from a start, so many, so far apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run<N> {
    /// The first place of the dimension.
    pub start: i64,
    /// How many places.
    pub length: N,
    /// From one place to the next.
    pub step: i64,
}

/// What `start:stop:step` means for a dimension; bounds are clamped as Python clamps them.
pub fn slice<N: Number>(size: &N, start: Option<N>, stop: Option<N>, step: i64) -> Result<Run<N>> {
    if step <= 0 {
        refuse!(Value, "step must be greater than zero");
    }
    let clamp = |bound: N| {
        let bound = match bound.value() < 0 {
            true => bound.plus(size).unwrap_or(N::fixed(0)),
            false => bound,
        };
        if bound.value() < 0 {
            N::fixed(0)
        } else if bound.value() > size.value() {
            size.clone()
        } else {
            bound
        }
    };
    let start = start.map_or(N::fixed(0), clamp);
    let stop = stop.map_or(size.clone(), clamp);
    let first = start.value();
    if stop.value() <= first {
        return Ok(Run { start: first, length: N::fixed(0), step });
    }
    let span = stop.minus(&start)?;
    let length = match step {
        1 => span,
        _ => span.plus(&N::fixed(step - 1))?.over(&N::fixed(step))?,
    };
    Ok(Run { start: first, length, step })
}

/// What `narrow` means for a dimension.
pub fn narrow<N: Number>(size: &N, start: i64, length: N) -> Result<Run<N>> {
    let (size, count) = (size.value(), length.value());
    let first = if start < 0 { start.saturating_add(size) } else { start };
    if first < 0 || count < 0 || first > size - count {
        refuse!(Index, "start ({start}) + length ({count}) exceeds dimension size ({size}).");
    }
    Ok(Run { start: first, length, step: 1 })
}

/// Lengths of pieces of one length, the last one shorter; no more than `most`.
pub fn split<N: Number>(size: &N, length: &N, most: i64) -> Result<Vec<N>> {
    match length.value() {
        0 if size.value() == 0 => return Ok(vec![size.clone()]),
        0 => refuse!(
            Value,
            "split_size can only be 0 if dimension size is 0, but got dimension size of {}",
            size.value()
        ),
        negative if negative < 0 => refuse!(
            Value,
            "split expects split_size be non-negative, but got split_size={negative}"
        ),
        _ => {}
    }
    let whole = (size.value() - 1).max(0) / length.value();
    if whole >= most {
        return Err(ViewError::TooMany);
    }
    let mut lengths = vec![length.clone(); whole as usize];
    lengths.push(size.minus(&length.times(&N::fixed(whole))?)?);
    Ok(lengths)
}

/// Lengths of at most so many pieces of one length.
pub fn chunk<N: Number>(size: &N, chunks: &N, most: i64) -> Result<Vec<N>> {
    let count = chunks.value();
    if count < 1 {
        refuse!(Value, "chunk expects `chunks` to be greater than 0, got: {count}");
    }
    if size.value() == 0 {
        return Ok(vec![N::fixed(0); count.min(most) as usize]);
    }
    split(size, &size.plus(chunks)?.plus(&N::fixed(-1))?.over(chunks)?, most)
}

/// Checks that lengths cover a dimension.
pub fn check_lengths<N: Number>(
    size: &N,
    lengths: &[N],
    axis: usize,
    same: impl Fn(&N, &N) -> bool,
) -> Result<()> {
    let total = lengths.iter().try_fold(N::fixed(0), |total, length| total.plus(length));
    let fits = total.is_ok_and(|total| same(size, &total));
    if !fits || lengths.iter().any(|length| length.value() < 0) {
        let sizes: List<i64> = lengths.iter().map(Number::value).collect();
        refuse!(
            Value,
            "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {axis}), but got split_sizes={:?}",
            size.value(),
            sizes.as_slice()
        );
    }
    Ok(())
}

/// Lengths of so many pieces that differ by one at most: `tensor_split` by a number.
pub fn sections(size: i64, count: i64, most: i64) -> Result<Vec<i64>> {
    if count < 1 {
        refuse!(Value, "number of sections must be larger than 0, got {count}");
    }
    if count > most {
        return Err(ViewError::TooMany);
    }
    Ok((0..count).map(|i| size / count + i64::from(i < size % count)).collect())
}

/// Pieces between places: `tensor_split` by indices.
pub fn cuts(size: i64, at: &[i64]) -> Vec<Run<i64>> {
    let clamp =
        |place: i64| (if place < 0 { place.saturating_add(size) } else { place }).clamp(0, size);
    let mut start = 0;
    let ends = at.iter().map(|place| clamp(*place)).chain([size]);
    ends.map(|end| {
        let run = Run { start, length: (end - start).max(0), step: 1 };
        start = end;
        run
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_size_is_found_where_it_can_be() {
        let reshape = |shape: &[i64], to: &[i64]| resolved(shape, to, i64::eq).map(|s| s.to_vec());
        assert_eq!(reshape(&[4, 6], &[-1, 8]), Ok(vec![3, 8]));
        assert!(reshape(&[4, 6], &[-1, 7]).is_err());
        assert!(reshape(&[4, 6], &[-1, -1]).is_err());
        assert!(reshape(&[4, 6], &[-1, 0]).is_err_and(|e| e.to_string().contains("is invalid")));
        assert!(reshape(&[0, 6], &[-1, 0]).is_err_and(|e| e.to_string().contains("ambiguous")));
        assert!(reshape(&[4], &[i64::MAX, i64::MAX]).is_err());
    }

    #[test]
    fn slices_are_clamped() {
        let run = |start, stop, step| slice(&5_i64, start, stop, step).map(|r| (r.start, r.length));
        assert_eq!(run(None, None, 2), Ok((0, 3)));
        assert_eq!(run(Some(-2), Some(99), 1), Ok((3, 2)));
        assert_eq!(run(Some(4), Some(1), 1), Ok((4, 0)));
        assert_eq!(run(Some(i64::MIN), Some(i64::MAX), 1), Ok((0, 5)));
        assert!(run(None, None, 0).is_err());
    }

    #[test]
    fn pieces_cover_a_dimension() {
        assert_eq!(split(&7_i64, &3, 10), Ok(vec![3, 3, 1]));
        assert_eq!(split(&6_i64, &3, 2), Ok(vec![3, 3]));
        assert_eq!(split(&6_i64, &1, 5), Err(ViewError::TooMany));
        assert_eq!(split(&0_i64, &0, 5), Ok(vec![0]));
        assert_eq!(split(&0_i64, &2, 5), Ok(vec![0]));
        assert_eq!(chunk(&7_i64, &3, 10), Ok(vec![3, 3, 1]));
        assert_eq!(chunk(&0_i64, &2, 10), Ok(vec![0, 0]));
        assert_eq!(sections(7, 3, 10), Ok(vec![3, 2, 2]));
        let lengths: Vec<i64> = cuts(7, &[2, -1, 3]).iter().map(|run| run.length).collect();
        assert_eq!(lengths, [2, 4, 0, 4]);
    }

    #[test]
    fn orders_name_every_dimension_once() {
        assert_eq!(moved(&[0], &[-1], 3).map(|o| o.to_vec()), Ok(vec![1, 2, 0]));
        assert!(moved(&[0, 0], &[1, 2], 3).is_err());
        assert!(order(&[0, 0, 1], 3).is_err());
        assert!(axis(3, 3).is_err());
        assert_eq!(axis(-1, 0), Ok(0));
    }
}
