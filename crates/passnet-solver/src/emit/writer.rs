//! The statements of a kernel, one after the other.

use super::names::Names;
use super::shape::Shape;
use super::statement::{Block, Statement, Term, word};
use super::tiles::Side;
use crate::analysis::body::{Body, Code, Fold, GREATEST_INTEGER, Kind, Target, VarId};
use crate::analysis::index::AxisId;
use crate::analysis::space::Space;
use crate::analysis::{Piece, Refusal};
use crate::expression::{Expr, Literal, Type};
use passnet_graph::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The sizes of a kernel's loops.
pub(super) struct Loops {
    pub(super) slabs: Option<Term>,
    pub(super) rows: Term,
    pub(super) columns: Term,
}

pub(super) struct Writer<'a> {
    pub(super) piece: &'a Piece,
    pub(super) body: &'a Body,
    pub(super) shape: Shape,
    /// Whether a program has a single row, whose number is its own.
    pub(super) one_row: bool,
    pub(super) lanes: BTreeSet<AxisId>,
    /// The operand of a product that is being written.
    pub(super) side: Option<Side>,
    pub(super) names: Names,
    /// The statements so far; behind them, those of the loops that are open.
    blocks: Vec<Vec<Statement>>,
    pub(super) axis_names: BTreeMap<AxisId, String>,
    /// Names of loops that are taken out of a running number.
    pub(super) loop_names: BTreeSet<String>,
    /// The loops that one running number stands for, outermost first, and that number's name.
    pub(super) running: Vec<(&'static str, Vec<AxisId>)>,
    /// Of them those that are the same for all rows of a program.
    pub(super) slab_axes: BTreeSet<AxisId>,
    /// How each value that is defined is written.
    pub(super) known: BTreeMap<VarId, Term>,
    pub(super) uses: Vec<usize>,
    pub(super) temporaries: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        piece: &'a Piece,
        body: &'a Body,
        space: &Space,
        (shape, one_row): (Shape, bool),
    ) -> Writer<'a> {
        let lanes: BTreeSet<AxisId> = match shape {
            Shape::Rows | Shape::LongRows | Shape::Walked => {
                space.reduced.iter().copied().collect()
            }
            _ => space.kept.last().copied().into_iter().collect(),
        };
        Writer {
            piece,
            body,
            shape,
            one_row,
            lanes,
            side: None,
            names: Names::default(),
            blocks: vec![Vec::new()],
            axis_names: BTreeMap::new(),
            loop_names: BTreeSet::new(),
            running: Vec::new(),
            slab_axes: BTreeSet::new(),
            known: BTreeMap::new(),
            uses: count_uses(body),
            temporaries: 0,
        }
    }
}

