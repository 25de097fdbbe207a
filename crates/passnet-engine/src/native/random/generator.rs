//! Distributions as torch's CPU kernels draw them.

use super::box_muller;
use super::mersenne_twister::MersenneTwister;
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::{pointwise, reduce};
use crate::native::tensor::element::{Element, with_element};
use crate::native::tensor::layout::{Dims, numel};
use crate::native::tensor::{Buffer, Tensor};
use half::{bf16, f16};
use passnet_graph::DType;
use rayon::prelude::*;
use std::f64::consts::TAU;

/// A CPU generator, as `torch.manual_seed` leaves it.
#[derive(Clone)]
pub struct Generator {
    engine: MersenneTwister,
    /// Box-Muller makes two normals at a time; short draws keep the second one for the next.
    next_normal: Option<f64>,
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generator").finish_non_exhaustive()
    }
}

/// Draws at least this long use the blocked transform.
pub(crate) const BLOCK: usize = 16;
/// Normals that one thread makes at a time, and all threads together: whole blocks, few enough to stay in a cache.
const PIECE: usize = 512 * BLOCK;
const SLAB: usize = 16 * PIECE;

impl Generator {
    /// Torch's generator for the CPU, seeded as `torch.manual_seed` does.
    pub fn new(seed: u64) -> Self {
        Generator { engine: MersenneTwister::new(seed), next_normal: None }
    }

