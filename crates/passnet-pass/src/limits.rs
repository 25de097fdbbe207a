//! The reference's limits on a set of passes.
//!
//! The reference keeps a random sample of the replacement functions, then of the passes. Here the first ones
//! in the order of application are kept, and what is dropped is named.

use crate::trace::Pass;

/// What the reference takes of a pass folder.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReferenceLimits {
    /// `None`: as many as there are.
    pub patterns: Option<usize>,
    /// Distinct replacement functions; the reference cannot work with more than one.
    pub functions: Option<usize>,
}

/// Applies the limits; the second list says what was dropped and why.
pub fn apply(passes: Vec<Pass>, limits: ReferenceLimits) -> (Vec<Pass>, Vec<String>) {
    let mut dropped = Vec::new();
    let mut functions = Vec::new();
    let mut kept: Vec<Pass> = Vec::with_capacity(passes.len());
    for pass in passes {
        let known = functions.contains(&pass.wrapper);
        if !known && limits.functions.is_some_and(|most| functions.len() >= most) {
            dropped.push(format!(
                "pass `{}` is dropped: `{}` is one replacement function too many",
                pass.name, pass.wrapper.function
            ));
        } else if limits.patterns.is_some_and(|most| kept.len() >= most) {
            dropped.push(format!("pass `{}` is dropped: one pattern too many", pass.name));
        } else {
            if !known {
                functions.push(pass.wrapper.clone());
            }
            kept.push(pass);
        }
    }
    (kept, dropped)
}
