//! Reads the text form back. Errors name the line.

use super::{
    AtomicOp, BinaryOp, Block, CmpOp, Function, Inst, Literal, Loc, Op, Param, ReduceOp, UnaryOp,
    ValueId,
};
use crate::types::{Elem, Lane, Shape, Type};
use passnet_graph::Diagnostic;

/// Nesting of regions beyond this is refused.
const MAX_REGION_DEPTH: usize = 64;
/// Values beyond this are refused.
const MAX_VALUES: u32 = 1 << 20;

/// Reads one kernel.
pub fn parse(file: &str, text: &str) -> Result<Function, Diagnostic> {
    let mut reader = Reader { file, text, pos: 0, types: Vec::new() };
    let mut files = Vec::new();
    while reader.eat_word("file") {
        reader.number::<u16>()?;
        files.push(reader.string()?);
    }
    reader.expect_word("kernel")?;
    let name = reader.word()?.to_string();
    let mut params = Vec::new();
    reader.expect('(')?;
    while !reader.eat(')') {
        let value = reader.value()?;
        let mut name = reader.word()?.to_string();
        // Parts of tuples: `xs.0`.
        while reader.eat('.') {
            name = format!("{name}.{}", reader.word()?);
        }
        reader.expect(':')?;
        let ty = reader.ty()?;
        reader.define(value, ty)?;
        params.push(Param { name, value });
        reader.eat(',');
    }
    reader.expect('{')?;
    let body = reader.block(0)?;
    reader.skip_space();
    if reader.pos != text.len() {
        return Err(reader.error("text after the end of the kernel"));
    }
    let types = reader.types.into_iter().map(|t| t.unwrap_or_else(|| Type::scalar(Elem::I32)));
    Ok(Function { name, params, types: types.collect(), body, files })
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    pos: usize,
    types: Vec<Option<Type>>,
}

impl<'a> Reader<'a> {
    fn error(&self, message: impl Into<String>) -> Diagnostic {
        let before = &self.text.as_bytes()[..self.pos.min(self.text.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        let mut diagnostic = Diagnostic::file(self.file, message);
        diagnostic.line = line;
        diagnostic.column = before.len() - start + 1;
        diagnostic
    }

    fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.pos += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, c: char) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(c);
        if found {
            self.pos += c.len_utf8();
        }
        found
    }

    fn expect(&mut self, c: char) -> Result<(), Diagnostic> {
        if self.eat(c) { Ok(()) } else { Err(self.error(format!("expected `{c}`"))) }
    }

    fn word(&mut self) -> Result<&'a str, Diagnostic> {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 {
            return Err(self.error("expected a name"));
        }
        self.pos += end;
        Ok(&rest[..end])
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let start = self.pos;
        if self.word().is_ok_and(|w| w == word) {
            return true;
        }
        self.pos = start;
        false
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Diagnostic> {
        if self.eat_word(word) { Ok(()) } else { Err(self.error(format!("expected `{word}`"))) }
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, Diagnostic> {
        self.skip_space();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
        let number = rest[..end].parse().map_err(|_| self.error("expected a number"))?;
        self.pos += end;
        Ok(number)
    }

    fn string(&mut self) -> Result<String, Diagnostic> {
        self.expect('"')?;
        let mut out = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.pos += i + 1;
                    return Ok(out);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => out.push('\n'),
                    Some('t') => out.push('\t'),
                    Some('r') => out.push('\r'),
                    Some('u') => {
                        let digits: String = chars
                            .by_ref()
                            .map(|(_, c)| c)
                            .skip_while(|&c| c == '{')
                            .take_while(|&c| c != '}')
                            .take(8)
                            .collect();
                        let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                        out.push(code.ok_or_else(|| self.error("bad escape"))?);
                    }
                    Some(c) => out.push(c),
                    None => break,
                },
                c => out.push(c),
            }
        }
        Err(self.error("string without end"))
    }

    fn value(&mut self) -> Result<ValueId, Diagnostic> {
        self.expect('%')?;
        let index: u32 = self.number()?;
        if index >= MAX_VALUES {
            return Err(self.error(format!("more than {MAX_VALUES} values")));
        }
        Ok(ValueId(index))
    }

    fn define(&mut self, value: ValueId, ty: Type) -> Result<(), Diagnostic> {
        if self.types.len() <= value.index() {
            self.types.resize(value.index() + 1, None);
        }
        if self.types[value.index()].replace(ty).is_some() {
            return Err(self.error(format!("{value} is defined twice")));
        }
        Ok(())
    }

    fn ty(&mut self) -> Result<Type, Diagnostic> {
        let ptr = self.eat('*');
        let name = self.word()?;
        let elem =
            Elem::from_name(name).ok_or_else(|| self.error(format!("unknown type `{name}`")))?;
        let mut shape = Shape::new();
        if self.eat('<') {
            loop {
                shape.push(self.number()?);
                if !self.eat('x') {
                    break;
                }
            }
            self.expect('>')?;
        }
        Ok(Type { lane: if ptr { Lane::Ptr(elem) } else { Lane::Num(elem) }, shape })
    }

    fn typed_values(&mut self) -> Result<Vec<ValueId>, Diagnostic> {
        let mut values = Vec::new();
        loop {
            self.skip_space();
            if !self.rest().starts_with('%') {
                return Ok(values);
            }
            let value = self.value()?;
            self.expect(':')?;
            let ty = self.ty()?;
            self.define(value, ty)?;
            values.push(value);
            self.eat(',');
        }
    }

    fn values(&mut self) -> Result<Vec<ValueId>, Diagnostic> {
        let mut values = Vec::new();
        loop {
            self.skip_space();
            if !self.rest().starts_with('%') {
                return Ok(values);
            }
            values.push(self.value()?);
            if !self.eat(',') {
                return Ok(values);
            }
        }
    }

    /// Everything up to and including the closing brace.
    fn block(&mut self, depth: usize) -> Result<Block, Diagnostic> {
        if depth > MAX_REGION_DEPTH {
            return Err(self.error(format!("regions nested more than {MAX_REGION_DEPTH} deep")));
        }
        let mut block = Block::default();
        loop {
            if self.eat('}') {
                return Ok(block);
            }
            if self.eat_word("yield") {
                block.yields = self.values()?;
                self.expect('}')?;
                return Ok(block);
            }
            block.insts.push(self.inst(depth)?);
        }
    }

    fn inst(&mut self, depth: usize) -> Result<Inst, Diagnostic> {
        let results = self.typed_values()?;
        if !results.is_empty() {
            self.expect('=')?;
        }
        let mnemonic = self.word()?;
        let mut attrs = Vec::new();
        let mut message = None;
        if self.eat('[') {
            self.skip_space();
            if self.rest().starts_with('"') {
                message = Some(self.string()?);
                self.expect(']')?;
            } else {
                let rest = self.rest();
                let end = rest.find(']').ok_or_else(|| self.error("expected `]`"))?;
                attrs = rest[..end].split(',').map(str::trim).collect();
                self.pos += end + 1;
            }
        }
        let op = op_from_text(mnemonic, &attrs, message)
            .ok_or_else(|| self.error(format!("unknown operation `{mnemonic}`")))?;
        let args = self.values()?;
        self.expect('@')?;
        let file = self.number()?;
        self.expect(':')?;
        let loc = Loc { file, line: self.number()? };
        let mut regions = Vec::new();
        while self.eat('{') {
            self.expect('(')?;
            let params = self.typed_values()?;
            self.expect(')')?;
            let mut region = self.block(depth + 1)?;
            region.params = params;
            regions.push(region);
        }
        Ok(Inst { op, args, results, regions, loc })
    }
}

