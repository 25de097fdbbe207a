//! Everything about a pass that needs no execution: load, trace, match, rewrite, explain, integrity rules.
//!
//! A pass file is Python written by somebody we do not trust. It is read, never imported: `pattern` and
//! `replacement_args` are traced from their syntax, `replacement_func` is resolved to a name.

pub mod explain;
pub mod generality;
pub mod limits;
pub mod load;
pub mod matcher;
pub mod rewrite;
pub mod rules;
pub mod trace;
