//! `tensor-operator`: operators on tensors in host code: `x + y`, `x @ w`, `-x`, `x[mask]`

use super::facts;
use super::tensor_method::is_tensor;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "tensor-operator",
    severity: Severity::Refuse,
    what: "Operators on tensors in host code: `x + y`, `x @ w`, `-x`, `x[mask]`",
    why: "The framework computes them",
    limits: "A name is taken for a tensor when its text shows it: an attribute only tensors have, an allocation, or an argument handed to a kernel",
    instead: "do it in a `@triton.jit` kernel",
    example: Example::Lines { top: "", body: "y = x + 1" },
    honest: Example::Lines { top: "", body: "m = n + 1" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        let tensors = facts::tensors(context, unit);
        let tensor = |expr: &ast::Expr| is_tensor(expr, &tensors);
        facts::walk(unit, &mut |item| match item {
            facts::Item::Expr(expr @ ast::Expr::BinOp(binary))
                if tensor(&binary.left) || tensor(&binary.right) =>
            {
                report.unit(unit, expr.range(), "an operator on tensors computes outside a kernel");
            }
            facts::Item::Expr(expr @ ast::Expr::UnaryOp(unary))
                if tensor(&unary.operand) && unary.op != ast::UnaryOp::Not =>
            {
                report.unit(unit, expr.range(), "an operator on tensors computes outside a kernel");
            }
            facts::Item::Expr(expr @ ast::Expr::Compare(compare)) => {
                let identity =
                    compare.ops.iter().all(|op| matches!(op, ast::CmpOp::Is | ast::CmpOp::IsNot));
                let mut sides = std::iter::once(&*compare.left).chain(&compare.comparators);
                if !identity && sides.any(tensor) {
                    report.unit(
                        unit,
                        expr.range(),
                        "a comparison of tensors computes outside a kernel",
                    );
                }
            }
            facts::Item::Stmt(ast::Stmt::AugAssign(assign)) if tensor(&assign.target) => {
                report.unit(
                    unit,
                    assign.range(),
                    "an update of a tensor computes outside a kernel",
                );
            }
            facts::Item::Stmt(ast::Stmt::Assign(assign)) => {
                for target in &assign.targets {
                    if let ast::Expr::Subscript(subscript) = target
                        && tensor(&subscript.value)
                    {
                        report.unit(unit, target.range(), "writes into a tensor outside a kernel");
                    }
                }
            }
            _ => {}
        });
    }
}
