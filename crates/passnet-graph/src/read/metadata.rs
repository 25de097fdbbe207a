//! Metadata files: the quick reader where a file has the form that extraction writes, the Python parser otherwise.

use super::constraints::{Constraints, parse_constraints};
use super::meta::{TensorMeta, parse_tensor_metas};
use super::plain;
use crate::Diagnostic;
use crate::syntax::Source;

/// Reads all classes of a meta file, in file order. All errors are collected.
pub fn read_tensor_metas(source: &Source) -> Result<Vec<TensorMeta>, Vec<Diagnostic>> {
    match plain::tensor_metas(source.text()) {
        Some(metas) => Ok(metas),
        None => parse_tensor_metas(source),
    }
}

pub(crate) fn read_constraints(source: &Source) -> Result<Constraints, Diagnostic> {
    match plain::constraints(source.text()) {
        Some(constraints) => Ok(constraints),
        None => parse_constraints(source),
    }
}
