//! Rows that are long and too few to give every multiprocessor one: each is cut into chunks.
//!
//! A launch folds every chunk by itself and leaves what it found in memory; the next one folds what the chunks of a row
//! gave, and goes on from there, again chunk by chunk where something is stored along the row. What a row gives is added up
//! in the same order in every call. A variance needs no launch of its own: every chunk has its mean and the squares around it.

use super::kernel::KernelText;
use super::long_rows::{Folded, Gathered, Parts, Walk, rounds};
use super::loops::lanes;
use super::names::Names;
use super::shape::Shape;
use super::statement::{Name, Term, program, word};
use super::wrapper::{HostSide, Wrapper, launch_lines, launch_options, made_contiguous};
use super::writer::{Loops, Writer, arguments, neutral};
use super::{Choice, PassText, name_of, pattern};
use crate::analysis::body::{Body, Code, Fold, Kind, VarId};
use crate::analysis::space::Space;
use crate::analysis::{Piece, Refusal, Size, refuse};
use crate::expression::Expr;
use passnet_graph::NodeId;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const KIND: &str = "long rows cut into chunks that several programs fold side by side";

/// What the wrapper and the kernels call their own values.
const OWN_NAMES: [&str; 4] = ["chunk", "chunks", "partial", "each"];
/// Launches that fold; with more of them nothing is gained.
const MOST_FOLDING: usize = 2;

/// What is folded in each launch, in order; every one needs what those before it found.
#[derive(Debug)]
pub(super) struct Stages(Vec<Vec<Partial>>);

/// What a chunk leaves in memory of a fold: a number, or two from `slot` on.
#[derive(Debug, Clone, Copy)]
struct Partial {
    folded: Folded,
    slot: usize,
}

impl Stages {
    /// The stages of a kernel, if its rows can be cut.
    pub(super) fn of(piece: &Piece, body: &Body) -> Option<Stages> {
        let is_taken = |node: NodeId| OWN_NAMES.contains(&name_of(piece, node));
        let scans = body.vars.iter().any(|var| matches!(var.code, Code::Scan { .. }));
        if scans || piece.graph.ids().any(is_taken) {
            return None;
        }
        let mut slot = 0;
        let mut partial = |folded: Folded| {
            slot += folded.results().count();
            Partial { folded, slot: slot - folded.results().count() }
        };
        let stages = rounds(body, true).into_iter();
        let stages: Vec<Vec<Partial>> =
            stages.map(|stage| stage.into_iter().map(&mut partial).collect()).collect();
        let is_float = |own: &Partial| body.vars[own.folded.leader()].kind == Kind::Float;
        let is_cut = (1..=MOST_FOLDING).contains(&stages.len())
            && stages.iter().all(|stage| !stage.is_empty() && stage.iter().all(is_float));
        is_cut.then_some(Stages(stages))
    }

    /// How many launches fold.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Numbers that a chunk leaves.
    fn slots(&self) -> usize {
        self.0.iter().flatten().map(|own| own.folded.results().count()).sum()
    }
}

/// What a pass is written from.
pub(super) struct Source<'s> {
    pub(super) piece: &'s Piece,
    pub(super) body: &'s Body,
    pub(super) space: &'s Space,
}

/// The pass.
pub(super) fn write(source: &Source<'_>, stem: &str, choice: Choice) -> Result<PassText, Refusal> {
    let Source { piece, body, space } = *source;
    let Some(stages) = Stages::of(piece, body) else { refuse!("rows that cannot be cut") };
    let last = stages.count();
    let mut kernels: Vec<KernelText> = Vec::new();
    let mut names = Names::default();
    for stage in 0..=last {
        let mut writer = Writer::new(piece, body, space, (Shape::LongRows, true));
        // One name for a size in all kernels: the wrapper computes it once.
        writer.names = names;
        let Loops { rows, columns, .. } = writer.loops(space)?;
        writer.loop_names.insert("lane".into());
        writer.stage(Walk { space, columns: &columns, is_chunk: true }, &stages, stage)?;
        kernels.push(writer.kernel((&rows, &columns)));
        names = writer.names;
    }
    let wrapper = wrapper(source, &stages, &mut kernels, names.given, (stem, choice))?;
    let pattern = pattern::write(piece);
    let texts: Vec<String> = kernels
        .iter()
        .enumerate()
        .map(|(stage, kernel)| {
            let name = format!("{}_kernel", name_of_stage(stem, stage, last));
            kernel.alone(&name, choice.for_gpu)
        })
        .collect();
    Ok(PassText {
        stem: stem.to_string(),
        summary: format!(
            "{}\n\n{} launches: {KIND}. Arithmetic in float32, rounded where eager stores.",
            pattern::summary(piece),
            kernels.len(),
        ),
        imports: pattern.imports,
        pattern: pattern.text,
        parameters: wrapper.parameters,
        arguments: wrapper.arguments,
        kernel: texts.join("\n\n"),
        calls_library: kernels.iter().any(KernelText::calls_library),
        wrapper: wrapper.text,
    })
}

