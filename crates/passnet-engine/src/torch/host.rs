//! The worker of an engine, started again when it falls.

use super::compat::Compat;
use super::compile::Compiler;
use super::frames::Frame;
use super::package::Package;
use super::planner::PlanMaker;
use super::worker::{Worker, WorkerOptions};
use crate::engine::{EngineError, ErrorKind, Faults};
use crate::identity::Identity;
use crate::native::Wrappers;
use crate::sandbox::{Sandbox, nvidia};
use passnet_graph::Device;
use passnet_graph::graph::Replacement;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The worker and what must be known to replace it.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) options: WorkerOptions,
    pub(super) device: Device,
    pub(super) package: Package,
    /// Where the worker computes on a GPU.
    pub(super) compiler: Option<Arc<Compiler>>,
    /// Where the compatibility tier was asked for.
    pub(super) compat: Option<Arc<Compat>>,
    /// Of the first worker: those that follow are started the same way.
    pub(super) identity: Identity,
    pub(super) state: Mutex<State>,
    pub(super) next_graph: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) worker: Option<Worker>,
    /// Graphs that the living worker knows.
    pub(super) loaded: BTreeSet<u64>,
    /// Workers started so far.
    pub(super) started: usize,
    pub(super) faults: Faults,
}

impl State {
    /// Remembers what was nobody's fault under test.
    pub(super) fn note<R>(&mut self, result: &Result<R, EngineError>) {
        if let Err(error) = result
            && error.kind == ErrorKind::Machine
        {
            self.faults.count += 1;
            self.faults.last = error.to_string();
        }
    }
}

impl Host {
    /// What the worker measures of its device.
    pub(super) fn rate(&self, question: Json, key: &str) -> Option<f64> {
        let mut state = self.living().ok()?;
        let no_plans = &mut |_: &Frame| (json!({"error": "not now"}), Vec::new());
        let reply =
            state.worker.as_mut()?.request(question, &[], self.options.call_limit, no_plans);
        let rate = reply.ok()?.message.get(key)?.as_f64()?;
        (rate.is_finite() && rate > 0.0).then_some(rate)
    }

    /// What the compatibility tier needs, or why this machine does not have it.
    pub(super) fn compatibility(&self) -> Result<Compat, EngineError> {
        let unsupported = |text: String| EngineError::graph(ErrorKind::Unsupported, text);
        let sandbox = Sandbox::strongest().map_err(|refusal| {
            unsupported(format!("the compatibility tier runs in a sandbox only: {refusal}"))
        })?;
        let WorkerOptions { python, memory_limit, threads, call_limit, .. } = &self.options;
        let devices = match self.device == Device::CPU {
            true => None,
            false => Some(nvidia().map_err(|missing| {
                unsupported(format!(
                    "the compatibility tier finds no GPU for its sandbox: {missing}"
                ))
            })?),
        };
        Compat::new(sandbox, python, devices, *memory_limit, *threads, *call_limit)
            .map_err(unsupported)
    }

    pub(super) fn plan_maker(
        &self,
        replaced: &[Replacement],
        wrappers: &Wrappers,
    ) -> Result<PlanMaker, EngineError> {
        PlanMaker::new(replaced, wrappers, self.compiler.clone(), self.compat.clone())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state with a living worker in it.
    pub(super) fn living(&self) -> Result<MutexGuard<'_, State>, EngineError> {
        let mut state = self.lock();
        if state.worker.is_none() {
            let started = Worker::start(&self.options, self.package.folder());
            state.note(&started);
            state.worker = Some(started?);
            state.loaded.clear();
            state.started += 1;
        }
        Ok(state)
    }

    /// A reply without what was asked for.
    pub(super) fn garbled(&self) -> EngineError {
        let text = "the PyTorch worker's reply makes no sense";
        let error = EngineError::graph(ErrorKind::Machine, text);
        self.lock().note::<()>(&Err(error.clone()));
        error
    }
}
