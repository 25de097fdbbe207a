//! Short-time Fourier transforms, and signals made from them again.

use super::fft::{self, Normalization};
use super::movement::{self, PadMode};
use super::pointwise;
use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::layout::numel;
use crate::native::tensor::{Buffer, Complex, Scalar, Tensor};
use passnet_graph::DType;

/// How a signal is cut into windows.
#[derive(Debug, Clone)]
pub struct Steps {
    /// The length of a transform.
    pub length: usize,
    /// From the beginning of a window to that of the next one.
    pub hop: usize,
    /// The length of the window, at most that of a transform.
    pub window_length: usize,
    /// Its values; ones where there are none.
    pub window: Option<Tensor>,
    /// Whether windows are centred on their places, the signal being padded.
    pub center: bool,
    /// How transforms are scaled.
    pub normalization: Normalization,
    /// Whether half of the frequencies are kept; by default where that loses nothing.
    pub one_sided: Option<bool>,
}

impl Steps {
    fn check(&self) -> Result<()> {
        ensure!(
            self.length > 0 && self.hop > 0 && (1..=self.length).contains(&self.window_length),
            Value,
            "expected n_fft, hop_length > 0 and 0 < win_length <= n_fft, but got {}, {} and {}",
            self.length,
            self.hop,
            self.window_length
        );
        let fits = |window: &Tensor| window.shape() == [self.window_length];
        ensure!(
            self.window.as_ref().is_none_or(fits),
            Shape,
            "expected a 1D window tensor of size equal to win_length={}",
            self.window_length
        );
        Ok(())
    }

    /// The window in the middle of a transform, zeros around it.
    fn padded_window(&self, dtype: DType) -> Result<Tensor> {
        let window = match &self.window {
            Some(window) => window.clone(),
            None => Tensor::full(&[self.window_length], Scalar::Int(1), dtype)?,
        };
        let left = (self.length - self.window_length) / 2;
        let right = self.length - self.window_length - left;
        movement::pad(&window, &[left as i64, right as i64], PadMode::Constant(Scalar::Int(0)))
    }

    /// `torch.stft`: `[batch, frequencies, windows]`.
    pub fn stft(&self, input: &Tensor, mode: PadMode) -> Result<Tensor> {
        self.check()?;
        ensure!(
            matches!(input.ndim(), 1 | 2)
                && (input.dtype().is_float() || input.dtype().is_complex()),
            Shape,
            "stft expected a 1D or 2D tensor of floating point or complex values, got {:?}",
            input.shape()
        );
        let mut signal = if input.ndim() == 1 { input.unsqueeze(0)? } else { input.clone() };
        if self.center {
            let pad = (self.length / 2) as i64;
            // Padding by what is inside takes batches and channels before it.
            signal =
                movement::pad(&signal.unsqueeze(0)?, &[pad, pad], mode)?.squeeze(Some(&[0]))?;
        }
        let samples = signal.shape()[1];
        ensure!(
            self.length <= samples,
            Value,
            "expected 0 < n_fft <= {samples}, but got n_fft={}",
            self.length
        );
        let frames = signal.unfold(1, self.length, self.hop)?;
        let window = self.padded_window(input.dtype())?;
        let frames = pointwise::mul(&frames.into(), &window.into())?;
        let complex = frames.dtype().is_complex();
        let result = match self.one_sided.unwrap_or(!complex) {
            true => {
                ensure!(
                    !complex,
                    Value,
                    "Cannot have onesided output if window or input is complex"
                );
                fft::rfft(&frames, None, -1, self.normalization)?
            }
            false => fft::fftn(&frames, None, Some(&[-1]), self.normalization, false)?,
        };
        let result = result.transpose(-2, -1)?;
        if input.ndim() == 1 { result.squeeze(Some(&[0])) } else { Ok(result) }
    }

    /// `torch.istft`: windows are transformed back, laid over each other and divided by what the windows add up to.
    pub fn istft(&self, input: &Tensor, length: Option<usize>, complex: bool) -> Result<Tensor> {
        self.check()?;
        ensure!(
            input.dtype().is_complex() && matches!(input.ndim(), 2 | 3) && input.numel() > 0,
            Shape,
            "istft requires a complex-valued input tensor of 2 or 3 dimensions with elements, got {:?}",
            input.shape()
        );
        let batched = if input.ndim() == 2 { input.unsqueeze(0)? } else { input.clone() };
        let [batch, frequencies, frames] =
            [batched.shape()[0], batched.shape()[1], batched.shape()[2]];
        let one_sided = self.one_sided.unwrap_or(frequencies != self.length);
        let wanted = if one_sided { self.length / 2 + 1 } else { self.length };
        ensure!(
            frequencies == wanted && !(complex && one_sided) && self.hop <= self.length,
            Shape,
            "istft expected the frequency dimension to be {wanted}, got {frequencies}"
        );
        let spectra = batched.transpose(1, 2)?;
        let windows = match complex {
            true => fft::fftn(&spectra, None, Some(&[-1]), self.normalization, true)?,
            false => {
                let half = spectra.narrow(-1, 0, self.length / 2 + 1)?;
                fft::irfft(&half, Some(self.length), -1, self.normalization)?
            }
        };
        let dtype = windows.dtype();
        let window = self.padded_window(dtype.real())?.to_vec::<f64>()?;
        let all = self.length + self.hop * (frames - 1);
        let start = if self.center { self.length / 2 } else { 0 };
        let rest = all - start;
        let kept = length.unwrap_or(rest.saturating_sub(start));
        let weights = self.envelope(&window, frames, all);
        let used = &weights[start..start + kept.min(rest)];
        if let Some(least) = used.iter().copied().find(|weight| weight.abs() < 1e-11) {
            bail!(Value, "window overlap add min: {least}");
        }
        let values = windows.to_dtype(dtype.complex())?;
        let values = values.values::<Complex<f64>>()?;
        let mut out = Buffer::<Complex<f64>>::zeroed(numel(&[batch, kept])?)?;
        for (signal, windows) in
            out.chunks_mut(kept.max(1)).zip(values.chunks(frames * self.length))
        {
            for (frame, values) in windows.chunks(self.length).enumerate() {
                for (at, (value, factor)) in values.iter().zip(&window).enumerate() {
                    let place = (frame * self.hop + at).checked_sub(start);
                    if let Some(sample) = place.and_then(|place| signal.get_mut(place)) {
                        sample.re += value.re * factor;
                        sample.im += value.im * factor;
                    }
                }
            }
            for (sample, weight) in signal.iter_mut().zip(used) {
                *sample = Complex { re: sample.re / weight, im: sample.im / weight };
            }
        }
        let signal = Tensor::from_buffer(out, &[batch, kept])?;
        let signal = match complex {
            true => signal.to_dtype(dtype)?,
            false => signal.complex_part(0)?.dense_copy(dtype)?,
        };
        if input.ndim() == 2 { signal.squeeze(Some(&[0])) } else { Ok(signal) }
    }

    /// What the squares of the windows add up to at each sample.
    fn envelope(&self, window: &[f64], frames: usize, all: usize) -> Vec<f64> {
        let mut weights = vec![0.0; all];
        for frame in 0..frames {
            let part = &mut weights[frame * self.hop..frame * self.hop + self.length];
            for (weight, factor) in part.iter_mut().zip(window) {
                *weight += factor * factor;
            }
        }
        weights
    }
}
