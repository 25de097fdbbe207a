//! Answers the worker's questions for plans: arguments in, a launch plan and its kernels out.

use super::compile::{Compiler, Cubin};
use crate::engine::{EngineError, ErrorKind};
use crate::native::Wrappers;
use crate::native::wrapper::Wrapper;
use passnet_graph::graph::Replacement;
use passnet_graph::{DType, Device};
use passnet_kernel::Const;
use passnet_kernel::exec::PreparedPlan;
use passnet_kernel::plan::{HostArg, Init, TensorSpec};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

/// Deeper nesting than this in an argument is refused.
const MAX_DEPTH: usize = 8;

/// Makes the plans of one graph's replaced nodes.
#[derive(Debug)]
pub(super) struct PlanMaker {
    wrappers: Vec<Wrapper>,
    /// Compiles kernels for the worker's GPU; `None` where it computes on the CPU.
    compiler: Option<Arc<Compiler>>,
}

impl PlanMaker {
    pub(super) fn new(
        replaced: &[Replacement],
        wrappers: &Wrappers,
        compiler: Option<Arc<Compiler>>,
    ) -> Result<PlanMaker, EngineError> {
        let find = |replacement: &Replacement| {
            wrappers.wrapper(replacement).ok_or_else(|| {
                let text = format!("the files of pass `{}` are not there", replacement.pass);
                EngineError::graph(ErrorKind::Plan, text)
            })
        };
        Ok(PlanMaker { wrappers: replaced.iter().map(find).collect::<Result<_, _>>()?, compiler })
    }

    pub(super) fn count(&self) -> usize {
        self.wrappers.len()
    }

    /// The message and the raw bytes that answer a question.
    pub(super) fn answer(&mut self, wanted: &Map<String, Json>) -> (Json, Vec<Vec<u8>>) {
        match self.plan(wanted) {
            Ok(answer) => answer,
            Err(message) => (json!({ "error": message }), Vec::new()),
        }
    }

    fn plan(&self, wanted: &Map<String, Json>) -> Result<(Json, Vec<Vec<u8>>), String> {
        let node = wanted.get("node").and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
        let wrapper = node.and_then(|node| self.wrappers.get(node));
        let arguments = wanted.get("arguments").and_then(Json::as_array);
        let (Some(wrapper), Some(arguments)) = (wrapper, arguments) else {
            return Err("the worker asks for a plan that no node needs".into());
        };
        let signature = arguments
            .iter()
            .enumerate()
            .map(|(index, argument)| {
                host_argument(argument)
                    .ok_or_else(|| format!("argument {index} of the wrapper is {argument}"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let (prepared, _) = wrapper.plan(&signature).map_err(|error| error.to_string())?;
        match &self.compiler {
            None => Ok((cpu_plan(&prepared), Vec::new())),
            Some(compiler) => {
                let plan = prepared.plan();
                let is_aligned = |init: &Init| match init {
                    Init::Input(index) => arguments.get(*index).is_some_and(is_aligned),
                    // Fresh memory comes from PyTorch's allocator, which rounds to 512 bytes.
                    _ => true,
                };
                let alignment: Vec<bool> =
                    plan.buffers.iter().map(|buffer| is_aligned(&buffer.init)).collect();
                let cubins = compiler
                    .compile_plan(&wrapper.files, plan, &alignment)
                    .map_err(|error| error.to_string())?;
                let (kernels, code) = Cubin::pack(&cubins);
                let text = json!({ "plan": plan, "kernels": kernels }).to_string();
                Ok((json!({ "plan": plan, "text": text }), vec![code]))
            }
        }
    }
}

/// A plan with its kernels as tile IR, which the runner reads.
fn cpu_plan(prepared: &PreparedPlan) -> Json {
    let kernels: Vec<String> = prepared.functions().map(ToString::to_string).collect();
    let text = json!({ "plan": prepared.plan(), "kernels": kernels }).to_string();
    json!({ "plan": prepared.plan(), "text": text })
}

/// Whether a tensor begins at an address divisible by 16.
fn is_aligned(argument: &Json) -> bool {
    argument.get("tensor").and_then(|tensor| tensor.get("aligned")) == Some(&Json::Bool(true))
}

/// An argument as the worker describes it.
fn host_argument(argument: &Json) -> Option<HostArg> {
    let Some(tensor) = argument.get("tensor") else {
        return constant(argument, 0).map(HostArg::Const);
    };
    let signed = |key: &str| -> Option<Vec<i64>> {
        tensor.get(key)?.as_array()?.iter().map(Json::as_i64).collect()
    };
    Some(HostArg::Tensor(TensorSpec {
        shape: signed("shape")?,
        stride: signed("stride")?,
        dtype: DType::from_name(tensor.get("dtype")?.as_str()?)?,
        // Passes are written for a GPU: that is where their arguments appear to be.
        device: Device::from_name("cuda:0")?,
    }))
}

fn constant(argument: &Json, depth: usize) -> Option<Const> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(items) = argument.get("items") {
        let items = items.as_array()?.iter().map(|item| constant(item, depth + 1));
        return Some(Const::Tuple(items.collect::<Option<_>>()?));
    }
    Some(match argument.get("value")? {
        Json::Null => Const::None,
        Json::Bool(value) => Const::Bool(*value),
        Json::String(text) => Const::Str(text.clone()),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Const::Int(value),
            None => Const::Float(number.as_f64()?),
        },
        _ => return None,
    })
}
