//! The names that a function takes from its module.

use passnet_graph::syntax::ast::visitor::{Visitor, walk_expr};
use passnet_graph::syntax::ast::{Expr, ExprContext, StmtFunctionDef};
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) names: BTreeSet<String>,
    /// `owner.attribute`, where the owner is a name.
    pub(super) attributes: BTreeSet<(String, String)>,
    own: BTreeSet<String>,
}

/// Names read in the body and never set there. Defaults and annotations are not the body's.
pub(super) fn used(def: &StmtFunctionDef) -> Used {
    let mut used = Used::default();
    for stmt in &def.body {
        used.visit_stmt(stmt);
    }
    used.own.extend(def.parameters.iter().map(|p| p.name().to_string()));
    let own = std::mem::take(&mut used.own);
    used.names.retain(|name| !own.contains(name));
    used.attributes.retain(|(owner, _)| !own.contains(owner));
    used
}

impl<'a> Visitor<'a> for Used {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Load => {
                self.names.insert(name.id.to_string());
            }
            Expr::Name(name) => {
                self.own.insert(name.id.to_string());
            }
            Expr::Attribute(attribute) => {
                if let Expr::Name(owner) = &*attribute.value {
                    self.attributes.insert((owner.id.to_string(), attribute.attr.to_string()));
                }
            }
            _ => {}
        }
        walk_expr(self, expr);
    }
}
