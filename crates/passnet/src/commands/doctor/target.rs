//! `--measure-target`: the GPU of this machine as a file that `passnet solve --target` takes elsewhere.

use super::python::Found;
use super::{CUDA, Report};
use crate::commands::engine;
use crate::error::CommandError;
use passnet_bench::roofline::Rates;
use passnet_engine::{EngineChoice, EngineName};
use passnet_solver::target::Target;

impl Report {
    /// What the first GPU reaches, through the torch engine.
    pub(super) fn measure_target(&self) -> Result<Target, CommandError> {
        let lacking = |message: &str| CommandError::Lacking {
            message: message.to_string(),
            hint: CUDA.to_string(),
        };
        let found = self.python.as_ref().ok();
        let Some((found, unit)) = found.and_then(|found| Some((found, *found.unit()?))) else {
            return Err(lacking("there is no GPU to measure that PyTorch can use"));
        };
        let Found { interpreter, .. } = found;
        let choice = EngineChoice {
            engine: EngineName::Torch,
            device: "cuda".into(),
            python: interpreter.executable.clone(),
            ..EngineChoice::default()
        };
        let engines = engine::start(&choice)?;
        let Some(engine) = engines.first() else { return Err(lacking("no engine was started")) };
        let device = engine.identity().device;
        let rates = Rates::measure(&**engine);
        let measured = (device.capability, rates.bytes_per_second, rates.least_seconds);
        let (Some(capability), Some(bytes_per_second), Some(seconds_per_launch)) = measured else {
            return Err(lacking("the GPU could not be measured"));
        };
        Ok(Target {
            name: device.name,
            source: "measured by `passnet doctor --measure-target`".into(),
            compute_capability: capability,
            multiprocessors: unit.multiprocessors,
            shared_memory_bytes: unit.shared_memory_bytes,
            bytes_per_second,
            seconds_per_launch,
            flops_per_second: rates.flops_per_second.into_iter().collect(),
        })
    }
}
