//! Recurrent layers: the same small step over and over, each on what the one before it left.
//!
//! What the input contributes is one product for all steps; what the state contributes is one product a step. Types of
//! half precision are computed in single precision and rounded at the end.

use super::{matmul, movement, pointwise};
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::multiversion;
use passnet_graph::DType;

/// What a cell does with its gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Cell {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

impl Cell {
    /// Rows of the weights for each element of the state.
    fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Tanh | Cell::Relu => 1,
        }
    }
}

/// The weights of one direction of one layer.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "torch's names")]
pub struct Weights {
    pub w_ih: Tensor,
    pub w_hh: Tensor,
    pub b_ih: Option<Tensor>,
    pub b_hh: Option<Tensor>,
    /// Makes an LSTM's output smaller than its cell's state.
    pub projection: Option<Tensor>,
}

impl Weights {
    fn check(&self, cell: Cell, features: usize, output: usize, hidden: usize) -> Result<()> {
        let rows = cell.gates() * hidden;
        let biases = [&self.b_ih, &self.b_hh];
        ensure!(
            self.w_ih.shape() == [rows, features]
                && self.w_hh.shape() == [rows, output]
                && biases.iter().all(|bias| bias.as_ref().is_none_or(|b| b.shape() == [rows]))
                && match &self.projection {
                    Some(projection) => projection.shape() == [output, hidden],
                    None => output == hidden,
                },
            Shape,
            "the weights {:?} and {:?} do not fit an input of {features} features and a state of {hidden}",
            self.w_ih.shape(),
            self.w_hh.shape()
        );
        Ok(())
    }

    fn to_dtype(&self, dtype: DType) -> Result<Weights> {
        let optional =
            |t: &Option<Tensor>| t.as_ref().map(|t: &Tensor| t.to_dtype(dtype)).transpose();
        Ok(Weights {
            w_ih: self.w_ih.to_dtype(dtype)?,
            w_hh: self.w_hh.to_dtype(dtype)?,
            b_ih: optional(&self.b_ih)?,
            b_hh: optional(&self.b_hh)?,
            projection: optional(&self.projection)?,
        })
    }
}

/// The state of one direction of one layer: `[batch, output]`, and `[batch, hidden]` of an LSTM's cell.
#[derive(Debug, Clone)]
pub struct State {
    /// What the cell gave last.
    pub output: Tensor,
    /// What an LSTM remembers beside it.
    pub memory: Option<Tensor>,
}

/// The type that a layer of this type computes in.
fn wide(dtype: DType) -> Result<DType> {
    ensure!(dtype.is_float(), DType, "recurrent layers are not implemented for {dtype}");
    Ok(if dtype == DType::Float64 { DType::Float64 } else { DType::Float32 })
}

/// One step: the state after an input of `[batch, features]`.
pub fn step(cell: Cell, input: &Tensor, state: &State, weights: &Weights) -> Result<State> {
    let dtype = input.dtype();
    let wide = wide(dtype)?;
    ensure!(
        input.ndim() == 2,
        Shape,
        "a cell takes an input of 2 dimensions, got {}",
        input.ndim()
    );
    let input = input.to_dtype(wide)?;
    let weights = weights.to_dtype(wide)?;
    let widened = State {
        output: state.output.to_dtype(wide)?,
        memory: state.memory.as_ref().map(|memory| memory.to_dtype(wide)).transpose()?,
    };
    let rows = input.shape()[0];
    let hidden = checked_state(cell, &widened, rows)?;
    weights.check(cell, input.shape()[1], widened.output.shape()[1], hidden)?;
    let gates = matmul::linear(&input, &weights.w_ih, weights.b_ih.as_ref())?;
    let after = match wide {
        DType::Float64 => Run::<f64>::new(&widened)?.stepped(cell, &gates, rows, &weights)?,
        _ => Run::<f32>::new(&widened)?.stepped(cell, &gates, rows, &weights)?,
    };
    Ok(State {
        output: after.output.to_dtype(dtype)?,
        memory: after.memory.map(|memory| memory.to_dtype(dtype)).transpose()?,
    })
}

/// The size of a cell's state, which is as high as there are sequences.
fn checked_state(cell: Cell, state: &State, rows: usize) -> Result<usize> {
    let fits = |tensor: &Tensor| tensor.ndim() == 2 && tensor.shape()[0] == rows;
    ensure!(
        fits(&state.output) && state.memory.as_ref().is_none_or(fits),
        Shape,
        "Expected hidden states of {rows} sequences, got {:?}",
        state.output.shape()
    );
    ensure!(
        state.memory.is_some() == (cell == Cell::Lstm),
        Value,
        "an LSTM has two hidden states, other cells have one"
    );
    Ok(state.memory.as_ref().unwrap_or(&state.output).shape()[1])
}

/// Draws zeros and ones of a tensor's shape, ones with the given probability.
pub type Draw<'a> = &'a dyn Fn(&Tensor, f64) -> Result<Tensor>;

