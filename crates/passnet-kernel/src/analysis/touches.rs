//! Abstract interpretation of a kernel for one launch: what each integer, pointer and mask can be.

use super::linear::{Linear, Sym, SymKind, Symbol};
use crate::ir::{BinaryOp, Block, CmpOp, Function, Inst, Literal, Loc, Op, UnaryOp, ValueId};
use crate::plan::{ArgValue, Launch};
use crate::types::Elem;

/// What is known about a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Known {
    /// An integer, exactly.
    Int(Linear),
    /// Bytes from the start of the buffer of a parameter.
    Pointer {
        param: usize,
        bytes: Linear,
    },
    /// Somewhere in the buffer of a parameter: accesses elsewhere fault.
    Within(usize),
    /// All of these are true: `form < 0`.
    Mask(Vec<Linear>),
    Nothing,
}

impl Known {
    /// The parameter to whose buffer a pointer belongs.
    pub(super) fn owner(&self) -> Option<usize> {
        match self {
            Known::Pointer { param, .. } | Known::Within(param) => Some(*param),
            _ => None,
        }
    }

    /// The same kind of value with another form; `lost` for a pointer, and for what has no form, where there is none.
    pub(super) fn moved(&self, form: impl Fn(&Linear) -> Option<Linear>, lost: Known) -> Known {
        match self {
            Known::Int(l) => form(l).map_or(Known::Nothing, Known::Int),
            Known::Pointer { param, bytes } => {
                form(bytes).map_or(lost, |bytes| Known::Pointer { param: *param, bytes })
            }
            _ => lost,
        }
    }
}

/// One load, store or atomic of the kernel.
#[derive(Debug, Clone)]
pub(crate) struct Touch {
    pub(crate) param: Option<usize>,
    pub(crate) bytes: Option<Linear>,
    pub(crate) shape: Vec<u32>,
    pub(crate) elem: Elem,
    pub(crate) store: bool,
    pub(crate) atomic: bool,
    pub(crate) has_mask: bool,
    /// Constraints that hold wherever the access happens: `form < 0`.
    pub(crate) conditions: Vec<Linear>,
    /// Whether every program certainly gets here.
    pub(crate) unconditional: bool,
    pub(crate) loc: Loc,
}

/// An integer operation whose result may leave its type.
#[derive(Debug, Clone)]
pub(crate) struct Overflow {
    pub(crate) elem: Elem,
    pub(crate) low: i128,
    pub(crate) high: i128,
    pub(crate) loc: Loc,
}

#[derive(Debug, Default)]
pub(crate) struct Analysis {
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) touches: Vec<Touch>,
    pub(crate) overflows: Vec<Overflow>,
    /// Symbols of program ids with more than one program.
    pub(crate) programs: Vec<Sym>,
}

pub(super) struct Interp<'f> {
    f: &'f Function,
    launch: &'f Launch,
    pub(super) out: Analysis,
    pub(super) known: Vec<Known>,
    program: [Option<Sym>; 3],
    /// How deep inside branches and loops.
    pub(super) depth: usize,
    /// Conditions of the enclosing branches.
    pub(super) path: Vec<Linear>,
    /// First passes over loop bodies record nothing.
    pub(super) quiet: bool,
}

pub(crate) fn analyze(f: &Function, launch: &Launch) -> Analysis {
    let mut interp = Interp {
        f,
        launch,
        out: Analysis::default(),
        known: vec![Known::Nothing; f.types.len()],
        program: [None; 3],
        depth: 0,
        path: Vec::new(),
        quiet: false,
    };
    for axis in 0..3 {
        if launch.grid[axis] > 1 {
            let sym = interp.symbol(SymKind::Program, 0, i64::from(launch.grid[axis]) - 1);
            interp.program[axis] = Some(sym);
            interp.out.programs.push(sym);
        }
    }
    for (index, param) in f.params.iter().enumerate() {
        let arg = launch.args.iter().find(|a| a.name == param.name);
        interp.known[param.value.index()] = match arg.map(|a| &a.value) {
            Some(ArgValue::Buffer(view)) => {
                let start = view.offset.saturating_mul(view.dtype.size() as i64);
                Known::Pointer { param: index, bytes: Linear::constant(start) }
            }
            Some(ArgValue::Int { value, .. }) => Known::Int(Linear::constant(*value)),
            _ => Known::Nothing,
        };
    }
    interp.block(&f.body);
    interp.out
}

