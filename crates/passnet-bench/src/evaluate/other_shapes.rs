//! Is the candidate right at other sizes?
//!
//! Where a graph's constraints name dimensions that may change, a pass that matches the graph at another size must be
//! right there too. Where they are silent, inference finds the dimensions that could change; what goes wrong there is
//! only told, for nobody promised such inputs.

use super::EvaluateOptions;
use super::case::{Case, Sides, UnderTest};
use super::pair::Pair;
use super::verification::{Check, CheckOutcome, no_memory};
use crate::candidate::Candidate;
use crate::verdict::{Evidence, Verdict, VerdictKind};
use passnet_engine::native::{NativeEngine, Result as TensorResult};
use passnet_engine::{Engine, Value};
use passnet_graph::read::GraphFolder;
use passnet_graph::resize::{Assignment, Generalised, find_symbols, records_symbols, with_sizes};
use rayon::prelude::*;

/// How sizes are changed.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Odd where they were even: tiles and vectors no longer divide them.
    OneLarger,
    Halved,
}

impl Change {
    /// Where sizes may change.
    const PROMISED: &[Change] = &[Change::OneLarger, Change::Halved];
    /// Where nobody promised anything: advice is worth one try, the one that a grid too small cannot pass.
    const ADVICE: &[Change] = &[Change::OneLarger];

    fn name(self) -> &'static str {
        match self {
            Change::OneLarger => "sizes one larger",
            Change::Halved => "sizes halved",
        }
    }

    fn apply(self, size: i64) -> i64 {
        match self {
            Change::OneLarger => size.saturating_add(1),
            Change::Halved => (size / 2).max(1),
        }
    }
}

/// What trying other sizes showed.
#[derive(Debug, Default)]
pub(super) struct OtherShapes {
    pub(super) checks: Vec<Check>,
    /// The first wrong result that counts.
    pub(super) wrong: Option<Verdict>,
}

/// Tries other sizes.
pub(super) fn try_other_shapes(
    engine: &dyn Engine,
    folder: &GraphFolder,
    candidate: &Candidate,
    options: &EvaluateOptions,
    draw: &[Value],
) -> OtherShapes {
    let is_promised = records_symbols(&folder.constraints);
    let symbolic = GraphFolder { constraints: find_symbols(folder), ..folder.clone() };
    let generalised = Generalised::new(&symbolic);
    let mut found = OtherShapes::default();
    // Advice is worth no compiling for a GPU: the native engine runs the same kernels.
    let engine = if is_promised { engine } else { &NativeEngine };
    let changes = if is_promised { Change::PROMISED } else { Change::ADVICE };
    let answers: Vec<_> = changes
        .par_iter()
        .filter_map(|&change| {
            let (sizes, variant) = resized(&symbolic, &generalised, change)?;
            let sizes = sizes.iter().map(|(name, size)| format!("{name}={size}"));
            let sizes = sizes.collect::<Vec<_>>().join(", ");
            Some((change, sizes, answer(engine, &variant, candidate, draw, options)))
        })
        .collect();
    for (change, sizes, answer) in answers {
        let (outcome, detail) = match answer {
            Ok(()) => (CheckOutcome::Passed, sizes),
            Err(verdict) => match verdict.kind {
                // A pass may be made for some sizes only; eager may refuse some.
                VerdictKind::NoMatch | VerdictKind::ReferenceFail | VerdictKind::Unsupported => {
                    (CheckOutcome::Skipped, format!("{sizes}: {verdict}"))
                }
                VerdictKind::CompileFail => (CheckOutcome::Advice, format!("{sizes}: {verdict}")),
                _ if is_promised => {
                    let detail = format!("{sizes}: {verdict}");
                    let mut verdict = *verdict;
                    let text = format!("with {} ({sizes})", change.name());
                    verdict.evidence.insert(0, Evidence::Message { text });
                    found.wrong.get_or_insert(verdict);
                    (CheckOutcome::Failed, detail)
                }
                _ => (CheckOutcome::Advice, format!("{sizes}: {verdict}")),
            },
        };
        found.checks.push(Check { name: change.name().into(), outcome, detail });
    }
    found
}

/// The graph with all its symbols changed, or else with the first one that can change alone.
fn resized(
    folder: &GraphFolder,
    generalised: &Generalised,
    change: Change,
) -> Option<(Assignment, GraphFolder)> {
    let symbols = &folder.constraints.symbols;
    let changed = |which: &dyn Fn(usize) -> bool| -> Assignment {
        let new = |(index, (name, size)): (usize, &(String, i64))| {
            (name.clone(), if which(index) { change.apply(*size) } else { *size })
        };
        symbols.iter().enumerate().map(new).collect()
    };
    let all = std::iter::once(changed(&|_| true));
    let single = (0..symbols.len()).map(|only| changed(&|index| index == only));
    all.chain(single).filter(|sizes| sizes != symbols).find_map(|sizes| {
        let (variant, _) = with_sizes(folder, generalised, &sizes).ok()?;
        Some((sizes, variant))
    })
}

/// A draw at other sizes: the same values, as many as there are places. Indices stay legal, for they only repeat.
fn stretched_to(variant: &GraphFolder, draw: &[Value]) -> TensorResult<Vec<Value>> {
    let values = variant.graph.placeholders().iter().zip(draw).map(|(node, value)| {
        let meta = variant.metas.iter().find(|meta| *meta.name == *node.name);
        let (Value::Tensor(tensor), Some(meta)) = (value, meta) else { return Ok(value.clone()) };
        let shape: Vec<usize> = meta.shape.iter().map(|size| (*size).max(0) as usize).collect();
        match shape == tensor.shape() {
            true => Ok(value.clone()),
            false => tensor.cycled(&shape).map(Value::Tensor),
        }
    });
    values.collect()
}

/// Whether the candidate is right on one draw at these sizes; the verdict says what is wrong, or why nobody knows.
fn answer(
    engine: &dyn Engine,
    variant: &GraphFolder,
    candidate: &Candidate,
    draw: &[Value],
    options: &EvaluateOptions,
) -> Result<(), Box<Verdict>> {
    let rewritten = candidate.rewrite(&variant.graph)?;
    let draw = stretched_to(variant, draw).map_err(|error| no_memory(&error))?;
    let under_test = UnderTest::Rewritten(rewritten.graph, candidate.wrappers());
    let case = Case::new(Sides::prepare(engine, &variant.graph, under_test)?, vec![draw], options);
    let inputs = &case.draws[0];
    let eager = case.run_eager(case.inputs_for_eager(inputs)?)?;
    let found = case.run_candidate(case.inputs_for_eager(inputs)?)?;
    let pair = Pair::new(&case, &eager, &found)?;
    if pair.is_right()? || pair.is_as_accurate(&case, inputs)? {
        return Ok(());
    }
    Err(Box::new(pair.compare()?.verdict))
}
