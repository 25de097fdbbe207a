//! Under vmap: where a hidden dimension is restored its index is kept, and where it was hidden that index is used.

use super::super::body::VarId;
use super::super::{Refusal, refuse};
use super::{Lower, Wanted};
use passnet_graph::ops::Op;

impl Lower<'_> {
    pub(super) fn mapped(&mut self, wanted: Wanted<'_, '_>) -> Result<VarId, Refusal> {
        let Wanted { node, bound, index } = wanted;
        let source = self.input_node(node, bound, "input")?;
        let Some(level) = bound.int("level") else { return Err(self.unsupported(bound)) };
        let mut index = index.to_vec();
        if bound.op == Op::AddBatchDim {
            let rank = self.piece.shape(source)?.len();
            let dim = self.dim(bound.arg("in_dim"), rank)?;
            let Some(hidden) = self.hidden.get(&level).cloned() else {
                refuse!("a hidden dimension is not restored")
            };
            index.insert(dim, hidden);
            return self.pull(source, &index);
        }
        let dim = self.dim(bound.arg("out_dim"), index.len())?;
        let restored = index.remove(dim);
        let outer = self.hidden.insert(level, restored);
        let value = self.pull(source, &index);
        match outer {
            Some(outer) => self.hidden.insert(level, outer),
            None => self.hidden.remove(&level),
        };
        value
    }
}