    fn uniform_f64(&mut self) -> f64 {
        (self.engine.next_u64() & ((1 << 53) - 1)) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform number with as many random bits as the type's mantissa has.
    fn uniform_f32(&mut self, digits: u32) -> f32 {
        uniform_of(self.engine.next_u32(), digits)
    }

    fn uniforms(&mut self, values: &mut [f32]) {
        self.engine.fill(values, |word| uniform_of(word, f32::MANTISSA_DIGITS));
    }

    fn uniform(&mut self, dtype: DType) -> f64 {
        match dtype {
            DType::Float64 => self.uniform_f64(),
            DType::Float16 => f64::from(self.uniform_f32(f16::MANTISSA_DIGITS)),
            DType::BFloat16 => f64::from(self.uniform_f32(bf16::MANTISSA_DIGITS)),
            _ => f64::from(self.uniform_f32(f32::MANTISSA_DIGITS)),
        }
    }

    fn normal_f64(&mut self) -> f64 {
        if let Some(sample) = self.next_normal.take() {
            return sample;
        }
        let u1 = self.uniform_f64();
        let u2 = self.uniform_f64();
        let radius = (-2.0 * (-u2).ln_1p()).sqrt();
        let theta = TAU * u1;
        self.next_normal = Some(radius * theta.sin());
        radius * theta.cos()
    }

    /// `torch.randn`.
    pub fn randn(&mut self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let count = numel(shape)?;
        match dtype {
            DType::Float32 if count >= BLOCK => {
                let mut buffer = Buffer::<f32>::new(count)?;
                self.normals_into(&mut buffer, |normals, out| out.copy_from_slice(normals));
                Tensor::from_buffer(buffer, shape)
            }
            DType::Float16 | DType::BFloat16 | DType::Float64 if count >= BLOCK => {
                with_element!(dtype, T => self.blocked_normals::<T>(shape, count))
            }
            dtype if dtype.is_float() => with_element!(dtype, T => {
                let mut buffer = Buffer::<T>::new(count)?;
                for value in buffer.iter_mut() {
                    *value = T::from_f64(self.normal_f64());
                }
                Tensor::from_buffer(buffer, shape)
            }),
            _ => bail!(DType, "\"normal_kernel_cpu\" not implemented for '{dtype}'"),
        }
    }

    /// The float32 normals of a draw of sixteen or more; `finish` makes what is wanted of each piece of them, on several
    /// threads.
    pub(crate) fn normals_into<T: Send>(
        &mut self,
        out: &mut [T],
        finish: impl Fn(&mut [f32], &mut [T]) + Sync,
    ) {
        let normals = |uniforms: &mut [f32], out: &mut [T]| {
            box_muller::transform(uniforms);
            finish(uniforms, out);
        };
        let mut values = vec![0.0; SLAB.min(out.len())];
        for slab in out.chunks_mut(SLAB) {
            // The stream has one order; the rest of the work has none.
            let uniforms = &mut values[..slab.len()];
            self.uniforms(uniforms);
            let pieces = uniforms.par_chunks_mut(PIECE).zip(slab.par_chunks_mut(PIECE));
            pieces.for_each(|(uniforms, out)| normals(uniforms, out));
        }
        if !out.len().is_multiple_of(BLOCK) {
            // Sixteen once more take the place of the last ones.
            let tail = out.len() - BLOCK;
            self.uniforms(&mut values[..BLOCK]);
            normals(&mut values[..BLOCK], &mut out[tail..]);
        }
    }

    /// The blocked transform in the type itself, every step rounded to it.
    fn blocked_normals<T: Element>(&mut self, shape: &[usize], count: usize) -> Result<Tensor> {
        let mut buffer = Buffer::<T>::new(count)?;
        for value in buffer.iter_mut() {
            *value = T::from_f64(self.uniform(T::DTYPE));
        }
        for block in buffer.chunks_exact_mut(BLOCK) {
            transform_rounded(block);
        }
        if !count.is_multiple_of(BLOCK) {
            let tail = &mut buffer[count - BLOCK..];
            for value in tail.iter_mut() {
                *value = T::from_f64(self.uniform(T::DTYPE));
            }
            transform_rounded(tail);
        }
        Tensor::from_buffer(buffer, shape)
    }

    /// `torch.rand`.
    pub fn rand(&mut self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        ensure!(dtype.is_float(), DType, "\"uniform_kernel_cpu\" not implemented for '{dtype}'");
        let count = numel(shape)?;
        with_element!(dtype, T => {
            let mut buffer = Buffer::<T>::new(count)?;
            for value in buffer.iter_mut() {
                *value = T::from_f64(self.uniform(dtype));
            }
            Tensor::from_buffer(buffer, shape)
        })
    }

    /// `torch.randint(low, high, ...)`, `high` exclusive.
    pub fn randint(
        &mut self,
        low: i64,
        high: i64,
        shape: &[usize],
        dtype: DType,
    ) -> Result<Tensor> {
        ensure!(
            low < high,
            Value,
            "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        );
        let range = high.wrapping_sub(low) as u64;
        let count = numel(shape)?;
        with_element!(dtype, T => {
            let mut buffer = Buffer::<T>::new(count)?;
            for value in buffer.iter_mut() {
                // Wide ranges take 64 bits, so that the remainder stays nearly uniform.
                let drawn = if range >= 1 << 28 {
                    self.engine.next_u64()
                } else {
                    u64::from(self.engine.next_u32())
                };
                *value = T::from_i64(((drawn % range) as i64).wrapping_add(low));
            }
            Tensor::from_buffer(buffer, shape)
        })
    }

    /// `torch.randperm`.
    pub fn randperm(&mut self, count: usize, dtype: DType) -> Result<Tensor> {
        let mut order = Buffer::<i64>::new(count)?;
        for (i, value) in order.iter_mut().enumerate() {
            *value = i as i64;
        }
        for i in 0..count.saturating_sub(1) {
            let left = (count - i) as u64;
            let drawn = if count < (u32::MAX / 20) as usize {
                u64::from(self.engine.next_u32())
            } else {
                self.engine.next_u64()
            };
            order.swap(i, i + (drawn % left) as usize);
        }
        Tensor::from_buffer(order, &[count])?.to_dtype(dtype)
    }

    /// `x.bernoulli_(p)`: ones with one probability, in the order of the tensor's memory.
    pub fn bernoulli_like(&mut self, like: &Tensor, p: f64) -> Result<Tensor> {
        ensure!(
            (0.0..=1.0).contains(&p),
            Value,
            "bernoulli_ expects p to be in [0, 1], but got p={p}"
        );
        self.fill_like(like, |generator| f64::from(u8::from(generator.uniform_f64() < p)))
    }

    /// `x.exponential_()` with rate one, in the order of the tensor's memory.
    fn exponential_like(&mut self, like: &Tensor) -> Result<Tensor> {
        self.fill_like(like, |generator| -(-generator.uniform_f64()).ln_1p())
    }

    fn fill_like(
        &mut self,
        like: &Tensor,
        mut draw: impl FnMut(&mut Self) -> f64,
    ) -> Result<Tensor> {
        let order = like.memory_order();
        let shape = order.iter().map(|&d| like.shape()[d]).collect::<Dims>();
        let dense = with_element!(like.dtype(), T => {
            let mut buffer = Buffer::<T>::new(like.numel())?;
            for value in buffer.iter_mut() {
                *value = T::from_f64(draw(self));
            }
            Tensor::from_buffer(buffer, &shape)
        })?;
        Ok(Tensor::from_ordered(dense, &order))
    }

    /// `torch.multinomial`: indices of the last dimension, drawn with the weights it holds.
    pub fn multinomial(
        &mut self,
        weights: &Tensor,
        samples: usize,
        replace: bool,
    ) -> Result<Tensor> {
        ensure!(
            matches!(weights.ndim(), 1 | 2),
            Shape,
            "prob_dist must be 1 or 2 dim, got {}",
            weights.ndim()
        );
        ensure!(
            weights.dtype().is_float(),
            DType,
            "multinomial only supports floating-point dtypes for input, got: {}",
            weights.dtype()
        );
        let categories = weights.size(-1)?;
        ensure!(samples > 0, Value, "cannot sample n_sample <= 0 samples");
        ensure!(
            replace || samples <= categories,
            Value,
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        );
        let values = weights.to_vec::<f64>()?;
        for row in values.chunks(categories.max(1)) {
            ensure!(
                row.iter().all(|weight| *weight >= 0.0 && weight.is_finite()),
                Value,
                "probability tensor contains either `inf`, `nan` or element < 0"
            );
            ensure!(
                row.iter().any(|weight| *weight > 0.0),
                Value,
                "invalid multinomial distribution (sum of probabilities <= 0)"
            );
        }
        if replace && samples > 1 {
            return self.draw_by_sums(weights, samples, categories);
        }
        // The largest of weight / exponential is a draw; the next largest are draws from what is left.
        let noise = self.exponential_like(weights)?;
        let keys = pointwise::div(&weights.into(), &noise.into())?;
        if samples == 1 {
            return reduce::arg_extreme(&keys, reduce::Extreme::Max, Some(-1), true);
        }
        Ok(reduce::topk(&keys, samples, -1, true, true)?.1)
    }

    /// Draws with replacement: where a uniform number falls among the running sums.
    fn draw_by_sums(
        &mut self,
        weights: &Tensor,
        samples: usize,
        categories: usize,
    ) -> Result<Tensor> {
        let single = weights.dtype() != DType::Float64;
        let round = |value: f64| if single { f64::from(value as f32) } else { value };
        let mut drawn: Vec<i64> = Vec::new();
        for row in weights.to_vec::<f64>()?.chunks(categories) {
            let mut sums: Vec<f64> = Vec::with_capacity(categories);
            let mut total = 0.0;
            for weight in row {
                total = round(total + weight);
                sums.push(total);
            }
            if !(0.99999..=1.00001).contains(&total) {
                sums.iter_mut().for_each(|sum| *sum = round(*sum / total));
            }
            for _ in 0..samples {
                let wanted = self.uniform_f64();
                drawn.push(sums.partition_point(|sum| *sum < wanted) as i64);
            }
        }
        let mut shape: Dims = weights.shape()[..weights.ndim() - 1].into();
        shape.push(samples);
        Tensor::from_slice(&drawn, &shape)
    }

    /// `torch.bernoulli(p)`: ones with the probabilities that the tensor holds.
    pub fn bernoulli(&mut self, probabilities: &Tensor) -> Result<Tensor> {
        let dtype = probabilities.dtype();
        ensure!(
            dtype.is_float(),
            DType,
            "\"bernoulli_tensor_cpu_p_\" not implemented for '{dtype}'"
        );
        let p = probabilities.values::<f64>()?;
        ensure!(
            p.iter().all(|p| (0.0..=1.0).contains(p)),
            Value,
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false."
        );
        with_element!(dtype, T => {
            let mut buffer = Buffer::<T>::new(p.len())?;
            for (value, p) in buffer.iter_mut().zip(p.iter()) {
                let drawn = if dtype == DType::Float64 {
                    self.uniform_f64()
                } else {
                    f64::from(self.uniform_f32(f32::MANTISSA_DIGITS))
                };
                *value = T::from_i64(i64::from(drawn < *p));
            }
            Tensor::from_buffer(buffer, probabilities.shape())
        })
    }
}

#[inline(always)]
fn uniform_of(word: u32, digits: u32) -> f32 {
    (word & ((1 << digits) - 1)) as f32 * (1.0 / (1u32 << digits) as f32)
}

/// One block in a type other than float32; the half types round after each step, as their C++ operators do.
fn transform_rounded<T: Element>(block: &mut [T]) {
    let (first, second) = block.split_at_mut(BLOCK / 2);
    for (a, b) in first.iter_mut().zip(second) {
        if T::DTYPE == DType::Float64 {
            let radius = (-2.0 * (1.0 - a.to_f64()).ln()).sqrt();
            let theta = TAU * b.to_f64();
            *a = T::from_f64(radius * theta.cos());
            *b = T::from_f64(radius * theta.sin());
            continue;
        }
        let round = |value: f32| T::from_f32(value).to_f32();
        let u1 = round(1.0 - a.to_f32());
        let log = round(u1.ln());
        let radius = round(round(-2.0 * log).sqrt());
        let theta = T::from_f64(TAU * f64::from(b.to_f32())).to_f32();
        *a = T::from_f32(radius * round(theta.cos()));
        *b = T::from_f32(radius * round(theta.sin()));
    }
}
