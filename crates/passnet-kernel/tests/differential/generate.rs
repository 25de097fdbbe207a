//! Random kernels as text, each with a wrapper and a header that describes its inputs.
//!
//! A kernel is made from a list of choices. When the list is at its end every further choice is the first one, so that a
//! shorter list, or one of smaller numbers, is a simpler kernel: that is how a failing case becomes a small one.

use std::fmt::Write;

/// Element types of tensors, and those that exist inside a kernel only.
pub const STORED: [&str; 10] = [
    "float32", "float16", "bfloat16", "int32", "int8", "uint8", "int16", "int64", "float64", "int1",
];
const INSIDE: [&str; 3] = ["uint16", "uint32", "uint64"];

/// Elements of each input.
pub const ELEMENTS: usize = 2048;

pub struct Choices<'a> {
    list: &'a [u16],
    next: usize,
}

impl<'a> Choices<'a> {
    pub fn new(list: &'a [u16]) -> Choices<'a> {
        Choices { list, next: 0 }
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        let choice = self.list.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        usize::from(choice) % count.max(1)
    }

    fn is(&mut self, one_in: usize) -> bool {
        self.below(one_in) == one_in - 1
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn is_at_end(&self) -> bool {
        self.next >= self.list.len()
    }
}

/// A block or, without dimensions, a scalar.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    name: String,
    elem: &'static str,
    shape: Vec<usize>,
}

impl Value {
    fn lanes(&self) -> usize {
        self.shape.iter().product()
    }

    fn is_float(&self) -> bool {
        self.elem.contains("float")
    }

    fn is_bool(&self) -> bool {
        self.elem == "int1"
    }
}

/// How the bits of an output are held against those of the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Agreement {
    Exact,
    /// Elementary functions: so many units in the last place of a `float32`, or this far apart near a zero.
    Near {
        units: f64,
        apart: f64,
    },
}

pub struct Kernel {
    pub text: String,
    pub inputs: Vec<&'static str>,
    pub outputs: Vec<Agreement>,
}

