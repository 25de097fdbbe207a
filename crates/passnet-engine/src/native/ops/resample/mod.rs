//! Resampling images: interpolation to other sizes, and sampling at given points.

mod grid;
mod interpolate;

pub use grid::{GridMode, GridPadding, grid_sample};
pub use interpolate::{Interpolation, Mode, interpolate};
