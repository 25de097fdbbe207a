//! Expressions.

use super::concrete;
use super::interpreter::{Frame, Interpreter};
use super::value::{Callable, Code, MAX_ITEMS, Value};
use passnet_graph::graph::{CalleeKind, Target};
use passnet_graph::read::python;
use passnet_graph::syntax::{Ranged, TextRange, ast, sequence};
use passnet_graph::{Arg, Diagnostic};

impl<'a> Interpreter<'a> {
    pub(super) fn expression(
        &mut self,
        expr: &'a ast::Expr,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        self.step(frame.module, expr.range())?;
        match python::literal(expr) {
            Ok(Some(value)) => return Ok(Value::Arg(value)),
            Ok(None) => {}
            Err(message) => return Err(self.error(frame.module, expr.range(), message)),
        }
        match expr {
            ast::Expr::Name(name) => self.name(frame, name),
            ast::Expr::Tuple(tuple) => Ok(Value::tuple(self.elements(&tuple.elts, frame)?)),
            ast::Expr::List(list) => Ok(Value::list(self.elements(&list.elts, frame)?)),
            ast::Expr::Dict(dict) => self.dict(dict, frame),
            ast::Expr::Slice(slice) => self.slice(slice, frame),
            ast::Expr::Call(call) => self.call(call, frame),
            ast::Expr::Attribute(attribute) => self.attribute(attribute, frame),
            ast::Expr::Subscript(subscript) => self.subscript(subscript, frame),
            ast::Expr::BinOp(binary) => {
                let left = self.expression(&binary.left, frame)?;
                let right = self.expression(&binary.right, frame)?;
                self.binary(binary.op, left, right, expr.range(), frame)
            }
            ast::Expr::UnaryOp(unary) => self.unary(unary, frame),
            ast::Expr::Compare(compare) => self.compare(compare, frame),
            ast::Expr::BoolOp(boolean) => self.boolean(boolean, frame),
            ast::Expr::If(choice) => {
                let condition = self.expression(&choice.test, frame)?;
                if self.truth(&condition, &choice.test, frame)? {
                    self.expression(&choice.body, frame)
                } else {
                    self.expression(&choice.orelse, frame)
                }
            }
            ast::Expr::Lambda(lambda) => Ok(Value::Function(Callable {
                module: frame.module,
                code: Code::Lambda(lambda),
                captured: Some(self.capture(frame)),
            })),
            ast::Expr::ListComp(comprehension) => {
                let mut items = Vec::new();
                self.comprehend(&comprehension.generators, &comprehension.elt, frame, &mut items)?;
                Ok(Value::list(items))
            }
            ast::Expr::Generator(comprehension) => {
                let mut items = Vec::new();
                self.comprehend(&comprehension.generators, &comprehension.elt, frame, &mut items)?;
                Ok(Value::tuple(items))
            }
            ast::Expr::Named(named) => {
                let value = self.expression(&named.value, frame)?;
                if let ast::Expr::Name(name) = &*named.target {
                    frame.locals.insert(name.id.as_str(), value.clone());
                }
                Ok(value)
            }
            other => Err(self
                .error(frame.module, other.range(), "this expression cannot be traced")
                .with_hint("calls, operators, subscripts, attribute reads and literals can")),
        }
    }

