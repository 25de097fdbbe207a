//! From a pass's wrapper and the signature of its arguments to a plan that is ready to run.

use crate::native::error::{Result, TensorError, bail, err};
use crate::tuning::Tuning;
use passnet_graph::graph::Replacement;
use passnet_kernel::ModuleSet;
use passnet_kernel::exec::PreparedPlan;
use passnet_kernel::frontend::is_static_assertion;
use passnet_kernel::plan::{Choices, HostArg, Init, Launch, LaunchPlan, PlanLimits, plan_chosen};
use std::sync::Arc;
use std::time::Instant;

/// A pass's wrapper in the place of the code it replaces.
#[derive(Debug, Clone)]
pub(crate) struct Wrapper {
    pub(crate) files: Arc<ModuleSet>,
    pub(crate) replacement: Replacement,
    pub(crate) tuning: Arc<Tuning>,
}

/// A plan ready to run, and for each of its buffers whether a kernel may write into it.
pub(crate) type Planned = (PreparedPlan, Vec<bool>);

impl Wrapper {
    /// What the wrapper does with arguments of this signature, with these configurations of tuned kernels.
    pub(crate) fn plan(&self, signature: &[HostArg], choices: &Choices) -> Result<LaunchPlan> {
        let replacement = &self.replacement;
        let limits = PlanLimits::default();
        let plan = plan_chosen(&self.files, &replacement.wrapper, signature, limits, choices)
            .map_err(|error| err!(Plan, "{error}"))?;
        if replacement.gives_tuple && !plan.returns_sequence {
            bail!(
                Plan,
                "`{}` returns one tensor, but the pattern returns a tuple of them",
                replacement.wrapper
            );
        }
        if plan.returns.len() != replacement.outputs && !replacement.gives_tuple {
            bail!(
                Plan,
                "`{}` returns {} tensors, but the pattern has {} outputs",
                replacement.wrapper,
                plan.returns.len(),
                replacement.outputs
            );
        }
        Ok(plan)
    }

    /// The plan with its kernels compiled.
    pub(crate) fn prepare(&self, plan: LaunchPlan) -> Result<Planned> {
        self.prepare_unless_asserted(plan)?.map_err(|error| err!(Plan, "{error}"))
    }

    /// The plan with each configuration of a launch; a text instead where a kernel asserts that it must not be compiled
    /// so.
    pub(crate) fn candidates(
        &self,
        signature: &[HostArg],
        choices: &Choices,
        launch: &Launch,
    ) -> Result<Vec<std::result::Result<Planned, String>>> {
        self.candidates_until(signature, choices, launch, None)
    }

    /// The first of them, as many as can be compiled until then.
    pub(crate) fn candidates_until(
        &self,
        signature: &[HostArg],
        choices: &Choices,
        launch: &Launch,
        until: Option<Instant>,
    ) -> Result<Vec<std::result::Result<Planned, String>>> {
        let of_config = |(index, config)| {
            let plan = self.plan(signature, &choices.with(&launch.key, index));
            let prepared = plan.and_then(|plan| self.prepare_unless_asserted(plan));
            prepared.map_err(|error| match error {
                TensorError::Plan(text) => err!(Plan, "configuration `{config}`: {text}"),
                other => other,
            })
        };
        let in_time = |_: &_| until.is_none_or(|until| Instant::now() < until);
        launch.configs.iter().enumerate().take_while(in_time).map(of_config).collect()
    }

    /// The inner error is a static assertion.
    fn prepare_unless_asserted(
        &self,
        plan: LaunchPlan,
    ) -> Result<std::result::Result<Planned, String>> {
        let prepared = match PreparedPlan::new(&self.files, plan) {
            Ok(prepared) => prepared,
            Err(error) if is_static_assertion(&error) => return Ok(Err(error.to_string())),
            Err(error) => bail!(Plan, "{error}"),
        };
        let replacement = &self.replacement;
        let written = prepared.written();
        let specs = prepared.plan().buffers.iter().zip(&written);
        for (spec, written) in specs {
            if let Init::Input(index) = spec.init
                && written.is_certain()
                && !replacement.writes.contains(&index)
                && !replacement.dead.contains(&index)
            {
                bail!(
                    Plan,
                    "`{}` writes into its argument `{}`, which the replaced code leaves alone",
                    replacement.wrapper,
                    spec.name
                );
            }
        }
        let written = written.iter().map(|written| written.is_possible()).collect();
        Ok(Ok((prepared, written)))
    }
}