/// A recurrent network's layers, from the first up; each has one or two directions.
#[derive(Debug)]
pub struct Layers<'a> {
    /// What runs at every step.
    pub cell: Cell,
    /// One for each direction of each layer.
    pub weights: &'a [Weights],
    /// One or two.
    pub directions: usize,
    /// The share of a layer's output that is dropped before the next layer, in training.
    pub dropout: f64,
}

impl Layers<'_> {
    /// The outputs of all steps, and the last states. `input` has the rows of all steps one after the other, `batches` the
    /// number of them in each step, which never grows.
    pub fn run(
        &self,
        input: &Tensor,
        batches: &[usize],
        states: &[State],
        draw: Draw<'_>,
    ) -> Result<(Tensor, Vec<State>)> {
        let dtype = input.dtype();
        let wide = wide(dtype)?;
        self.check(input, batches, states)?;
        let mut below = input.to_dtype(wide)?;
        let mut last = Vec::with_capacity(states.len());
        let count = states.len() / self.directions;
        for layer in 0..count {
            let mut outputs = Vec::with_capacity(self.directions);
            for direction in 0..self.directions {
                let index = layer * self.directions + direction;
                let weights = self.weights[index].to_dtype(wide)?;
                let (output, state) = match wide {
                    DType::Float64 => {
                        self.direction::<f64>(&below, batches, &states[index], &weights, direction)?
                    }
                    _ => {
                        self.direction::<f32>(&below, batches, &states[index], &weights, direction)?
                    }
                };
                outputs.push(output);
                last.push(State {
                    output: state.output.to_dtype(dtype)?,
                    memory: state.memory.map(|memory| memory.to_dtype(dtype)).transpose()?,
                });
            }
            below = match outputs.len() {
                1 => outputs.remove(0),
                _ => movement::cat(&outputs, -1)?,
            };
            if self.dropout > 0.0 && layer + 1 < count {
                below = self.dropped(&below, draw)?;
            }
        }
        Ok((below.to_dtype(dtype)?, last))
    }

    fn check(&self, input: &Tensor, batches: &[usize], states: &[State]) -> Result<()> {
        let rows = batches.first().copied().unwrap_or(0);
        ensure!(
            !batches.is_empty() && batches.is_sorted_by(|a, b| a >= b),
            Value,
            "Expected sequence length to be larger than 0 in RNN, and batch sizes that do not grow"
        );
        let all = batches.iter().fold(0, |all: usize, rows| all.saturating_add(*rows));
        ensure!(
            input.ndim() == 2 && input.shape()[0] == all,
            Shape,
            "the batch sizes of all steps make {all} rows, the input is {:?}",
            input.shape()
        );
        ensure!(
            states.len() == self.weights.len()
                && matches!(self.directions, 1 | 2)
                && states.len().is_multiple_of(self.directions),
            Value,
            "got weights of {} cells and states of {}",
            self.weights.len(),
            states.len()
        );
        let mut features = input.shape()[1];
        for (index, (state, weights)) in states.iter().zip(self.weights).enumerate() {
            let hidden = checked_state(self.cell, state, rows)?;
            let output = state.output.shape()[1];
            if index >= self.directions {
                features = output * self.directions;
            }
            weights.check(self.cell, features, output, hidden)?;
        }
        Ok(())
    }

    fn dropped(&self, output: &Tensor, draw: Draw<'_>) -> Result<Tensor> {
        if self.dropout >= 1.0 {
            return Tensor::zeros(output.shape(), output.dtype());
        }
        let kept = 1.0 - self.dropout;
        let mask = pointwise::div(&draw(output, kept)?.into(), &kept.into())?;
        pointwise::mul(&output.into(), &mask.into())
    }

    /// One direction of one layer over all steps.
    fn direction<T: Real>(
        &self,
        input: &Tensor,
        batches: &[usize],
        state: &State,
        weights: &Weights,
        direction: usize,
    ) -> Result<(Tensor, State)> {
        let gates = matmul::linear(input, &weights.w_ih, weights.b_ih.as_ref())?;
        let mut run = Run::<T>::new(state)?;
        let width = run.width;
        let mut out = Buffer::<T>::new(input.shape()[0] * width)?;
        let mut starts = Vec::with_capacity(batches.len());
        let mut start = 0;
        for rows in batches {
            starts.push(start);
            start += rows;
        }
        for index in 0..batches.len() {
            let at = if direction == 0 { index } else { batches.len() - 1 - index };
            let (start, rows) = (starts[at], batches[at]);
            let own = gates.narrow(0, start as i64, rows)?;
            run.step(self.cell, &own, rows, weights)?;
            out[start * width..(start + rows) * width].copy_from_slice(&run.output[..rows * width]);
        }
        let output = Tensor::from_buffer(out, &[input.shape()[0], width])?;
        Ok((output, run.finish()?))
    }
}

