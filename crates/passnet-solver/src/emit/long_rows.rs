//! Rows too long for one block: walked through once for every round of reductions, and once for what is stored.

use super::writer::{Writer, fold_name, neutral};
use crate::analysis::Refusal;
use crate::analysis::body::{Code, Fold, Kind, VarId};
use crate::analysis::space::Space;

impl Writer<'_> {
    /// One walk through the row for each round of reductions, and one for what is stored.
    pub(super) fn long_rows(&mut self, space: &Space, columns: &str) -> Result<(), Refusal> {
        let body = self.body;
        let reductions: Vec<VarId> = (0..body.vars.len())
            .filter(|var| {
                self.uses[*var] > 0 && matches!(body.vars[*var].code, Code::Reduce { .. })
            })
            .collect();
        let rounds = reductions.iter().map(|var| body.stage(*var)).max().unwrap_or(0);
        for round in 1..=rounds {
            let now: Vec<VarId> =
                reductions.iter().copied().filter(|var| body.stage(*var) == round).collect();
            let mut names = Vec::new();
            for var in &now {
                let Code::Reduce { fold, value } = body.vars[*var].code else { continue };
                self.outer_values(value)?;
                self.temporaries += 1;
                let name = format!("sum_{}", self.temporaries);
                let kind = body.vars[value].kind;
                let dtype = if kind == Kind::Float { "float32" } else { "int64" };
                let line = format!(
                    "{name} = tl.full([ROWS, COLUMNS], {}, dtype=tl.{dtype})",
                    neutral(fold, kind)
                );
                self.line(line);
                names.push((name, fold, value));
            }
            self.open_row(space, columns)?;
            for (name, fold, value) in &names {
                let text = self.value(*value)?;
                let masked = self.masked(*fold, *value, &text);
                let combine = match fold {
                    Fold::Sum => format!("{name} += {masked}"),
                    Fold::Max => format!("{name} = tl.maximum({name}, {masked})"),
                    Fold::Min => format!("{name} = tl.minimum({name}, {masked})"),
                };
                self.line(combine);
            }
            self.close_row();
            for ((name, fold, _), var) in names.into_iter().zip(now) {
                let result =
                    body.vars[var].name.clone().unwrap_or_else(|| name.replace("sum_", "total_"));
                self.line(format!(
                    "{result} = {}({name}, axis=1, keep_dims=True)",
                    fold_name(fold)
                ));
                self.known.insert(var, result);
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
            self.close_row();
        }
        Ok(())
    }

    fn open_row(&mut self, space: &Space, columns: &str) -> Result<(), Refusal> {
        self.line(format!("for start in range(0, {columns}, COLUMNS):"));
        self.indent += 1;
        self.line("column = start + lane");
        self.line(format!("column_inside = column < {columns}"));
        self.line("inside = row_inside & column_inside");
        self.decompose("column", &space.reduced, "column")
    }

    /// What was defined inside the walk is not known after it.
    fn close_row(&mut self) {
        self.indent -= 1;
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
