//! The statements of a kernel, one after the other.

use super::expression::{Binding, binding, fill, strip};
use super::names::Names;
use super::shape::Shape;
use crate::analysis::body::{Body, Code, Fold, GREATEST_INTEGER, Kind, Target, VarId};
use crate::analysis::index::AxisId;
use crate::analysis::space::Space;
use crate::analysis::{Piece, Refusal};
use passnet_graph::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Names of the sizes of a kernel's loops.
pub(super) struct Loops {
    pub(super) slabs: Option<String>,
    pub(super) rows: String,
    pub(super) columns: String,
}

pub(super) struct Writer<'a> {
    pub(super) piece: &'a Piece,
    pub(super) body: &'a Body,
    pub(super) shape: Shape,
    pub(super) lanes: BTreeSet<AxisId>,
    pub(super) names: Names,
    pub(super) lines: Vec<String>,
    pub(super) indent: usize,
    pub(super) axis_text: BTreeMap<AxisId, String>,
    /// The loops that one running number stands for, outermost first, and that number's name.
    pub(super) running: Vec<(&'static str, Vec<AxisId>)>,
    /// Of them those that are the same for all rows of a program.
    pub(super) slab_axes: BTreeSet<AxisId>,
    /// How each value that is defined is written.
    pub(super) known: BTreeMap<VarId, String>,
    pub(super) uses: Vec<usize>,
    pub(super) temporaries: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(piece: &'a Piece, body: &'a Body, space: &Space, shape: Shape) -> Writer<'a> {
        let lanes: BTreeSet<AxisId> = match shape {
            Shape::Rows | Shape::LongRows => space.reduced.iter().copied().collect(),
            _ => space.kept.last().copied().into_iter().collect(),
        };
        Writer {
            piece,
            body,
            shape,
            lanes,
            names: Names::default(),
            lines: Vec::new(),
            indent: 1,
            axis_text: BTreeMap::new(),
            running: Vec::new(),
            slab_axes: BTreeSet::new(),
            known: BTreeMap::new(),
            uses: count_uses(body),
            temporaries: 0,
        }
    }
}