impl Writer<'_> {
    fn push(&mut self, statement: Statement) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(statement);
        }
    }

    pub(super) fn define(&mut self, name: impl Into<String>, value: Term) {
        self.push(Statement::Let { name: name.into(), value });
    }

    pub(super) fn add_to(&mut self, name: impl Into<String>, value: Term) {
        self.push(Statement::Add { name: name.into(), value });
    }

    /// A call for what it does.
    pub(super) fn perform(&mut self, call: Term) {
        self.push(Statement::Do(call));
    }

    /// What follows is repeated, until [`Writer::close`].
    pub(super) fn open(&mut self) {
        self.blocks.push(Vec::new());
    }

    pub(super) fn close(&mut self, variable: impl Into<String>, over: Term) {
        let body = self.blocks.pop().unwrap_or_default();
        self.push(Statement::Repeat { variable: variable.into(), over, body });
    }

    /// All statements, without loop variables that nothing needs.
    pub(super) fn finish(&mut self) -> Block {
        let mut block = Block(std::mem::take(&mut self.blocks[0]));
        block.drop_unused(&self.loop_names);
        block
    }

    /// The mask for something that varies with these loops.
    fn mask(&self, axes: &BTreeSet<AxisId>) -> Option<&'static str> {
        if let Some(side) = self.side {
            return side.mask(axes);
        }
        let lanes = axes.iter().any(|axis| self.lanes.contains(axis));
        let is_row = |axis: &AxisId| !self.lanes.contains(axis) && !self.slab_axes.contains(axis);
        let rows = !self.one_row && axes.iter().any(is_row);
        match (self.shape, rows, lanes) {
            (_, false, false) => None,
            (Shape::Flat, ..) | (_, true, true) => Some("inside"),
            (_, true, false) => Some("row_inside"),
            (_, false, true) => Some("column_inside"),
        }
    }

    /// How a value is written, which is defined first where it has a name of its own.
    pub(super) fn value(&mut self, var: VarId) -> Result<Term, Refusal> {
        if let Some(known) = self.known.get(&var) {
            return Ok(known.clone());
        }
        let value = self.expression(var)?;
        let body = self.body;
        let known = &body.vars[var];
        let is_simple = matches!(&known.code, Code::Number { .. } | Code::Extent(_))
            || known.code.as_literal().is_some();
        let name = match &known.name {
            _ if is_simple => None,
            Some(name) => Some(name.clone()),
            None if self.uses[var.index()] > 1 || matches!(known.code, Code::Reduce { .. }) => {
                self.temporaries += 1;
                Some(match &known.code {
                    Code::Reduce { fold: Fold::Sum, .. } => format!("total_{}", self.temporaries),
                    Code::Reduce { .. } => format!("extreme_{}", self.temporaries),
                    _ => format!("part_{}", self.temporaries),
                })
            }
            None => None,
        };
        let value = match name {
            Some(name) if matches!(known.code, Code::Window { .. }) => word(name),
            Some(name) => {
                self.define(name.clone(), value);
                word(name)
            }
            None => value,
        };
        self.known.insert(var, value.clone());
        Ok(value)
    }

    fn expression(&mut self, var: VarId) -> Result<Term, Refusal> {
        let body = self.body;
        let known = &body.vars[var];
        match &known.code {
            Code::Load { .. } => self.load(var),
            Code::Number { param } => Ok(word(self.piece.name(NodeId::new(*param)))),
            Code::Extent(size) => self.names.size(size, "extent"),
            Code::Place(index) => self.index(index),
            Code::Inside(guards) => self.guards(guards),
            Code::Compute { formula, operands } => {
                let mut values = Vec::with_capacity(operands.len());
                for operand in operands {
                    values.push(self.value(*operand)?);
                }
                Ok(formula.map(&|number| values[*number].clone()))
            }
            Code::Round { value, node } => {
                let value = self.value(*value)?;
                let Some(pointer) = self.pointer_to(*node) else { return Ok(value) };
                // A number of Python's cannot be rounded; a block of it can.
                let value = if value.is_number() { self.block_of(value) } else { value };
                Ok(value.to(Type::Pointed(pointer)).to(Type::Float32))
            }
            Code::Scan { value } => {
                let value = self.value(*value)?;
                let axis = if self.one_row { 0 } else { 1 };
                Ok(Expr::call("tl.cumsum", [value]).with("axis", Expr::int(axis)))
            }
            Code::Sort { value, is_narrow } => {
                let row = self.value(*value)?;
                let last = if *is_narrow { i64::from(i32::MAX) } else { GREATEST_INTEGER };
                let row = Expr::select(word("column_inside"), row, Expr::int(last));
                Ok(Expr::call("tl.sort", [row]))
            }
            Code::Reduce { fold, value } => {
                let folded = self.value(*value)?;
                Ok(self.folded(*fold, self.masked(*fold, *value, folded)))
            }
            Code::Window { fold, loops, body: inside, value } => {
                let name = known.name.clone().unwrap_or_else(|| "window".into());
                self.windowed(&name, *fold, loops, inside, *value)?;
                Ok(word(name))
            }
        }
    }

    fn load(&mut self, var: VarId) -> Result<Term, Refusal> {
        let known = &self.body.vars[var];
        let Code::Load { param, address, guards } = &known.code else {
            return Err(Refusal::new("nothing to load"));
        };
        let pointer = format!("{}_ptr", self.piece.name(NodeId::new(*param)));
        let mut load = Expr::call("tl.load", [self.address(pointer, address)?]);
        let mut mask = self.mask(&known.axes).map(word);
        if !guards.is_empty() {
            let guards = self.guards(guards)?;
            mask = Some(match mask {
                Some(mask) => and_all(mask, guards),
                None => guards,
            });
        }
        let is_float = known.kind == Kind::Float;
        if let Some(mask) = mask {
            let zero = if is_float { Expr::float(0.0) } else { Expr::int(0) };
            load = load.with("mask", mask).with("other", zero);
        }
        Ok(if is_float { load.to(Type::Float32) } else { load })
    }

    /// A pointer to elements of the type that a node has in memory.
    fn pointer_to(&self, node: NodeId) -> Option<String> {
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
        Some(format!("{name}_ptr"))
    }

    /// A value with the lanes beyond the row's end out of the way.
    pub(super) fn masked(&self, fold: Fold, var: VarId, value: Term) -> Term {
        // A masked load has zeros there already.
        let is_loaded = matches!(&self.body.vars[var].code, Code::Load { .. });
        if fold == Fold::Sum && is_loaded {
            return value;
        }
        Expr::select(word("column_inside"), value, neutral(fold, self.body.vars[var].kind))
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
        self.define(name, self.full(fold, Kind::Float));
        for _ in loops {
            self.open();
        }
        let value = self.value(value)?;
        match fold {
            Fold::Sum => self.add_to(name, value),
            // NaN wins, as in torch.
            Fold::Max => {
                self.define("candidate", value);
                let candidate = || word("candidate");
                let wins = candidate().above(word(name)).or(candidate().differs(candidate()));
                self.define(name, Expr::select(wins, candidate(), word(name)));
            }
            Fold::Min => self.define(name, Expr::call("tl.minimum", [word(name), value])),
        }
        for (window, count) in loops.iter().rev() {
            self.close(format!("w{window}"), Expr::call("tl.static_range", [Expr::int(*count)]));
        }
        Ok(())
    }

    pub(super) fn store(&mut self, number: usize) -> Result<(), Refusal> {
        self.store_where(number, None)
    }

    /// A store, by the programs for which a condition holds.
    pub(super) fn store_where(
        &mut self,
        number: usize,
        condition: Option<Term>,
    ) -> Result<(), Refusal> {
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
        let place = self.address(format!("{pointer}_ptr"), &store.address)?;
        // A single element lies where the only row, or the only place, is.
        let (place, mask) = match (self.mask(&axes), self.shape) {
            (Some(mask), _) => (place, Some(mask)),
            (None, Shape::Flat) => (place + word("place"), Some("inside")),
            (None, _) if self.one_row => (place, None),
            (None, _) => (place + word("row"), Some("row_inside")),
        };
        let guards = match &store.guards[..] {
            [] => None,
            guards => Some(self.guards(guards)?),
        };
        let masks = [mask.map(word), guards, condition].into_iter().flatten();
        let call = Expr::call("tl.store", [place, value]);
        self.perform(match masks.reduce(and_all) {
            Some(mask) => call.with("mask", mask),
            None => call,
        });
        Ok(())
    }

    /// A row folded to one value.
    pub(super) fn folded(&self, fold: Fold, row: Term) -> Term {
        let function = match fold {
            Fold::Sum => "tl.sum",
            Fold::Max => "tl.max",
            Fold::Min => "tl.min",
        };
        let call = Expr::call(function, [row]);
        match self.one_row {
            true => call.with("axis", Expr::int(0)),
            false => call.with("axis", Expr::int(1)).with("keep_dims", Expr::bool(true)),
        }
    }

    /// A block of one element, a float.
    fn block_of(&self, number: Term) -> Term {
        let is_flat = matches!(self.shape, Shape::Flat) || self.one_row;
        let constant = |text: &'static str| Expr::Literal(Literal::Constant(text));
        let shape = constant(if is_flat { "[1]" } else { "[1, 1]" });
        Expr::call("tl.full", [shape, number]).with("dtype", constant("tl.float32"))
    }

    /// A block of what changes no fold.
    pub(super) fn full(&self, fold: Fold, kind: Kind) -> Term {
        let shape = match self.shape {
            Shape::Flat => "[BLOCK]",
            _ if self.one_row => "[COLUMNS]",
            _ => "[ROWS, COLUMNS]",
        };
        let dtype = if kind == Kind::Float { "tl.float32" } else { "tl.int64" };
        let constant = |text: &'static str| Expr::Literal(Literal::Constant(text));
        let call = Expr::call("tl.full", [constant(shape), neutral(fold, kind)]);
        call.with("dtype", constant(dtype))
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
    todo.iter().for_each(|var| uses[var.index()] += 1);
    while let Some(var) = todo.pop() {
        if !needed.insert(var) {
            continue;
        }
        let mut operands = body.operands(var);
        match &body.vars[var].code {
            // Values inside a window are written there, one line each.
            Code::Window { body: inside, .. } => operands.extend(inside),
            // An operand counts as often as it is written.
            Code::Compute { formula, operands: own } => {
                operands.clear();
                formula.for_each_value(&mut |number| operands.push(own[*number]));
            }
            _ => {}
        }
        for operand in operands {
            uses[operand.index()] += 1;
            todo.push(operand);
        }
    }
    uses
}

