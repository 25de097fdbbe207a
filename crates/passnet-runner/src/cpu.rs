//! Plans on the CPU: the kernels arrive as tile IR and run in this process.

use crate::failure::Failure;
use crate::request::Request;
use passnet_kernel::exec::{LentBuffer, PreparedPlan, RunOptions};
use passnet_kernel::ir;
use passnet_kernel::plan::Init;
use std::ops::Range;

#[derive(Debug)]
pub(crate) struct CpuPlan {
    prepared: PreparedPlan,
    buffers: Vec<Buffer>,
}

#[derive(Debug)]
struct Buffer {
    name: String,
    bytes: usize,
    element: usize,
    /// Whether the plan may write into it, or fills it.
    written: bool,
    filled: bool,
}

impl CpuPlan {
    pub(crate) fn new(request: Request<String>) -> Result<Self, Failure> {
        let functions = request
            .kernels
            .iter()
            .map(|text| ir::parse::parse("tile IR", text))
            .collect::<Result<Vec<_>, _>>();
        let prepared = functions
            .and_then(|functions| PreparedPlan::from_functions(request.plan, functions))
            .map_err(|error| Failure::call(error.to_string()))?;
        let written = prepared.written();
        let specs = prepared.plan().buffers.iter().zip(written);
        let buffers = specs
            .map(|(spec, written)| {
                let filled = matches!(spec.init, Init::Fill(_) | Init::Values(_));
                Ok(Buffer {
                    name: spec.name.clone(),
                    bytes: usize::try_from(spec.bytes())
                        .ok()
                        .filter(|bytes| *bytes <= isize::MAX as usize)
                        .ok_or_else(|| Failure::call(format!("`{}` is too large", spec.name)))?,
                    element: spec.dtype.size(),
                    written: written.is_possible() || filled,
                    filled,
                })
            })
            .collect::<Result<_, Failure>>()?;
        Ok(CpuPlan { prepared, buffers })
    }

    pub(crate) fn buffers(&self) -> usize {
        self.buffers.len()
    }

    pub(crate) fn steps(&self) -> usize {
        self.prepared.plan().steps.len()
    }

    pub(crate) fn run(&self, addresses: &[u64], steps: Range<usize>) -> Result<(), Failure> {
        let lent = self.lay_out(addresses)?;
        if steps.start == 0 {
            for (index, (buffer, lent)) in self.buffers.iter().zip(&lent).enumerate() {
                if buffer.filled {
                    // SAFETY: the caller of `pn_plan_run` lends `bytes` bytes here to nobody else; `lay_out` has seen
                    // that the address is not null and that no other buffer overlaps it.
                    let content = unsafe { std::slice::from_raw_parts_mut(lent.start, lent.bytes) };
                    self.prepared.initialize_one(index, content);
                }
            }
        }
        // SAFETY: the caller of `pn_plan_run` keeps the buffers valid and to itself; `lay_out` has seen that those the
        // plan may write overlap no other.
        unsafe { self.prepared.run_steps_lent(&lent, steps, RunOptions::default()) }
            .map_err(|error| Failure::kernel(error.to_string()))
    }

    fn lay_out(&self, addresses: &[u64]) -> Result<Vec<LentBuffer>, Failure> {
        let mut lent = Vec::with_capacity(addresses.len());
        for (buffer, &address) in self.buffers.iter().zip(addresses) {
            if buffer.bytes == 0 {
                lent.push(LentBuffer::EMPTY);
                continue;
            }
            let start = usize::try_from(address).unwrap_or(0);
            if start == 0 || start.checked_add(buffer.bytes).is_none() {
                return Err(Failure::call(format!("`{}` has no usable address", buffer.name)));
            }
            if !start.is_multiple_of(buffer.element) {
                return Err(Failure::call(format!(
                    "`{}` begins at an address that does not fit its type",
                    buffer.name
                )));
            }
            lent.push(LentBuffer {
                start: std::ptr::with_exposed_provenance_mut(start),
                bytes: buffer.bytes,
            });
        }
        self.refuse_overlaps(&lent)?;
        Ok(lent)
    }

    /// The executor takes a buffer that it writes for one apart from all others.
    fn refuse_overlaps(&self, lent: &[LentBuffer]) -> Result<(), Failure> {
        let ends = |lent: &LentBuffer| (lent.start.addr(), lent.start.addr() + lent.bytes);
        let filled = |index: &usize| lent[*index].bytes > 0;
        for written in (0..lent.len()).filter(|&index| self.buffers[index].written).filter(filled) {
            let (start, end) = ends(&lent[written]);
            for other in (0..lent.len()).filter(|&other| other != written).filter(filled) {
                let (other_start, other_end) = ends(&lent[other]);
                if start < other_end && other_start < end {
                    return Err(Failure::call(format!(
                        "`{}`, which the plan writes, shares memory with `{}`",
                        self.buffers[written].name, self.buffers[other].name
                    )));
                }
            }
        }
        Ok(())
    }
}
