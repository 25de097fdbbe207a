//! A slow evaluator of the tile IR that is meant to be obviously right: one number after the other, every value a list of
//! its lanes, nothing fused, nothing held in another form.
//!
//! Tests hold the executor against it. Where an operation is exact, the bits agree (any NaN is as good as any other); sums and
//! products along an axis are taken from the first element to the last, elementary functions are those of double precision,
//! rounded once.

mod blocks;
mod lane;

use crate::ir::{AtomicOp, BinaryOp, Block, Function, Inst, Op, ValueId};
use crate::plan::{ArgValue, Launch};
use crate::types::{Elem, Type};
use lane::Lane;

/// Buffers begin this many addresses apart; the first at this address.
const APART: i128 = 1 << 40;

/// Loop iterations a program may run.
const MAX_ITERATIONS: u64 = 1 << 20;

/// Runs every program of a launch, in the order of their numbers, on the plan's buffers.
pub fn launch(launch: &Launch, f: &Function, buffers: &mut [Vec<u8>]) -> Result<(), String> {
    let [x, y, z] = launch.grid;
    for program in 0..u64::from(x) * u64::from(y) * u64::from(z) {
        let id = [
            program % u64::from(x),
            program / u64::from(x) % u64::from(y),
            program / u64::from(x) / u64::from(y),
        ];
        let mut evaluator = Evaluator {
            f,
            id,
            grid: launch.grid,
            values: vec![None; f.types.len()],
            buffers,
            iterations: 0,
        };
        for param in &f.params {
            let arg = launch.args.iter().find(|a| a.name == param.name);
            let arg = arg.ok_or_else(|| format!("no argument for `{}`", param.name))?;
            let lane = argument(&arg.value, f.ty(param.value))?;
            evaluator.set(param.value, vec![lane]);
        }
        evaluator.block(&f.body)?;
    }
    Ok(())
}

fn argument(value: &ArgValue, ty: &Type) -> Result<Lane, String> {
    Ok(match value {
        ArgValue::Buffer(view) => {
            let bytes = i128::from(view.offset) * view.dtype.size() as i128;
            Lane::Int((view.buffer as i128 + 1) * APART + bytes)
        }
        ArgValue::Int { value, elem } => Lane::Int(lane::wrap(i128::from(*value), *elem)),
        ArgValue::Float(x) => lane::cast(Lane::Float(*x), Elem::F64, ty.elem()),
        ArgValue::Const(_) => return Err("a constant is no parameter".into()),
    })
}

type Lanes = Vec<Lane>;

struct Evaluator<'a> {
    f: &'a Function,
    id: [u64; 3],
    grid: [u32; 3],
    values: Vec<Option<Lanes>>,
    buffers: &'a mut [Vec<u8>],
    iterations: u64,
}

impl<'a> Evaluator<'a> {
    fn set(&mut self, v: ValueId, lanes: Lanes) {
        self.values[v.index()] = Some(lanes);
    }

    fn get(&self, v: ValueId) -> Result<&Lanes, String> {
        self.values[v.index()].as_ref().ok_or_else(|| format!("{v} has no value"))
    }

    fn scalar(&self, v: ValueId) -> Result<Lane, String> {
        Ok(self.get(v)?[0])
    }

    /// Runs a region and gives what it yields.
    fn block(&mut self, block: &'a Block) -> Result<Vec<Lanes>, String> {
        for inst in &block.insts {
            self.inst(inst).map_err(|e| format!("line {}: {e}", inst.loc.line))?;
        }
        block.yields.iter().map(|v| self.get(*v).cloned()).collect()
    }

    fn tick(&mut self) -> Result<(), String> {
        self.iterations += 1;
        if self.iterations > MAX_ITERATIONS { Err("loop without end".into()) } else { Ok(()) }
    }

