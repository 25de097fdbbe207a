//! Is the candidate right at other sizes?
//!
//! Where a graph's constraints name dimensions that may change, a pass that matches the graph at another size must be
//! right there too, and must not refuse it. Where they are silent, inference finds the dimensions that could change; what
//! goes wrong there is only told, for nobody promised such inputs.

use super::case::{Case, Drawn, Sides};
use super::check::{Check, CheckAnswer};
use super::failure::harness_failure;
use super::findings::Findings;
use super::options::EvaluateOptions;
use super::pair::{Judged, Pair};
use super::stress::varied;
use crate::candidate::Candidate;
use crate::secret::Secret;
use crate::subject::Subject;
use crate::tolerance::Ladder;
use crate::verdict::{Evidence, Verdict, VerdictKind};
use passnet_engine::native::{NativeEngine, Result as TensorResult};
use passnet_engine::{Engine, Value};
use passnet_graph::read::GraphFolder;
use passnet_graph::resize::{Assignment, Generalised, find_symbols, records_symbols, with_sizes};
use rayon::prelude::*;

/// How sizes are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Odd where they were even: tiles and vectors no longer divide them.
    OneLarger,
    Halved,
    /// One of them one larger than a block that the kernels name: what they do with a second block is seen then.
    BeyondBlock(i64),
}

/// More elements than this are not tried beyond a block.
const MOST_ELEMENTS: i64 = 1 << 18;
/// So many sizes are tried beyond a block.
const BEYOND: usize = 2;
/// What other sizes are made there, where they can be: two are enough to tell rows apart.
const BESIDE: i64 = 2;

impl Change {
    /// Where sizes may change.
    const PROMISED: &[Change] = &[Change::OneLarger, Change::Halved];
    /// Where nobody promised anything: advice is worth one try, the one that a grid too small cannot pass.
    const ADVICE: &[Change] = &[Change::OneLarger];

    fn name(self) -> &'static str {
        match self {
            Change::OneLarger => "sizes one larger",
            Change::Halved => "sizes halved",
            Change::BeyondBlock(_) => "a size beyond a block",
        }
    }

    fn apply(self, size: i64) -> i64 {
        match self {
            Change::OneLarger => size.saturating_add(1),
            Change::Halved => (size / 2).max(1),
            Change::BeyondBlock(block) => size.max(block.saturating_add(1)),
        }
    }
}

/// What trying other sizes showed.
#[derive(Debug)]
pub(super) struct OtherShapes {
    is_promised: bool,
    answers: Vec<(Change, String, Result<Judged, Box<Verdict>>)>,
}

impl OtherShapes {
    /// A check for each size. The verdict is on the first result that is wrong at the level and counts.
    pub(super) fn conclude(self, level: i32) -> Findings {
        let mut found = Findings::default();
        for (change, sizes, answer) in self.answers {
            let failure = match answer {
                Ok(judged) if judged.ladder.is_right_at(level) => None,
                Ok(judged) => {
                    let reached = judged.ladder.first_right();
                    let reached = reached.map_or("no level".into(), |level| format!("t = {level}"));
                    let text = format!("outputs are right from {reached} on, not from t = {level}");
                    Some(Box::new(Verdict::new(VerdictKind::Accuracy).because(text)))
                }
                Err(verdict) => Some(verdict),
            };
            let (answer, detail) = match failure {
                None => (CheckAnswer::Passed, sizes),
                Some(verdict) => {
                    let detail = format!("{sizes}: {verdict}");
                    match verdict.kind {
                        // A pass may be made for some sizes only; eager may refuse some.
                        VerdictKind::NoMatch
                        | VerdictKind::ReferenceFail
                        | VerdictKind::Unsupported => (CheckAnswer::Skipped, detail),
                        _ if self.is_promised => {
                            let mut verdict = *verdict;
                            let text = format!("with {} ({sizes})", change.name());
                            verdict.evidence.insert(0, Evidence::Message { text });
                            found.verdict.get_or_insert(verdict);
                            found.ladder = Ladder::NONE;
                            (CheckAnswer::Failed, detail)
                        }
                        _ => (CheckAnswer::Advice, detail),
                    }
                }
            };
            found.checks.push(Check { name: change.name().into(), answer, detail });
        }
        found
    }
}

