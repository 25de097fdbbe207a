//! Windows of a signal, computed in double precision and rounded once.

use crate::native::error::Result;
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::math::double::bessel_i0;
use passnet_graph::DType;
use std::f64::consts::PI;

/// The shape of a window, with torch's arguments.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Window {
    Hamming { alpha: f64, beta: f64 },
    Blackman,
    Bartlett,
    Kaiser { beta: f64 },
}

impl Window {
    /// A window of this length; a periodic one is the beginning of a symmetric one that is longer by one.
    pub fn of(self, length: usize, periodic: bool, dtype: DType) -> Result<Tensor> {
        let last = (length + usize::from(periodic)).saturating_sub(1).max(1) as f64;
        let mut values = Buffer::<f64>::new(length)?;
        for (at, value) in values.iter_mut().enumerate() {
            *value = if length == 1 { 1.0 } else { self.at(at as f64, last) };
        }
        Tensor::from_buffer(values, &[length])?.to_dtype(dtype)
    }

    fn at(self, place: f64, last: f64) -> f64 {
        let turn = 2.0 * PI * place / last;
        match self {
            Window::Hamming { alpha, beta } => alpha - beta * turn.cos(),
            Window::Blackman => 0.42 - 0.5 * turn.cos() + 0.08 * (2.0 * turn).cos(),
            Window::Bartlett => 1.0 - (2.0 * place / last - 1.0).abs(),
            Window::Kaiser { beta } => {
                let side = 2.0 * place / last - 1.0;
                bessel_i0(beta * (1.0 - side * side).max(0.0).sqrt()) / bessel_i0(beta)
            }
        }
    }
}
