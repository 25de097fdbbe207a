//! Several elementwise functions in one pass over memory.
//!
//! A chain is a small register program that runs on one cache-sized block at a time. Every link computes and rounds
//! exactly as the operation alone would, so a chain's results are the same bits; only the traffic between is gone.

use super::binary::{self, Binary};
use super::blocks::{BLOCK, Block, Plan};
use super::unary::{self, Unary};
use crate::native::error::Result;
use crate::native::tensor::convert::{Load, Store, cast_mut, loader, storer};
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::{self, Dims, Operand};
use crate::native::tensor::{Buffer, Scalar, Tensor};
use passnet_cpu::parallel::{GRAIN, Shared, for_each_task};
use passnet_graph::DType;
use smallvec::SmallVec;

/// What a link computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Function {
    Unary(Unary),
    /// A power by a number: how it is computed depends on the type.
    Power(Scalar),
    Binary(Binary),
    /// `a * b + c`, rounded once.
    MultiplyAdd,
}

/// Where an operand comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Source {
    Input(usize),
    Register(usize),
    Constant(f64),
}

#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) function: Function,
    pub(crate) operands: SmallVec<[Source; 3]>,
    /// Where the result goes; never a register that an operand of the same link is in.
    pub(crate) register: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub(crate) links: Vec<Link>,
    pub(crate) registers: usize,
    /// Registers that become tensors; nothing overwrites them once they hold their result.
    pub(crate) outputs: Vec<usize>,
}

impl Chain {
    /// The tensors of the outputs, or nothing where the operands do not suit a single pass: then the operations are to be
    /// run one by one, which also words their errors. Results are of the float type `dtype`.
    pub(crate) fn run(&self, inputs: &[Tensor], dtype: DType) -> Result<Option<Vec<Tensor>>> {
        let shapes: SmallVec<[&[usize]; 8]> = inputs.iter().map(Tensor::shape).collect();
        let Ok(shape) = layout::broadcast_shapes(&shapes) else { return Ok(None) };
        let Some(order) = self.order(inputs, &shape) else { return Ok(None) };
        if shape.contains(&0) {
            return Ok(None);
        }
        let expanded =
            inputs.iter().map(|t| t.expand_to(&shape)).collect::<Result<SmallVec<[_; 8]>>>()?;
        if dtype == DType::Float64 {
            self.compute::<f64>(&expanded, &order, dtype).map(Some)
        } else {
            self.compute::<f32>(&expanded, &order, dtype).map(Some)
        }
    }

