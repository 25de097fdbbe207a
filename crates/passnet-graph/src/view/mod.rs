//! Views: the same memory seen through other sizes, strides and another start, by torch's rules.
//!
//! The one place where these rules are written. Inference asks it for types with symbolic sizes, the native engine for
//! tensors over its memory, the planning of wrappers for tensors that are only described; each brings its own tensor
//! ([`Strided`]) and turns a [`ViewError`] into its own error. What a size is differs between them ([`Size`]); arithmetic
//! is done on [`Number`]s, which may be negative and may carry the expression they came from.
//!
//! - `layout` strides alone: dense ones, those of results, those of a reshape.
//! - `shape` sizes alone: broadcasting, `-1`, runs that merge, slices, lengths of pieces, orders of dimensions.
//! - `region` sizes, strides and start together: what a view is.
//!
//! ```
//! use passnet_graph::view::layout;
//!
//! let strides = layout::contiguous::<_, i64>(&[2_i64, 3, 4]);
//! assert_eq!(strides.as_slice(), [12, 4, 1]);
//! let merged = layout::reshaped(&[2_i64, 3, 4], &strides, &[6, 4]);
//! assert_eq!(merged.as_deref(), Some(&[4, 1][..]));
//! ```

mod error;
pub mod layout;
mod number;
pub mod region;
pub mod shape;

pub use error::ViewError;
pub use number::{Number, Size, Step};
pub use region::Strided;

use smallvec::SmallVec;

/// Sizes, strides or dimensions; few enough to need no memory of their own.
pub type List<T> = SmallVec<[T; 6]>;

/// What a rule of views gives.
pub type Result<T> = std::result::Result<T, ViewError>;
