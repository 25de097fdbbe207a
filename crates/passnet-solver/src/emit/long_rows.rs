//! Rows too long for one block: walked through once for every round of reductions, and once for what is stored.

use super::statement::{Term, word};
use super::writer::{Writer, folded_row, full};
use crate::analysis::Refusal;
use crate::analysis::body::{Code, Fold, VarId};
use crate::analysis::space::Space;
use crate::expression::Expr;

impl Writer<'_> {
    /// One walk through the row for each round of reductions, and one for what is stored.
    pub(super) fn long_rows(&mut self, space: &Space, columns: &Term) -> Result<(), Refusal> {
        let body = self.body;
        let reductions: Vec<VarId> = body
            .var_ids()
            .filter(|var| {
                self.uses[var.index()] > 0 && matches!(body.vars[*var].code, Code::Reduce { .. })
            })
            .collect();
        let rounds = reductions.iter().map(|var| body.round(*var)).max().unwrap_or(0);
        for round in 1..=rounds {
            let now: Vec<VarId> =
                reductions.iter().copied().filter(|var| body.round(*var) == round).collect();
            let mut names = Vec::new();
            for var in &now {
                let Code::Reduce { fold, value } = body.vars[*var].code else { continue };
                self.outer_values(value)?;
                self.temporaries += 1;
                let name = format!("sum_{}", self.temporaries);
                self.define(&*name, full("[ROWS, COLUMNS]", fold, body.vars[value].kind));
                names.push((name, self.temporaries, fold, value));
            }
            self.open_row(space, columns)?;
            for (name, _, fold, var) in &names {
                let value = self.value(*var)?;
                let masked = self.masked(*fold, *var, value);
                let name = || name.as_str();
                match fold {
                    Fold::Sum => self.add_to(name(), masked),
                    Fold::Max => {
                        self.define(name(), Expr::call("tl.maximum", [word(name()), masked]));
                    }
                    Fold::Min => {
                        self.define(name(), Expr::call("tl.minimum", [word(name()), masked]));
                    }
                }
            }
            self.close_row(columns);
            for ((name, number, fold, _), var) in names.into_iter().zip(now) {
                let result = body.vars[var].name.clone();
                let result = result.unwrap_or_else(|| format!("total_{number}"));
                self.define(&*result, folded_row(fold, word(name)));
                self.known.insert(var, word(result));
            }
        }
        let (wide, narrow): (Vec<usize>, Vec<usize>) = (0..body.stores.len()).partition(|store| {
            let mut varies = false;
            body.stores[*store]
                .address
                .for_each_axis(&mut |axis| varies |= self.lanes.contains(&axis));
            varies
        });
        for store in narrow {
            self.store(store)?;
        }
        if !wide.is_empty() {
            for store in &wide {
                self.outer_values(body.stores[*store].value)?;
            }
            self.open_row(space, columns)?;
            for store in wide {
                self.store(store)?;
            }
            self.close_row(columns);
        }
        Ok(())
    }

    fn open_row(&mut self, space: &Space, columns: &Term) -> Result<(), Refusal> {
        self.open();
        self.define("column", word("start") + word("lane"));
        self.define_inside(columns);
        self.decompose("column", &space.reduced, "column")
    }

    /// What was defined inside the walk is not known after it.
    fn close_row(&mut self, columns: &Term) {
        let steps = [Expr::int(0), columns.clone(), word("COLUMNS")];
        self.close("start", Expr::call("range", steps));
        let body = self.body;
        let lanes = self.lanes.clone();
        self.known.retain(|var, _| !body.vars[*var].axes.iter().any(|axis| lanes.contains(axis)));
    }

    /// Defines, before a walk begins, what does not vary along the row.
    fn outer_values(&mut self, var: VarId) -> Result<(), Refusal> {
        let body = self.body;
        if self.known.contains_key(&var) {
            return Ok(());
        }
        if !body.vars[var].axes.iter().any(|axis| self.lanes.contains(axis)) {
            self.value(var)?;
            return Ok(());
        }
        for operand in body.operands(var) {
            self.outer_values(operand)?;
        }
        Ok(())
    }
}
