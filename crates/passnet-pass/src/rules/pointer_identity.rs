//! `pointer-identity`: addresses and identities of tensors used as keys or compared: `data_ptr()`, `id()`

use super::{Context, Example, Report, Rule, Severity};
use super::{Unit, facts};
use crate::load::Binding;
use passnet_graph::syntax::{Ranged, TextRange, ast};

pub(super) const RULE: Rule = Rule {
    id: "pointer-identity",
    severity: Severity::Refuse,
    what: "Addresses and identities of tensors used as keys or compared: `data_ptr()`, `id()`",
    why: "Recognising a tensor means recognising a repetition, and answering from memory",
    limits: "Asking for an alignment is fine: `x.data_ptr() % 16`, `x.data_ptr() & 15`, by a power of two up to 128",
    instead: "only an alignment may be asked for, as in `x.data_ptr() % 16 == 0`",
    example: Example::Lines { top: "", body: "slot = x.data_ptr() % 1048576" },
    honest: Example::Lines { top: "ALIGN = 16", body: "aligned = x.data_ptr() % ALIGN == 0" },
    check,
};

/// Larger remainders say more about an address than its alignment.
const LARGEST_ALIGNMENT: u64 = 128;

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        // Addresses inside a small remainder only say something about alignment.
        let mut alignment: Vec<TextRange> = Vec::new();
        facts::expressions(unit, |expr| {
            if let ast::Expr::BinOp(binary) = expr
                && asks_for_alignment(unit, binary)
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

/// `address % 16` or `address & 15`.
fn asks_for_alignment(unit: &Unit<'_>, binary: &ast::ExprBinOp) -> bool {
    let of_address = matches!(&*binary.left, ast::Expr::Call(call)
        if matches!(&*call.func, ast::Expr::Attribute(method) if method.attr.as_str() == "data_ptr"));
    if !of_address {
        return false;
    }
    let alignment = match (binary.op, number(unit, &binary.right)) {
        (ast::Operator::Mod, Some(number)) => number,
        (ast::Operator::BitAnd, Some(mask)) => mask.saturating_add(1),
        _ => return false,
    };
    alignment.is_power_of_two() && alignment <= LARGEST_ALIGNMENT
}

/// A number as it is written, or a constant of the file.
fn number(unit: &Unit<'_>, expr: &ast::Expr) -> Option<u64> {
    let literal = |expr: &ast::Expr| match expr {
        ast::Expr::NumberLiteral(literal) => literal.value.as_int()?.as_u64(),
        _ => None,
    };
    match expr {
        ast::Expr::Name(name) => match unit.names.global(name.id.as_str())? {
            (_, Binding::Value { expr, element }) if element.is_empty() => literal(expr),
            _ => None,
        },
        other => literal(other),
    }
}
