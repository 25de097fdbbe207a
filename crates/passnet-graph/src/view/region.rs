//! Views themselves: sizes, strides and a start over memory that somebody else owns.

use super::error::refuse;
use super::shape::{self, Run};
use super::{List, Number, Result, Size, Step};

/// A tensor as views see it, whoever holds its memory.
pub trait Strided: Sized {
    /// What it keeps as a size.
    type Size: Size;
    /// What it keeps as a stride.
    type Step: Step;

    /// Its sizes.
    fn shape(&self) -> &[Self::Size];
    /// Its strides, as many as there are sizes.
    fn strides(&self) -> &[Self::Step];
    /// Where its first element lies.
    fn start(&self) -> Self::Step;
    /// The same memory seen through other sizes and strides, from another start.
    fn seen(&self, shape: List<Self::Size>, strides: List<Self::Step>, start: Self::Step) -> Self;
}

type NumberOf<T> = <<T as Strided>::Size as Size>::Number;

/// Another shape over the same elements; `None` where they would have to move.
pub fn reshaped<T: Strided>(tensor: &T, shape: List<T::Size>) -> Option<T> {
    let strides = super::layout::reshaped(tensor.shape(), tensor.strides(), &shape)?;
    Some(tensor.seen(shape, strides, tensor.start()))
}

/// `view`: another shape, refused where elements would have to move.
pub fn viewed<T: Strided>(tensor: &T, shape: List<T::Size>) -> Result<T> {
    match reshaped(tensor, shape) {
        Some(view) => Ok(view),
        None => refuse!(
            Shape,
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        ),
    }
}

/// The dimensions in another order, or some of them.
pub fn permuted<T: Strided>(tensor: &T, order: &[usize]) -> T {
    let shape = order.iter().map(|axis| tensor.shape()[*axis].clone()).collect();
    let strides = order.iter().map(|axis| tensor.strides()[*axis]).collect();
    tensor.seen(shape, strides, tensor.start())
}

/// A new dimension of size one.
pub fn unsqueezed<T: Strided>(tensor: &T, axis: usize) -> T {
    let step = match tensor.shape().get(axis) {
        Some(size) => tensor.strides()[axis].times(size.value()),
        None => T::Step::ONE,
    };
    let (mut shape, mut strides) = parts(tensor);
    shape.insert(axis, T::Size::from_number(Number::fixed(1)));
    strides.insert(axis, step);
    tensor.seen(shape, strides, tensor.start())
}

/// Without dimensions of size one: those named, or all.
pub fn squeezed<T: Strided>(tensor: &T, axes: Option<&[usize]>) -> T {
    let drops = |axis: &usize| {
        tensor.shape()[*axis].value() == 1 && axes.is_none_or(|axes| axes.contains(axis))
    };
    let kept: List<usize> = (0..tensor.shape().len()).filter(|axis| !drops(axis)).collect();
    permuted(tensor, &kept)
}

/// New leading dimensions, and sizes of one repeated; `-1` keeps a size.
pub fn expanded<T: Strided>(
    tensor: &T,
    sizes: &[NumberOf<T>],
    same: impl Fn(&NumberOf<T>, &NumberOf<T>) -> bool,
) -> Result<T> {
    let described = || sizes.iter().map(Number::value).collect::<List<i64>>();
    let (own_shape, own_strides) = (tensor.shape(), tensor.strides());
    let Some(missing) = sizes.len().checked_sub(own_shape.len()) else {
        refuse!(
            Shape,
            "expand(tensor of size {}, size={:?}): the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
            shape::describe(own_shape),
            described().as_slice(),
            sizes.len(),
            own_shape.len()
        );
    };
    let mut shape: List<T::Size> = List::new();
    let mut strides: List<T::Step> = List::new();
    for (axis, wanted) in sizes.iter().enumerate() {
        let value = wanted.value();
        let Some(own) = axis.checked_sub(missing) else {
            if value < 0 {
                refuse!(
                    Shape,
                    "The expanded size of the tensor ({value}) isn't allowed in a leading, non-existing dimension {axis}"
                );
            }
            shape.push(T::Size::from_number(wanted.clone()));
            strides.push(T::Step::ZERO);
            continue;
        };
        let (size, stride) = (&own_shape[own], own_strides[own]);
        let keeps = value == size.value();
        if keeps {
            same(&size.number(), wanted);
        }
        if value == -1 || keeps {
            let takes = keeps && wanted.is_symbolic();
            shape.push(if takes { T::Size::from_number(wanted.clone()) } else { size.clone() });
            strides.push(stride);
        } else if size.value() == 1 && value >= 0 {
            shape.push(T::Size::from_number(wanted.clone()));
            strides.push(T::Step::ZERO);
        } else {
            refuse!(
                Shape,
                "The expanded size of the tensor ({value}) must match the existing size ({}) at non-singleton dimension {axis}.  Target sizes: {:?}.  Tensor sizes: {}",
                size.value(),
                described().as_slice(),
                shape::describe(own_shape)
            );
        }
    }
    // Torch gives new leading dimensions of size one the stride that they would have in a dense tensor; a number has
    // no stride to follow.
    for axis in (0..missing).rev() {
        if shape[axis].value() == 1 && axis + 1 < shape.len() {
            strides[axis] = strides[axis + 1].times(shape[axis + 1].value());
        }
    }
    Ok(tensor.seen(shape, strides, tensor.start()))
}