/// The name of an output's pointer: numbered where there are several.
pub(super) fn output_name(stores: &[crate::analysis::body::Store], output: usize) -> String {
    let count = stores.iter().filter(|s| matches!(s.target, Target::Output(_))).count();
    if count > 1 { format!("out_{output}") } else { "out".into() }
}

/// What changes no fold. Whole numbers stay whole: as floats they would be rounded.
pub(super) fn neutral(fold: Fold, kind: Kind) -> Term {
    match (fold, kind) {
        (Fold::Sum, Kind::Float) => Expr::float(0.0),
        (Fold::Max, Kind::Float) => Expr::float(f64::NEG_INFINITY),
        (Fold::Min, Kind::Float) => Expr::float(f64::INFINITY),
        (Fold::Sum, _) => Expr::int(0),
        // A bound that can be written as a literal of 64 bits with its sign.
        (Fold::Max, _) => Expr::int(-GREATEST_INTEGER),
        (Fold::Min, _) => Expr::int(GREATEST_INTEGER),
    }
}

/// A mask and all parts of a condition, side by side.
fn and_all(mask: Term, condition: Term) -> Term {
    match condition {
        Expr::Binary(crate::expression::Binary::And, left, right) => {
            and_all(mask, *left).and(*right)
        }
        single => mask.and(single),
    }
}
