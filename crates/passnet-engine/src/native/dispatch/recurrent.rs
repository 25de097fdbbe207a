//! Recurrent layers over whole sequences, and one step of each.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::movement;
use crate::native::ops::recurrent::{self, Cell, Layers, State, Weights};
use crate::native::tensor::Tensor;
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::Lstm | Op::Gru | Op::RnnTanh | Op::RnnRelu => layers,
        Op::LstmCell | Op::GruCell | Op::RnnTanhCell | Op::RnnReluCell => cell,
        _ => return None,
    })
}

fn cell_of(op: Op) -> Cell {
    match op {
        Op::Lstm | Op::LstmCell => Cell::Lstm,
        Op::Gru | Op::GruCell => Cell::Gru,
        Op::RnnTanh | Op::RnnTanhCell => Cell::Tanh,
        _ => Cell::Relu,
    }
}

fn cell(args: &Args<'_>) -> Result<Value> {
    let cell = cell_of(args.op);
    let weights = Weights {
        w_ih: args.tensor("w_ih")?.clone(),
        w_hh: args.tensor("w_hh")?.clone(),
        b_ih: args.optional_tensor("b_ih")?.cloned(),
        b_hh: args.optional_tensor("b_hh")?.cloned(),
        projection: None,
    };
    let mut states = args.tensors("hx")?.into_iter();
    let state = match (states.next(), states.next(), states.next()) {
        (Some(output), memory, None) => State { output, memory },
        _ => bail!(Value, "a cell takes one or two hidden states"),
    };
    let after = recurrent::step(cell, args.tensor("input")?, &state, &weights)?;
    Ok(match after.memory {
        Some(memory) => Value::tensors([after.output, memory]),
        None => after.output.into(),
    })
}

/// Weights as torch lists them: those of the input and of the state, two biases, a projection.
fn weights(args: &Args<'_>, projects: bool) -> Result<Vec<Weights>> {
    let biased = args.flag("has_biases")?;
    let all = args.tensors("params")?;
    let each = 2 + 2 * usize::from(biased) + usize::from(projects);
    ensure!(
        !all.is_empty() && all.len().is_multiple_of(each),
        Value,
        "got an incorrect number of RNN parameters: {}",
        all.len()
    );
    Ok(all
        .chunks_exact(each)
        .map(|of_cell| Weights {
            w_ih: of_cell[0].clone(),
            w_hh: of_cell[1].clone(),
            b_ih: biased.then(|| of_cell[2].clone()),
            b_hh: biased.then(|| of_cell[3].clone()),
            projection: projects.then(|| of_cell[each - 1].clone()),
        })
        .collect())
}

/// Steps are counted even where they hold nothing.
const MAX_STEPS: usize = 1 << 24;

fn states(args: &Args<'_>, count: usize) -> Result<Vec<State>> {
    let given = args.tensors("hx")?;
    ensure!(
        matches!(given.len(), 1 | 2) && given.iter().all(|state| state.ndim() == 3),
        Shape,
        "a recurrent layer takes one or two hidden states of 3 dimensions"
    );
    ensure!(
        given.iter().all(|state| state.shape()[0] == count)
            && count <= args.tensors("params")?.len(),
        Shape,
        "Expected hidden[0] size to be {count} for all layers and directions, got {}",
        given[given.len() - 1].shape()[0]
    );
    (0..count as i64)
        .map(|index| {
            Ok(State {
                output: given[0].select(0, index)?,
                memory: given.get(1).map(|memory| memory.select(0, index)).transpose()?,
            })
        })
        .collect()
}

fn layers(args: &Args<'_>) -> Result<Value> {
    let input = args.input()?;
    let directions = 1 + usize::from(args.flag("bidirectional")?);
    let count = args.size("num_layers")?.saturating_mul(directions);
    let states = states(args, count)?;
    let projects = states
        .first()
        .and_then(|state| state.memory.as_ref().map(|memory| (state, memory)))
        .is_some_and(|(state, memory)| state.output.shape()[1] != memory.shape()[1]);
    let weights = weights(args, projects)?;
    let network = Layers {
        cell: cell_of(args.op),
        weights: &weights,
        directions,
        dropout: if args.flag("train")? { args.float("dropout")? } else { 0.0 },
    };
    ensure!(
        (0.0..=1.0).contains(&network.dropout),
        Value,
        "dropout probability has to be between 0 and 1, but got {}",
        network.dropout
    );
    let draw = |like: &Tensor, p: f64| args.context.generator().bernoulli_like(like, p);
    let (output, last) = if args.has("batch_sizes") {
        let batches = packed_sizes(args)?;
        network.run(input, &batches, &states, &draw)?
    } else {
        ensure!(input.ndim() == 3, Shape, "input must have 3 dimensions, got {}", input.ndim());
        let by_batch = args.flag("batch_first")?;
        let by_step = if by_batch { input.transpose(0, 1)? } else { input.clone() };
        let [steps, batch, features] = [by_step.shape()[0], by_step.shape()[1], by_step.shape()[2]];
        let flat = by_step.reshape_to(&[steps * batch, features])?;
        ensure!(steps < MAX_STEPS, Value, "a sequence of {steps} steps is too long");
        let (output, last) = network.run(&flat, &vec![batch; steps], &states, &draw)?;
        let width = output.shape()[1];
        let output = output.reshape_to(&[steps, batch, width])?;
        (if by_batch { output.transpose(0, 1)? } else { output }, last)
    };
    let mut results = vec![output];
    let outputs: Vec<Tensor> = last.iter().map(|state| state.output.clone()).collect();
    results.push(movement::stack(&outputs, 0)?);
    let memories: Vec<Tensor> = last.into_iter().filter_map(|state| state.memory).collect();
    if !memories.is_empty() {
        results.push(movement::stack(&memories, 0)?);
    }
    Ok(Value::tensors(results))
}

/// How many sequences are left at each step.
fn packed_sizes(args: &Args<'_>) -> Result<Vec<usize>> {
    let sizes = args.tensor("batch_sizes")?.to_vec::<i64>()?;
    sizes
        .into_iter()
        .map(|size| {
            ensure!(size > 0, Value, "batch_sizes must be positive, got {size}");
            Ok(size as usize)
        })
        .collect()
}