/// What the kernel of a stage is called, without its ending: the last one as the kernel of any other pass.
fn name_of_stage(stem: &str, stage: usize, last: usize) -> String {
    match stage {
        _ if stage == last => stem.to_string(),
        0 => format!("{stem}_fold"),
        _ => format!("{stem}_fold_{}", stage + 1),
    }
}

fn wrapper(
    source: &Source<'_>,
    stages: &Stages,
    kernels: &mut [KernelText],
    sizes: Vec<(String, Size)>,
    (stem, choice): (&str, Choice),
) -> Result<Wrapper, Refusal> {
    let used: BTreeSet<String> = kernels.iter().flat_map(KernelText::arguments).collect();
    let Some((last, earlier)) = kernels.split_last_mut() else { refuse!("nothing is launched") };
    let (rows, columns) = (last.rows.clone(), last.columns.clone());
    let is_used = |name: &String| used.contains(name) || *name == rows || *name == columns;
    // What the host does for one kernel it does here for all of them.
    last.formulas = sizes.into_iter().filter(|(name, _)| is_used(name)).collect();
    let host = HostSide::new(source.piece, last, Shape::LongRows, choice)?;
    let mut lines = made_contiguous(&host.contiguous);
    lines.extend(host.preparation());
    lines.extend(cut(source, stages, (&rows, &columns), choice)?);
    let count = earlier.len();
    for (stage, kernel) in kernels.iter().enumerate() {
        let mut given = kernel.arguments();
        given.extend(kernel.constants.iter().map(|name| match *name {
            "COLUMNS" => format!("COLUMNS={}", choice.tile),
            _ => format!("{name}=triton.next_power_of_2(chunks)"),
        }));
        given.extend(launch_options(&choice.warps.to_string(), kernel.rounds));
        // The last one stores once for a row, unless something is stored along it.
        let grid = match kernel.constants.contains(&"COLUMNS") {
            true => format!("({rows}, chunks)"),
            false => format!("({rows},)"),
        };
        lines.extend(launch_lines(&name_of_stage(stem, stage, count), &grid, &given));
    }
    lines.push(format!("return {}", host.returned.join(", ")));
    Ok(Wrapper::new(source.piece, stem, &lines))
}

/// The lines that cut rows into chunks, and make room for what these leave.
fn cut(
    source: &Source<'_>,
    stages: &Stages,
    (rows, columns): (&str, &str),
    choice: Choice,
) -> Result<Vec<String>, Refusal> {
    let piece = source.piece;
    let mut tensors = (0..piece.params.len()).map(NodeId::new).filter(|id| piece.is_tensor(*id));
    let Some(device) = tensors.next().map(|id| name_of(piece, id)) else {
        refuse!("nothing that it takes says on which device it is")
    };
    let Choice { tile, programs, .. } = choice;
    let slots = match stages.slots() {
        1 => String::new(),
        several => format!(", {several}"),
    };
    Ok(vec![
        format!(
            "# There are few rows: each is cut, so that all of them make about {programs} programs."
        ),
        format!("chunks = max(1, min({programs} // {rows}, triton.cdiv({columns}, {tile})))"),
        format!("chunk = triton.cdiv({columns}, chunks * {tile}) * {tile}"),
        format!("chunks = triton.cdiv({columns}, chunk)"),
        format!(
            "partial = torch.empty(({rows}, chunks{slots}), dtype=torch.float32, device={device}.device)"
        ),
    ])
}

