//! Everything about a pass that needs no execution: load, trace, match, rewrite, explain, integrity rules.
//!
//! A pass file is Python written by somebody we do not trust. It is read, never imported: `pattern` and
//! `replacement_args` are traced from their syntax, `replacement_func` is resolved to a name.
//!
//! ```
//! use passnet_graph::syntax::Source;
//! use passnet_pass::load::{Bindings, PassFile, Program};
//! use passnet_pass::trace::{Dialect, trace};
//!
//! let text = "import torch\n\n\ndef pattern(x, y):\n    return torch.relu(x * y)\n\n\ndef replacement_args(x, y):\n    return (x, y)\n\n\n\
//!             def fused(x, y):\n    return x\n\n\ndef replacement_func():\n    return fused\n";
//! let program = Program::from_source(Source::new("mul_relu.py", text)).unwrap();
//! let module = program.ids().next().unwrap();
//! let file = PassFile { name: "mul_relu".into(), module, is_input: false };
//! let pass = trace(&program, &Bindings::of(&program), &file, Dialect::Plain).unwrap();
//! assert_eq!(pass.pattern.graph.op_count(), 2);
//! ```
//!
//! Nothing of a pass file is ever run here; whatever it holds gives a result or a diagnostic with file, line and column.

#![warn(missing_docs)]

pub mod explain;
pub mod generality;
pub mod limits;
pub mod load;
mod mapped;
pub mod matcher;
pub mod rewrite;
pub mod rules;
pub mod trace;
