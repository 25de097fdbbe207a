//! `torch.nn.functional.unfold` and `fold`: patches of an image as columns, and back.

use super::conv::{Window, gather_back};
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::with_width;
use crate::native::tensor::layout::{Runs, numel};
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::parallel::for_each_weighted_chunk;
use passnet_graph::DType;

/// Kernel, dilation, padding and stride over rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are torch's arguments of the same names")]
pub struct Patches {
    pub kernel: [usize; 2],
    pub dilation: [usize; 2],
    pub padding: [usize; 2],
    pub stride: [usize; 2],
}

impl Patches {
    fn window(&self, rows: usize, columns: usize) -> Result<Window> {
        let triple = |pair: [usize; 2], neutral: usize| [neutral, pair[0], pair[1]];
        Window::new(
            [1, rows, columns],
            triple(self.kernel, 1),
            triple(self.stride, 1),
            triple(self.padding, 0),
            triple(self.padding, 0),
            triple(self.dilation, 1),
        )
    }
}

/// `[batch, channels, rows, columns]` to `[batch, channels × taps, positions]`.
pub fn unfold(input: &Tensor, patches: &Patches) -> Result<Tensor> {
    if input.ndim() == 3 {
        return unfold(&input.unsqueeze(0)?, patches)?.select(0, 0);
    }
    ensure!(
        input.ndim() == 4,
        Shape,
        "Expected 3D or 4D input tensor, but got input of size {:?}",
        input.shape()
    );
    let (batch, channels) = (input.shape()[0], input.shape()[1]);
    let window = patches.window(input.shape()[2], input.shape()[3])?;
    let (taps, positions) = (window.kernel_size(), window.output_size());
    let [_, kh, kw] = window.kernel;
    let columns = window.output[2];
    // Elements only move.
    with_width!(input.dtype(), W => {
    let values = input.strided_words::<W>()?;
    let starts: Vec<usize> = Runs::new(&input.shape()[..2], &values.strides[..2], 0).collect();
    let [row_stride, column_stride] = [values.strides[2], values.strides[3]];
    let mut out = Buffer::<W>::new(numel(&[batch, channels, taps, positions])?)?;
    for_each_weighted_chunk(&mut out, positions, 2, |index, row| {
        let (channel, tap) = (index / taps, index % taps);
        let (th, tw) = (tap / kw % kh, tap % kw);
        let start = starts[channel];
        for (at, o) in row.iter_mut().enumerate() {
            let found = (window.source(1, at / columns, th), window.source(2, at % columns, tw));
            *o = match found {
                (Some(h), Some(w)) => values.data[start + h * row_stride + w * column_stride],
                _ => W::default(),
            };
        }
    });
    Tensor::from_memory(out.into_memory(), input.dtype(), &[batch, channels * taps, positions])
    })
}

/// The reverse of `unfold`: overlapping patches are added.
pub fn fold(input: &Tensor, output: [usize; 2], patches: &Patches) -> Result<Tensor> {
    if input.ndim() == 2 {
        return fold(&input.unsqueeze(0)?, output, patches)?.select(0, 0);
    }
    ensure!(
        input.ndim() == 3,
        Shape,
        "Expected 2D or 3D input tensor, but got input of size {:?}",
        input.shape()
    );
    let window = patches.window(output[0], output[1])?;
    let (taps, positions, plane) =
        (window.kernel_size(), window.output_size(), window.input_size());
    let (batch, rows) = (input.shape()[0], input.shape()[1]);
    ensure!(
        rows.is_multiple_of(taps) && input.shape()[2] == positions,
        Shape,
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size and dimension 2 to be {positions}, but got input of size {:?}",
        input.shape()
    );
    let channels = rows / taps;
    ensure!(input.dtype() != DType::Bool, DType, "fold is not implemented for bool");
    let values = input.values::<f64>()?;
    let mut out = Buffer::<f64>::zeroed(batch * channels * plane)?;
    for_each_weighted_chunk(&mut out, plane, taps, |index, target| {
        gather_back(&values[index * taps * positions..][..taps * positions], target, &window);
    });
    Tensor::from_buffer(out, &[batch, channels, output[0], output[1]])?.to_dtype(input.dtype())
}
