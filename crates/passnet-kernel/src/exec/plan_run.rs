//! A launch plan made ready to run, and run.

use super::elements::element_bytes;
use super::fault::Fault;
use super::launch::PreparedLaunch;
use super::lower::Bound;
use super::memory::{LentBuffer, Memory};
use super::options::RunOptions;
use super::order::ProgramOrder;
use super::transfer::{copy, fill_view};
use crate::analysis::Written;
use crate::consts::Const;
use crate::frontend;
use crate::ir::Function;
use crate::ir::verify::verify;
use crate::modules::ModuleSet;
use crate::plan::{ArgValue, Init, Launch, LaunchPlan, Step};
use crate::types::{Elem, Type};
use passnet_graph::Diagnostic;
use std::fmt;
use std::ops::Range;

/// A run stopped.
#[derive(Debug, Clone)]
pub struct RunError {
    /// The kernel that was running.
    pub kernel: String,
    /// The file it stands in.
    pub file: String,
    /// What it did.
    pub fault: Fault,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.fault.program;
        write!(
            f,
            "{}:{}: kernel `{}`, program ({x}, {y}, {z}): {}",
            self.file, self.fault.loc.line, self.kernel, self.fault.kind
        )
    }
}

impl std::error::Error for RunError {}

/// A plan lowered for this machine. Its buffers are those of the plan, in order.
#[derive(Debug)]
pub struct PreparedPlan {
    pub(super) plan: LaunchPlan,
    pub(super) steps: Vec<PreparedStep>,
}

#[derive(Debug)]
pub(super) struct PreparedStep {
    pub(super) launch: Option<(Box<PreparedLaunch>, Function)>,
}

impl PreparedPlan {
    /// Compiles and lowers every kernel of the plan.
    pub fn new(modules: &ModuleSet, plan: LaunchPlan) -> Result<PreparedPlan, Diagnostic> {
        let mut steps = Vec::new();
        for step in &plan.steps {
            steps.push(match step {
                Step::Launch(launch) => {
                    let function = frontend::compile(
                        modules,
                        launch.module,
                        &launch.kernel,
                        &launch.arg_specs(),
                    )?;
                    let prepared = prepare(launch, &function)?;
                    PreparedStep { launch: Some((Box::new(prepared), function)) }
                }
                _ => PreparedStep { launch: None },
            });
        }
        Ok(PreparedPlan { plan, steps })
    }

    /// Lowers a plan whose kernels are tile IR already, one for each launch in order. Both may come from outside:
    /// the kernels are verified, and so is every field of the plan.
    pub fn from_functions(
        plan: LaunchPlan,
        functions: Vec<Function>,
    ) -> Result<PreparedPlan, Diagnostic> {
        plan.validate().map_err(|error| Diagnostic::file("plan", error.to_string()))?;
        let mut functions = functions.into_iter();
        let mut steps = Vec::new();
        for step in &plan.steps {
            let Step::Launch(launch) = step else {
                steps.push(PreparedStep { launch: None });
                continue;
            };
            let Some(function) = functions.next() else {
                return Err(Diagnostic::file(
                    &launch.file,
                    "the plan has more launches than kernels",
                ));
            };
            let broken = |message: String| {
                Diagnostic::file(&launch.file, format!("kernel `{}`: {message}", launch.kernel))
            };
            verify(&function).map_err(broken)?;
            for param in &function.params {
                let arg = launch.args.iter().find(|a| a.name == param.name);
                let ty = function.ty(param.value);
                if !arg.is_some_and(|arg| suits(&arg.value, ty)) {
                    return Err(broken(format!("`{}` is no argument of type {ty}", param.name)));
                }
            }
            let prepared = prepare(launch, &function)?;
            steps.push(PreparedStep { launch: Some((Box::new(prepared), function)) });
        }
        match functions.next() {
            Some(function) => Err(Diagnostic::file(
                function.files.first().cloned().unwrap_or_default(),
                format!("no launch of the plan is left for the kernel `{}`", function.name),
            )),
            None => Ok(PreparedPlan { plan, steps }),
        }
    }

    /// The plan as it was prepared.
    pub fn plan(&self) -> &LaunchPlan {
        &self.plan
    }