impl Writer<'_> {
    /// The statements of one launch.
    fn stage(&mut self, walk: Walk<'_>, stages: &Stages, stage: usize) -> Result<(), Refusal> {
        let body = self.body;
        let now = stages.0.get(stage).map_or(&[][..], Vec::as_slice);
        let (wide, narrow) = self.wide_and_narrow();
        let wanted: Vec<VarId> = match now {
            [] => body.stored(),
            now => now.iter().flat_map(|own| body.operands(own.folded.leader())).collect(),
        };
        let needed = self.folds_below(stages, stage, wanted);
        self.fold_chunks(walk, stages, &needed);
        if !now.is_empty() || !wide.is_empty() {
            self.define("chunk_start", program(1) * word("chunk"));
        }
        if now.is_empty() {
            self.store_along(walk, &wide)?;
            // What there is once for a row, its first program stores.
            let is_first = (!wide.is_empty()).then(|| program(1).equals(Expr::int(0)));
            return narrow
                .into_iter()
                .try_for_each(|store| self.store_where(store, is_first.clone()));
        }
        let folded: Vec<Folded> = now.iter().map(|own| own.folded).collect();
        let gathered = self.gather(walk, &folded)?;
        if folded.iter().any(|folded| matches!(folded, Folded::Both(_))) {
            let rest = walk.columns.clone() - word("chunk_start");
            self.define("chunk_length", Expr::call("tl.minimum", [word("chunk"), rest]));
            self.define_lane_length(word("chunk_length"));
        }
        for (own, partial) in gathered.iter().zip(now) {
            self.leave(own, *partial, stages.slots());
        }
        Ok(())
    }

    /// Folds of earlier stages that these values are made of.
    fn folds_below(&self, stages: &Stages, stage: usize, mut todo: Vec<VarId>) -> Vec<Partial> {
        let earlier = || stages.0[..stage].iter().flatten().copied();
        let numbered = earlier().enumerate();
        let of: BTreeMap<VarId, usize> =
            numbered.flat_map(|(at, own)| own.folded.results().map(move |var| (var, at))).collect();
        let mut needed: BTreeSet<usize> = BTreeSet::new();
        let mut seen: BTreeSet<VarId> = BTreeSet::new();
        while let Some(var) = todo.pop() {
            match of.get(&var) {
                Some(at) => drop(needed.insert(*at)),
                None if seen.insert(var) => todo.extend(self.body.operands(var)),
                None => {}
            }
        }
        earlier().enumerate().filter(|(at, _)| needed.contains(at)).map(|(_, own)| own).collect()
    }

    /// Folds what the chunks of a row left.
    fn fold_chunks(&mut self, walk: Walk<'_>, stages: &Stages, needed: &[Partial]) {
        if needed.is_empty() {
            return;
        }
        self.define("each", lanes("CHUNKS"));
        self.define("each_inside", word("each").below(word("chunks")));
        if needed.iter().any(|own| matches!(own.folded, Folded::Both(_))) {
            let rest = walk.columns.clone() - word("each") * word("chunk");
            let length = Expr::call("tl.minimum", [word("chunk"), rest]);
            let none = Expr::int(0);
            self.define("each_length", Expr::select(word("each_inside"), length, none));
        }
        for partial in needed {
            let load = |slot: usize, fold: Fold| {
                Expr::call("tl.load", [place(word("each"), slot, stages.slots())])
                    .with("mask", word("each_inside"))
                    .with("other", neutral(fold, Kind::Float))
            };
            self.temporaries += 1;
            match partial.folded {
                Folded::One(var) => {
                    let Code::Reduce { fold, .. } = self.body.vars[var].code else { continue };
                    let name = self.name_of_fold(var, self.temporaries);
                    self.define(&*name, self.folded(fold, load(partial.slot, fold)));
                    self.known.insert(var, word(name));
                }
                Folded::Both(moments) => {
                    let number = self.temporaries;
                    let loaded = ["mean", "squares"].map(|name| format!("each_{name}_{number}"));
                    for (at, name) in loaded.iter().enumerate() {
                        self.define(&**name, load(partial.slot + at, Fold::Sum));
                    }
                    let [mean, squares] = loaded.map(word);
                    let lengths = word("each_length");
                    let prefix = format!("each_{number}");
                    let parts = Parts { mean, squares, lengths, prefix };
                    self.know_moments(parts, moments, walk.columns.clone());
                }
            }
        }
    }

    /// Leaves what a chunk gave in memory.
    fn leave(&mut self, own: &Gathered, partial: Partial, slots: usize) {
        let store = |writer: &mut Self, slot: usize, value: Term| {
            let place = place(program(1), slot, slots);
            writer.perform(Expr::call("tl.store", [place, value]));
        };
        let Folded::Both(_) = own.folded else {
            return store(self, partial.slot, self.folded(own.fold, word(own.lanes())));
        };
        let names = ["mean", "squares"].map(|name| format!("chunk_{name}_{}", own.number));
        let [mean, squares] = &names;
        self.fold_moments(self.lanes_of_moments(own), [mean, squares], word("chunk_length"));
        for (at, name) in names.iter().enumerate() {
            store(self, partial.slot + at, word(&**name));
        }
    }

    /// The kernel of the statements so far, which takes what they use.
    fn kernel(&mut self, (rows, columns): (&Term, &Term)) -> KernelText {
        let statements = self.finish();
        let used = statements.names();
        let is_used = |name: &str| used.contains(&Name::Word(name.into()));
        let (params, outputs) = arguments(self.body);
        let sizes = self.names.given.iter().map(|(name, _)| name.clone());
        let sizes: Vec<String> = sizes.chain(["chunk", "chunks"].map(String::from)).collect();
        let mut signature = self.signature(&params, &outputs, &sizes);
        let first_size = signature.len() - sizes.len();
        signature.insert(first_size, "partial_ptr".into());
        signature.retain(|name| is_used(name));
        let constants = ["COLUMNS", "CHUNKS"].into_iter().filter(|name| is_used(name));
        let constants = constants.collect();
        KernelText::of_stage(self.body, (rows, columns), (signature, sizes, constants), statements)
    }
}

/// Where a chunk leaves a number: what belongs together lies side by side, so that no program writes between another's.
fn place(chunk: Term, slot: usize, slots: usize) -> Term {
    let place = word("row") * word("chunks") + chunk;
    let place = if slots == 1 { place } else { place * Expr::int(slots as i64) };
    let place = word("partial_ptr") + place;
    if slot == 0 { place } else { place + Expr::int(slot as i64) }
}