    fn inst(&mut self, inst: &'a Inst) -> Result<(), String> {
        let results: Vec<Lanes> = match &inst.op {
            Op::If | Op::For | Op::While => self.control(inst)?,
            Op::ReduceWith { axis } => self.combine(inst, *axis, None)?,
            Op::ScanWith { axis, reverse } => self.combine(inst, *axis, Some(*reverse))?,
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } | Op::AtomicCas => {
                self.memory(inst)?
            }
            Op::ProgramId(axis) => {
                vec![vec![Lane::Int(i128::from(self.id[usize::from(*axis)]))]]
            }
            Op::NumPrograms(axis) => {
                vec![vec![Lane::Int(i128::from(self.grid[usize::from(*axis)]))]]
            }
            op if op.is_elementwise() => vec![self.elementwise(inst)?],
            _ => {
                let args: Vec<&Lanes> =
                    inst.args.iter().map(|v| self.get(*v)).collect::<Result<_, _>>()?;
                let types = |values: &[ValueId]| -> Vec<&'a Type> {
                    values.iter().map(|v| self.f.ty(*v)).collect()
                };
                blocks::evaluate(&inst.op, &args, &types(&inst.args), &types(&inst.results))?
            }
        };
        for (v, lanes) in inst.results.iter().zip(results) {
            debug_assert_eq!(lanes.len(), self.f.ty(*v).numel());
            self.set(*v, lanes);
        }
        Ok(())
    }

    fn elementwise(&self, inst: &Inst) -> Result<Lanes, String> {
        let result = self.f.ty(inst.results[0]);
        let args: Vec<&Lanes> = inst.args.iter().map(|v| self.get(*v)).collect::<Result<_, _>>()?;
        let first = self.f.ty(inst.args[0]);
        let elem = first.elem();
        (0..result.numel())
            .map(|i| {
                let arg = |n: usize| args[n][i];
                match &inst.op {
                    Op::Unary(op) => lane::unary(*op, arg(0), elem),
                    Op::Binary(op) => lane::binary(*op, arg(0), arg(1), elem),
                    Op::Compare(op) => Ok(Lane::truth(lane::compare(*op, arg(0), arg(1)))),
                    Op::Select => Ok(if arg(0).is_true() { arg(1) } else { arg(2) }),
                    Op::Fma => lane::fma(arg(0), arg(1), arg(2), elem),
                    Op::Cast => Ok(lane::cast(arg(0), elem, result.elem())),
                    Op::Bitcast if first.is_ptr() || result.is_ptr() => Ok(arg(0)),
                    Op::Bitcast => Ok(lane::from_bits(lane::bits(arg(0), elem), result.elem())),
                    Op::AddPtr => Ok(Lane::Int(arg(0).int() + arg(1).int() * elem.size() as i128)),
                    other => Err(format!("{other} is not elementwise")),
                }
            })
            .collect()
    }

    fn control(&mut self, inst: &'a Inst) -> Result<Vec<Lanes>, String> {
        let carried = |this: &Self, values: &[ValueId]| -> Result<Vec<Lanes>, String> {
            values.iter().map(|v| this.get(*v).cloned()).collect()
        };
        match inst.op {
            Op::If => {
                let taken = usize::from(!self.scalar(inst.args[0])?.is_true());
                self.block(&inst.regions[taken])
            }
            Op::For => {
                let mut at = self.scalar(inst.args[0])?.int();
                let (end, step) =
                    (self.scalar(inst.args[1])?.int(), self.scalar(inst.args[2])?.int());
                let mut values = carried(self, &inst.args[3..])?;
                while (step > 0 && at < end) || (step < 0 && at > end) {
                    self.tick()?;
                    let entry = std::iter::once(vec![Lane::Int(at)]).chain(values);
                    for (param, lanes) in inst.regions[0].params.iter().zip(entry) {
                        self.set(*param, lanes);
                    }
                    values = self.block(&inst.regions[0])?;
                    at += step;
                }
                Ok(values)
            }
            _ => {
                let mut values = carried(self, &inst.args)?;
                loop {
                    self.tick()?;
                    for region in &inst.regions {
                        for (param, lanes) in region.params.iter().zip(&values) {
                            self.set(*param, lanes.clone());
                        }
                    }
                    if !self.block(&inst.regions[0])?[0][0].is_true() {
                        return Ok(values);
                    }
                    values = self.block(&inst.regions[1])?;
                }
            }
        }
    }

    /// A reduction or a scan whose step is a region.
    fn combine(
        &mut self,
        inst: &'a Inst,
        axis: u8,
        scan: Option<bool>,
    ) -> Result<Vec<Lanes>, String> {
        let shape = &self.f.ty(inst.args[0]).shape;
        let inputs: Vec<Lanes> =
            inst.args.iter().map(|v| self.get(*v).cloned()).collect::<Result<_, _>>()?;
        let mut outputs: Vec<Lanes> =
            inst.results.iter().map(|v| vec![Lane::Int(0); self.f.ty(*v).numel()]).collect();
        let region = &inst.regions[0];
        for (number, line) in blocks::lines(shape, usize::from(axis)).into_iter().enumerate() {
            let line: Vec<usize> = match scan {
                Some(true) => line.into_iter().rev().collect(),
                _ => line,
            };
            let mut sums: Vec<Lane> = inputs.iter().map(|lanes| lanes[line[0]]).collect();
            for (step, &at) in line.iter().enumerate() {
                if step > 0 {
                    let elements = inputs.iter().map(|lanes| lanes[at]);
                    let entry: Vec<Lane> = sums.iter().copied().chain(elements).collect();
                    for (param, lane) in region.params.iter().zip(entry) {
                        self.set(*param, vec![lane]);
                    }
                    sums = self.block(region)?.into_iter().map(|lanes| lanes[0]).collect();
                }
                let place = if scan.is_some() { at } else { number };
                for (output, sum) in outputs.iter_mut().zip(&sums) {
                    output[place] = *sum;
                }
            }
        }
        Ok(outputs)
    }

    /// The bytes of one element.
    fn at(&mut self, address: i128, elem: Elem) -> Result<&mut [u8], String> {
        // An address a little before a buffer is meant to be in it.
        let buffer = (address + APART / 2).div_euclid(APART) - 1;
        let offset = address - (buffer + 1) * APART;
        let bytes = usize::try_from(buffer).ok().and_then(|b| self.buffers.get_mut(b));
        let range = usize::try_from(offset).ok().map(|from| from..from + elem.size());
        bytes
            .zip(range)
            .and_then(|(bytes, range)| bytes.get_mut(range))
            .ok_or_else(|| format!("address {address:#x} is in no buffer"))
    }

    fn memory(&mut self, inst: &Inst) -> Result<Vec<Lanes>, String> {
        let ty = self.f.ty(inst.args[0]);
        let elem = ty.elem();
        let args: Vec<Lanes> =
            inst.args.iter().map(|v| self.get(*v).cloned()).collect::<Result<_, _>>()?;
        let (mask, other) = match inst.op {
            Op::Load { mask, other } => (mask.then_some(1), other.then_some(1 + usize::from(mask))),
            Op::Store { mask } | Op::Atomic { mask, .. } => (mask.then_some(2), None),
            _ => (None, None),
        };
        let mut results = Vec::new();
        #[expect(clippy::needless_range_loop, reason = "lane `i` of every operand")]
        for i in 0..ty.numel() {
            let zero = lane::cast(Lane::Int(0), Elem::I32, elem);
            if mask.is_some_and(|m| !args[m][i].is_true()) {
                results.push(other.map_or(zero, |o| args[o][i]));
                continue;
            }
            let place = self.at(args[0][i].int(), elem)?;
            let old = lane::from_bytes(place, elem);
            let new = match &inst.op {
                Op::Load { .. } => old,
                Op::Store { .. } => args[1][i],
                Op::Atomic { op, .. } => atomic(*op, old, args[1][i], elem)?,
                _ if lane::compare(crate::ir::CmpOp::Eq, old, args[1][i]) => args[2][i],
                _ => old,
            };
            if !matches!(inst.op, Op::Load { .. }) {
                place.copy_from_slice(&lane::to_bytes(new, elem));
            }
            results.push(old);
        }
        Ok(vec![results])
    }
}

fn atomic(op: AtomicOp, old: Lane, value: Lane, elem: Elem) -> Result<Lane, String> {
    let op = match op {
        AtomicOp::Xchg => return Ok(value),
        AtomicOp::Add => BinaryOp::Add,
        AtomicOp::Max => BinaryOp::Max,
        AtomicOp::Min => BinaryOp::Min,
        AtomicOp::And => BinaryOp::And,
        AtomicOp::Or => BinaryOp::Or,
        AtomicOp::Xor => BinaryOp::Xor,
    };
    lane::binary(op, old, value, elem)
}
