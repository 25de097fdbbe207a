//! Questions that several rules ask about a function.

use super::{Context, Unit};
use passnet_graph::graph::CalleeKind;
use passnet_graph::ops;
use passnet_graph::syntax::ast::{self, visitor::Visitor};
use rustc_hash::FxHashSet;

/// The allocators that the reference allows a wrapper to call.
pub(super) const ALLOCATORS: &[&str] = &[
    "torch.empty",
    "torch.empty_like",
    "torch.zeros",
    "torch.zeros_like",
    "torch.ones",
    "torch.ones_like",
    "torch.full",
    "torch.full_like",
    "torch.as_tensor",
];

/// Visits every expression and statement of a unit. Annotations are not code; functions inside classes and branches at
/// the top level of a file are units of their own.
pub(super) fn walk<'a>(unit: &Unit<'a>, visit: &mut dyn FnMut(Item<'a>)) {
    let mut walker = Walker { visit, is_top_level: unit.function.is_none() };
    unit.body.iter().for_each(|stmt| walker.visit_stmt(stmt));
}

#[derive(Clone, Copy)]
pub(super) enum Item<'a> {
    Expr(&'a ast::Expr),
    Stmt(&'a ast::Stmt),
}

struct Walker<'v, 'a> {
    visit: &'v mut dyn FnMut(Item<'a>),
    is_top_level: bool,
}

impl<'a> Visitor<'a> for Walker<'_, 'a> {
    fn visit_expr(&mut self, expr: &'a ast::Expr) {
        (self.visit)(Item::Expr(expr));
        ast::visitor::walk_expr(self, expr);
    }

    fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
        (self.visit)(Item::Stmt(stmt));
        match stmt {
            ast::Stmt::FunctionDef(function) if self.is_top_level => {
                function
                    .decorator_list
                    .iter()
                    .for_each(|decorator| self.visit_decorator(decorator));
                self.visit_parameters(&function.parameters);
            }
            _ => ast::visitor::walk_stmt(self, stmt),
        }
    }

    fn visit_annotation(&mut self, _: &'a ast::Expr) {}
}

/// Visits every expression of a unit.
pub(super) fn expressions<'a>(unit: &Unit<'a>, mut visit: impl FnMut(&'a ast::Expr)) {
    walk(unit, &mut |item| {
        if let Item::Expr(expr) = item {
            visit(expr);
        }
    });
}

/// Visits every call of a unit.
pub(super) fn calls<'a>(unit: &Unit<'a>, mut visit: impl FnMut(&'a ast::ExprCall)) {
    expressions(unit, |expr| {
        if let ast::Expr::Call(call) = expr {
            visit(call);
        }
    });
}

/// `kernel[grid](...)`: the kernel's expression.
pub(super) fn launched(call: &ast::ExprCall) -> Option<&ast::Expr> {
    match &*call.func {
        ast::Expr::Subscript(subscript) => Some(&subscript.value),
        // `kernel.run(..., grid=grid)` and `kernel.warmup(...)`.
        ast::Expr::Attribute(attribute) if attribute.attr.as_str() == "run" => {
            let grid = call.arguments.keywords.iter();
            grid.filter_map(|k| k.arg.as_ref()).any(|k| k == "grid").then_some(&*attribute.value)
        }
        _ => None,
    }
}

/// Names in a function that hold tensors, as far as its text shows.
pub(super) fn tensors<'a>(context: &Context<'a>, unit: &Unit<'a>) -> FxHashSet<&'a str> {
    let mut tensors = FxHashSet::default();
    expressions(unit, |expr| {
        if let ast::Expr::Attribute(attribute) = expr
            && let ast::Expr::Name(name) = &*attribute.value
            && is_tensor_attribute(attribute.attr.as_str())
            && unit.names.is_local(name.id.as_str())
            && unit.names.path(&attribute.value).is_none()
        {
            tensors.insert(name.id.as_str());
        }
    });
    walk(unit, &mut |item| {
        if let Item::Stmt(ast::Stmt::Assign(assign)) = item
            && let [ast::Expr::Name(target)] = assign.targets.as_slice()
            && let ast::Expr::Call(call) = &*assign.value
            && unit.names.path(&call.func).is_some_and(|path| ALLOCATORS.contains(&path.as_str()))
        {
            tensors.insert(target.id.as_str());
        }
    });
    tensors.extend(wrapper_tensors(context, unit));
    tensors
}

/// Parameters of the wrapper that receive graph values and are handed to a kernel.
fn wrapper_tensors<'a>(context: &Context<'a>, unit: &Unit<'a>) -> Vec<&'a str> {
    let (Some(pass), Some(function)) = (context.traced, unit.function) else { return Vec::new() };
    if unit.module != pass.wrapper.module || function.name.as_str() != pass.wrapper.function {
        return Vec::new();
    }
    let mut handed: FxHashSet<&str> = FxHashSet::default();
    calls(unit, |call| {
        if launched(call).is_some() {
            for arg in &call.arguments.args {
                if let ast::Expr::Name(name) = arg {
                    handed.insert(name.id.as_str());
                }
            }
        }
    });
    let outputs = &pass.arguments.graph.outputs;
    let parameters = function.parameters.iter_non_variadic_params();
    parameters
        .zip(outputs)
        .filter(|(_, arg)| arg.as_node().is_some())
        .map(|(parameter, _)| parameter.parameter.name.as_str())
        .filter(|name| handed.contains(name))
        .collect()
}

/// Attributes that only tensors have.
fn is_tensor_attribute(name: &str) -> bool {
    matches!(
        name,
        "shape"
            | "stride"
            | "numel"
            | "dtype"
            | "device"
            | "data_ptr"
            | "is_contiguous"
            | "contiguous"
            | "element_size"
            | "ndim"
            | "new_empty"
            | "new_zeros"
            | "storage_offset"
            | "view"
            | "reshape"
            | "permute"
            | "transpose"
            | "flatten"
            | "unsqueeze"
            | "is_cuda"
    )
}

/// Methods of tensors that only look at, or change, metadata.
pub(super) fn is_metadata_method(name: &str) -> bool {
    use ops::Class;
    if matches!(
        name,
        "element_size"
            | "data_ptr"
            | "is_cuda"
            | "get_device"
            | "ndimension"
            | "nelement"
            | "untyped_storage"
            | "new_empty"
            | "new_zeros"
            | "new_ones"
            | "new_full"
            | "type"
            | "item"
            | "tolist"
    ) {
        return true;
    }
    match ops::spelling(CalleeKind::Method, name) {
        Some(spelling) => {
            let op = spelling.op;
            !spelling.mutates && (op.class() == Class::Scalar || is_layout(op))
        }
        None => false,
    }
}

/// Views and `contiguous`: new layout, same values.
fn is_layout(op: ops::Op) -> bool {
    use ops::{Class, Op};
    let converts = matches!(
        op,
        Op::To
            | Op::TypeAs
            | Op::Type
            | Op::Cpu
            | Op::Cuda
            | Op::Float
            | Op::Double
            | Op::Half
            | Op::Bfloat16
            | Op::Long
            | Op::Int
            | Op::Short
            | Op::Byte
            | Op::Bool
    );
    op.class() == Class::View && !converts
}