struct Generator<'a, 'b> {
    choices: &'a mut Choices<'b>,
    body: String,
    indent: usize,
    values: Vec<Value>,
    names: usize,
    inputs: Vec<&'static str>,
    outputs: Vec<(&'static str, usize, Agreement)>,
    programs: usize,
}

/// Makes a kernel of the choices.
pub fn kernel(choices: &mut Choices<'_>) -> Kernel {
    let programs = 1 + choices.below(3);
    let mut g = Generator {
        choices,
        body: String::new(),
        indent: 1,
        values: Vec::new(),
        names: 0,
        inputs: Vec::new(),
        outputs: Vec::new(),
        programs,
    };
    g.load();
    let statements = 2 + g.choices.below(14);
    for _ in 0..statements {
        g.statement(0);
    }
    g.stores();
    g.finish()
}

fn list(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("[{}]", sizes.join(", "))
}

impl Generator<'_, '_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.body, "{}{text}", "    ".repeat(self.indent));
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// Defines a value.
    fn define(&mut self, elem: &'static str, shape: &[usize], text: &str) -> Value {
        let name = self.name();
        self.line(&format!("{name} = {text}"));
        let value = Value { name, elem, shape: shape.to_vec() };
        self.values.push(value.clone());
        value
    }

    /// Sizes of a block, small ones first, rows that fill a register among them.
    fn shape(&mut self) -> Vec<usize> {
        let shapes: [&[usize]; 16] = [
            &[8],
            &[4, 8],
            &[1],
            &[16],
            &[2, 16],
            &[64],
            &[4, 4],
            &[8, 1],
            &[1, 16],
            &[2, 4, 8],
            &[256],
            &[4, 64],
            &[2, 1, 16],
            &[16, 16],
            &[32, 2],
            &[1, 1],
        ];
        self.choices.of(&shapes).to_vec()
    }

    /// Any value that fits; the newest first, for it has been looked at least.
    fn pick(&mut self, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let found: Vec<Value> = self.values.iter().rev().filter(|v| fits(v)).cloned().collect();
        if found.is_empty() { None } else { Some(self.choices.of(&found)) }
    }

    /// The index of each lane of a block along dimension `d`.
    fn arange(shape: &[usize], d: usize) -> String {
        let spread: Vec<&str> =
            (0..shape.len()).map(|k| if k == d { ":" } else { "None" }).collect();
        let range = format!("tl.arange(0, {})", shape[d]);
        if shape.len() == 1 { range } else { format!("{range}[{}]", spread.join(", ")) }
    }

    /// Places in memory that step evenly along each dimension; at most `room` of them.
    fn places(&mut self, shape: &[usize], room: usize) -> String {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if self.choices.is(3) {
            order.reverse();
        }
        // The step of a dimension is at least what those inside it cover, or nothing at all.
        let mut step = 1 + usize::from(self.choices.is(5));
        let mut terms = Vec::new();
        for &d in order.iter().rev() {
            let used = if self.choices.is(9) { 0 } else { step };
            terms.push(format!("{} * {used}", Self::arange(shape, d)));
            step *= shape[d];
            if self.choices.is(6) && step * 2 <= room {
                step += 1;
            }
        }
        terms.join(" + ")
    }

    /// A mask that is on in a box, or wherever some block says.
    fn mask(&mut self, shape: &[usize]) -> String {
        if let Some(v) = self.pick(|v| v.is_bool() && v.shape == shape)
            && self.choices.is(2)
        {
            return v.name;
        }
        let d = self.choices.below(shape.len());
        let limit = match self.choices.below(4) {
            0 => "n".to_string(),
            1 => "3".to_string(),
            2 => format!("{}", shape[d]),
            _ => "pid + 2".to_string(),
        };
        let sign = self.choices.of(&["<", ">=", "<="]);
        let mut mask = format!("({} {sign} {limit})", Self::arange(shape, d));
        if shape.len() > 1 && self.choices.is(2) {
            let other = (d + 1) % shape.len();
            mask = format!("({mask} & ({} < n))", Self::arange(shape, other));
        }
        format!("tl.broadcast_to({mask}, {})", list(shape))
    }

    fn load(&mut self) {
        let elem = self.choices.of(&STORED);
        let input = match self.inputs.iter().position(|known| *known == elem) {
            Some(known) if !self.choices.is(3) => known,
            _ => {
                self.inputs.push(elem);
                self.inputs.len() - 1
            }
        };
        let shape = self.shape();
        let looked_up = self.pick(|v| v.shape == shape && v.elem.contains("int") && !v.is_bool());
        let places = match looked_up {
            Some(v) if self.choices.is(3) => format!("({}.to(tl.int32) & 1023)", v.name),
            _ => {
                let lanes: usize = shape.iter().product();
                let first = self.choices.below(100);
                let mut places = self.places(&shape, ELEMENTS / 4);
                if self.choices.is(3) {
                    places = format!("{places} + pid * {lanes}");
                }
                format!("({places} + {first})")
            }
        };
        let place = format!("in{input} + {places}");
        let text = match self.choices.below(4) {
            0 | 1 => format!("tl.load({place})"),
            2 => format!("tl.load({place}, mask={})", self.mask(&shape)),
            _ => {
                let other = if elem.contains("float") { "1.5" } else { "1" };
                format!("tl.load({place}, mask={}, other={other})", self.mask(&shape))
            }
        };
        // Torch's booleans are loaded as bytes that are one or zero.
        self.define(elem, &shape, &text);
    }

    /// The value in another type.
    fn converted(v: &Value, elem: &'static str) -> String {
        if v.elem == elem { v.name.clone() } else { format!("{}.to(tl.{elem})", v.name) }
    }

    /// Text of a block with the same shape and type as `like`, or one that becomes it by broadcasting.
    fn partner(&mut self, like: &Value) -> String {
        let fits = |v: &Value| {
            v.shape.is_empty()
                || (v.shape.len() == like.shape.len()
                    && v.shape.iter().zip(&like.shape).all(|(a, b)| a == b || *a == 1))
        };
        let elem = like.elem;
        let found = self.pick(|v| fits(v) && v.elem == elem);
        match found {
            Some(v) if !self.choices.is(4) => v.name,
            _ => match self.pick(|v| fits(v) && !v.is_bool()) {
                Some(v) if !like.is_bool() => Self::converted(&v, elem),
                _ => like.name.clone(),
            },
        }
    }

    fn statement(&mut self, depth: usize) {
        if self.choices.is_at_end() {
            return;
        }
        match self.choices.below(22) {
            0 => self.load(),
            1 => self.cast(),
            2 => self.arithmetic(),
            3 => self.unary(),
            4 => self.comparison(),
            5 => self.select(),
            6 => self.expand(),
            7 => self.broadcast(),
            8 => self.reshape(),
            9 => self.transpose(),
            10 => self.reduce(),
            11 => self.scan(),
            12 => self.with_constant(),
            13 if depth < 2 => self.repeat(depth),
            14 if depth < 2 => self.branch(depth),
            15 => self.pair(),
            16 => self.product(),
            17 => self.combined(),
            18 => self.gather(),
            19 => self.atomic(),
            20 => self.weighted_sum(),
            _ => self.arithmetic(),
        }
    }

    fn cast(&mut self) {
        let Some(v) = self.pick(|_| true) else { return };
        let all: Vec<&'static str> = STORED.iter().chain(&INSIDE).copied().collect();
        let elem = self.choices.of(&all);
        let text = format!("{}.to(tl.{elem})", v.name);
        self.define(elem, &v.shape, &text);
    }

    fn arithmetic(&mut self) {
        let Some(a) = self.pick(|v| !v.shape.is_empty()) else { return };
        let b = self.partner(&a);
        let (x, y) = if self.choices.is(2) { (b, a.name.clone()) } else { (a.name.clone(), b) };
        let text = if a.is_bool() {
            let sign = self.choices.of(&["&", "|", "^"]);
            format!("{x} {sign} {y}")
        } else if a.is_float() {
            match self.choices.below(7) {
                0 => format!("{x} + {y}"),
                1 => format!("{x} - {y}"),
                2 => format!("{x} * {y}"),
                3 => format!("tl.maximum({x}, {y})"),
                4 => format!("tl.minimum({x}, {y})"),
                5 => format!("({x} / {y}).to(tl.{})", a.elem),
                _ => format!("tl.fma({x}, {y}, {x}).to(tl.{})", a.elem),
            }
        } else {
            match self.choices.below(10) {
                0 => format!("{x} + {y}"),
                1 => format!("{x} - {y}"),
                2 => format!("{x} * {y}"),
                3 => format!("tl.maximum({x}, {y})"),
                4 => format!("tl.minimum({x}, {y})"),
                5 => format!("{x} & {y}"),
                6 => format!("{x} | {y}"),
                7 => format!("{x} ^ {y}"),
                8 => format!("{x} // {y}"),
                _ => format!("{x} % {y}"),
            }
        };
        self.define(a.elem, &a.shape, &text);
    }

    fn unary(&mut self) {
        let Some(v) = self.pick(|_| true) else { return };
        let x = &v.name;
        let text = if v.is_bool() {
            format!("{x} ^ True")
        } else if v.is_float() {
            match self.choices.below(4) {
                0 => format!("-{x}"),
                1 => format!("tl.abs({x})"),
                2 if v.elem == "float32" => format!("tl.floor({x})"),
                3 if v.elem == "float32" => format!("tl.sqrt(tl.abs({x}))"),
                _ => format!("0.0 - {x}"),
            }
        } else {
            match self.choices.below(3) {
                0 => format!("-{x}"),
                1 => format!("~{x}"),
                _ => format!("tl.abs({x})"),
            }
        };
        self.define(v.elem, &v.shape, &text);
    }

    fn comparison(&mut self) {
        let Some(a) = self.pick(|v| !v.is_bool() && !v.shape.is_empty()) else { return };
        let b = self.partner(&a);
        let sign = self.choices.of(&["<", "<=", ">", ">=", "==", "!="]);
        let text = format!("{} {sign} {b}", a.name);
        self.define("int1", &a.shape, &text);
    }

    fn select(&mut self) {
        let Some(a) = self.pick(|v| !v.shape.is_empty()) else { return };
        let b = self.partner(&a);
        let condition = self.mask(&a.shape);
        let text = match self.choices.is(2) {
            true => format!("tl.where({condition}, {}, {b})", a.name),
            false => format!("tl.where({condition}, {b}, {})", a.name),
        };
        self.define(a.elem, &a.shape, &text);
    }

    fn expand(&mut self) {
        let Some(v) = self.pick(|v| (1..3).contains(&v.shape.len())) else { return };
        let axis = self.choices.below(v.shape.len() + 1);
        let mut shape = v.shape.clone();
        shape.insert(axis, 1);
        let parts: Vec<&str> =
            (0..shape.len()).map(|d| if d == axis { "None" } else { ":" }).collect();
        let text = match self.choices.is(3) {
            true => format!("tl.expand_dims({}, {axis})", v.name),
            false => format!("{}[{}]", v.name, parts.join(", ")),
        };
        self.define(v.elem, &shape, &text);
    }

    fn broadcast(&mut self) {
        let narrow = |v: &Value| v.shape.contains(&1) && v.lanes() <= 64;
        let Some(v) = self.pick(narrow) else { return };
        let sizes = [2, 4, 8, 16];
        let shape: Vec<usize> = v
            .shape
            .iter()
            .map(|&d| if d == 1 && v.lanes() <= 16 { self.choices.of(&sizes) } else { d })
            .collect();
        if shape.iter().product::<usize>() > 1024 {
            return;
        }
        let text = format!("tl.broadcast_to({}, {})", v.name, list(&shape));
        self.define(v.elem, &shape, &text);
    }

    fn reshape(&mut self) {
        let Some(v) = self.pick(|v| !v.shape.is_empty()) else { return };
        let mut left = v.lanes();
        let mut shape = Vec::new();
        for _ in 0..self.choices.below(3) {
            let size = 1 << self.choices.below(left.ilog2() as usize + 1);
            shape.push(size);
            left /= size;
        }
        shape.push(left);
        let text = format!("tl.reshape({}, {})", v.name, list(&shape));
        self.define(v.elem, &shape, &text);
    }

    fn transpose(&mut self) {
        let Some(v) = self.pick(|v| v.shape.len() > 1) else { return };
        let orders: &[&[usize]] = if v.shape.len() == 2 {
            &[&[1, 0]]
        } else {
            &[&[2, 1, 0], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1]]
        };
        let order = self.choices.of(orders);
        let shape: Vec<usize> = order.iter().map(|&d| v.shape[d]).collect();
        let numbers: Vec<String> = order.iter().map(usize::to_string).collect();
        let text = match v.shape.len() {
            2 if self.choices.is(2) => format!("tl.trans({})", v.name),
            _ => format!("tl.permute({}, ({}))", v.name, numbers.join(", ")),
        };
        self.define(v.elem, &shape, &text);
    }

    /// A block whose sums are exact in any order.
    fn summable(&mut self, v: &Value) -> Value {
        let x = &v.name;
        let text = match v.elem {
            "float32" => format!("tl.where(tl.abs({x}) < 64.0, tl.floor({x}), 1.0)"),
            e if e.contains("float") => {
                format!("tl.where(tl.abs({x}) < 64.0, {x}.to(tl.int32), 1).to(tl.{e})")
            }
            _ => return v.clone(),
        };
        self.define(v.elem, &v.shape, &text)
    }

    fn reduce(&mut self) {
        let Some(v) = self.pick(|v| !v.shape.is_empty() && !v.is_bool()) else { return };
        let axis = self.choices.below(v.shape.len());
        let mut shape = v.shape.clone();
        let keep = match self.choices.is(3) {
            true => {
                shape[axis] = 1;
                ", keep_dims=True"
            }
            false => {
                shape.remove(axis);
                ""
            }
        };
        match self.choices.below(5) {
            0 | 1 => {
                let v = self.summable(&v);
                let text = format!("tl.sum({}, axis={axis}{keep}).to(tl.{})", v.name, v.elem);
                self.define(v.elem, &shape, &text);
            }
            which @ (2 | 3) => {
                // Zeros of both signs are the same number: which one comes out depends on the order.
                let x = if v.is_float() { format!("{} + 0.0", v.name) } else { v.name.clone() };
                let f = if which == 2 { "max" } else { "min" };
                let text = format!("tl.{f}({x}, axis={axis}{keep}).to(tl.{})", v.elem);
                self.define(v.elem, &shape, &text);
            }
            _ => {
                let f = self.choices.of(&["argmax", "argmin"]);
                let text = format!("tl.{f}({}, axis={axis}{keep})", v.name);
                self.define("int32", &shape, &text);
            }
        }
    }

    /// A matrix times a vector, summed at once: its operands are of no use to anything else, so that their memory is free
    /// when the sum needs some.
    fn weighted_sum(&mut self) {
        let input = match self.inputs.iter().position(|known| *known == "int32") {
            Some(known) => known,
            None => {
                self.inputs.push("int32");
                self.inputs.len() - 1
            }
        };
        let size = self.choices.of(&[8, 16]);
        let elem = self.choices.of(&["float32", "float16", "int32"]);
        let (index, axis) =
            self.choices.of(&[("[None, :]", 1), ("[:, None]", 0), ("[:, None]", 1)]);
        // Small integers: their sums are exact in any order.
        let small = |places: String| format!("(tl.load(in{input} + {places}) & 3).to(tl.{elem})");
        let matrix = small(self.places(&[size, size], ELEMENTS / 2));
        let vector = small(format!("tl.arange(0, {size}) * {}", 1 + self.choices.below(3)));
        let text = format!("tl.sum({matrix} * {vector}{index}, axis={axis}).to(tl.{elem})");
        self.define(elem, &[size], &text);
    }

    fn scan(&mut self) {
        let Some(v) = self.pick(|v| !v.shape.is_empty() && !v.is_bool()) else { return };
        let v = self.summable(&v);
        let axis = self.choices.below(v.shape.len());
        let reverse = if self.choices.is(3) { ", reverse=True" } else { "" };
        let text = format!("tl.cumsum({}, axis={axis}{reverse}).to(tl.{})", v.name, v.elem);
        self.define(v.elem, &v.shape, &text);
    }

    fn with_constant(&mut self) {
        let Some(v) = self.pick(|v| !v.is_bool()) else { return };
        let (x, e) = (&v.name, v.elem);
        let text = match (v.is_float(), self.choices.below(5)) {
            (true, 0) => format!("{x} * 0.5"),
            (true, 1) => format!("1.0 - {x}"),
            (true, 2) => format!("{x} + scale.to(tl.{e})"),
            (true, 3) => format!("tl.maximum({x}, 0.0)"),
            (true, _) => format!("{x} * tl.full({}, 3, tl.{e})", list(&v.shape)),
            (false, 0) => format!("{x} + 1"),
            (false, 1) => format!("{x} * 3"),
            (false, 2) => format!("({x} >> 1) + n.to(tl.{e})"),
            (false, 3) => format!("{x} << 2"),
            (false, _) => format!("{x} + tl.full({}, 5, tl.{e})", list(&v.shape)),
        };
        let text = format!("({text}).to(tl.{e})");
        self.define(e, &v.shape, &text);
    }

    /// Two to three carried values, and a few statements that may use them.
    fn repeat(&mut self, depth: usize) {
        let carried = self.carried();
        let turns = self.choices.of(&["3", "n", "pid", "1"]);
        if self.choices.is(3) {
            self.line(&format!("k{depth} = 0"));
            self.line(&format!("while k{depth} < {turns}:"));
            self.line(&format!("    k{depth} += 1"));
        } else {
            self.line(&format!("for k{depth} in range(0, {turns}):"));
        }
        self.inside(depth, &carried);
    }

    /// A reduction or a scan by a function of the kernel's own, which is taken from the first element to the last.
    fn combined(&mut self) {
        let whole = |v: &Value| !v.shape.is_empty() && !v.is_float() && !v.is_bool();
        let Some(v) = self.pick(whole) else { return };
        let axis = self.choices.below(v.shape.len());
        let mut shape = v.shape.clone();
        let f = match self.choices.is(2) {
            true => "associative_scan",
            false => {
                shape.remove(axis);
                "reduce"
            }
        };
        let text = format!("tl.{f}({}, {axis}, combine).to(tl.{})", v.name, v.elem);
        self.define(v.elem, &shape, &text);
    }

    fn gather(&mut self) {
        let Some(v) = self.pick(|v| !v.shape.is_empty()) else { return };
        let whole = |w: &Value| w.shape == v.shape && !w.is_float() && !w.is_bool();
        let Some(index) = self.pick(whole) else { return };
        let axis = self.choices.below(v.shape.len());
        let last = v.shape[axis] - 1;
        let text = format!("tl.gather({}, ({}.to(tl.int32) & {last}), {axis})", v.name, index.name);
        self.define(v.elem, &v.shape, &text);
    }

    /// All programs add into the same places; what each finds there is known only if it is alone.
    fn atomic(&mut self) {
        let Some(v) = self.pick(|v| v.shape.len() == 1 && !v.is_bool()) else { return };
        let elem = self.choices.of(&["int32", "int64", "float32"]);
        let whole = Value { elem, ..v.clone() };
        let text = Self::converted(&v, elem);
        let sum = self.define(elem, &whole.shape, &text);
        let sum = self.summable(&sum);
        let number = self.outputs.len();
        self.outputs.push((elem, whole.lanes(), Agreement::Exact));
        let f = match elem {
            "float32" => "add",
            _ => self.choices.of(&["add", "max", "min", "xor"]),
        };
        let (lanes, half) = (whole.lanes(), whole.lanes().div_ceil(2));
        let mask = if self.choices.is(2) {
            format!(", mask={}", self.mask(&sum.shape))
        } else {
            String::new()
        };
        let text = format!(
            "tl.atomic_{f}(out{number} + tl.arange(0, {lanes}) % {half}, {}{mask})",
            sum.name
        );
        let old = self.define(elem, &sum.shape, &text);
        if self.programs > 1 {
            self.values.retain(|v| v.name != old.name);
        }
    }

    fn branch(&mut self, depth: usize) {
        let carried = self.carried();
        let condition = match self.pick(|v| v.shape.is_empty() && !v.is_bool()) {
            Some(v) if self.choices.is(2) => format!("{} > 0", v.name),
            _ => self.choices.of(&["n > 3", "pid == 0", "n < 3"]).to_string(),
        };
        self.line(&format!("if {condition}:"));
        let before = self.values.clone();
        self.inside(depth, &carried);
        if self.choices.is(2) {
            self.line("else:");
            self.values = before;
            self.inside(depth, &carried);
        }
    }

    /// Copies of values under names that are assigned again.
    fn carried(&mut self) -> Vec<Value> {
        let count = 1 + self.choices.below(3);
        let mut carried = Vec::new();
        for _ in 0..count {
            if let Some(v) = self.pick(|_| true) {
                let text = v.name.clone();
                carried.push(self.define(v.elem, &v.shape, &text));
            }
        }
        carried
    }

    /// Statements of a region; what they define is unknown afterwards.
    fn inside(&mut self, depth: usize, carried: &[Value]) {
        let known = self.values.len();
        self.indent += 1;
        for _ in 0..self.choices.below(4) {
            self.statement(depth + 1);
        }
        let mut assigned = String::from("pass");
        let mut names = Vec::new();
        let mut texts = Vec::new();
        for v in carried {
            let text = match self.choices.below(3) {
                0 => self.pick(|w| w.shape == v.shape && w.elem == v.elem).map(|w| w.name),
                1 if !v.is_bool() => {
                    Some(format!("({} + {}).to(tl.{})", v.name, self.partner(v), v.elem))
                }
                _ => self
                    .pick(|w| w.shape == v.shape && !w.is_bool())
                    .filter(|_| !v.is_bool())
                    .map(|w| Self::converted(&w, v.elem)),
            };
            names.push(v.name.clone());
            texts.push(text.unwrap_or_else(|| v.name.clone()));
        }
        if self.choices.is(2) {
            // All at once: one may be made of another's old value.
            assigned = format!("{} = {}", names.join(", "), texts.join(", "));
        } else {
            for (name, text) in names.iter().zip(&texts) {
                self.line(&format!("{name} = {text}"));
            }
        }
        self.line(&assigned);
        self.indent -= 1;
        self.values.truncate(known);
    }

    /// Two blocks joined along a new dimension, or one taken apart.
    fn pair(&mut self) {
        let halves = |v: &Value| v.shape.len() > 1 && v.shape.last() == Some(&2);
        if let Some(v) = self.pick(halves)
            && self.choices.is(2)
        {
            let (a, b) = (self.name(), self.name());
            self.line(&format!("{a}, {b} = tl.split({})", v.name));
            let shape = v.shape[..v.shape.len() - 1].to_vec();
            for name in [a, b] {
                self.values.push(Value { name, elem: v.elem, shape: shape.clone() });
            }
            return;
        }
        let Some(a) = self.pick(|v| (1..3).contains(&v.shape.len())) else { return };
        let b = self.pick(|v| v.shape == a.shape && v.elem == a.elem).unwrap_or(a.clone());
        let mut shape = a.shape.clone();
        shape.push(2);
        let text = format!("tl.join({}, {})", a.name, b.name);
        self.define(a.elem, &shape, &text);
    }

    /// A product of matrices, of whole numbers that any order adds up to the same.
    fn product(&mut self) {
        let Some(v) = self.pick(|v| !v.shape.is_empty() && v.lanes() == 256) else { return };
        if v.is_bool() {
            return;
        }
        let whole = format!("tl.reshape({}, [16, 16]).to(tl.int32)", v.name);
        let elem = self.choices.of(&["float32", "float16", "bfloat16"]);
        let (a, b) = (self.name(), self.name());
        self.line(&format!("{a} = ({whole} & 7).to(tl.{elem})"));
        self.line(&format!("{b} = tl.trans({a} - 3.0).to(tl.{elem})"));
        let text = format!("tl.dot({a}, {b})");
        self.define("float32", &[16, 16], &text);
    }

    /// Stores some values, the newest among them, and one by way of an elementary function.
    fn stores(&mut self) {
        let count = 1 + self.choices.below(3);
        let mut kept: Vec<Value> = self.values.last().cloned().into_iter().collect();
        for _ in 1..count {
            kept.extend(self.pick(|_| true));
        }
        for v in kept {
            let elem = if STORED.contains(&v.elem) { v.elem } else { "int64" };
            let text = Self::converted(&v, elem);
            self.store(elem, &v.shape, &text, Agreement::Exact);
        }
        if self.choices.is(2)
            && let Some(v) = self.pick(|v| !v.shape.is_empty() && !v.is_bool())
        {
            self.elementary(&v);
        }
    }

    fn elementary(&mut self, v: &Value) {
        let bounded = format!("tl.minimum(tl.maximum({}.to(tl.float32), -60.0), 60.0)", v.name);
        let positive = format!("(tl.abs({bounded}) + 0.0625)");
        let units = |units: f64| Agreement::Near { units, apart: 0.0 };
        let (text, agreement) = match self.choices.below(9) {
            0 => (format!("tl.exp({bounded})"), units(4.0)),
            1 => (format!("tl.exp2({bounded})"), units(4.0)),
            2 => (format!("tl.log({positive})"), Agreement::Near { units: 4.0, apart: 2e-7 }),
            3 => (format!("tl.log2({positive})"), Agreement::Near { units: 4.0, apart: 4e-7 }),
            4 => (format!("tl.sin({bounded})"), Agreement::Near { units: 4.0, apart: 1.3e-7 }),
            5 => (format!("tl.cos({bounded})"), Agreement::Near { units: 4.0, apart: 1.3e-7 }),
            6 => (format!("tl.erf({bounded})"), units(4.0)),
            // The function, a sum and a division, each rounded.
            7 => (format!("tl.sigmoid({bounded})"), units(8.0)),
            _ => (format!("tl.rsqrt({positive})"), Agreement::Exact),
        };
        self.store("float32", &v.shape.clone(), &text, agreement);
    }

    fn store(&mut self, elem: &'static str, shape: &[usize], text: &str, agreement: Agreement) {
        let lanes: usize = shape.iter().product();
        let number = self.outputs.len();
        self.outputs.push((elem, lanes * self.programs, agreement));
        let base = format!("out{number} + pid * {lanes}");
        if shape.is_empty() {
            self.line(&format!("tl.store({base}, {text})"));
            return;
        }
        let mut step = 1;
        let mut terms = Vec::new();
        let swapped = self.choices.is(4);
        let order: Vec<usize> =
            if swapped { (0..shape.len()).collect() } else { (0..shape.len()).rev().collect() };
        for d in order {
            terms.push(format!("{} * {step}", Self::arange(shape, d)));
            step *= shape[d];
        }
        let places = terms.join(" + ");
        match self.choices.is(3) {
            true => {
                let mask = self.mask(shape);
                self.line(&format!("tl.store({base} + {places}, {text}, mask={mask})"));
            }
            false => self.line(&format!("tl.store({base} + {places}, {text})")),
        }
    }

    fn finish(self) -> Kernel {
        let torch = |elem: &str| if elem == "int1" { "bool" } else { elem }.to_string();
        let inputs: Vec<String> = (0..self.inputs.len()).map(|i| format!("in{i}")).collect();
        let outputs: Vec<String> = (0..self.outputs.len()).map(|i| format!("out{i}")).collect();
        let mut text = String::from("# wrapper: run\n");
        for (name, elem) in inputs.iter().zip(&self.inputs) {
            let _ = writeln!(text, "# input: {name} {} [{ELEMENTS}] int 0 2", torch(elem));
        }
        let params = [inputs.clone(), outputs.clone()].concat().join(", ");
        let _ = write!(
            text,
            "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\ndef combine(a, b):\n    return a * 2 + b\n\n\n@triton.jit\ndef kernel({params}, n, scale):\n    pid = tl.program_id(0)\n{}\n\ndef run({}):\n",
            self.body,
            inputs.join(", "),
        );
        for (name, (elem, lanes, _)) in outputs.iter().zip(&self.outputs) {
            let _ = writeln!(
                text,
                "    {name} = torch.zeros(({lanes},), dtype=torch.{}, device=in0.device)",
                torch(elem)
            );
        }
        let _ = writeln!(text, "    kernel[({},)]({params}, 5, 0.75)", self.programs);
        let _ = writeln!(text, "    return {}", outputs.join(", "));
        let agreements = self.outputs.iter().map(|(_, _, agreement)| *agreement).collect();
        Kernel { text, inputs: self.inputs, outputs: agreements }
    }
}
