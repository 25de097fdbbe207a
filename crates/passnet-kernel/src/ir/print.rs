//! The text form of the tile IR. `parse(print(f)) == f`.

use super::{Block, Function, Inst, Literal, Op, ValueId};
use std::fmt::{self, Write};

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Int(v) => write!(f, "{v}"),
            Literal::Float(v) if v.is_nan() => write!(f, "nan:{:016x}", v.to_bits()),
            Literal::Float(v) => write!(f, "{v:?}"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flag = |on: bool, name: &'static str| if on { name } else { "" };
        match self {
            Op::Const(v) => write!(f, "const[{v}]"),
            Op::ProgramId(axis) => write!(f, "program_id[{axis}]"),
            Op::NumPrograms(axis) => write!(f, "num_programs[{axis}]"),
            Op::Arange(start) => write!(f, "arange[{start}]"),
            Op::Splat => f.write_str("splat"),
            Op::Broadcast => f.write_str("broadcast"),
            Op::Reshape => f.write_str("reshape"),
            Op::Permute(order) => {
                let order: Vec<String> = order.iter().map(u8::to_string).collect();
                write!(f, "permute[{}]", order.join(","))
            }
            Op::Join => f.write_str("join"),
            Op::Split => f.write_str("split"),
            Op::Cat => f.write_str("cat"),
            Op::Unary(op) => write!(f, "{op}"),
            Op::Binary(op) => write!(f, "{op}"),
            Op::Compare(op) => write!(f, "{op}"),
            Op::Select => f.write_str("select"),
            Op::Fma => f.write_str("fma"),
            Op::Cast => f.write_str("cast"),
            Op::Bitcast => f.write_str("bitcast"),
            Op::AddPtr => f.write_str("addptr"),
            Op::Load { mask, other } => {
                write!(f, "load[{},{}]", flag(*mask, "mask"), flag(*other, "other"))
            }
            Op::Store { mask } => write!(f, "store[{}]", flag(*mask, "mask")),
            Op::Atomic { op, mask } => write!(f, "atomic[{op},{}]", flag(*mask, "mask")),
            Op::AtomicCas => f.write_str("atomic_cas"),
            Op::Reduce { op, axis } => write!(f, "reduce[{op},{axis}]"),
            Op::ArgReduce { max, tie_left, axis } => {
                let which = if *max { "max" } else { "min" };
                write!(f, "arg_reduce[{which},{axis},{}]", flag(*tie_left, "left"))
            }
            Op::Scan { op, axis, reverse } => {
                write!(f, "scan[{op},{axis},{}]", flag(*reverse, "reverse"))
            }
            Op::ReduceWith { axis } => write!(f, "reduce_with[{axis}]"),
            Op::ScanWith { axis, reverse } => {
                write!(f, "scan_with[{axis},{}]", flag(*reverse, "reverse"))
            }
            Op::Dot => f.write_str("dot"),
            Op::Gather { axis } => write!(f, "gather[{axis}]"),
            Op::Sort { descending } => write!(f, "sort[{}]", flag(*descending, "descending")),
            Op::Histogram { mask } => write!(f, "histogram[{}]", flag(*mask, "mask")),
            Op::If => f.write_str("if"),
            Op::For => f.write_str("for"),
            Op::While => f.write_str("while"),
            Op::Assert(message) => write!(f, "assert[\"{}\"]", message.escape_default()),
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, file) in self.files.iter().enumerate() {
            writeln!(f, "file {index} \"{}\"", file.escape_default())?;
        }
        let params: Vec<String> = self
            .params
            .iter()
            .map(|p| format!("{} {}: {}", p.value, p.name, self.ty(p.value)))
            .collect();
        writeln!(f, "kernel {}({}) {{", self.name, params.join(", "))?;
        self.write_block(f, &self.body, 1)?;
        f.write_str("}\n")
    }
}

impl Function {
    fn typed(&self, values: &[ValueId]) -> String {
        let mut text = String::new();
        for (i, v) in values.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}{v}: {}", self.ty(*v));
        }
        text
    }

    fn write_block(&self, f: &mut fmt::Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
        for inst in &block.insts {
            self.write_inst(f, inst, depth)?;
        }
        if !block.yields.is_empty() {
            writeln!(f, "{:width$}yield {}", "", list(&block.yields), width = depth * 2)?;
        }
        Ok(())
    }

    fn write_inst(&self, f: &mut fmt::Formatter<'_>, inst: &Inst, depth: usize) -> fmt::Result {
        write!(f, "{:width$}", "", width = depth * 2)?;
        if !inst.results.is_empty() {
            write!(f, "{} = ", self.typed(&inst.results))?;
        }
        write!(f, "{}", inst.op)?;
        if !inst.args.is_empty() {
            write!(f, " {}", list(&inst.args))?;
        }
        write!(f, " @{}:{}", inst.loc.file, inst.loc.line)?;
        for region in &inst.regions {
            writeln!(f, " {{({})", self.typed(&region.params))?;
            self.write_block(f, region, depth + 1)?;
            write!(f, "{:width$}}}", "", width = depth * 2)?;
        }
        f.write_char('\n')
    }
}

fn list(values: &[ValueId]) -> String {
    let texts: Vec<String> = values.iter().map(ValueId::to_string).collect();
    texts.join(", ")
}
