//! Rows too long for one block: walked through once for every round of reductions, and once for what is stored.

use super::statement::{Term, word};
use super::writer::Writer;
use crate::analysis::Refusal;
use crate::analysis::body::{Body, Code, Fold, Moments, VarId};
use crate::analysis::index::AxisId;
use crate::analysis::space::Space;
use crate::expression::{Binary, Expr, Type};
use std::collections::BTreeSet;

/// What a program walks through.
#[derive(Clone, Copy)]
pub(super) struct Walk<'w> {
    pub(super) space: &'w Space,
    pub(super) columns: &'w Term,
    /// Whether it is a chunk of the row, or the whole row.
    pub(super) is_chunk: bool,
}

/// What one walk folds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Folded {
    One(VarId),
    Both(Moments),
}

impl Folded {
    /// The reduction whose values are folded.
    pub(super) fn leader(self) -> VarId {
        match self {
            Folded::One(var) => var,
            Folded::Both(moments) => moments.total,
        }
    }

    /// What it gives.
    pub(super) fn results(self) -> impl Iterator<Item = VarId> {
        let (first, second) = match self {
            Folded::One(var) => (var, None),
            Folded::Both(moments) => (moments.mean, Some(moments.squares)),
        };
        std::iter::once(first).chain(second)
    }
}

/// A fold while a walk gathers it, lane by lane.
pub(super) struct Gathered {
    pub(super) folded: Folded,
    pub(super) fold: Fold,
    value: VarId,
    pub(super) number: usize,
}

impl Gathered {
    /// The name of what every lane has of a fold.
    pub(super) fn lanes(&self) -> String {
        format!("sum_{}", self.number)
    }

    /// The same of a mean, and of the squares around it.
    pub(super) fn moments(&self) -> (String, String) {
        (format!("lane_mean_{}", self.number), format!("lane_spread_{}", self.number))
    }
}

/// The folds of each round, every one of which needs those before it; where a variance is folded `at_once`, its sum and its
/// squares are of one round.
pub(super) fn rounds(body: &Body, at_once: bool) -> Vec<Vec<Folded>> {
    let live = body.live();
    let both = |var: VarId| {
        let moments = body.moments.iter().filter(|moments| live.contains(&moments.squares));
        moments.copied().find(|moments| at_once && moments.has(var))
    };
    let mut rounds: Vec<Vec<Folded>> = Vec::new();
    let mut round_of: Vec<usize> = Vec::with_capacity(body.vars.len());
    for var in body.var_ids() {
        let operands = body.operands(var);
        let below = operands.iter().map(|operand| round_of[operand.index()]).max().unwrap_or(0);
        if !matches!(body.vars[var].code, Code::Reduce { .. }) {
            round_of.push(below);
            continue;
        }
        let (folded, round) = match both(var) {
            Some(moments) if moments.squares == var => (None, round_of[moments.total.index()]),
            Some(moments) => (Some(Folded::Both(moments)), below + 1),
            None => (Some(Folded::One(var)), below + 1),
        };
        round_of.push(round);
        if live.contains(&var) {
            rounds.resize_with(rounds.len().max(round), Vec::new);
            rounds[round - 1].extend(folded);
        }
    }
    rounds
}

/// Means and squares of parts of a row.
pub(super) struct Parts {
    pub(super) mean: Term,
    pub(super) squares: Term,
    /// How many values each part has; none that is beyond the row.
    pub(super) lengths: Term,
    /// What names begin with.
    pub(super) prefix: String,
}

