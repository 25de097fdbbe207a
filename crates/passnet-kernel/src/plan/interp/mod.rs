//! The interpreter of host wrappers: its state, its limits, and the values it makes.

mod expression;
mod operators;
mod statement;

use super::class::{Class, Object};
use super::tensor::Tensor;
use super::value::{DictId, FrameId, Holder, ListId, Value};
use super::{BufferSpec, Choices, Step};
use crate::consts::Const;
use crate::modules::ModuleSet;
use passnet_graph::syntax::{Ranged, TextRange};
use passnet_graph::{DType, Diagnostic};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) type Result<T> = std::result::Result<T, Diagnostic>;

/// What evaluating a wrapper may cost.
#[derive(Debug, Clone, Copy)]
pub struct PlanLimits {
    /// Statements and expressions that are evaluated.
    pub steps: usize,
    /// Launches of one plan.
    pub launches: usize,
    /// Bytes of all buffers together.
    pub bytes: u64,
    /// Items of all lists and dicts together.
    pub items: usize,
    /// Calls within calls.
    pub nesting: usize,
    /// Programs of all launches together.
    pub programs: u64,
}

impl Default for PlanLimits {
    fn default() -> Self {
        PlanLimits {
            steps: 1_000_000,
            launches: 4096,
            bytes: 64 << 30,
            items: 1 << 20,
            nesting: 400,
            programs: 1 << 31,
        }
    }
}

pub(super) struct Frame<'a> {
    names: FxHashMap<String, Value<'a>>,
    /// Names that `global` takes to the top level of the file.
    globals: Vec<&'a str>,
    parent: Option<FrameId>,
    pub(super) module: usize,
}

pub(super) enum Flow<'a> {
    Next,
    Break,
    Continue,
    Return(Value<'a>),
}

pub(super) struct Interp<'a> {
    pub(super) modules: &'a ModuleSet,
    pub(super) limits: PlanLimits,
    frames: Vec<Frame<'a>>,
    pub(super) lists: Vec<Vec<Value<'a>>>,
    pub(super) dicts: Vec<Vec<(Value<'a>, Value<'a>)>>,
    pub(super) classes: Vec<Class<'a>>,
    pub(super) objects: Vec<Object<'a>>,
    /// Names at the top level of files: as they are written there, or as the wrapper has set them in this call.
    pub(super) globals: FxHashMap<(usize, String), Value<'a>>,
    /// Where a value was last put into something that holds values, for messages.
    pub(super) stores: FxHashMap<Holder, (usize, TextRange)>,
    /// Arguments that begin at an address which 16 does not divide.
    pub(super) unaligned: Vec<usize>,
    /// Which configurations tuned kernels run with.
    pub(super) choices: Choices,
    /// How many configurations the tuned kernels launched so far have, by key.
    pub(super) candidates: BTreeMap<String, usize>,
    pub(super) frame: FrameId,
    steps: usize,
    items: usize,
    nesting: usize,
    pub(super) buffers: Vec<BufferSpec>,
    pub(super) plan_steps: Vec<Step>,
    pub(super) notes: Vec<String>,
}

const ALLOWED: &str = "a wrapper may compute with sizes, strides and dtypes, make buffers with `torch.empty` and the like, and launch kernels";

const MAX_TUPLE_DEPTH: u32 = 32;
const MAX_TUPLE_NODES: usize = 1 << 16;

