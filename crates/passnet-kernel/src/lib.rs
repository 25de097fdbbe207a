//! Triton kernels and host wrappers without a GPU and without Python: read, type, check, plan, run.
//!
//! Owned here: the tile IR ([`ir`]) and how kernels become it ([`frontend`]), launch plans made by interpreting wrappers on shapes and
//! dtypes ([`plan`]), checks of memory and order ([`check`]), and execution on the CPU ([`exec`]).
//!
//! ```
//! use passnet_graph::syntax::Source;
//! use passnet_kernel::exec::RunOptions;
//! use passnet_kernel::fixture::Fixture;
//!
//! let text = "# wrapper: run\n# tolerance: 0\n# input: x float32 [100] uniform -1 1\nimport torch\nimport triton\nimport triton.language as tl\n\n\n\
//! @triton.jit\ndef double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n    place = tl.arange(0, BLOCK)\n    \
//! x = tl.load(x_ptr + place, mask=place < n)\n    tl.store(out_ptr + place, x * 2, mask=place < n)\n\n\n\
//! def run(x):\n    out = torch.empty_like(x)\n    double[(1,)](x, out, x.numel(), BLOCK=128)\n    return out\n";
//! let fixture = Fixture::new(Source::new("double.py", text)).unwrap();
//! let outputs = fixture.run(&fixture.prepare().unwrap(), RunOptions::default()).unwrap();
//! assert_eq!(outputs.views[0].shape, [100]);
//! ```
//!
//! A kernel that leaves its memory, races or reads what nobody wrote is an error with its line. The checked and the fast way of running give
//! the same bits, on any number of threads.

#![warn(missing_docs)]

mod analysis;
pub mod check;
mod consts;
pub mod excerpt;
pub mod exec;
pub mod fixture;
pub mod frontend;
pub mod ir;
mod lane;
mod modules;
pub mod plan;
pub mod reference;
pub mod types;

pub use consts::Const;
pub use modules::ModuleSet;
