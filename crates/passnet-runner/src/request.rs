//! The JSON that describes a plan.

use crate::failure::Failure;
use passnet_kernel::plan::LaunchPlan;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A plan with one `K` for each of its launches.
#[derive(Debug, Deserialize)]
pub(crate) struct Request<K> {
    pub(crate) plan: LaunchPlan,
    pub(crate) kernels: Vec<K>,
}

/// A kernel compiled for the GPU.
#[derive(Debug, Deserialize)]
pub(crate) struct CompiledKernel {
    /// Name of the entry in its cubin.
    pub(crate) name: String,
    /// Where its cubin begins among all cubins, and how long it is.
    pub(crate) offset: usize,
    pub(crate) length: usize,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
    pub(crate) num_warps: u32,
    /// Which of the launch's arguments it takes, in order; the others are compiled in.
    pub(crate) parameters: Vec<usize>,
    /// Null pointers after the parameters, for scratch memory that no kernel here uses.
    pub(crate) scratch: usize,
    /// Arguments among `parameters` that were compiled for addresses divisible by 16.
    #[serde(default)]
    pub(crate) aligned: Vec<usize>,
}

pub(crate) fn read<K: DeserializeOwned>(json: &[u8]) -> Result<Request<K>, Failure> {
    let request: Request<K> = serde_json::from_slice(json)
        .map_err(|error| Failure::call(format!("the plan's JSON: {error}")))?;
    request.plan.validate().map_err(|error| Failure::call(format!("the plan's {error}")))?;
    Ok(request)
}