    /// The kernels of the launches, in order, as tile IR.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.steps.iter().filter_map(|s| s.launch.as_ref().map(|l| &l.1))
    }

    /// Each launch with its kernel.
    pub fn launches(&self) -> impl Iterator<Item = (&Launch, &Function)> {
        self.plan.steps.iter().zip(&self.steps).filter_map(|(step, prepared)| {
            match (step, &prepared.launch) {
                (Step::Launch(launch), Some((_, function))) => Some((launch, function)),
                _ => None,
            }
        })
    }

    /// Whether each launch runs its programs on several threads.
    pub fn parallel(&self) -> Vec<bool> {
        self.steps.iter().filter_map(|s| s.launch.as_ref().map(|l| l.0.is_parallel())).collect()
    }

    /// How many groups of elementwise work ran as machine code so far, in all runs of this plan.
    pub fn machine_code_runs(&self) -> u64 {
        let launches = self.steps.iter().filter_map(|s| s.launch.as_ref());
        launches.filter_map(|(launch, _)| launch.machine_code_runs()).sum()
    }

    /// The machine code of each launch that has any.
    #[cfg(all(test, target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(crate) fn machine_code(&self) -> impl Iterator<Item = &[u8]> {
        let launches = self.steps.iter().filter_map(|s| s.launch.as_ref());
        launches.filter_map(|(launch, _)| launch.machine_code())
    }

    /// Whether some of its groups may run as machine code.
    pub fn has_machine_code(&self) -> bool {
        let mut launches = self.steps.iter().filter_map(|s| s.launch.as_ref());
        launches.any(|(launch, _)| launch.machine_code_runs().is_some())
    }

    /// Fills the buffers that the plan itself initialises. Inputs and uninitialised buffers are left alone.
    pub fn initialize(&self, buffers: &mut [&mut [u8]]) {
        for (index, buffer) in buffers.iter_mut().enumerate() {
            self.initialize_one(index, buffer);
        }
    }

    /// Fills one buffer, if the plan itself initialises it.
    pub fn initialize_one(&self, index: usize, buffer: &mut [u8]) {
        let Some(spec) = self.plan.buffers.get(index) else { return };
        match &spec.init {
            Init::Input(_) | Init::Uninitialized => {}
            Init::Fill(value) => {
                let bytes = element_bytes(value, spec.dtype);
                for slot in buffer.chunks_exact_mut(spec.dtype.size()) {
                    slot.copy_from_slice(&bytes);
                }
            }
            Init::Values(values) => {
                for (slot, value) in buffer.chunks_exact_mut(spec.dtype.size()).zip(values) {
                    slot.copy_from_slice(&element_bytes(value, spec.dtype));
                }
            }
        }
    }

    /// For each buffer of the plan, whether its steps write into it.
    pub fn written(&self) -> Vec<Written> {
        let mut written = vec![Written::Never; self.plan.buffers.len()];
        let mut note = |buffer: usize, how: Written| {
            if let Some(known) = written.get_mut(buffer) {
                *known = (*known).max(how);
            }
        };
        for (launch, function) in self.launches() {
            for (buffer, how) in crate::analysis::stores(launch, function) {
                note(buffer, how);
            }
        }
        for step in &self.plan.steps {
            match step {
                Step::Launch(_) => {}
                Step::Copy { to, .. } => note(to.buffer, Written::Certainly),
                Step::Fill { view, .. } => note(view.buffer, Written::Certainly),
            }
        }
        written
    }

    /// The buffers that begin with whatever lay in their memory and that a step may read: what the plan gives may
    /// depend on that.
    pub fn reads_uninitialized(&self) -> Vec<usize> {
        let mut read = vec![false; self.plan.buffers.len()];
        let mut note = |buffer: usize| {
            if let Some(known) = read.get_mut(buffer) {
                *known = true;
            }
        };
        for (launch, function) in self.launches() {
            crate::analysis::loads(launch, function).into_iter().for_each(&mut note);
        }
        for step in &self.plan.steps {
            if let Step::Copy { from, .. } = step {
                note(from.buffer);
            }
        }
        let buffers = self.plan.buffers.iter().zip(read).enumerate();
        buffers
            .filter(|(_, (buffer, read))| *read && matches!(buffer.init, Init::Uninitialized))
            .map(|(index, _)| index)
            .collect()
    }

    /// Runs all steps on the plan's buffers, which [`initialize`](Self::initialize) has prepared.
    pub fn run(&self, buffers: Vec<&mut [u8]>, options: RunOptions) -> Result<(), RunError> {
        self.run_on(&Memory::new(buffers), 0..self.steps.len(), options)
    }

    /// Like [`run`](Self::run), on buffers named by address.
    ///
    /// # Safety
    /// The buffers must be valid until the call returns. Nobody else may write them meanwhile, nor read those that
    /// [`written`](Self::written) says the plan may write; such a buffer overlaps no other one.
    pub unsafe fn run_lent(
        &self,
        buffers: &[LentBuffer],
        options: RunOptions,
    ) -> Result<(), RunError> {
        // SAFETY: the caller's promise.
        unsafe { self.run_steps_lent(buffers, 0..self.steps.len(), options) }
    }

    /// Like [`run_lent`](Self::run_lent), for some of the steps; those beyond the end do not exist and are skipped.
    ///
    /// # Safety
    /// As for [`run_lent`](Self::run_lent).
    pub unsafe fn run_steps_lent(
        &self,
        buffers: &[LentBuffer],
        steps: Range<usize>,
        options: RunOptions,
    ) -> Result<(), RunError> {
        // SAFETY: the caller's promise.
        self.run_on(&unsafe { Memory::lent(buffers) }, steps, options)
    }

    pub(crate) fn run_on(
        &self,
        memory: &Memory<'_>,
        steps: Range<usize>,
        options: RunOptions,
    ) -> Result<(), RunError> {
        let order = options.order.map_or_else(ProgramOrder::drawn, ProgramOrder::of);
        let both = self.plan.steps.iter().zip(&self.steps);
        for (step, prepared) in both.take(steps.end).skip(steps.start) {
            match (step, &prepared.launch) {
                (Step::Launch(launch), Some((kernel, function))) => {
                    kernel
                        .run(memory, options, order)
                        .map_err(|fault| run_error(launch, function, *fault))?;
                }
                (Step::Copy { from, to, .. }, _) => copy(memory, from, to),
                (Step::Fill { view, value, .. }, _) => fill_view(memory, view, value),
                (Step::Launch(_), None) => {}
            }
        }
        Ok(())
    }
}