    fn elements(
        &mut self,
        elements: &'a [ast::Expr],
        frame: &mut Frame<'a>,
    ) -> Result<Vec<Value<'a>>, Diagnostic> {
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            match element {
                ast::Expr::Starred(starred) => {
                    let value = self.expression(&starred.value, frame)?;
                    items.extend(self.items(value, &starred.value, frame)?);
                }
                other => items.push(self.expression(other, frame)?),
            }
            if items.len() > MAX_ITEMS {
                let message = format!("more than {MAX_ITEMS} elements");
                return Err(self.error(frame.module, element.range(), message));
            }
        }
        Ok(items)
    }

    fn dict(
        &mut self,
        dict: &'a ast::ExprDict,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        let mut items = Vec::with_capacity(dict.items.len());
        for item in &dict.items {
            let Some(key) = &item.key else {
                return Err(self.error(
                    frame.module,
                    item.value.range(),
                    "`**` cannot be traced here",
                ));
            };
            items.push((self.expression(key, frame)?, self.expression(&item.value, frame)?));
        }
        Ok(Value::Dict(items))
    }

    fn slice(
        &mut self,
        slice: &'a ast::ExprSlice,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        let mut part = |expr: &'a Option<Box<ast::Expr>>| match expr {
            Some(expr) => {
                let value = self.expression(expr, frame)?;
                self.as_arg(&value, expr, frame)
            }
            None => Ok(Arg::None),
        };
        let parts = [part(&slice.lower)?, part(&slice.upper)?, part(&slice.step)?];
        Ok(Value::Arg(Arg::Slice(Box::new(parts))))
    }

    /// A value that must be able to stand in a graph.
    pub(super) fn as_arg(
        &self,
        value: &Value<'a>,
        expr: &'a ast::Expr,
        frame: &Frame<'a>,
    ) -> Result<Arg, Diagnostic> {
        value.to_arg().map_err(|what| {
            self.error(
                frame.module,
                expr.range(),
                format!("{what} cannot be an argument of an operation"),
            )
        })
    }

    fn attribute(
        &mut self,
        attribute: &'a ast::ExprAttribute,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        let name = attribute.attr.as_str();
        match self.expression(&attribute.value, frame)? {
            Value::Arg(Arg::Node(id)) => {
                let target = Target::resolve(CalleeKind::Attribute, name);
                self.push(frame.module, attribute.range(), target, vec![Arg::Node(id)], Vec::new())
            }
            Value::Path(path) => {
                let path = format!("{path}.{name}");
                Ok(match self.program.import(frame.module, 0, &path) {
                    Some(module) => Value::Module(module),
                    None => Value::Path(path),
                })
            }
            Value::Module(module) => self.global(module, name, frame.module, attribute.range()),
            Value::Class(class) => {
                self.class_attribute(class, name, frame.module, attribute.range())
            }
            Value::Object(object) => self.object_attribute(*object, name, attribute, frame.module),
            // A member of an enum stands for its value.
            Value::Arg(value @ (Arg::Int(_) | Arg::Float(_) | Arg::Str(_))) if name == "value" => {
                Ok(Value::Arg(value))
            }
            other => Err(self.error(
                frame.module,
                attribute.range(),
                format!("{} has no attribute `{name}` here", other.describe()),
            )),
        }
    }

    fn subscript(
        &mut self,
        subscript: &'a ast::ExprSubscript,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        let value = self.expression(&subscript.value, frame)?;
        let index = self.expression(&subscript.slice, frame)?;
        if value.as_node().is_some() || index.has_node() {
            let value = self.as_arg(&value, &subscript.value, frame)?;
            let index = self.as_arg(&index, &subscript.slice, frame)?;
            let target = Target::resolve(CalleeKind::Operator, "getitem");
            return self.push(
                frame.module,
                subscript.range(),
                target,
                vec![value, index],
                Vec::new(),
            );
        }
        let found = match (value, index) {
            (Value::Sequence { mut items, .. }, Value::Arg(Arg::Int(index))) => {
                sequence::position(index, items.len()).map(|index| items.swap_remove(index))
            }
            (Value::Sequence { items, is_list }, Value::Arg(Arg::Slice(parts))) => {
                slice_items(&items, &parts).map(|items| Value::Sequence { items, is_list })
            }
            (Value::Dict(items), key) => {
                items.into_iter().find(|(known, _)| concrete::equal(known, &key)).map(|(_, v)| v)
            }
            _ => None,
        };
        found.ok_or_else(|| self.error(frame.module, subscript.range(), "no such element"))
    }

    pub(super) fn binary(
        &mut self,
        op: ast::Operator,
        left: Value<'a>,
        right: Value<'a>,
        range: TextRange,
        frame: &Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        if left.as_node().is_some() || right.as_node().is_some() {
            let arg = |value: &Value<'a>| {
                value.to_arg().map_err(|what| {
                    self.error(frame.module, range, format!("{what} cannot be an operand"))
                })
            };
            let args = vec![arg(&left)?, arg(&right)?];
            let target = Target::resolve(CalleeKind::Operator, python::binary_operator(op));
            return self.push(frame.module, range, target, args, Vec::new());
        }
        let plain = |value: Value<'a>| match value {
            Value::Path(_) => value.to_arg().map_or(value, Value::Arg),
            other => other,
        };
        concrete::binary(op, &plain(left), &plain(right))
            .map_err(|message| self.error(frame.module, range, message))
    }

    fn unary(
        &mut self,
        unary: &'a ast::ExprUnaryOp,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        let operand = self.expression(&unary.operand, frame)?;
        if unary.op == ast::UnaryOp::Not {
            return Ok(Value::bool(!self.truth(&operand, &unary.operand, frame)?));
        }
        let path = match unary.op {
            ast::UnaryOp::USub => "neg",
            ast::UnaryOp::UAdd => "pos",
            _ => "invert",
        };
        let operand = self.as_arg(&operand, &unary.operand, frame)?;
        let value = match (unary.op, &operand) {
            (_, Arg::Node(_)) => {
                let target = Target::resolve(CalleeKind::Operator, path);
                return self.push(frame.module, unary.range(), target, vec![operand], Vec::new());
            }
            (ast::UnaryOp::USub, Arg::Int(value)) => value.checked_neg().map(Arg::Int),
            (ast::UnaryOp::USub, Arg::Float(value)) => Some(Arg::Float(-value)),
            (ast::UnaryOp::UAdd, Arg::Int(_) | Arg::Float(_)) => Some(operand),
            (ast::UnaryOp::Invert, Arg::Int(value)) => Some(Arg::Int(!value)),
            _ => None,
        };
        value.map(Value::Arg).ok_or_else(|| {
            self.error(frame.module, unary.range(), "this operand has no such operator")
        })
    }

    fn compare(
        &mut self,
        compare: &'a ast::ExprCompare,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        let mut left = self.expression(&compare.left, frame)?;
        let single = compare.ops.len() == 1;
        for (op, right) in compare.ops.iter().zip(&compare.comparators) {
            let right_value = self.expression(right, frame)?;
            let identity = matches!(op, ast::CmpOp::Is | ast::CmpOp::IsNot);
            if (left.as_node().is_some() || right_value.as_node().is_some()) && !identity {
                let path = python::comparison(*op).filter(|_| single).ok_or_else(|| {
                    self.error(
                        frame.module,
                        compare.range(),
                        "this comparison of tensors cannot be traced",
                    )
                })?;
                let args = vec![
                    self.as_arg(&left, &compare.left, frame)?,
                    self.as_arg(&right_value, right, frame)?,
                ];
                let target = Target::resolve(CalleeKind::Operator, path);
                return self.push(frame.module, compare.range(), target, args, Vec::new());
            }
            let holds = concrete::compare(*op, &left, &right_value).ok_or_else(|| {
                self.error(frame.module, compare.range(), "these values cannot be compared")
            })?;
            if !holds {
                return Ok(Value::bool(false));
            }
            left = right_value;
        }
        Ok(Value::bool(true))
    }

    fn boolean(
        &mut self,
        boolean: &'a ast::ExprBoolOp,
        frame: &mut Frame<'a>,
    ) -> Result<Value<'a>, Diagnostic> {
        let stops_at = boolean.op == ast::BoolOp::Or;
        let mut last = Value::none();
        for operand in &boolean.values {
            last = self.expression(operand, frame)?;
            if self.truth(&last, operand, frame)? == stops_at {
                break;
            }
        }
        Ok(last)
    }

    fn comprehend(
        &mut self,
        generators: &'a [ast::Comprehension],
        element: &'a ast::Expr,
        frame: &mut Frame<'a>,
        items: &mut Vec<Value<'a>>,
    ) -> Result<(), Diagnostic> {
        let Some((generator, rest)) = generators.split_first() else {
            items.push(self.expression(element, frame)?);
            return Ok(());
        };
        let iterable = self.expression(&generator.iter, frame)?;
        'items: for item in self.items(iterable, &generator.iter, frame)? {
            self.step(frame.module, generator.iter.range())?;
            self.assign(&generator.target, item, frame)?;
            for condition in &generator.ifs {
                let value = self.expression(condition, frame)?;
                if !self.truth(&value, condition, frame)? {
                    continue 'items;
                }
            }
            self.comprehend(rest, element, frame, items)?;
            if items.len() > MAX_ITEMS {
                let message = format!("more than {MAX_ITEMS} elements");
                return Err(self.error(frame.module, element.range(), message));
            }
        }
        Ok(())
    }
}

/// `items[start:stop:step]`.
fn slice_items<'a>(items: &[Value<'a>], parts: &[Arg; 3]) -> Option<Vec<Value<'a>>> {
    let part = |arg: &Arg| match arg {
        Arg::None => Some(None),
        other => other.as_int().map(Some),
    };
    let step = part(&parts[2])?.unwrap_or(1);
    let picked = sequence::slice(items.len(), part(&parts[0])?, part(&parts[1])?, step)?;
    Some(picked.map(|index| items[index].clone()).collect())
}