impl Interp<'_> {
    pub(super) fn symbol(&mut self, kind: SymKind, low: i64, high: i64) -> Sym {
        self.out.symbols.push(Symbol { kind, low, high });
        Sym(self.out.symbols.len() as u32 - 1)
    }

    pub(super) fn int(&self, v: ValueId) -> Option<&Linear> {
        match &self.known[v.index()] {
            Known::Int(form) => Some(form),
            _ => None,
        }
    }

    pub(super) fn block(&mut self, block: &Block) {
        for inst in &block.insts {
            let result = self.inst(inst);
            if let (Some(&r), Some(known)) = (inst.results.first(), result) {
                self.known[r.index()] = known;
            }
        }
    }

    fn inst(&mut self, inst: &Inst) -> Option<Known> {
        let arg = |i: usize| inst.args[i];
        match &inst.op {
            Op::Const(Literal::Int(i)) => Some(Known::Int(Linear::constant(*i))),
            Op::ProgramId(axis) => Some(Known::Int(match self.program[usize::from(*axis)] {
                Some(sym) => Linear::symbol(sym),
                None => Linear::constant(0),
            })),
            Op::NumPrograms(axis) => {
                Some(Known::Int(Linear::constant(i64::from(self.launch.grid[usize::from(*axis)]))))
            }
            Op::Arange(start) => {
                Some(Known::Int(Linear { constant: *start, lanes: vec![1], ..Linear::default() }))
            }
            Op::Splat => {
                let rank = self.f.ty(inst.results[0]).shape.len();
                Some(relaned(&self.known[arg(0).index()], |_| vec![0; rank]))
            }
            Op::Broadcast => {
                let (from, to) =
                    (self.f.ty(arg(0)).shape.clone(), self.f.ty(inst.results[0]).shape.clone());
                // A block whose lanes are all the same may be known as a plain number, without lanes.
                Some(relaned(&self.known[arg(0).index()], |lanes| {
                    let lane = |d: usize| lanes.get(d).copied().unwrap_or(0);
                    (0..to.len()).map(|d| if from[d] == to[d] { lane(d) } else { 0 }).collect()
                }))
            }
            Op::Reshape => self.reshape(inst),
            Op::Permute(order) => Some(relaned(&self.known[arg(0).index()], |lanes| {
                order.iter().map(|&d| lanes.get(usize::from(d)).copied().unwrap_or(0)).collect()
            })),
            Op::Binary(op) => self.binary(inst, *op),
            Op::Unary(UnaryOp::Neg) => self.int(arg(0)).and_then(|x| x.times(-1)).map(Known::Int),
            Op::Cast
                if self
                    .f
                    .ty(inst.results[0])
                    .num()
                    .is_some_and(|e| e.is_int() && e.bits() >= 32) =>
            {
                self.int(arg(0)).cloned().map(Known::Int)
            }
            Op::Compare(op) => self.compare(inst, *op),
            Op::AddPtr => {
                let (param, bytes) = match &self.known[arg(0).index()] {
                    Known::Pointer { param, bytes } => (*param, bytes),
                    Known::Within(param) => return Some(Known::Within(*param)),
                    _ => return None,
                };
                let size = self.f.ty(arg(0)).elem().size() as i64;
                let moved = self.int(arg(1)).and_then(|offset| bytes.plus(offset, size));
                Some(moved.map_or(Known::Within(param), |bytes| Known::Pointer { param, bytes }))
            }
            Op::Load { mask, .. } => {
                self.touch(inst, false, false, mask.then(|| arg(1)));
                None
            }
            Op::Store { mask } => {
                self.touch(inst, true, false, mask.then(|| arg(2)));
                None
            }
            Op::Atomic { mask, .. } => {
                self.touch(inst, true, true, mask.then(|| arg(2)));
                None
            }
            Op::AtomicCas => {
                self.touch(inst, true, true, None);
                None
            }
            Op::If => {
                self.branch(inst);
                None
            }
            Op::For => {
                self.for_loop(inst);
                None
            }
            Op::While => {
                self.depth += 1;
                for region in &inst.regions {
                    self.block(region);
                }
                self.depth -= 1;
                None
            }
            _ => None,
        }
    }

    fn reshape(&mut self, inst: &Inst) -> Option<Known> {
        let from = self.f.ty(inst.args[0]).shape.clone();
        let to = self.f.ty(inst.results[0]).shape.clone();
        let ones_only = from.iter().filter(|&&d| d != 1).eq(to.iter().filter(|&&d| d != 1));
        if !ones_only {
            return None;
        }
        Some(relaned(&self.known[inst.args[0].index()], |lanes| {
            let mut kept = (0..from.len()).filter(|&d| from[d] != 1).map(|d| lanes[d]);
            to.iter().map(|&d| if d == 1 { 0 } else { kept.next().unwrap_or(0) }).collect()
        }))
    }

    fn binary(&mut self, inst: &Inst, op: BinaryOp) -> Option<Known> {
        let ty = self.f.ty(inst.results[0]);
        if ty.num() == Some(Elem::I1) {
            let (a, b) = (&self.known[inst.args[0].index()], &self.known[inst.args[1].index()]);
            return match (op, a, b) {
                (BinaryOp::And, Known::Mask(a), Known::Mask(b)) => {
                    Some(Known::Mask(a.iter().chain(b).cloned().collect()))
                }
                // What is unknown about one side leaves what is known about the other.
                (BinaryOp::And, Known::Mask(a), _) | (BinaryOp::And, _, Known::Mask(a)) => {
                    Some(Known::Mask(a.clone()))
                }
                _ => None,
            };
        }
        let elem = ty.num()?;
        if elem.is_float() {
            return None;
        }
        let shape = ty.shape.to_vec();
        let (x, y) = (self.int(inst.args[0])?.clone(), self.int(inst.args[1])?.clone());
        let exact = match op {
            BinaryOp::Add => x.plus(&y, 1),
            BinaryOp::Sub => x.plus(&y, -1),
            BinaryOp::Mul => match (x.as_constant(), y.as_constant()) {
                (_, Some(k)) => x.times(k),
                (Some(k), _) => y.times(k),
                _ => None,
            },
            BinaryOp::Shl => {
                y.as_constant().filter(|k| (0..62).contains(k)).and_then(|k| x.times(1 << k))
            }
            BinaryOp::Div | BinaryOp::Rem => {
                self.divided(&x, y.as_constant()?, op == BinaryOp::Div)
            }
            _ => None,
        };
        let Some(form) = exact else { return self.bounded(inst, op, &x, &y, elem) };
        let (low, high) = form.range(&self.out.symbols, &shape);
        let (type_low, type_high) = elem.int_range();
        if low < type_low || high > type_high {
            if !self.quiet {
                self.out.overflows.push(Overflow { elem, low, high, loc: inst.loc });
            }
            return None;
        }
        Some(Known::Int(form))
    }

    /// An opaque scalar whose range at least is known.
    fn bounded(
        &mut self,
        inst: &Inst,
        op: BinaryOp,
        x: &Linear,
        y: &Linear,
        elem: Elem,
    ) -> Option<Known> {
        if !x.is_uniform() || !y.is_uniform() || !self.f.ty(inst.results[0]).is_scalar() {
            return None;
        }
        let (a, b) = (x.range(&self.out.symbols, &[]), y.range(&self.out.symbols, &[]));
        let (low, high) = match op {
            BinaryOp::Min => (a.0.min(b.0), a.1.min(b.1)),
            BinaryOp::Max => (a.0.max(b.0), a.1.max(b.1)),
            BinaryOp::Mul if a.0 >= 0 && b.0 >= 0 => (a.0 * b.0, a.1 * b.1),
            BinaryOp::Div if a.0 >= 0 && b.0 > 0 => (a.0 / b.1, a.1 / b.0),
            BinaryOp::Rem if a.0 >= 0 && b.0 > 0 => (0, (b.1 - 1).min(a.1)),
            _ => return None,
        };
        let (type_low, type_high) = elem.int_range();
        if low < type_low || high > type_high {
            return None;
        }
        let sym = self.symbol(SymKind::Opaque, i64::try_from(low).ok()?, i64::try_from(high).ok()?);
        Some(Known::Int(Linear::symbol(sym)))
    }

    /// Quotient and remainder of a non-negative scalar by a positive constant.
    fn divided(&mut self, x: &Linear, divisor: i64, quotient: bool) -> Option<Linear> {
        if divisor <= 0 || !x.is_uniform() {
            return None;
        }
        let mut x = x.clone();
        x.lanes.clear();
        let (low, high) = x.range(&self.out.symbols, &[]);
        if low < 0 {
            return None;
        }
        if let Some(value) = x.as_constant() {
            let part = if quotient { value / divisor } else { value % divisor };
            return Some(Linear::constant(part));
        }
        if high < i128::from(divisor) {
            return Some(if quotient { Linear::constant(0) } else { x });
        }
        let found = self.out.symbols.iter().position(|s| {
            matches!(&s.kind, SymKind::Part { of, divisor: d, quotient: q } if *of == x && *d == divisor && *q == quotient)
        });
        let sym = match found {
            Some(i) => Sym(i as u32),
            None => {
                let (low, high) = if quotient {
                    (low / i128::from(divisor), high / i128::from(divisor))
                } else {
                    (0, i128::from(divisor) - 1)
                };
                let kind = SymKind::Part { of: x, divisor, quotient };
                self.symbol(kind, i64::try_from(low).ok()?, i64::try_from(high).ok()?)
            }
        };
        Some(Linear::symbol(sym))
    }

    fn compare(&mut self, inst: &Inst, op: CmpOp) -> Option<Known> {
        let (x, y) = (self.int(inst.args[0])?, self.int(inst.args[1])?);
        let less = |a: &Linear, b: &Linear, or_equal: bool| {
            let mut d = a.plus(b, -1)?;
            if or_equal {
                d.constant = d.constant.checked_sub(1)?;
            }
            Some(d)
        };
        let forms = match op {
            CmpOp::Lt => vec![less(x, y, false)?],
            CmpOp::Le => vec![less(x, y, true)?],
            CmpOp::Gt => vec![less(y, x, false)?],
            CmpOp::Ge => vec![less(y, x, true)?],
            CmpOp::Eq => vec![less(x, y, true)?, less(y, x, true)?],
            CmpOp::Ne => return None,
        };
        Some(Known::Mask(forms))
    }

    fn touch(&mut self, inst: &Inst, store: bool, atomic: bool, mask: Option<ValueId>) {
        if self.quiet {
            return;
        }
        let ptr = inst.args[0];
        let (param, bytes) = match &self.known[ptr.index()] {
            Known::Pointer { param, bytes } => (Some(*param), Some(bytes.clone())),
            Known::Within(param) => (Some(*param), None),
            _ => (None, None),
        };
        let mut conditions = self.path.clone();
        if let Some(m) = mask
            && let Known::Mask(forms) = &self.known[m.index()]
        {
            conditions.extend(forms.iter().cloned());
        }
        let ty = self.f.ty(ptr);
        self.out.touches.push(Touch {
            param,
            bytes,
            shape: ty.shape.to_vec(),
            elem: ty.elem(),
            store,
            atomic,
            has_mask: mask.is_some(),
            conditions,
            unconditional: self.depth == 0,
            loc: inst.loc,
        });
    }
}

/// The same value with its lanes moved.
fn relaned(known: &Known, mut lanes: impl FnMut(&[i64]) -> Vec<i64>) -> Known {
    let mut moved = |l: &Linear| Linear { lanes: lanes(&l.lanes), ..l.clone() };
    match known {
        Known::Int(l) => Known::Int(moved(l)),
        Known::Pointer { param, bytes } => Known::Pointer { param: *param, bytes: moved(bytes) },
        Known::Within(param) => Known::Within(*param),
        Known::Mask(forms) => Known::Mask(forms.iter().map(moved).collect()),
        Known::Nothing => Known::Nothing,
    }
}
