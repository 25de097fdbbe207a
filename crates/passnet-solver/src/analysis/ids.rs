//! How the parts of a [`super::Body`] name each other.

/// Index of a loop in [`super::Body::axes`].
pub type AxisId = usize;

/// Index of a value in [`super::Body::vars`].
pub type VarId = usize;
