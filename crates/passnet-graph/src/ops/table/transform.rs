//! Fourier transforms, of whole dimensions and of windows of a signal.

use super::{Alias::Fresh, Class::Transform, Op, OpSpec, entry};

const fn transform(
    op: Op,
    signatures: &'static [&'static str],
    spellings: &'static [&'static str],
) -> OpSpec {
    entry(op, Transform, Fresh, signatures, spellings)
}

const ONE: &[&str] = &["input:T, n:I=None, dim:I=-1, norm:W=None"];
const TWO: &[&str] = &["input:T, s:Z=None, dim:Z=(-2,-1), norm:W=None"];
const ALL: &[&str] = &["input:T, s:Z=None, dim:Z=None, norm:W=None"];

pub(super) static SPECS: &[OpSpec] = &[
    transform(Op::Fft, ONE, &["torch.fft.fft", "torch._C._fft.fft_fft"]),
    transform(Op::Ifft, ONE, &["torch.fft.ifft", "torch._C._fft.fft_ifft"]),
    transform(Op::Rfft, ONE, &["torch.fft.rfft", "torch._C._fft.fft_rfft"]),
    transform(Op::Irfft, ONE, &["torch.fft.irfft", "torch._C._fft.fft_irfft"]),
    transform(Op::Fft2, TWO, &["torch.fft.fft2", "torch._C._fft.fft_fft2"]),
    transform(Op::Ifft2, TWO, &["torch.fft.ifft2", "torch._C._fft.fft_ifft2"]),
    transform(Op::Rfft2, TWO, &["torch.fft.rfft2", "torch._C._fft.fft_rfft2"]),
    transform(Op::Irfft2, TWO, &["torch.fft.irfft2", "torch._C._fft.fft_irfft2"]),
    transform(Op::Fftn, ALL, &["torch.fft.fftn", "torch._C._fft.fft_fftn"]),
    transform(Op::Ifftn, ALL, &["torch.fft.ifftn", "torch._C._fft.fft_ifftn"]),
    transform(Op::Rfftn, ALL, &["torch.fft.rfftn", "torch._C._fft.fft_rfftn"]),
    transform(Op::Irfftn, ALL, &["torch.fft.irfftn", "torch._C._fft.fft_irfftn"]),
    transform(
        Op::Fftshift,
        &["input:T, dim:Z=None"],
        &["torch.fft.fftshift", "torch._C._fft.fft_fftshift"],
    ),
    transform(
        Op::Ifftshift,
        &["input:T, dim:Z=None"],
        &["torch.fft.ifftshift", "torch._C._fft.fft_ifftshift"],
    ),
    transform(
        Op::Stft,
        &[
            "input:T, n_fft:I, hop_length:I=None, win_length:I=None, window:T=None, center:B=True, pad_mode:W='reflect', normalized:B=False, onesided:B=None, return_complex:B=None, align_to_window:B=None",
        ],
        &["torch.stft", "torch.functional.stft", ".stft"],
    ),
    transform(
        Op::Istft,
        &[
            "input:T, n_fft:I, hop_length:I=None, win_length:I=None, window:T=None, center:B=True, normalized:B=False, onesided:B=None, length:I=None, return_complex:B=False",
        ],
        &["torch.istft", ".istft"],
    ),
];