/// Tries other sizes, with the values of a draw of the case.
pub(super) fn try_other_shapes(
    engine: &dyn Engine,
    folder: &GraphFolder,
    candidate: &Candidate,
    options: &EvaluateOptions,
    case: &Case,
) -> OtherShapes {
    let draw = &case.draws[case.secret.dice("draw at other sizes").below(case.draws.len())];
    let is_promised = records_symbols(&folder.constraints);
    let symbolic = GraphFolder { constraints: find_symbols(folder), ..folder.clone() };
    let generalised = Generalised::new(&symbolic);
    // One size more is tried where the pass will run. Compiling for a GPU takes longer than all other checks, and the native
    // engine runs the same kernels.
    let engine = |change: Change| match is_promised && change == Change::OneLarger {
        true => engine,
        false => &NativeEngine,
    };
    let changes = if is_promised { Change::PROMISED } else { Change::ADVICE };
    let mut tries: Vec<_> = changes
        .iter()
        .filter_map(|&change| Some((change, resized(&symbolic, &generalised, change)?)))
        .collect();
    let blocks = candidate.wrappers().block_sizes();
    tries.extend(beyond_blocks(&symbolic, &generalised, &blocks));
    let answers: Vec<_> = tries
        .into_par_iter()
        .map(|(change, (sizes, variant))| {
            let sizes = sizes.iter().map(|(name, size)| format!("{name}={size}"));
            let sizes = sizes.collect::<Vec<_>>().join(", ");
            let answer = answer(engine(change), &variant, candidate, draw, options, case);
            (change, sizes, answer)
        })
        .collect();
    OtherShapes { is_promised, answers }
}

/// For each symbol, the graph with that one beyond the largest block with which the inputs stay small; the other ones are
/// small, too, where the graph lets them.
fn beyond_blocks(
    folder: &GraphFolder,
    generalised: &Generalised,
    blocks: &[i64],
) -> Vec<(Change, (Assignment, GraphFolder))> {
    let symbols = &folder.constraints.symbols;
    let small = |variant: &GraphFolder| {
        let of_shape =
            |shape: &[i64]| shape.iter().fold(1i64, |all, size| all.saturating_mul(*size));
        let elements = variant.metas.iter().map(|meta| of_shape(&meta.shape));
        elements.fold(0i64, i64::saturating_add) <= MOST_ELEMENTS
    };
    let with_others = |only: usize, change: Change, most: i64| {
        let mut sizes: Assignment = symbols.clone();
        for (index, (_, size)) in sizes.iter_mut().enumerate() {
            *size = if index == only { change.apply(*size) } else { (*size).min(most) };
        }
        let (variant, _) = with_sizes(folder, generalised, &sizes).ok()?;
        small(&variant).then_some((change, (sizes, variant)))
    };
    let beyond = |only: usize| {
        let larger = blocks.iter().rev().filter(|block| **block >= symbols[only].1);
        larger.map(|block| Change::BeyondBlock(*block)).find_map(|change| {
            [BESIDE, i64::MAX].into_iter().find_map(|most| with_others(only, change, most))
        })
    };
    (0..symbols.len()).filter_map(beyond).take(BEYOND).collect()
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

/// A draw at other sizes: as many values as there are places. Indices repeat, so that they stay legal; other values are
/// made of those that repeat, each changed in its own way, so that no content shows that it was made.
fn stretched_to(
    variant: &GraphFolder,
    draw: &[Value],
    secret: &Secret,
) -> TensorResult<Vec<Value>> {
    let mut dice = secret.dice("values at other sizes");
    let values = variant.graph.placeholders().iter().zip(draw).map(|(node, value)| {
        let meta = variant.metas.iter().find(|meta| *meta.name == *node.name);
        let (Value::Tensor(tensor), Some(meta)) = (value, meta) else { return Ok(value.clone()) };
        let shape: Vec<usize> = meta.shape.iter().map(|size| (*size).max(0) as usize).collect();
        match shape == tensor.shape() {
            true => Ok(value.clone()),
            false => {
                let stretched = tensor.cycled(&shape)?;
                let varied = match tensor.dtype().is_float() {
                    true => varied(&stretched, dice.number())?,
                    false => stretched,
                };
                Ok(Value::Tensor(varied))
            }
        }
    });
    values.collect()
}

/// At which levels the candidate is right on one draw at these sizes; a verdict says why nobody knows.
fn answer(
    engine: &dyn Engine,
    variant: &GraphFolder,
    candidate: &Candidate,
    draw: &[Value],
    options: &EvaluateOptions,
    original: &Case,
) -> Result<Judged, Box<Verdict>> {
    let rewritten = candidate.rewrite(&variant.graph)?;
    let draw = stretched_to(variant, draw, &original.secret).map_err(harness_failure)?;
    let subject = Subject::Passes((&rewritten.graph, candidate.wrappers()));
    let drawn = Drawn { drawer: original.drawer.clone(), draws: vec![draw] };
    let sides = Sides::prepare(engine, &variant.graph, subject)?;
    let case = Case::new(sides, drawn, options, original.secret.clone());
    let inputs = &case.draws[0];
    let eager = case.run_eager(case.inputs_for_eager(inputs)?)?;
    let found = case.run_candidate(case.inputs_for_eager(inputs)?)?;
    Pair::new(&case, &eager, &found)?.judge(&case, inputs)
}