impl<'a> Interp<'a> {
    pub(super) fn new(modules: &'a ModuleSet, limits: PlanLimits) -> Self {
        let root =
            Frame { names: FxHashMap::default(), globals: Vec::new(), parent: None, module: 0 };
        Interp {
            modules,
            limits,
            frames: vec![root],
            lists: Vec::new(),
            dicts: Vec::new(),
            classes: Vec::new(),
            objects: Vec::new(),
            globals: FxHashMap::default(),
            stores: FxHashMap::default(),
            unaligned: Vec::new(),
            choices: Choices::default(),
            candidates: BTreeMap::new(),
            frame: FrameId(0),
            steps: 0,
            items: 0,
            nesting: 0,
            buffers: Vec::new(),
            plan_steps: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn module(&self) -> usize {
        self.frames[self.frame.0].module
    }

    pub(super) fn error(&self, at: &impl Ranged, message: impl Into<String>) -> Diagnostic {
        self.modules.source(self.module()).at(at.range(), message)
    }

    pub(super) fn outside(&self, at: &impl Ranged, message: impl Into<String>) -> Diagnostic {
        self.error(at, message).with_hint(ALLOWED)
    }

    pub(super) fn line(&self, at: &impl Ranged) -> u32 {
        self.modules.line(self.module(), at)
    }

    pub(super) fn step(&mut self, at: &impl Ranged) -> Result<()> {
        self.steps += 1;
        if self.steps > self.limits.steps {
            return Err(
                self.error(at, format!("the wrapper needs more than {} steps", self.limits.steps))
            );
        }
        if self.nesting > self.limits.nesting {
            return Err(self.error(
                at,
                format!("the wrapper nests more than {} levels deep", self.limits.nesting),
            ));
        }
        Ok(())
    }

    pub(super) fn add_buffer(&mut self, at: &impl Ranged, buffer: BufferSpec) -> Result<usize> {
        let total =
            self.buffers.iter().map(BufferSpec::bytes).fold(buffer.bytes(), u64::saturating_add);
        if total > self.limits.bytes {
            return Err(self.error(
                at,
                format!("buffers need {total} bytes, more than the limit of {}", self.limits.bytes),
            ));
        }
        if self.buffers.len() >= 4096 {
            return Err(self.error(at, "more than 4096 buffers"));
        }
        self.buffers.push(buffer);
        Ok(self.buffers.len() - 1)
    }

    pub(super) fn push_step(&mut self, at: &impl Ranged, step: Step) -> Result<()> {
        if self.plan_steps.len() >= self.limits.launches {
            return Err(self.error(at, format!("more than {} launches", self.limits.launches)));
        }
        self.plan_steps.push(step);
        Ok(())
    }

    pub(super) fn count_items(&mut self, n: usize) {
        self.items = self.items.saturating_add(n);
        if self.items > self.limits.items {
            // The next step reports it: every loop that makes items also makes steps.
            self.steps = usize::MAX - 1;
        }
    }

    pub(super) fn new_list(&mut self, items: Vec<Value<'a>>) -> Value<'a> {
        self.count_items(items.len() + 1);
        self.lists.push(items);
        Value::List(ListId(self.lists.len() - 1))
    }

    pub(super) fn new_dict(&mut self, items: Vec<(Value<'a>, Value<'a>)>) -> Value<'a> {
        self.count_items(items.len() + 1);
        self.dicts.push(items);
        Value::Dict(DictId(self.dicts.len() - 1))
    }

    pub(super) fn list_push(&mut self, list: ListId, value: Value<'a>) {
        self.count_items(1);
        self.lists[list.0].push(value);
    }

    pub(super) fn new_frame(&mut self, parent: Option<FrameId>, module: usize) -> FrameId {
        self.count_items(1);
        self.frames.push(Frame {
            names: FxHashMap::default(),
            globals: Vec::new(),
            parent,
            module,
        });
        FrameId(self.frames.len() - 1)
    }

    pub(super) fn frame_module(&self, frame: FrameId) -> usize {
        self.frames[frame.0].module
    }

    pub(super) fn frame_values(&self, frame: FrameId) -> Vec<Value<'a>> {
        self.frames[frame.0].names.values().cloned().collect()
    }

    pub(super) fn frame_parent(&self, frame: FrameId) -> Option<FrameId> {
        self.frames[frame.0].parent
    }

    /// Whether a name of the running function stands at the top level of its file.
    fn is_global(&self, name: &str) -> bool {
        self.frames[self.frame.0].globals.contains(&name)
    }

    pub(super) fn set(&mut self, name: &str, value: Value<'a>) {
        if self.is_global(name) {
            self.globals.insert((self.module(), name.to_string()), value);
            return;
        }
        let frame = &mut self.frames[self.frame.0];
        match frame.names.get_mut(name) {
            Some(slot) => *slot = value,
            None => {
                frame.names.insert(name.to_string(), value);
            }
        }
    }

    pub(super) fn constant(&mut self, c: Const) -> Value<'a> {
        match c {
            Const::Tuple(items) => {
                let items: Vec<Value<'a>> = items.into_iter().map(|c| self.constant(c)).collect();
                Value::tuple(items)
            }
            other => Value::Const(other),
        }
    }

    /// A compile-time constant for a kernel argument.
    pub(super) fn to_const(&self, value: &Value<'a>) -> Option<Const> {
        match value {
            Value::Const(c) => Some(c.clone()),
            Value::Tuple(items) => {
                items.iter().map(|v| self.to_const(v)).collect::<Option<Vec<_>>>().map(Const::Tuple)
            }
            Value::List(id) => self.lists[id.0]
                .iter()
                .map(|v| self.to_const(v))
                .collect::<Option<Vec<_>>>()
                .map(Const::Tuple),
            Value::DType(d) => crate::types::Elem::from_dtype(*d).map(Const::Elem),
            Value::Kernel(f) => Some(Const::Function(f.module, f.def.name.to_string())),
            _ => None,
        }
    }

    pub(super) fn flatten_tensors(
        &self,
        at: &impl Ranged,
        value: &Value<'a>,
        out: &mut Vec<Rc<Tensor>>,
    ) -> Result<()> {
        match value {
            Value::Tensor(t) => out.push(Rc::clone(t)),
            Value::Tuple(items) => {
                for item in items.iter() {
                    self.flatten_tensors(at, item, out)?;
                }
            }
            Value::List(id) if out.len() < 1024 => {
                for item in &self.lists[id.0] {
                    if !matches!(item, Value::Tensor(_)) {
                        return Err(
                            self.error(at, format!("the wrapper returns {}", item.describe()))
                        );
                    }
                    self.flatten_tensors(at, item, out)?;
                }
            }
            other => {
                return Err(self
                    .error(at, format!("the wrapper returns {}", other.describe()))
                    .with_hint("it must return a tensor or a tuple of tensors"));
            }
        }
        Ok(())
    }

    /// Calls a function of the pass.
    pub(super) fn enter_call(&mut self, at: TextRange) -> Result<()> {
        self.nesting += 4;
        self.step(&at)
    }

    pub(super) fn leave_call(&mut self) {
        self.nesting -= 4;
    }
}

/// A path outside the pass; dtypes and constants are recognised at once.
pub(super) fn external<'a>(path: &str) -> Value<'a> {
    if let Some(elem) =
        path.strip_prefix("triton.language.").and_then(crate::types::Elem::from_language_name)
    {
        return Value::Const(Const::Elem(elem));
    }
    if let Some(dtype) = path.strip_prefix("torch.").and_then(DType::from_name) {
        return Value::DType(dtype);
    }
    match path {
        "math.pi" => Value::Const(Const::Float(std::f64::consts::PI)),
        "math.e" => Value::Const(Const::Float(std::f64::consts::E)),
        "math.inf" | "torch.inf" => Value::Const(Const::Float(f64::INFINITY)),
        "math.nan" | "torch.nan" => Value::Const(Const::Float(f64::NAN)),
        _ => Value::Path(path.into()),
    }
}