/// Part of one dimension.
pub fn narrowed<T: Strided>(tensor: &T, axis: usize, run: Run<NumberOf<T>>) -> T {
    let (mut shape, mut strides) = parts(tensor);
    let stride = strides[axis];
    shape[axis] = T::Size::from_number(run.length);
    strides[axis] = stride.times(run.step);
    tensor.seen(shape, strides, tensor.start().plus(stride.times(run.start)))
}

/// Parts of the given lengths, one after the other.
pub fn consecutive<T: Strided>(tensor: &T, axis: usize, lengths: Vec<NumberOf<T>>) -> Vec<T> {
    let mut start = 0;
    let parts = lengths.into_iter().map(|length| {
        let run = Run { start, length, step: 1 };
        start += run.length.value();
        narrowed(tensor, axis, run)
    });
    parts.collect()
}

/// One place of one dimension, which disappears.
pub fn selected<T: Strided>(tensor: &T, axis: usize, index: i64) -> Result<T> {
    let Some(size) = tensor.shape().get(axis).map(Size::value) else {
        refuse!(Index, "select() cannot be applied to a 0-dim tensor.");
    };
    if index < -size || index >= size {
        refuse!(Index, "index {index} is out of bounds for dimension {axis} with size {size}");
    }
    let index = if index < 0 { index + size } else { index };
    let (mut shape, mut strides) = parts(tensor);
    shape.remove(axis);
    let stride = strides.remove(axis);
    Ok(tensor.seen(shape, strides, tensor.start().plus(stride.times(index))))
}

/// Every place of one dimension, no more than `most`.
pub fn unbound<T: Strided>(tensor: &T, axis: usize, most: i64) -> Result<Vec<T>> {
    let Some(size) = tensor.shape().get(axis).map(Size::value) else {
        refuse!(Index, "Dimension specified as {axis} but tensor has no dimensions");
    };
    if size > most {
        return Err(super::ViewError::TooMany);
    }
    (0..size).map(|index| selected(tensor, axis, index)).collect()
}

/// The diagonal of two dimensions, as the last dimension.
pub fn diagonal<T: Strided>(tensor: &T, offset: i64, first: usize, second: usize) -> Result<T> {
    if first == second || tensor.shape().len() < 2 {
        refuse!(Value, "diagonal dimensions cannot be identical {first}, {second}");
    }
    let (rows, columns) = (&tensor.shape()[first], &tensor.shape()[second]);
    let (skip_rows, skip_columns) = (offset.min(0).saturating_neg(), offset.max(0));
    let left =
        rows.value().saturating_sub(skip_rows).min(columns.value().saturating_sub(skip_columns));
    let length: NumberOf<T> = if left < 0 {
        Number::fixed(0)
    } else {
        let less = |size: &T::Size, by: i64| size.number().minus(&Number::fixed(by));
        less(rows, skip_rows)?.least(&less(columns, skip_columns)?)?
    };
    let (mut shape, mut strides) = parts(tensor);
    let (down, right) = (strides[first], strides[second]);
    let start = match left > 0 {
        true => tensor.start().plus(down.times(skip_rows)).plus(right.times(skip_columns)),
        false => tensor.start(),
    };
    for axis in [first.max(second), first.min(second)] {
        shape.remove(axis);
        strides.remove(axis);
    }
    shape.push(T::Size::from_number(length));
    strides.push(down.plus(right));
    Ok(tensor.seen(shape, strides, start))
}

