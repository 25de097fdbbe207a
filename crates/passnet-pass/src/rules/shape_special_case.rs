//! `shape-special-case`: host code that compares a size with a number

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "shape-special-case",
    severity: Severity::Note,
    what: "Host code that compares a size with a number",
    why: "A path for exactly these sizes may be wrong, or absent, for others",
    limits: "Tuning by size is honest and looks the same; this only says where to look",
    instead: "handle every size with one path",
    example: Example::Lines {
        top: "",
        body: r#"if x.shape[0] == 128:
    n = 128"#,
    },
    honest: Example::Lines {
        top: "",
        body: r#"if n > 0:
    n = n"#,
    },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        facts::expressions(unit, |expr| {
            let ast::Expr::Compare(compare) = expr else { return };
            let equality = compare
                .ops
                .iter()
                .any(|op| matches!(op, ast::CmpOp::Eq | ast::CmpOp::In | ast::CmpOp::NotEq));
            let sizes = std::iter::once(&*compare.left).chain(&compare.comparators).any(is_size);
            let literal =
                std::iter::once(&*compare.left).chain(&compare.comparators).any(is_number);
            if equality && sizes && literal {
                report.unit(unit, expr.range(), "treats particular sizes differently");
            }
        });
    }
}

fn is_size(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Attribute(attribute) => attribute.attr.as_str() == "shape",
        ast::Expr::Subscript(subscript) => is_size(&subscript.value),
        ast::Expr::Call(call) => {
            matches!(&*call.func, ast::Expr::Attribute(method) if matches!(method.attr.as_str(), "size" | "numel"))
        }
        _ => false,
    }
}

fn is_number(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::NumberLiteral(_) => true,
        ast::Expr::Tuple(tuple) => tuple.elts.iter().any(is_number),
        ast::Expr::List(list) => list.elts.iter().any(is_number),
        _ => false,
    }
}
