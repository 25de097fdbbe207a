//! `pointer-identity`: addresses and identities of tensors used as keys or compared: `data_ptr()`, `id()`

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, TextRange, ast};

pub(super) const RULE: Rule = Rule {
    id: "pointer-identity",
    severity: Severity::Refuse,
    what: "Addresses and identities of tensors used as keys or compared: `data_ptr()`, `id()`",
    why: "Recognising a tensor means recognising a repetition, and answering from memory",
    limits: "Checking alignment (`data_ptr() % 16`) is fine",
    example: Example::Lines { top: "SEEN = {}", body: "SEEN[x.data_ptr()] = out" },
    honest: Example::Lines { top: "", body: "aligned = x.data_ptr() % 16 == 0" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        // Addresses inside a remainder only say something about alignment.
        let mut alignment: Vec<TextRange> = Vec::new();
        facts::expressions(unit, |expr| {
            if let ast::Expr::BinOp(binary) = expr
                && matches!(binary.op, ast::Operator::Mod | ast::Operator::BitAnd)
            {
                alignment.push(binary.left.range());
            }
        });
        facts::calls(unit, |call| {
            let identity = match &*call.func {
                ast::Expr::Attribute(method) => {
                    matches!(
                        method.attr.as_str(),
                        "data_ptr" | "untyped_storage" | "storage" | "_cdata"
                    )
                }
                ast::Expr::Name(name) => {
                    matches!(name.id.as_str(), "id" | "hash")
                        && !unit.names.is_local(name.id.as_str())
                }
                _ => false,
            };
            if identity && !alignment.contains(&call.range()) {
                report.unit(unit, call.range(), "recognises a tensor by its address or identity");
            }
        });
    }
}
