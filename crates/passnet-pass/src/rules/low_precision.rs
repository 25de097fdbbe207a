//! `low-precision`: kernels that lower the precision on the way: half-precision casts, TF32

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "low-precision",
    severity: Severity::Note,
    what: "Kernels that lower the precision on the way: half-precision casts, TF32",
    why: "Lower precision inside may pass a loose tolerance and fail a strict one",
    limits: "For half-precision inputs this is what the framework does too",
    instead: "accumulate and store in the types that eager uses",
    example: Example::Lines {
        top: r#"@triton.jit
def half(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr).to(tl.float16))"#,
        body: "half[(1,)](x, out)",
    },
    honest: Example::Lines {
        top: r#"@triton.jit
def full(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr).to(tl.float32))"#,
        body: "full[(1,)](x, out)",
    },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.kernels() {
        facts::calls(unit, |call| {
            let low = |expr: &ast::Expr| {
                matches!(expr, ast::Expr::Attribute(attribute)
                    if matches!(attribute.attr.as_str(), "float16" | "bfloat16" | "float8e4nv" | "float8e5"))
            };
            let casts = matches!(&*call.func, ast::Expr::Attribute(method) if method.attr.as_str() == "to")
                && call.arguments.args.first().is_some_and(low);
            let tf32 = call.arguments.keywords.iter().any(|keyword| {
                let name = keyword.arg.as_ref().map_or("", |name| name.as_str());
                match (name, &keyword.value) {
                    ("allow_tf32", ast::Expr::BooleanLiteral(value)) => value.value,
                    ("input_precision", ast::Expr::StringLiteral(value)) => {
                        value.value.to_str().starts_with("tf32")
                    }
                    _ => false,
                }
            });
            if casts || tf32 {
                report.unit(unit, call.range(), "computes with less precision from here on");
            }
        });
    }
}
