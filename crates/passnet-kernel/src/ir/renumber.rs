//! Numbers the values of a function in the order of their definitions, dropping numbers nothing defines.

use super::{Block, Function, ValueId};
use crate::types::Type;

const UNDEFINED: ValueId = ValueId(u32::MAX);

impl Function {
    /// The front end leaves gaps where it tried something and threw it away.
    pub(crate) fn renumber(&mut self) {
        let mut renaming = Renaming {
            old_types: std::mem::take(&mut self.types),
            new: Vec::new(),
            types: Vec::new(),
        };
        renaming.new.resize(renaming.old_types.len(), UNDEFINED);
        for param in &mut self.params {
            param.value = renaming.define(param.value);
        }
        renaming.block(&mut self.body);
        self.types = renaming.types;
    }
}

struct Renaming {
    old_types: Vec<Type>,
    new: Vec<ValueId>,
    types: Vec<Type>,
}

impl Renaming {
    fn define(&mut self, old: ValueId) -> ValueId {
        let value = ValueId(self.types.len() as u32);
        self.types.push(self.old_types[old.index()].clone());
        self.new[old.index()] = value;
        value
    }

    fn block(&mut self, block: &mut Block) {
        for param in &mut block.params {
            *param = self.define(*param);
        }
        for inst in &mut block.insts {
            for arg in &mut inst.args {
                *arg = self.new[arg.index()];
            }
            for region in &mut inst.regions {
                self.block(region);
            }
            for result in &mut inst.results {
                *result = self.define(*result);
            }
        }
        for value in &mut block.yields {
            *value = self.new[value.index()];
        }
    }
}