impl Writer<'_> {
    /// One walk through the row for each round of reductions, and one for what is stored; a variance is folded `at_once`, or
    /// in two rounds.
    pub(super) fn long_rows(
        &mut self,
        space: &Space,
        columns: &Term,
        at_once: bool,
    ) -> Result<(), Refusal> {
        let walk = Walk { space, columns, is_chunk: false };
        for now in rounds(self.body, at_once) {
            let gathered = self.gather(walk, &now)?;
            if now.iter().any(|folded| matches!(folded, Folded::Both(_))) {
                self.define_lane_length(columns.clone());
            }
            for own in gathered {
                self.fold_row(&own, columns);
            }
        }
        let (wide, narrow) = self.wide_and_narrow();
        for store in narrow {
            self.store(store)?;
        }
        self.store_along(walk, &wide)
    }

    /// Folds what the lanes have of a whole row.
    fn fold_row(&mut self, own: &Gathered, columns: &Term) {
        match own.folded {
            Folded::One(var) => {
                let result = self.name_of_fold(var, own.number);
                self.define(&*result, self.folded(own.fold, word(own.lanes())));
                self.known.insert(var, word(result));
            }
            Folded::Both(moments) => {
                self.know_moments(self.lanes_of_moments(own), moments, columns.clone());
            }
        }
    }

    /// What a folded row is called.
    pub(super) fn name_of_fold(&self, var: VarId, number: usize) -> String {
        let name = self.body.vars[var].name.clone();
        name.unwrap_or_else(|| format!("total_{number}"))
    }

    /// The stores whose places move along the row, and the others.
    pub(super) fn wide_and_narrow(&self) -> (Vec<usize>, Vec<usize>) {
        let stores = &self.body.stores;
        (0..stores.len()).partition(|store| stores[*store].moves_along(&self.lanes))
    }

    /// A walk that gathers folds, lane by lane.
    pub(super) fn gather(
        &mut self,
        walk: Walk<'_>,
        now: &[Folded],
    ) -> Result<Vec<Gathered>, Refusal> {
        let body = self.body;
        let mut gathered = Vec::new();
        for folded in now {
            let Code::Reduce { fold, value } = body.vars[folded.leader()].code else { continue };
            self.outer_values(value, &self.lanes.clone())?;
            self.temporaries += 1;
            let own = Gathered { folded: *folded, fold, value, number: self.temporaries };
            let zero = self.full(fold, body.vars[value].kind);
            match folded {
                Folded::One(_) => self.define(own.lanes(), zero),
                Folded::Both(_) => {
                    let (mean, spread) = own.moments();
                    self.define(mean, zero.clone());
                    self.define(spread, zero);
                }
            }
            gathered.push(own);
        }
        self.open_row(walk)?;
        if now.iter().any(|folded| matches!(folded, Folded::Both(_))) {
            // Each lane has met as many values as the walk has made steps.
            let step = Expr::binary(Binary::FloorOver, word("start"), word("COLUMNS"));
            let met = (step + Expr::int(1)).to(Type::Float32);
            self.define("step_share", Expr::float(1.0) / met);
        }
        for own in &gathered {
            let value = self.value(own.value)?;
            match own.folded {
                Folded::One(_) => self.gather_one(own, value),
                Folded::Both(_) => self.gather_moments(own, value),
            }
        }
        self.close_row(walk);
        Ok(gathered)
    }

    fn gather_one(&mut self, own: &Gathered, value: Term) {
        let masked = self.masked(own.fold, own.value, value);
        let name = own.lanes();
        match own.fold {
            Fold::Sum => self.add_to(name, masked),
            Fold::Max => self.define(&*name, Expr::call("tl.maximum", [word(&*name), masked])),
            Fold::Min => self.define(&*name, Expr::call("tl.minimum", [word(&*name), masked])),
        }
    }

    /// Mean and squares of what a lane has met so far, by Welford's rule: one walk, and no difference of large sums. A lane
    /// beyond the row's end meets its own mean, which changes neither.
    fn gather_moments(&mut self, own: &Gathered, value: Term) {
        let (mean, spread) = own.moments();
        let (met, apart) = (format!("met_{}", own.number), format!("apart_{}", own.number));
        let value = Expr::select(word("column_inside"), value, word(&*mean));
        self.define(&*met, value);
        self.define(&*apart, word(&*met) - word(&*mean));
        self.add_to(&*mean, word(&*apart) * word("step_share"));
        self.add_to(spread, word(apart) * (word(met) - word(mean)));
    }

    /// How many values each lane met in a walk of this length.
    pub(super) fn define_lane_length(&mut self, length: Term) {
        let met = length + word("COLUMNS") - Expr::int(1) - word("lane");
        let met = Expr::binary(Binary::FloorOver, met, word("COLUMNS"));
        self.define("lane_length", met.to(Type::Float32));
    }

    /// Mean and squares of all from means and squares of parts, which have these lengths. The mean is what it is near and
    /// what is left of the parts without that: a sum of all values would be rounded more coarsely than they are.
    pub(super) fn fold_moments(&mut self, parts: Parts, [mean, squares]: [&str; 2], length: Term) {
        let Parts { mean: own, squares: own_squares, lengths, prefix } = parts;
        let (near, apart) = (format!("{prefix}_near"), format!("{prefix}_apart"));
        let weighed =
            |writer: &Self, value: Term| writer.folded(Fold::Sum, value * lengths.clone());
        let near_by = weighed(self, own.clone()) / length.clone();
        self.define(&*near, near_by);
        self.define(&*apart, own - word(&*near));
        let left = weighed(self, word(&*apart)) / length;
        self.define(mean, word(near) + left);
        let around = word(&*apart) * word(apart) * lengths;
        let all = self.folded(Fold::Sum, own_squares + around);
        self.define(squares, all);
    }

    /// The same for a whole row, whose mean and squares are known from now on.
    pub(super) fn know_moments(&mut self, parts: Parts, moments: Moments, length: Term) {
        let name = |var: VarId, end: &str| {
            let name = self.body.vars[var].name.clone();
            name.unwrap_or_else(|| format!("{}_{end}", parts.prefix))
        };
        let [mean, squares] = [name(moments.mean, "all"), name(moments.squares, "squares")];
        self.fold_moments(parts, [&mean, &squares], length);
        self.known.insert(moments.mean, word(mean));
        self.known.insert(moments.squares, word(squares));
    }

    /// What the lanes of a walk gathered of a variance.
    pub(super) fn lanes_of_moments(&self, own: &Gathered) -> Parts {
        let (mean, squares) = own.moments();
        Parts {
            mean: word(mean),
            squares: word(squares),
            lengths: word("lane_length"),
            prefix: format!("lane_{}", own.number),
        }
    }

    /// A walk that stores.
    pub(super) fn store_along(&mut self, walk: Walk<'_>, stores: &[usize]) -> Result<(), Refusal> {
        if stores.is_empty() {
            return Ok(());
        }
        for store in stores {
            self.outer_values(self.body.stores[*store].value, &self.lanes.clone())?;
        }
        self.open_row(walk)?;
        for store in stores {
            self.store(*store)?;
        }
        self.close_row(walk);
        Ok(())
    }

    fn open_row(&mut self, walk: Walk<'_>) -> Result<(), Refusal> {
        self.open();
        let start = word("start");
        let start = if walk.is_chunk { word("chunk_start") + start } else { start };
        self.define("column", start + word("lane"));
        self.define_inside(walk.columns);
        self.decompose("column", &walk.space.reduced, "column")
    }

    /// What was defined inside the walk is not known after it.
    fn close_row(&mut self, walk: Walk<'_>) {
        let length = if walk.is_chunk { word("chunk") } else { walk.columns.clone() };
        self.close("start", Expr::call("range", [Expr::int(0), length, word("COLUMNS")]));
        let body = self.body;
        let lanes = self.lanes.clone();
        self.known.retain(|var, _| !body.vars[*var].axes.iter().any(|axis| lanes.contains(axis)));
    }

    /// Defines, before a walk begins, what does not vary along it.
    pub(super) fn outer_values(
        &mut self,
        var: VarId,
        along: &BTreeSet<AxisId>,
    ) -> Result<(), Refusal> {
        let body = self.body;
        if self.known.contains_key(&var) {
            return Ok(());
        }
        if body.vars[var].axes.is_disjoint(along) {
            self.value(var)?;
            return Ok(());
        }
        for operand in body.operands(var) {
            self.outer_values(operand, along)?;
        }
        Ok(())
    }
}