/// Whether an argument is what a parameter takes.
fn suits(value: &ArgValue, ty: &Type) -> bool {
    if !ty.is_scalar() {
        return false;
    }
    let int = |value: i64| {
        let (low, high) = ty.elem().int_range();
        ty.num().is_some_and(Elem::is_int) && (low..=high).contains(&i128::from(value))
    };
    match value {
        ArgValue::Buffer(view) => ty.is_ptr() && Elem::from_dtype(view.dtype) == Some(ty.elem()),
        ArgValue::Int { value, .. } => int(*value),
        ArgValue::Float(_) => ty.num().is_some_and(Elem::is_float),
        ArgValue::Const(_) => false,
    }
}

pub(super) fn run_error(launch: &Launch, function: &Function, fault: Fault) -> RunError {
    RunError { kernel: launch.kernel.clone(), file: function.file(fault.loc).to_string(), fault }
}

fn prepare(launch: &Launch, function: &Function) -> Result<PreparedLaunch, Diagnostic> {
    let mut bounds = Vec::new();
    for param in &function.params {
        let Some(arg) = launch.args.iter().find(|a| a.name == param.name) else {
            return Err(Diagnostic::file(
                &launch.file,
                format!("no argument for `{}`", param.name),
            ));
        };
        bounds.push(match &arg.value {
            ArgValue::Buffer(view) => {
                let size = view.dtype.size() as i64;
                Bound::Pointer {
                    address: Memory::address(view.buffer, view.offset.saturating_mul(size)),
                    buffer: view.buffer,
                }
            }
            ArgValue::Int { value, .. } => Bound::Int(*value),
            ArgValue::Float(v) => Bound::Float(*v),
            ArgValue::Const(c) => match c {
                Const::Float(v) => Bound::Float(*v),
                other => Bound::Int(other.as_int().unwrap_or(0)),
            },
        });
    }
    let order = crate::analysis::independent_order(launch, function);
    PreparedLaunch::new(function, &bounds, launch.grid, order).map_err(|e| {
        let mut d = Diagnostic::file(
            function.file(e.loc),
            format!("kernel `{}`: {}", launch.kernel, e.message),
        );
        d.line = e.loc.line as usize;
        d.column = usize::from(d.line > 0);
        d
    })
}