    /// The one memory order that every link's result has in torch; nothing where they differ or have another shape.
    fn order(&self, inputs: &[Tensor], shape: &[usize]) -> Option<Dims> {
        let natural: Dims = (0..shape.len()).collect();
        let plain = |input: &Tensor| input.shape() == shape && input.is_contiguous();
        let of_inputs = |link: &Link| {
            link.operands.iter().all(|o| matches!(o, Source::Input(_) | Source::Constant(_)))
        };
        let mut known: Option<(Dims, Dims)> = None;
        for link in &self.links {
            if link.function == Function::MultiplyAdd && !fits_channels(link, inputs, shape) {
                return None;
            }
            let simple = link.operands.iter().all(|operand| match operand {
                Source::Input(at) => plain(&inputs[*at]),
                Source::Register(_) => known.as_ref().is_some_and(|(order, _)| *order == natural),
                Source::Constant(_) => true,
            });
            let order = if simple {
                natural.clone()
            } else {
                let operands: SmallVec<[Operand<'_>; 3]> = link
                    .operands
                    .iter()
                    .filter_map(|operand| match operand {
                        Source::Input(at) => Some((inputs[*at].shape(), inputs[*at].strides())),
                        Source::Register(_) => {
                            known.as_ref().map(|(_, strides)| (shape, strides.as_slice()))
                        }
                        Source::Constant(_) => None,
                    })
                    .collect();
                if of_inputs(link) {
                    let shapes: SmallVec<[&[usize]; 3]> =
                        operands.iter().map(|(shape, _)| *shape).collect();
                    if layout::broadcast_shapes(&shapes).ok()?.as_slice() != shape {
                        return None;
                    }
                }
                layout::pointwise_order(shape, &operands)
            };
            match &known {
                Some((first, _)) if *first != order => return None,
                Some(_) => {}
                None => {
                    let strides = layout::dense(shape, order.iter().rev().copied());
                    known = Some((order, strides));
                }
            }
        }
        known.map(|(order, _)| order)
    }

    fn compute<C: Real>(
        &self,
        inputs: &[Tensor],
        order: &[usize],
        dtype: DType,
    ) -> Result<Vec<Tensor>> {
        let shape: Dims = order.iter().map(|&d| inputs[0].shape()[d]).collect();
        let (count, size) = (layout::numel(&shape)?, dtype.size());
        let mut buffers = self
            .outputs
            .iter()
            .map(|_| Buffer::<u8>::for_elements(count, dtype))
            .collect::<Result<Vec<_>>>()?;
        let links = self.resolve::<C>(dtype);
        let plan = Plan::<C>::new(inputs, order)?;
        let machine = Machine {
            links: &links,
            outputs: &self.outputs,
            registers: self.registers,
            rounding: Rounding::new(dtype),
        };
        let shared: SmallVec<[Shared<'_, u8>; 2]> =
            buffers.iter_mut().map(|buffer| Shared::new(buffer)).collect();
        let piece = if count < 2 * GRAIN { count } else { GRAIN };
        for_each_task(count.div_ceil(piece.max(1)), |task, _| {
            let start = task * piece;
            let bytes = piece.min(count - start) * size;
            // SAFETY: each task has its own piece of every buffer.
            let mut pieces: SmallVec<[&mut [u8]; 2]> =
                shared.iter().map(|all| unsafe { all.slice(start * size, bytes) }).collect();
            machine.run(&plan, start, &mut pieces);
        });
        drop((plan, shared));
        buffers
            .into_iter()
            .map(|buffer| {
                let dense = Tensor::from_memory(buffer.into_memory(), dtype, &shape)?;
                Ok(Tensor::from_ordered(dense, order))
            })
            .collect()
    }

    /// Functions and constants as they are for one type.
    fn resolve<C: Real>(&self, dtype: DType) -> Vec<Resolved<C>> {
        let narrow = dtype.size() == 2;
        self.links
            .iter()
            .map(|link| {
                let function = match link.function {
                    Function::Power(exponent) => Function::Unary(binary::power(exponent, dtype)),
                    function => function,
                };
                let operands = link.operands.iter().enumerate().map(|(place, operand)| {
                    match (*operand, function) {
                        (Source::Input(at), _) => From::Input(at),
                        (Source::Register(at), _) => From::Register(at),
                        (Source::Constant(value), Function::Binary(op))
                            if narrow && !op.keeps_number(place) =>
                        {
                            From::Constant(C::from_f64(rounded(value, dtype)))
                        }
                        (Source::Constant(value), _) => From::Constant(C::from_f64(value)),
                    }
                });
                Resolved { function, operands: operands.collect(), register: link.register }
            })
            .collect()
    }
}

/// Whether a normalisation's input has the full shape and its tables one value per channel.
fn fits_channels(link: &Link, inputs: &[Tensor], shape: &[usize]) -> bool {
    link.operands.iter().enumerate().all(|(place, operand)| match operand {
        Source::Input(at) if place == 0 => inputs[*at].shape() == shape,
        Source::Input(at) => {
            let table = inputs[*at].shape();
            table.len() == shape.len() && table.len() >= 2 && table[1] == shape[1]
        }
        _ => true,
    })
}

/// A number as a half-precision type holds it.
fn rounded(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => half::f16::from_f32(value as f32).to_f64(),
        DType::BFloat16 => half::bf16::from_f32(value as f32).to_f64(),
        _ => value,
    }
}

enum From<C> {
    Input(usize),
    Register(usize),
    Constant(C),
}

struct Resolved<C> {
    function: Function,
    operands: SmallVec<[From<C>; 3]>,
    register: usize,
}

/// How results are rounded to the element type between links.
struct Rounding<C> {
    dtype: DType,
    load: Load<C>,
    store: Store<C>,
}

impl<C: Real> Rounding<C> {
    fn new(dtype: DType) -> Self {
        Rounding { dtype, load: loader::<C>(dtype), store: storer::<C>(dtype) }
    }
}

struct Machine<'a, C> {
    links: &'a [Resolved<C>],
    outputs: &'a [usize],
    registers: usize,
    rounding: Rounding<C>,
}

