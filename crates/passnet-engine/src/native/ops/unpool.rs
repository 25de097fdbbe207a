//! Values put back to where pooling found them.

use crate::native::error::{Result, ensure, err};
use crate::native::tensor::element::with_width;
use crate::native::tensor::layout::{Dims, numel, suggests_channels_last};
use crate::native::tensor::{Buffer, Tensor};
use passnet_graph::DType;

/// The windows of the pooling that is undone, per spatial dimension.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "torch's arguments")]
pub struct Unpooling {
    pub kernel: Vec<usize>,
    pub stride: Vec<usize>,
    pub padding: Vec<usize>,
}

impl Unpooling {
    /// `torch.nn.functional.max_unpool1d`, `2d`, `3d`.
    pub fn of(&self, input: &Tensor, indices: &Tensor, given: Option<&[usize]>) -> Result<Tensor> {
        ensure!(
            indices.dtype() == DType::Int64 && indices.shape() == input.shape(),
            Shape,
            "Expected int64 indices of shape {:?}, got {} of shape {:?}",
            input.shape(),
            indices.dtype(),
            indices.shape()
        );
        let shape = self.output(input, given)?;
        let spatial = self.kernel.len();
        let leading = input.ndim() - spatial;
        let (from, to) = (numel(&input.shape()[leading..])?, numel(&shape[leading..])?);
        let places = indices.values::<i64>()?;
        let result = with_width!(input.dtype(), W => {
            let values = input.words::<W>()?;
            let mut out = Buffer::<W>::zeroed(numel(&shape)?)?;
            if from > 0 && to > 0 {
                let planes = values.chunks(from).zip(places.chunks(from));
                for ((values, places), out) in planes.zip(out.chunks_mut(to)) {
                    for (value, place) in values.iter().zip(places) {
                        let target = usize::try_from(*place).ok().and_then(|at| out.get_mut(at));
                        *target.ok_or_else(|| {
                            err!(Index, "Found an invalid max index: {place} (output volumes are of size {to})")
                        })? = *value;
                    }
                }
            }
            Tensor::from_memory(out.into_memory(), input.dtype(), &shape)?
        });
        match spatial == 2 && suggests_channels_last(input.shape(), input.strides()) {
            true => result.channels_last(),
            false => Ok(result),
        }
    }

    fn output(&self, input: &Tensor, given: Option<&[usize]>) -> Result<Dims> {
        let spatial = self.kernel.len();
        let leading = input.ndim().checked_sub(spatial).filter(|leading| matches!(leading, 1 | 2));
        let Some(leading) = leading else {
            return Err(err!(
                Shape,
                "max_unpool: expected {} or {} dimensions, got {:?}",
                spatial + 1,
                spatial + 2,
                input.shape()
            ));
        };
        let given = match given {
            Some(sizes) if sizes.len() == spatial + 2 => Some(&sizes[2..]),
            Some(sizes) => {
                ensure!(
                    sizes.len() == spatial,
                    Value,
                    "output_size should have {spatial} or {} elements, but it has {}",
                    spatial + 2,
                    sizes.len()
                );
                Some(sizes)
            }
            None => None,
        };
        let mut shape: Dims = input.shape()[..leading].into();
        for d in 0..spatial {
            let usual = input.shape()[leading + d]
                .checked_sub(1)
                .and_then(|windows| windows.checked_mul(self.stride[d]))
                .and_then(|reach| reach.checked_add(self.kernel[d]))
                .and_then(|reach| reach.checked_sub(self.padding[d].checked_mul(2)?))
                .ok_or_else(|| err!(Value, "max_unpool: the output has no size"))?;
            let size = given.map_or(usual, |sizes| sizes[d]);
            ensure!(
                size == usual || size.abs_diff(usual) < self.stride[d],
                Value,
                "invalid output_size (dim {d} must be nearer to {usual} than {})",
                self.stride[d]
            );
            shape.push(size);
        }
        Ok(shape)
    }
}
