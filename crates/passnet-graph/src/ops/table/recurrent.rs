//! Recurrent layers over whole sequences, and one step of each.

use super::{Alias::Fresh, Class::Transform, Op, OpSpec, entry};

const fn recurrent(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Transform, Fresh, signatures, spellings)
}

/// The second form takes packed sequences: steps of unequal width, one after the other.
const LAYERS: &[&str] = &[
    "input:T, hx:T, params:L, has_biases:B, num_layers:I, dropout:N, train:B, bidirectional:B, batch_first:B",
    "data:T, batch_sizes:T, hx:T, params:L, has_biases:B, num_layers:I, dropout:N, train:B, bidirectional:B",
];
const CELL: &[&str] = &["input:T, hx:T, w_ih:T, w_hh:T, b_ih:T=None, b_hh:T=None"];

pub(super) static SPECS: &[OpSpec] = &[
    recurrent(
        Op::Lstm,
        &[
            "input:T, hx:L, params:L, has_biases:B, num_layers:I, dropout:N, train:B, bidirectional:B, batch_first:B",
            "data:T, batch_sizes:T, hx:L, params:L, has_biases:B, num_layers:I, dropout:N, train:B, bidirectional:B",
        ],
        &["torch.lstm"],
    ),
    recurrent(Op::Gru, LAYERS, &["torch.gru"]),
    recurrent(Op::RnnTanh, LAYERS, &["torch.rnn_tanh"]),
    recurrent(Op::RnnRelu, LAYERS, &["torch.rnn_relu"]),
    recurrent(
        Op::LstmCell,
        &["input:T, hx:L, w_ih:T, w_hh:T, b_ih:T=None, b_hh:T=None"],
        &["torch.lstm_cell"],
    ),
    recurrent(Op::GruCell, CELL, &["torch.gru_cell"]),
    recurrent(Op::RnnTanhCell, CELL, &["torch.rnn_tanh_cell"]),
    recurrent(Op::RnnReluCell, CELL, &["torch.rnn_relu_cell"]),
];
