//! Recurrent layers and their cells.

use super::args::Args;
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::promote::message_name;
use super::strides;
use super::value::{TensorType, Value};
use crate::ops::Op;

/// Rows of the weights for each element of the state.
fn gates(op: Op) -> i64 {
    match op {
        Op::Lstm | Op::LstmCell => 4,
        Op::Gru | Op::GruCell => 3,
        _ => 1,
    }
}

fn invalid<T>(message: impl Into<String>) -> Inferred<T> {
    Err(Problem::invalid(message.into()))
}

fn check_dtypes<'a>(
    input: &TensorType,
    others: impl IntoIterator<Item = &'a TensorType>,
) -> Inferred<()> {
    if !input.dtype.is_float() {
        return invalid(format!("rnn is not implemented for '{}'", message_name(input.dtype)));
    }
    match others.into_iter().find(|other| other.dtype != input.dtype) {
        Some(other) => invalid(format!(
            "expected input, states and weights of one dtype, but got {} and {}",
            message_name(input.dtype),
            message_name(other.dtype)
        )),
        None => Ok(()),
    }
}

/// What the weights of a layer say of its sizes.
struct Sizes {
    directions: i64,
    layers: i64,
    /// Elements of a cell's state, and of its output where a projection makes that smaller.
    hidden: Dim,
    output: Dim,
}

fn sizes(args: &Args, states: &[&TensorType], weights: &[&TensorType]) -> Inferred<Sizes> {
    let directions = 1 + i64::from(args.flag("bidirectional")?);
    let layers = args.int("num_layers")?.size;
    let is_lstm = args.op() == Op::Lstm;
    if states.len() != 1 + usize::from(is_lstm) || states.iter().any(|state| state.rank() != 3) {
        return invalid(match is_lstm {
            true => "lstm expects two hidden states",
            false => "a recurrent layer expects one hidden state of three dimensions",
        });
    }
    let output = states[0].shape[2].clone();
    let hidden = states[states.len() - 1].shape[2].clone();
    let projects = is_lstm && output.size != hidden.size;
    let each = 2 * (1 + i64::from(args.flag("has_biases")?)) + i64::from(projects);
    let wanted = layers.saturating_mul(directions).saturating_mul(each);
    if layers < 1 || wanted != weights.len() as i64 {
        return invalid(format!(
            "got an incorrect number of RNN parameters: {} instead of {wanted}",
            weights.len()
        ));
    }
    if states.iter().any(|state| state.shape[0].size != layers * directions) {
        return invalid(format!(
            "Expected hidden[0] size to be {}, got {}",
            layers * directions,
            states[0].shape[0].size
        ));
    }
    Ok(Sizes { directions, layers, hidden, output })
}

/// Whether every layer's weights take what the layer below gives.
fn check_weights(
    args: &Args,
    sizes: &Sizes,
    features: &Dim,
    weights: &[&TensorType],
) -> Inferred<()> {
    let each = weights.len() as i64 / (sizes.layers * sizes.directions).max(1);
    let rows = sizes.hidden.scaled(gates(args.op()))?;
    let below = sizes.output.scaled(sizes.directions)?;
    for (index, of_cell) in weights.chunks(each.max(1) as usize).enumerate() {
        let is_first = (index as i64) < sizes.directions;
        let columns = if is_first { features } else { &below };
        let fits = |weight: &TensorType, rows: &Dim, columns: &Dim| {
            weight.rank() == 2
                && args.scope.same(&weight.shape[0], rows)
                && args.scope.same(&weight.shape[1], columns)
        };
        let mut fit = fits(of_cell[0], &rows, columns) && fits(of_cell[1], &rows, &sizes.output);
        if args.flag("has_biases")? {
            fit &= of_cell[2..4]
                .iter()
                .all(|bias| bias.rank() == 1 && args.scope.same(&bias.shape[0], &rows));
        }
        if sizes.output.size != sizes.hidden.size {
            fit &= fits(of_cell[of_cell.len() - 1], &sizes.output, &sizes.hidden);
        }
        if !fit {
            return invalid(format!(
                "the weights of cell {index} do not fit an input of {} features and a state of {}",
                columns.size, sizes.hidden.size
            ));
        }
    }
    Ok(())
}

