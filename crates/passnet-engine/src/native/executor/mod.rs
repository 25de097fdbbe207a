//! Runs graphs: a [`Program`] is compiled once (calls bound, arguments laid out, lifetimes known) and run many times.
//!
//! A value is dropped after its last use, so that its memory serves the nodes that follow. The order of calls is the
//! graph's own: in-place writes and views mean here what they mean in torch.

mod compile;
mod fuse;
mod run;
mod step;

pub use compile::Program;
pub use run::{NodeTime, Observer};
pub use step::Step;

use crate::engine::{Engine, EngineError, GraphCompiler, Precision, Prepared, RunOptions, Value};
use crate::native::rates;
use crate::native::tensor::memory::scrub_pool;
use crate::native::wrapper::Wrappers;
use crate::tuning::TunedKernel;
use passnet_graph::{DType, Graph};
use passnet_kernel::check::Finding;
use step::Work;

/// The engine that runs graphs in this process, on the CPU.
#[derive(Debug, Clone, Copy, Default)]
pub struct NativeEngine;

impl Engine for NativeEngine {
    fn name(&self) -> &'static str {
        "native"
    }

    fn copy_seconds(&self, bytes: u64) -> Option<f64> {
        Some(rates::copy_seconds(bytes))
    }

    fn flops_per_second(&self, dtype: DType) -> Option<f64> {
        rates::flops_per_second(dtype).ok()
    }

    fn prepare(
        &self,
        graph: &Graph,
        precision: Precision,
        wrappers: &Wrappers,
    ) -> Result<Box<dyn Prepared>, EngineError> {
        let program = Program::compile(graph, precision, wrappers)?;
        Ok(Box::new(match precision {
            // Eager is one operation after the other, for the graph as it is and for what a pass leaves of it.
            Precision::AsWritten => program.one_by_one(),
            Precision::Double => program,
        }))
    }

    fn prepare_compiled(
        &self,
        graph: &Graph,
        compiler: GraphCompiler,
    ) -> Result<Box<dyn Prepared>, EngineError> {
        match compiler {
            GraphCompiler::Inductor(_) | GraphCompiler::CudaGraph => Err(self.lacks(compiler)),
            GraphCompiler::Joined => {
                let none = Wrappers::default();
                Ok(Box::new(Program::compile(graph, Precision::AsWritten, &none)?))
            }
        }
    }
}

impl Prepared for Program {
    fn run(&self, inputs: &[Value], options: &RunOptions) -> Result<Vec<Value>, EngineError> {
        self.run_observed(inputs, options, &mut ())
    }

    fn tuned(&self) -> Vec<TunedKernel> {
        let mut tuned: Vec<TunedKernel> = Vec::new();
        for step in &self.steps {
            if let Work::Wrapper(wrapper) = &step.work {
                tuned.extend(wrapper.tuned());
            }
        }
        tuned.sort_by(|a, b| a.key.cmp(&b.key));
        tuned.dedup_by(|a, b| a.key == b.key);
        tuned
    }

    fn scrub_memory(&self) {
        scrub_pool();
    }

    fn check(&self, inputs: &[Value], options: &RunOptions) -> Result<Vec<Finding>, EngineError> {
        let mut checker = run::Checker::new(self);
        self.run_observed(inputs, options, &mut checker)?;
        checker.findings()
    }
}