/// A state on its way through the steps. Steps of fewer rows leave the rest as it is: of a sequence that has ended that is
/// its last state, and of one that begins later, seen from the end, its first.
struct Run<T> {
    output: Vec<T>,
    memory: Option<Vec<T>>,
    rows: usize,
    width: usize,
    hidden: usize,
}

impl<T: Real> Run<T> {
    fn new(state: &State) -> Result<Self> {
        let shape = state.output.shape();
        let hidden = state.memory.as_ref().map_or(shape[1], |memory| memory.shape()[1]);
        Ok(Run {
            output: state.output.to_vec::<T>()?,
            memory: state.memory.as_ref().map(Tensor::to_vec::<T>).transpose()?,
            rows: shape[0],
            width: shape[1],
            hidden,
        })
    }

    fn stepped(
        mut self,
        cell: Cell,
        gates: &Tensor,
        rows: usize,
        weights: &Weights,
    ) -> Result<State> {
        self.step(cell, gates, rows, weights)?;
        self.finish()
    }

    /// `gates` is what the input contributes to the first `rows` rows.
    fn step(&mut self, cell: Cell, gates: &Tensor, rows: usize, weights: &Weights) -> Result<()> {
        if rows == 0 || self.hidden == 0 {
            return Ok(());
        }
        let before = Tensor::from_slice(&self.output[..rows * self.width], &[rows, self.width])?;
        let own = matmul::linear(&before, &weights.w_hh, weights.b_hh.as_ref())?;
        let (gates, own) = (gates.values::<T>()?, own.values::<T>()?);
        let projection = weights.projection.as_ref();
        let mut wide = vec![T::ZERO; if projection.is_some() { rows * self.hidden } else { 0 }];
        let output = match projection {
            Some(_) => &mut wide[..],
            None => &mut self.output[..rows * self.hidden],
        };
        match (cell, &mut self.memory) {
            (Cell::Lstm, Some(memory)) => {
                lstm(&gates, &own, self.hidden, &mut memory[..rows * self.hidden], output);
            }
            (Cell::Gru, _) => gru(&gates, &own, self.hidden, output),
            (Cell::Relu, _) => relu(&gates, &own, output),
            _ => tanh(&gates, &own, output),
        }
        if let Some(projection) = projection {
            let wide = Tensor::from_slice(&wide, &[rows, self.hidden])?;
            let narrow = matmul::linear(&wide, projection, None)?;
            self.output[..rows * self.width].copy_from_slice(&narrow.values::<T>()?);
        }
        Ok(())
    }

    fn finish(self) -> Result<State> {
        let memory = self
            .memory
            .map(|memory| Tensor::from_slice(&memory, &[self.rows, self.hidden]))
            .transpose()?;
        Ok(State { output: Tensor::from_slice(&self.output, &[self.rows, self.width])?, memory })
    }
}

multiversion! {
    /// Gates in torch's order: input, forget, candidate, output.
    fn lstm[T: Real](given: &[T], own: &[T], hidden: usize, memory: &mut [T], output: &mut [T]) {
        let rows = given.chunks_exact(4 * hidden).zip(own.chunks_exact(4 * hidden));
        let states = memory.chunks_exact_mut(hidden).zip(output.chunks_exact_mut(hidden));
        for ((given, own), (memory, output)) in rows.zip(states) {
            for (at, (memory, output)) in memory.iter_mut().zip(output).enumerate() {
                let gate = |index: usize| given[index * hidden + at] + own[index * hidden + at];
                let kept = gate(1).sigmoid() * *memory;
                *memory = kept + gate(0).sigmoid() * gate(2).tanh();
                *output = gate(3).sigmoid() * memory.tanh();
            }
        }
    }
}

multiversion! {
    /// Gates in torch's order: reset, update, candidate.
    fn gru[T: Real](given: &[T], own: &[T], hidden: usize, output: &mut [T]) {
        let rows = given.chunks_exact(3 * hidden).zip(own.chunks_exact(3 * hidden));
        for ((given, own), output) in rows.zip(output.chunks_exact_mut(hidden)) {
            for (at, output) in output.iter_mut().enumerate() {
                let gate = |index: usize| (given[index * hidden + at], own[index * hidden + at]);
                let ((r, r_own), (z, z_own), (n, n_own)) = (gate(0), gate(1), gate(2));
                let candidate = (n + (r + r_own).sigmoid() * n_own).tanh();
                *output = (*output - candidate) * (z + z_own).sigmoid() + candidate;
            }
        }
    }
}

multiversion! {
    fn tanh[T: Real](given: &[T], own: &[T], output: &mut [T]) {
        for ((given, own), output) in given.iter().zip(own).zip(output) {
            *output = (*given + *own).tanh();
        }
    }
}

multiversion! {
    fn relu[T: Real](given: &[T], own: &[T], output: &mut [T]) {
        for ((given, own), output) in given.iter().zip(own).zip(output) {
            *output = (*given + *own).most(T::ZERO);
        }
    }
}
