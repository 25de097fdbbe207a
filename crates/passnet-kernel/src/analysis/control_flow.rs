//! Branches and loops: what is still known behind them.

use super::linear::{Linear, SymKind};
use super::touches::{Interp, Known};
use crate::ir::{Block, Inst, ValueId};

impl Interp<'_> {
    pub(super) fn branch(&mut self, inst: &Inst) {
        self.depth += 1;
        let conditions = match &self.known[inst.args[0].index()] {
            Known::Mask(forms) => forms.clone(),
            _ => Vec::new(),
        };
        let outer = self.path.len();
        self.path.extend(conditions.iter().cloned());
        self.block(&inst.regions[0]);
        self.path.truncate(outer);
        // The negation of a single condition holds on the other side: not (x < 0) is -x - 1 < 0.
        if let [only] = &conditions[..]
            && let Some(mut opposite) = only.times(-1)
        {
            opposite.constant = opposite.constant.saturating_sub(1);
            self.path.push(opposite);
        }
        self.block(&inst.regions[1]);
        self.path.truncate(outer);
        self.depth -= 1;
        for (i, &r) in inst.results.iter().enumerate() {
            let (a, b) = (inst.regions[0].yields[i], inst.regions[1].yields[i]);
            self.known[r.index()] = if self.known[a.index()] == self.known[b.index()] {
                self.known[a.index()].clone()
            } else {
                let owner = self.known[a.index()].owner();
                owner
                    .filter(|_| self.known[b.index()].owner() == owner)
                    .map_or(Known::Nothing, Known::Within)
            };
        }
    }

    /// Carried values that grow by the same amount each time become linear in the iteration.
    pub(super) fn for_loop(&mut self, inst: &Inst) {
        let region = &inst.regions[0];
        let bounds: Option<Vec<i64>> =
            inst.args[..3].iter().map(|v| self.int(*v).and_then(Linear::as_constant)).collect();
        let ranges: Vec<Option<(i128, i128)>> = inst.args[..3]
            .iter()
            .map(|v| self.int(*v).map(|l| l.range(&self.out.symbols, &[])))
            .collect();
        let step = self.int(inst.args[2]).and_then(Linear::as_constant);
        // Iterations at most, and the form of the index.
        let (low, trips) = match (&ranges[0], &ranges[1], step) {
            (Some(l), Some(h), Some(s)) if s > 0 => {
                (Some(l.0), Some(((h.1 - l.0 + i128::from(s) - 1) / i128::from(s)).max(0)))
            }
            _ => (None, None),
        };
        let iteration = match trips.and_then(|t| i64::try_from(t).ok()) {
            Some(0) => return,
            Some(t) => Some(self.symbol(SymKind::Loop, 0, t - 1)),
            None => None,
        };
        let index = match (iteration, step, self.int(inst.args[0]), low) {
            (Some(sym), Some(s), Some(start), Some(_)) => {
                start.plus(&Linear::symbol(sym), s).map(Known::Int)
            }
            _ => None,
        };
        self.known[region.params[0].index()] = index.clone().unwrap_or(Known::Nothing);
        let (carried, inits) = (&region.params[1..], &inst.args[3..]);
        let (deltas, kept) = self.one_iteration(region, inits);
        let lost = |i: usize| kept[i].map_or(Known::Nothing, Known::Within);
        for (i, &p) in carried.iter().enumerate() {
            let grown = |l: &Linear| match (deltas[i], iteration) {
                (Some(0), _) => Some(l.clone()),
                (Some(d), Some(sym)) => l.plus(&Linear::symbol(sym), d),
                _ => None,
            };
            self.known[p.index()] = self.known[inits[i].index()].moved(grown, lost(i));
        }
        self.known[region.params[0].index()] = index.unwrap_or(Known::Nothing);
        self.depth += 1;
        self.block(region);
        self.depth -= 1;
        // After the loop: known only when the number of iterations is.
        let exact = bounds
            .filter(|b| b[2] > 0)
            .map(|b| (b[1].saturating_sub(b[0]).max(0) as u64).div_ceil(b[2] as u64) as i64);
        for (i, &r) in inst.results.iter().enumerate() {
            let after = |l: &Linear| match (deltas[i], exact) {
                (Some(0), _) => Some(l.clone()),
                (Some(d), Some(n)) => {
                    let mut l = l.clone();
                    l.constant = l.constant.checked_add(d.checked_mul(n)?)?;
                    Some(l)
                }
                _ => None,
            };
            self.known[r.index()] = self.known[inits[i].index()].moved(after, lost(i));
        }
    }

    /// What one iteration adds to each carried value, where that is always the same, and the parameter to which each carried
    /// pointer belongs in every iteration: each of them is a symbol of its own for a pass over the body.
    fn one_iteration(
        &mut self,
        region: &Block,
        inits: &[ValueId],
    ) -> (Vec<Option<i64>>, Vec<Option<usize>>) {
        let was_quiet = std::mem::replace(&mut self.quiet, true);
        let mut markers = Vec::new();
        for (&p, &init) in region.params[1..].iter().zip(inits) {
            let marker = self.symbol(SymKind::Opaque, 0, 0);
            let mut form = Linear::symbol(marker);
            self.known[p.index()] = match &self.known[init.index()] {
                Known::Int(l) => {
                    form.lanes = vec![0; l.lanes.len()];
                    Known::Int(form)
                }
                Known::Pointer { param, bytes } => {
                    form.lanes = vec![0; bytes.lanes.len()];
                    Known::Pointer { param: *param, bytes: form }
                }
                Known::Within(param) => Known::Within(*param),
                _ => Known::Nothing,
            };
            markers.push(marker);
        }
        self.depth += 1;
        self.block(region);
        self.depth -= 1;
        self.quiet = was_quiet;
        let mut deltas: Vec<Option<i64>> = Vec::new();
        let kept: Vec<Option<usize>> = region
            .yields
            .iter()
            .zip(inits)
            .map(|(y, init)| {
                let before = self.known[init.index()].owner();
                before.filter(|_| self.known[y.index()].owner() == before)
            })
            .collect();
        for (i, &y) in region.yields.iter().enumerate() {
            let form = match (&self.known[y.index()], &self.known[inits[i].index()]) {
                (Known::Int(l), Known::Int(_)) => Some(l.clone()),
                (Known::Pointer { param: p, bytes }, Known::Pointer { param: q, .. }) if p == q => {
                    Some(bytes.clone())
                }
                _ => None,
            };
            deltas.push(form.and_then(|mut l| {
                (l.terms.remove(&markers[i]) == Some(1)).then_some(())?;
                l.as_constant()
            }));
        }
        (deltas, kept)
    }
}
