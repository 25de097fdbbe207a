//! `tl.inline_asm_elementwise` with one instruction that has a name in the language, such as `tanh.approx.f32 $0, $1;`.
//! Everything else of PTX needs a GPU.

use super::arguments::Args;
use super::value::Value;
use super::{Compiler, Result};
use crate::consts::Const;
use crate::types::Elem;

impl<'a> Compiler<'a> {
    pub(super) fn assembly(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [text, _, operands, dtype, _, _] =
            self.bind(args, ["asm", "constraints", "args", "dtype", "is_pure", "pack"], 4)?;
        let text = match text.and_then(|text| text.to_const()) {
            Some(Const::Str(text)) => text,
            _ => return Err(self.error(&range, "the assembly is a text known at compile time")),
        };
        let operands = match operands {
            Some(Value::Tuple(items)) => items,
            other => other.into_iter().collect(),
        };
        let known = instruction(&text).filter(|(_, count)| *count == operands.len());
        let Some((function, _)) = known else {
            return Err(self
                .error(&range, "`tl.inline_asm_elementwise` runs on a GPU only")
                .with_hint(
                    "one `.f32` instruction with a name in `tl` is read (`tanh`, `sin`, `ex2`, `rsqrt`, …); write others with `tl.*`",
                ));
        };
        if !matches!(dtype, Some(Value::Const(Const::Elem(Elem::F32)))) {
            return Err(self.error(&range, format!("`{}` gives fp32", text.trim())));
        }
        let mut positional = Vec::new();
        for operand in &operands {
            let v = self.tensor(&range, operand)?;
            if self.ty(v).num() != Some(Elem::F32) {
                let ty = self.ty(v);
                return Err(self.error(&range, format!("`{}` takes fp32, not {ty}", text.trim())));
            }
            positional.push(Value::Tensor(v));
        }
        let args = Args { positional, named: Vec::new(), range, callee: text };
        match function {
            "reciprocal" => {
                let one = Value::Const(Const::Float(1.0));
                let x = args.positional.into_iter().next().unwrap_or(Value::NONE);
                self.binary_operator(&range, passnet_graph::syntax::ast::Operator::Div, &one, &x)
            }
            name => self.device_function(name, args),
        }
    }
}

/// The function that a text of one instruction stands for, and how many operands it takes.
fn instruction(text: &str) -> Option<(&'static str, usize)> {
    let text = text.trim();
    let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
    let text = text.trim().strip_suffix(';')?;
    let (name, operands) = text.split_once(char::is_whitespace)?;
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let in_order = operands.iter().enumerate().all(|(i, o)| *o == format!("${i}"));
    let mut words = name.split('.');
    let operation = words.next()?;
    let words: Vec<&str> = words.collect();
    let (kind, modes) = words.split_last()?;
    let plain = modes.iter().all(|mode| matches!(*mode, "approx" | "ftz" | "rn" | "full"));
    if !in_order || !plain || *kind != "f32" {
        return None;
    }
    let function = match operation {
        "tanh" => "tanh",
        "sin" => "sin",
        "cos" => "cos",
        "ex2" => "exp2",
        "lg2" => "log2",
        "sqrt" => "sqrt",
        "rsqrt" => "rsqrt",
        "rcp" => "reciprocal",
        "abs" => "abs",
        "div" => "div_rn",
        "add" => "add_rn",
        "sub" => "sub_rn",
        "mul" => "mul_rn",
        "fma" => "fma",
        "max" => "maximum",
        "min" => "minimum",
        _ => return None,
    };
    Some((function, operands.len() - 1))
}