impl Writer<'_> {
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("{}{}", "    ".repeat(self.indent), text.as_ref()));
    }

    /// The mask for something that varies with these loops.
    fn mask(&self, axes: &BTreeSet<AxisId>) -> Option<&'static str> {
        let lanes = axes.iter().any(|axis| self.lanes.contains(axis));
        let is_row = |axis: &AxisId| !self.lanes.contains(axis) && !self.slab_axes.contains(axis);
        let rows = axes.iter().any(is_row);
        match (self.shape, rows, lanes) {
            (_, false, false) => None,
            (Shape::Flat, ..) | (_, true, true) => Some("inside"),
            (_, true, false) => Some("row_inside"),
            (_, false, true) => Some("column_inside"),
        }
    }

    /// The text of a value, written out first where it has a name of its own.
    pub(super) fn value(&mut self, var: VarId) -> Result<String, Refusal> {
        if let Some(text) = self.known.get(&var) {
            return Ok(text.clone());
        }
        let text = self.expression(var)?;
        let body = self.body;
        let known = &body.vars[var];
        let simple = matches!(&known.code, Code::Number { .. } | Code::Extent(_))
            || matches!(&known.code, Code::Text { operands, .. } if operands.is_empty());
        let name = match &known.name {
            _ if simple => None,
            Some(name) => Some(name.clone()),
            None if self.uses[var] > 1 || matches!(known.code, Code::Reduce { .. }) => {
                self.temporaries += 1;
                Some(match &known.code {
                    Code::Reduce { fold: Fold::Sum, .. } => format!("total_{}", self.temporaries),
                    Code::Reduce { .. } => format!("extreme_{}", self.temporaries),
                    _ => format!("part_{}", self.temporaries),
                })
            }
            None => None,
        };
        let text = match name {
            Some(name) if matches!(known.code, Code::Window { .. }) => name,
            Some(name) => {
                self.line(format!("{name} = {}", strip(&text)));
                name
            }
            None => text,
        };
        self.known.insert(var, text.clone());
        Ok(text)
    }

    fn expression(&mut self, var: VarId) -> Result<String, Refusal> {
        let body = self.body;
        let known = &body.vars[var];
        match &known.code {
            Code::Load { param, address, guards } => {
                let name = self.piece.name(NodeId::new(*param)).to_string();
                let place = self.index(address)?;
                let mut mask: Vec<String> =
                    self.mask(&known.axes).map(str::to_string).into_iter().collect();
                if !guards.is_empty() {
                    mask.push(self.guards(guards)?);
                }
                let zero = if known.kind == Kind::Float { "0.0" } else { "0" };
                let masked = match mask.is_empty() {
                    true => String::new(),
                    false => format!(", mask={}, other={zero}", mask.join(" & ")),
                };
                let to = if known.kind == Kind::Float { ".to(tl.float32)" } else { "" };
                let place = if place == "0" { String::new() } else { format!(" + {place}") };
                Ok(format!("tl.load({name}_ptr{place}{masked}){to}"))
            }
            Code::Number { param } => Ok(self.piece.name(NodeId::new(*param)).to_string()),
            Code::Extent(size) => self.names.text(size, "extent"),
            Code::Place(index) => {
                let text = self.index(index)?;
                Ok(if text.contains(' ') { format!("({text})") } else { text })
            }
            Code::Inside(guards) => {
                let text = self.guards(guards)?;
                Ok(if guards.len() > 1 || text.contains(" & ") {
                    format!("({text})")
                } else {
                    text
                })
            }
            Code::Text { template, operands } => {
                let mut texts = Vec::with_capacity(operands.len());
                for operand in operands {
                    texts.push(self.value(*operand)?);
                }
                Ok(fill(template, &texts))
            }
            Code::Round { value, node } => {
                let text = self.value(*value)?;
                let Some(to) = self.type_of(*node) else { return Ok(text) };
                let text = match binding(&text) {
                    Binding::Atom => text,
                    _ => format!("({text})"),
                };
                Ok(format!("{text}.to({to}).to(tl.float32)"))
            }
            Code::Scan { value } => {
                let text = self.value(*value)?;
                Ok(format!("tl.cumsum({}, axis=1)", strip(&text)))
            }
            Code::Reduce { fold, value } => {
                let text = self.value(*value)?;
                let masked = self.masked(*fold, *value, &text);
                Ok(format!("{}({masked}, axis=1, keep_dims=True)", fold_name(*fold)))
            }
            Code::Window { fold, loops, body: inside, value } => {
                let name = known.name.clone().unwrap_or_else(|| "window".into());
                self.windowed(&name, *fold, loops, inside, *value)?;
                Ok(name)
            }
        }
    }

    /// The type that a node has in memory: that of something the kernel has a pointer to.
    fn type_of(&self, node: NodeId) -> Option<String> {
        let wanted = self.piece.dtypes(node);
        let is_type = |id: NodeId| self.piece.is_tensor(id) && self.piece.dtypes(id) == wanted;
        let outputs = self.body.stores.iter().find_map(|store| match store.target {
            Target::Output(output) if is_type(self.piece.outputs[output]) => {
                Some(output_name(&self.body.stores, output))
            }
            _ => None,
        });
        let name = outputs.or_else(|| {
            let (params, _) = arguments(self.body);
            let param = params.into_iter().map(NodeId::new).find(|id| is_type(*id))?;
            Some(self.piece.name(param).to_string())
        })?;
        Some(format!("{name}_ptr.dtype.element_ty"))
    }

    /// A value with the lanes beyond the row's end out of the way.
    pub(super) fn masked(&self, fold: Fold, value: VarId, text: &str) -> String {
        // A masked load has zeros there already.
        let loaded = matches!(&self.body.vars[value].code, Code::Load { .. });
        if fold == Fold::Sum && loaded {
            return text.to_string();
        }
        format!(
            "tl.where(column_inside, {}, {})",
            strip(text),
            neutral(fold, self.body.vars[value].kind)
        )
    }

    fn windowed(
        &mut self,
        name: &str,
        fold: Fold,
        loops: &[(usize, i64)],
        inside: &[VarId],
        value: VarId,
    ) -> Result<(), Refusal> {
        let body = self.body;
        let members: BTreeSet<VarId> = inside.iter().copied().collect();
        for var in inside {
            for operand in body.operands(*var) {
                if !members.contains(&operand) {
                    self.value(operand)?;
                }
            }
        }
        let block = match self.shape {
            Shape::Flat => "[BLOCK]",
            _ => "[ROWS, COLUMNS]",
        };
        self.line(format!(
            "{name} = tl.full({block}, {}, dtype=tl.float32)",
            neutral(fold, Kind::Float)
        ));
        for (window, count) in loops {
            self.line(format!("for w{window} in tl.static_range({count}):"));
            self.indent += 1;
        }
        let text = self.value(value)?;
        match fold {
            Fold::Sum => self.line(format!("{name} += {}", strip(&text))),
            // NaN wins, as in torch.
            Fold::Max => {
                self.line(format!("candidate = {}", strip(&text)));
                self.line(format!(
                    "{name} = tl.where((candidate > {name}) | (candidate != candidate), candidate, {name})"
                ));
            }
            Fold::Min => self.line(format!("{name} = tl.minimum({name}, {})", strip(&text))),
        }
        self.indent -= loops.len();
        Ok(())
    }

    pub(super) fn store(&mut self, number: usize) -> Result<(), Refusal> {
        let body = self.body;
        let store = &body.stores[number];
        let value = self.value(store.value)?;
        let pointer = match store.target {
            Target::Output(output) => output_name(&body.stores, output),
            Target::Param(param) => self.piece.name(NodeId::new(param)).to_string(),
        };
        let mut axes = BTreeSet::new();
        store.address.for_each_axis(&mut |axis| {
            axes.insert(axis);
        });
        let place = self.index(&store.address)?;
        let place = if place == "0" { String::new() } else { format!(" + {place}") };
        // A single element lies where the only row, or the only place, is.
        let (place, mask) = match (self.mask(&axes), self.shape) {
            (Some(mask), _) => (place, mask),
            (None, Shape::Flat) => (format!("{place} + place"), "inside"),
            (None, _) => (format!("{place} + row"), "row_inside"),
        };
        self.line(format!("tl.store({pointer}_ptr{place}, {}, mask={mask})", strip(&value)));
        Ok(())
    }

    pub(super) fn signature(
        &self,
        params: &[usize],
        outputs: &[usize],
        sizes: &[String],
    ) -> Vec<String> {
        let mut arguments: Vec<String> = params
            .iter()
            .map(|param| {
                let id = NodeId::new(*param);
                let suffix = if self.piece.is_tensor(id) { "_ptr" } else { "" };
                format!("{}{suffix}", self.piece.name(id))
            })
            .collect();
        arguments
            .extend(outputs.iter().map(|o| format!("{}_ptr", output_name(&self.body.stores, *o))));
        arguments.extend_from_slice(sizes);
        arguments
    }
}