/// Windows that slide along a dimension; the window becomes the last dimension.
pub fn unfolded<T: Strided>(
    tensor: &T,
    axis: usize,
    size: NumberOf<T>,
    step: &NumberOf<T>,
) -> Result<T> {
    let own = tensor.shape().get(axis).map_or(Number::fixed(1), Size::number);
    if size.value() < 0 || size.value() > own.value() {
        refuse!(
            Value,
            "maximum size for tensor at dimension {axis} is {} but size is {}",
            own.value(),
            size.value()
        );
    }
    if step.value() < 1 {
        refuse!(Value, "step is {} but must be > 0", step.value());
    }
    let (mut shape, mut strides) = parts(tensor);
    let stride = strides.get(axis).copied().unwrap_or(T::Step::ONE);
    if let (Some(slot), Some(along)) = (shape.get_mut(axis), strides.get_mut(axis)) {
        *slot = T::Size::from_number(own.minus(&size)?.over(step)?.plus(&Number::fixed(1))?);
        *along = stride.times(step.value());
    }
    shape.push(T::Size::from_number(size));
    strides.push(stride);
    Ok(tensor.seen(shape, strides, tensor.start()))
}

fn parts<T: Strided>(tensor: &T) -> (List<T::Size>, List<T::Step>) {
    (tensor.shape().into(), tensor.strides().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Region {
        shape: List<usize>,
        strides: List<usize>,
        start: usize,
    }

    impl Strided for Region {
        type Size = usize;
        type Step = usize;

        fn shape(&self) -> &[usize] {
            &self.shape
        }

        fn strides(&self) -> &[usize] {
            &self.strides
        }

        fn start(&self) -> usize {
            self.start
        }

        fn seen(&self, shape: List<usize>, strides: List<usize>, start: usize) -> Self {
            Region { shape, strides, start }
        }
    }

    fn region(shape: &[usize]) -> Region {
        Region { shape: shape.into(), strides: super::super::layout::contiguous(shape), start: 0 }
    }

    fn is(view: &Region, shape: &[usize], strides: &[usize], start: usize) {
        let got = (view.shape.as_slice(), view.strides.as_slice(), view.start);
        assert_eq!(got, (shape, strides, start));
    }

    /// Sizes, strides and starts as torch gives them for the same calls.
    #[test]
    fn views_follow_torch() -> Result<()> {
        let matrix = region(&[3, 5]);
        is(&diagonal(&matrix, 1, 0, 1)?, &[3], &[6], 1);
        is(&diagonal(&matrix, -2, 0, 1)?, &[1], &[6], 10);
        is(&diagonal(&matrix, i64::MIN, 0, 1)?, &[0], &[6], 0);
        is(&unfolded(&matrix, 1, 3, &2)?, &[3, 2, 3], &[5, 2, 1], 0);
        is(&selected(&matrix, 0, -1)?, &[5], &[1], 10);
        is(&unsqueezed(&matrix, 1), &[3, 1, 5], &[5, 5, 1], 0);
        is(&squeezed(&region(&[1, 3, 1]), Some(&[2])), &[1, 3], &[3, 1], 0);
        Ok(())
    }

    #[test]
    fn new_leading_dimensions_of_one_have_the_stride_of_a_dense_tensor() -> Result<()> {
        let expand = |shape: &[usize], sizes: &[i64]| {
            expanded(&region(shape), sizes, i64::eq).map(|view| view.strides.to_vec())
        };
        assert_eq!(expand(&[3], &[1, 1, 3])?, [3, 3, 1]);
        assert_eq!(expand(&[3], &[2, 1, 3])?, [0, 3, 1]);
        assert_eq!(expand(&[1], &[1, 1, 4])?, [0, 0, 0]);
        assert_eq!(expand(&[], &[1])?, [0]);
        assert_eq!(expand(&[1, 3], &[4, -1])?, [0, 1]);
        assert!(expand(&[3], &[-1, 3]).is_err());
        assert!(expand(&[3], &[4]).is_err());
        assert!(expand(&[3, 4], &[4]).is_err());
        Ok(())
    }
}
