//! New tensors.

use super::{
    Alias::{Fresh, MayView},
    Class::{Creation, Random},
    Op, OpSpec, entry,
};

const fn creation(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Creation, Fresh, signatures, spellings)
}

const fn random(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Random, Fresh, signatures, spellings)
}

const SIZED: &[&str] = &["*size:I, dtype:D=None, device:V=None, memory_format:A=None"];
/// A generator cannot be written in a graph, only that there is none.
const DRAWN: &[&str] =
    &[SIZED[0], "*size:I, generator:A, dtype:D=None, device:V=None, memory_format:A=None"];
const LIKE: &[&str] = &["input:T, *, dtype:D=None, device:V=None, memory_format:A=None"];
const NEW: &[&str] = &["input:T, *size:I, dtype:D=None, device:V=None"];

pub(super) static SPECS: &[OpSpec] = &[
    creation(Op::Tensor, &["data:A, *, dtype:D=None, device:V=None"], &["torch.tensor"]),
    entry(
        Op::AsTensor,
        Creation,
        MayView,
        &["data:A, dtype:D=None, device:V=None"],
        &["torch.as_tensor", "torch.asarray"],
    ),
    creation(Op::ScalarTensor, &["s:N, *, dtype:D=None, device:V=None"], &["torch.scalar_tensor"]),
    creation(Op::Zeros, SIZED, &["torch.zeros"]),
    creation(Op::Ones, SIZED, &["torch.ones"]),
    creation(Op::Empty, SIZED, &["torch.empty"]),
    creation(Op::Full, &["size:Z, fill_value:S, *, dtype:D=None, device:V=None"], &["torch.full"]),
    creation(Op::ZerosLike, LIKE, &["torch.zeros_like"]),
    creation(Op::OnesLike, LIKE, &["torch.ones_like"]),
    creation(Op::EmptyLike, LIKE, &["torch.empty_like"]),
    creation(
        Op::FullLike,
        &["input:T, fill_value:S, *, dtype:D=None, device:V=None, memory_format:A=None"],
        &["torch.full_like"],
    ),
    creation(Op::NewZeros, NEW, &[".new_zeros"]),
    creation(Op::NewOnes, NEW, &[".new_ones"]),
    creation(Op::NewEmpty, NEW, &[".new_empty"]),
    creation(
        Op::NewFull,
        &["input:T, size:Z, fill_value:S, *, dtype:D=None, device:V=None"],
        &[".new_full"],
    ),
    creation(Op::NewTensor, &["input:T, data:A, *, dtype:D=None, device:V=None"], &[".new_tensor"]),
    creation(
        Op::Arange,
        &[
            "end:N, *, dtype:D=None, device:V=None",
            "start:N, end:N, step:N=1, *, dtype:D=None, device:V=None",
        ],
        &["torch.arange"],
    ),
    creation(
        Op::Linspace,
        &["start:S, end:S, steps:I, *, dtype:D=None, device:V=None"],
        &["torch.linspace"],
    ),
    creation(
        Op::Logspace,
        &["start:S, end:S, steps:I, base:N=10.0, *, dtype:D=None, device:V=None"],
        &["torch.logspace"],
    ),
    creation(Op::Eye, &["n:I, m:I=None, *, dtype:D=None, device:V=None"], &["torch.eye"]),
    creation(
        Op::TrilIndices,
        &["row:I, col:I, offset:I=0, *, dtype:D=None, device:V=None"],
        &["torch.tril_indices"],
    ),
    creation(
        Op::TriuIndices,
        &["row:I, col:I, offset:I=0, *, dtype:D=None, device:V=None"],
        &["torch.triu_indices"],
    ),
    creation(
        Op::Fftfreq,
        &["n:I, d:N=1.0, *, dtype:D=None, device:V=None"],
        &["torch.fft.fftfreq", "torch._C._fft.fft_fftfreq"],
    ),
    creation(
        Op::Rfftfreq,
        &["n:I, d:N=1.0, *, dtype:D=None, device:V=None"],
        &["torch.fft.rfftfreq", "torch._C._fft.fft_rfftfreq"],
    ),
    creation(
        Op::HannWindow,
        &["window_length:I, periodic:B=True, *, dtype:D=None, device:V=None"],
        &["torch.hann_window"],
    ),
    creation(
        Op::HammingWindow,
        &[
            "window_length:I, periodic:B=True, alpha:N=0.54, beta:N=0.46, *, dtype:D=None, device:V=None",
        ],
        &["torch.hamming_window"],
    ),
    creation(
        Op::BlackmanWindow,
        &["window_length:I, periodic:B=True, *, dtype:D=None, device:V=None"],
        &["torch.blackman_window"],
    ),
    creation(
        Op::BartlettWindow,
        &["window_length:I, periodic:B=True, *, dtype:D=None, device:V=None"],
        &["torch.bartlett_window"],
    ),
    creation(
        Op::KaiserWindow,
        &["window_length:I, periodic:B=True, beta:N=12.0, *, dtype:D=None, device:V=None"],
        &["torch.kaiser_window"],
    ),
    creation(Op::Fill, &["input:T, value:S"], &["torch.fill", ".fill_", "torch.fill_"]),
    creation(Op::Zero, &["input:T"], &[".zero_", "torch.zero_"]),
    random(Op::Rand, DRAWN, &["torch.rand"]),
    random(Op::Randn, DRAWN, &["torch.randn"]),
    random(Op::RandLike, LIKE, &["torch.rand_like"]),
    random(Op::RandnLike, LIKE, &["torch.randn_like"]),
    random(
        Op::Randint,
        &[
            "low:I, high:I, size:Z, *, dtype:D=None, device:V=None",
            "high:I, size:Z, *, dtype:D=None, device:V=None",
        ],
        &["torch.randint"],
    ),
    random(Op::Randperm, &["n:I, *, dtype:D=None, device:V=None"], &["torch.randperm"]),
    random(
        Op::Bernoulli,
        &["input:T, p:N=None"],
        &["torch.bernoulli", ".bernoulli", ".bernoulli_"],
    ),
    random(
        Op::Multinomial,
        &["input:T, num_samples:I, replacement:B=False"],
        &["torch.multinomial", ".multinomial"],
    ),
    random(Op::NormalInPlace, &["input:T, mean:N=0.0, std:N=1.0"], &[".normal_"]),
    random(Op::UniformInPlace, &["input:T, from:N=0.0, to:N=1.0"], &[".uniform_"]),
];
