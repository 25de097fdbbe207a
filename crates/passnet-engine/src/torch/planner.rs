//! Answers the worker's questions for plans: arguments in, a launch plan and its kernels out.

use super::compat::{Compat, Failed, MACHINE, SandboxedPass};
use super::compile::{Compiler, Cubin};
use super::frames::Frame;
use crate::engine::{EngineError, ErrorKind, Tier};
use crate::native::Wrappers;
use crate::native::wrapper::Wrapper;
use passnet_graph::graph::Replacement;
use passnet_graph::{DType, Device};
use passnet_kernel::Const;
use passnet_kernel::exec::PreparedPlan;
use passnet_kernel::plan::{HostArg, Init, TensorSpec};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Deeper nesting than this in an argument is refused.
const MAX_DEPTH: usize = 8;

/// Makes the plans of one graph's replaced nodes.
#[derive(Debug)]
pub(super) struct PlanMaker {
    wrappers: Vec<Wrapper>,
    /// Compiles kernels for the worker's GPU; `None` where it computes on the CPU.
    compiler: Option<Arc<Compiler>>,
    /// Runs wrappers that cannot become plans, where that was asked for.
    compat: Option<Arc<Compat>>,
    /// Those that run so, by node.
    sandboxed: BTreeMap<usize, SandboxedPass>,
    tier: Tier,
}

impl PlanMaker {
    pub(super) fn new(
        replaced: &[Replacement],
        wrappers: &Wrappers,
        compiler: Option<Arc<Compiler>>,
        compat: Option<Arc<Compat>>,
    ) -> Result<PlanMaker, EngineError> {
        let find = |replacement: &Replacement| {
            wrappers.wrapper(replacement).ok_or_else(|| {
                let text = format!("the files of pass `{}` are not there", replacement.pass);
                EngineError::graph(ErrorKind::Plan, text)
            })
        };
        Ok(PlanMaker {
            wrappers: replaced.iter().map(find).collect::<Result<_, _>>()?,
            compiler,
            compat,
            sandboxed: BTreeMap::new(),
            tier: Tier::Plan,
        })
    }

    /// How the replaced nodes have run so far.
    pub(super) fn tier(&self) -> Tier {
        self.tier
    }

    pub(super) fn count(&self) -> usize {
        self.wrappers.len()
    }

    /// The message and the raw bytes that answer a question.
    pub(super) fn answer(&mut self, question: &Frame) -> (Json, Vec<Vec<u8>>) {
        let object = |key: &str| question.message.get(key).and_then(Json::as_object);
        let answer = match (object("plan"), object("remote")) {
            (Some(wanted), _) => self.plan(wanted).or_else(|failed| {
                // A machine that could not make the plan says nothing about whether there is one.
                let is_plans = failed.kind != MACHINE && self.compat.is_some();
                if is_plans { self.sandbox(wanted, failed) } else { Err(failed) }
            }),
            (None, Some(wanted)) => self.remote(wanted, &question.bytes),
            (None, None) => {
                Err(Failed { kind: "error", message: "the worker asks for nothing".into() })
            }
        };
        answer.unwrap_or_else(|failed| {
            (json!({ "error": failed.message, "kind": failed.kind }), Vec::new())
        })
    }

    /// A wrapper that cannot become a plan runs in the sandbox from here on.
    fn sandbox(
        &mut self,
        wanted: &Map<String, Json>,
        why: Failed,
    ) -> Result<(Json, Vec<Vec<u8>>), Failed> {
        let (Some(compat), Some(node)) = (&self.compat, node_of(wanted)) else { return Err(why) };
        let Some(wrapper) = self.wrappers.get(node) else { return Err(why) };
        self.tier = Tier::Compat;
        if let Entry::Vacant(place) = self.sandboxed.entry(node) {
            place.insert(SandboxedPass::start(compat, wrapper)?);
        }
        Ok((json!({ "remote": true }), Vec::new()))
    }

    /// One call of such a wrapper.
    fn remote(
        &mut self,
        wanted: &Map<String, Json>,
        bytes: &[u8],
    ) -> Result<(Json, Vec<Vec<u8>>), Failed> {
        let missing = || Failed {
            kind: "error",
            message: "the worker calls a pass that is not in the sandbox".into(),
        };
        let node = node_of(wanted).ok_or_else(missing)?;
        let wrapper = self.wrappers.get(node).ok_or_else(missing)?;
        let compat = self.compat.as_ref().ok_or_else(missing)?;
        let mut pass = match self.sandboxed.remove(&node) {
            Some(pass) => pass,
            None => SandboxedPass::start(compat, wrapper)?,
        };
        let arguments = wanted.get("arguments").ok_or_else(missing)?;
        // One that fails is not asked again: the next call finds a new process.
        let answer = pass.call(arguments, bytes, wrapper.replacement.outputs)?;
        self.sandboxed.insert(node, pass);
        Ok(answer)
    }

    fn plan(&self, wanted: &Map<String, Json>) -> Result<(Json, Vec<Vec<u8>>), Failed> {
        let refused = |message: String| Failed { kind: "plan", message };
        let wrapper = node_of(wanted).and_then(|node| self.wrappers.get(node));
        let arguments = wanted.get("arguments").and_then(Json::as_array);
        let (Some(wrapper), Some(arguments)) = (wrapper, arguments) else {
            return Err(refused("the worker asks for a plan that no node needs".into()));
        };
        let signature = arguments
            .iter()
            .enumerate()
            .map(|(index, argument)| {
                host_argument(argument).ok_or_else(|| {
                    refused(format!("argument {index} of the wrapper is {argument}"))
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let (prepared, _) = wrapper.plan(&signature).map_err(|error| refused(error.to_string()))?;
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
                let cubins =
                    compiler.compile_plan(&wrapper.files, plan, &alignment).map_err(|error| {
                        match error.kind {
                            ErrorKind::Machine => {
                                Failed { kind: MACHINE, message: error.to_string() }
                            }
                            _ => refused(error.to_string()),
                        }
                    })?;
                let (kernels, code) = Cubin::pack(&cubins);
                let text = json!({ "plan": plan, "kernels": kernels }).to_string();
                Ok((json!({ "plan": plan, "text": text }), vec![code]))
            }
        }
    }
}

fn node_of(wanted: &Map<String, Json>) -> Option<usize> {
    wanted.get("node").and_then(Json::as_u64).and_then(|node| usize::try_from(node).ok())
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
        aligned: is_aligned(argument),
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