/// `lstm`, `gru`, `rnn_tanh`, `rnn_relu`: the output of every step, and the last states of every layer.
pub(super) fn layers(args: &Args) -> Inferred<Value> {
    let packed = args.bound.has("batch_sizes");
    let input = args.first_tensor()?;
    if input.rank() != if packed { 2 } else { 3 } {
        return invalid(format!("input must have 3 dimensions, got {}", input.rank()));
    }
    let (states, weights) = (args.tensors("hx")?, args.tensors("params")?);
    check_dtypes(input, states.iter().chain(&weights).copied())?;
    let sizes = sizes(args, &states, &weights)?;
    check_weights(args, &sizes, &input.shape[input.rank() - 1], &weights)?;
    let features = sizes.output.scaled(sizes.directions)?;
    let output = if packed {
        let batches = args.tensor("batch_sizes")?;
        if batches.rank() != 1 {
            return invalid("batch_sizes must have 1 dimension");
        }
        TensorType::contiguous(input.dtype, strides::shape([input.shape[0].clone(), features]))
    } else {
        let by_batch = args.flag("batch_first")?;
        let (steps, batch) =
            (&input.shape[usize::from(by_batch)], &input.shape[usize::from(!by_batch)]);
        if steps.size < 1 {
            return invalid("Expected sequence length to be larger than 0 in RNN");
        }
        if states.iter().any(|state| !args.scope.same(&state.shape[1], batch)) {
            return invalid(format!(
                "Expected hidden size of {} sequences, got {}",
                batch.size, states[0].shape[1].size
            ));
        }
        let by_step = strides::shape([steps.clone(), batch.clone(), features]);
        let mut output = TensorType::contiguous(input.dtype, by_step);
        if by_batch {
            // Computed step by step and seen from the side of the batch.
            output.shape.swap(0, 1);
            output.strides.swap(0, 1);
        }
        output
    };
    let mut values = vec![output.into()];
    values.extend(
        states.iter().map(|state| TensorType::contiguous(input.dtype, state.shape.clone()).into()),
    );
    Ok(Value::Sequence(values))
}

/// One step of a recurrent layer.
pub(super) fn cell(args: &Args) -> Inferred<Value> {
    let input = args.tensor("input")?;
    let states = args.tensors("hx")?;
    let (of_input, of_state) = (args.tensor("w_ih")?, args.tensor("w_hh")?);
    let is_lstm = args.op() == Op::LstmCell;
    let mut biases = Vec::new();
    for name in ["b_ih", "b_hh"] {
        biases.extend(args.optional_tensor(name)?);
    }
    check_dtypes(input, states.iter().chain(&biases).copied().chain([of_input, of_state]))?;
    if states.len() != 1 + usize::from(is_lstm) || states.iter().any(|state| state.rank() != 2) {
        return invalid(match is_lstm {
            true => "lstm_cell expects two hidden states",
            false => "a cell expects one hidden state of two dimensions",
        });
    }
    if input.rank() != 2 || of_input.rank() != 2 || of_state.rank() != 2 {
        return invalid("a cell expects an input and weights of two dimensions");
    }
    let hidden = &states[0].shape[1];
    let rows = hidden.scaled(gates(args.op()))?;
    let same = |a: &Dim, b: &Dim| args.scope.same(a, b);
    let fits = same(&of_input.shape[0], &rows)
        && same(&of_input.shape[1], &input.shape[1])
        && same(&of_state.shape[0], &rows)
        && same(&of_state.shape[1], hidden)
        && states
            .iter()
            .all(|state| same(&state.shape[0], &input.shape[0]) && same(&state.shape[1], hidden))
        && biases.iter().all(|bias| bias.rank() == 1 && same(&bias.shape[0], &rows));
    if !fits {
        return invalid(format!(
            "the weights of the cell do not fit an input of {} and a state of {}",
            strides::describe(&input.shape),
            strides::describe(&states[0].shape)
        ));
    }
    let state = TensorType::contiguous(input.dtype, states[0].shape.clone());
    Ok(match is_lstm {
        true => Value::Sequence(vec![state.clone().into(), state.into()]),
        false => state.into(),
    })
}