/// Which parameters and outputs a kernel touches.
pub(super) fn arguments(body: &Body) -> (Vec<usize>, Vec<usize>) {
    let mut params = BTreeSet::new();
    let mut outputs = BTreeSet::new();
    for var in &body.vars {
        match &var.code {
            Code::Load { param, .. } | Code::Number { param } => {
                params.insert(*param);
            }
            _ => {}
        }
    }
    for store in &body.stores {
        match store.target {
            Target::Output(output) => outputs.insert(output),
            Target::Param(param) => params.insert(param),
        };
    }
    (params.into_iter().collect(), outputs.into_iter().collect())
}

fn count_uses(body: &Body) -> Vec<usize> {
    let mut uses = vec![0; body.vars.len()];
    let mut needed: BTreeSet<VarId> = BTreeSet::new();
    let mut todo: Vec<VarId> = body.stores.iter().map(|store| store.value).collect();
    todo.iter().for_each(|var| uses[*var] += 1);
    while let Some(var) = todo.pop() {
        if !needed.insert(var) {
            continue;
        }
        let mut operands = body.operands(var);
        if let Code::Window { body: inside, .. } = &body.vars[var].code {
            // Values inside a window are written there, one line each.
            operands.extend(inside);
        }
        for operand in operands {
            uses[operand] += 1;
            todo.push(operand);
        }
        if let Code::Text { template, operands } = &body.vars[var].code {
            for (number, operand) in operands.iter().enumerate() {
                let times = template.matches(&format!("{{{number}}}")).count();
                uses[*operand] += times.saturating_sub(1);
            }
        }
    }
    uses
}

/// The name of an output's pointer: numbered where there are several.
pub(super) fn output_name(stores: &[crate::analysis::body::Store], output: usize) -> String {
    let count = stores.iter().filter(|s| matches!(s.target, Target::Output(_))).count();
    if count > 1 { format!("out_{output}") } else { "out".into() }
}

pub(super) fn fold_name(fold: Fold) -> &'static str {
    match fold {
        Fold::Sum => "tl.sum",
        Fold::Max => "tl.max",
        Fold::Min => "tl.min",
    }
}

/// What changes no fold. Whole numbers stay whole: as floats they would be rounded.
pub(super) fn neutral(fold: Fold, kind: Kind) -> &'static str {
    match (fold, kind) {
        (Fold::Sum, Kind::Float) => "0.0",
        (Fold::Max, Kind::Float) => "float(\"-inf\")",
        (Fold::Min, Kind::Float) => "float(\"inf\")",
        (Fold::Sum, _) => "0",
        (Fold::Max, _) => LEAST_INTEGER,
        (Fold::Min, _) => GREATEST_INTEGER,
    }
}

/// A bound that can be written as a literal of 64 bits with its sign.
const LEAST_INTEGER: &str = "-9223372036854775807";