fn literal(text: &str) -> Option<Literal> {
    if let Some(bits) = text.strip_prefix("nan:") {
        let value = f64::from_bits(u64::from_str_radix(bits, 16).ok()?);
        return value.is_nan().then_some(Literal::Float(value));
    }
    match text.parse::<i64>() {
        Ok(v) => Some(Literal::Int(v)),
        Err(_) => text.parse().ok().map(Literal::Float),
    }
}

fn op_from_text(mnemonic: &str, attrs: &[&str], message: Option<String>) -> Option<Op> {
    let attr = |i: usize| attrs.get(i).copied().unwrap_or("");
    let axis = |i: usize| attr(i).parse::<u8>().ok();
    Some(match mnemonic {
        "const" => Op::Const(literal(attr(0))?),
        "program_id" => Op::ProgramId(axis(0)?),
        "num_programs" => Op::NumPrograms(axis(0)?),
        "arange" => Op::Arange(attr(0).parse().ok()?),
        "splat" => Op::Splat,
        "broadcast" => Op::Broadcast,
        "reshape" => Op::Reshape,
        "permute" => {
            Op::Permute(attrs.iter().map(|a| a.parse().ok()).collect::<Option<Vec<u8>>>()?)
        }
        "join" => Op::Join,
        "split" => Op::Split,
        "cat" => Op::Cat,
        "select" => Op::Select,
        "fma" => Op::Fma,
        "cast" => Op::Cast,
        "bitcast" => Op::Bitcast,
        "addptr" => Op::AddPtr,
        "load" => Op::Load { mask: attr(0) == "mask", other: attr(1) == "other" },
        "store" => Op::Store { mask: attr(0) == "mask" },
        "atomic" => Op::Atomic { op: AtomicOp::from_name(attr(0))?, mask: attr(1) == "mask" },
        "atomic_cas" => Op::AtomicCas,
        "reduce" => Op::Reduce { op: ReduceOp::from_name(attr(0))?, axis: axis(1)? },
        "arg_reduce" => {
            Op::ArgReduce { max: attr(0) == "max", axis: axis(1)?, tie_left: attr(2) == "left" }
        }
        "scan" => Op::Scan {
            op: ReduceOp::from_name(attr(0))?,
            axis: axis(1)?,
            reverse: attr(2) == "reverse",
        },
        "reduce_with" => Op::ReduceWith { axis: axis(0)? },
        "scan_with" => Op::ScanWith { axis: axis(0)?, reverse: attr(1) == "reverse" },
        "dot" => Op::Dot,
        "gather" => Op::Gather { axis: axis(0)? },
        "sort" => Op::Sort { descending: attr(0) == "descending" },
        "histogram" => Op::Histogram { mask: attr(0) == "mask" },
        "if" => Op::If,
        "for" => Op::For,
        "while" => Op::While,
        "assert" => Op::Assert(message?),
        name => UnaryOp::from_name(name)
            .map(Op::Unary)
            .or_else(|| BinaryOp::from_name(name).map(Op::Binary))
            .or_else(|| CmpOp::from_name(name).map(Op::Compare))?,
    })
}