impl<C: Real> Machine<'_, C> {
    /// Computes the elements from `start` on into one piece of every output.
    fn run(&self, plan: &Plan<'_, C>, start: usize, pieces: &mut [&mut [u8]]) {
        let size = self.rounding.dtype.size();
        let direct = self.rounding.dtype == C::DTYPE;
        let total = pieces.first().map_or(0, |piece| piece.len() / size);
        let block = BLOCK.min(total);
        let fetched = plan.sources().max(1);
        let mut scratch = vec![C::default(); (fetched + self.registers) * block];
        let (loaded, registers) = scratch.split_at_mut(fetched * block);
        let mut narrow = vec![0u8; if direct { 0 } else { block * size }];
        let mut done = 0;
        while done < total {
            let length = plan.run_length(start + done, total - done).min(block);
            let mut inputs: SmallVec<[Block<'_, C>; 8]> = SmallVec::new();
            for (at, scratch) in loaded.chunks_mut(block).take(plan.sources()).enumerate() {
                inputs.push(plan.fetch_block(at, start + done, &mut scratch[..length]));
            }
            let mut slots: SmallVec<[&mut [C]; 8]> =
                registers.chunks_mut(block).map(|register| &mut register[..length]).collect();
            let mut targets: SmallVec<[&mut [u8]; 2]> = pieces
                .iter_mut()
                .map(|piece| &mut piece[done * size..(done + length) * size])
                .collect();
            if direct {
                // An output's register is the output itself.
                for (register, target) in self.outputs.iter().zip(targets.iter_mut()) {
                    slots[*register] = cast_mut::<C>(std::mem::take(target));
                }
            }
            for link in self.links {
                let out = std::mem::take(&mut slots[link.register]);
                link.compute(&inputs, &slots, out);
                if !direct {
                    self.round(link.register, out, &mut targets, &mut narrow);
                }
                slots[link.register] = out;
            }
            done += length;
        }
    }

    /// Rounds a result to the element type, and stores it where it is an output.
    fn round(
        &self,
        register: usize,
        values: &mut [C],
        targets: &mut [&mut [u8]],
        narrow: &mut [u8],
    ) {
        let bytes = values.len() * self.rounding.dtype.size();
        let place = match self.outputs.iter().position(|output| *output == register) {
            Some(output) => &mut *targets[output],
            None => &mut narrow[..bytes],
        };
        (self.rounding.store)(values, place);
        (self.rounding.load)(place, 0, 1, values);
    }
}

impl<C: Real> Resolved<C> {
    fn compute(&self, inputs: &[Block<'_, C>], slots: &[&mut [C]], out: &mut [C]) {
        let mut blocks: SmallVec<[Block<'_, C>; 3]> = SmallVec::new();
        for operand in &self.operands {
            blocks.push(match operand {
                From::Input(at) => inputs[*at],
                From::Register(at) => Block::Run(slots[*at]),
                From::Constant(value) => Block::One(*value),
            });
        }
        match self.function {
            Function::Unary(op) => unary::real_block(op, &blocks, out),
            Function::Binary(op) => binary::real(op, &blocks, out),
            // Resolved to a function of one number before.
            Function::Power(_) => {}
            Function::MultiplyAdd => crate::native::ops::norm::fused_block(&blocks, out),
        }
    }
}
