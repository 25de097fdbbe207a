//! Functions of libdevice that are made of others, against PyTorch's: every ninth of 64 values of each.
//!
//! Triton's interpreter has no libdevice, so the expected values come from `torch.special` and `torch` in float64.

use passnet_graph::syntax::Source;
use passnet_kernel::exec::RunOptions;
use passnet_kernel::fixture::Fixture;
use std::f64::consts::FRAC_1_SQRT_2;

/// `call` applied to `x` (from -4 to 11.75 in quarters) or `u` (from 1/128 to 127/128).
fn computed(call: &str) -> Vec<f32> {
    let text = format!(
        r#"# wrapper: run
# input: i float32 [64] arange
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(i_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    i = tl.load(i_ptr + at)
    x = i * 0.25 - 4.0
    u = (i + 0.5) / 64
    tl.store(out_ptr + at, ({call}).to(tl.float32))


def run(i):
    out = torch.empty_like(i)
    kernel[(1,)](i, out, BLOCK=64)
    return out
"#
    );
    let fixture = Fixture::new(Source::new("libdevice.py", text)).unwrap_or_else(|e| panic!("{e}"));
    let prepared = fixture.prepare().unwrap_or_else(|e| panic!("{e}"));
    let outputs = fixture.run(&prepared, RunOptions::default()).unwrap();
    let values = outputs.data[0].chunks_exact(4);
    values.map(|b| f32::from_le_bytes(b.try_into().unwrap())).step_by(9).collect()
}

#[test]
fn they_give_what_pytorch_gives() {
    type Case = (&'static str, [f64; 8]);
    let cases: [Case; 12] = [
        (
            "libdevice.exp10(x)",
            [
                1e-4,
                0.0177827941,
                3.16227766,
                562.341325,
                1e5,
                17782794.1,
                3162277660.0,
                562341325000.0,
            ],
        ),
        (
            "libdevice.sinpi(x)",
            [0.0, FRAC_1_SQRT_2, 1.0, FRAC_1_SQRT_2, 0.0, -FRAC_1_SQRT_2, -1.0, -FRAC_1_SQRT_2],
        ),
        (
            "libdevice.cospi(x)",
            [1.0, FRAC_1_SQRT_2, 0.0, -FRAC_1_SQRT_2, -1.0, -FRAC_1_SQRT_2, 0.0, FRAC_1_SQRT_2],
        ),
        (
            "libdevice.rcbrt(x)",
            [
                -0.629960525,
                -0.829826533,
                1.25992105,
                0.713765856,
                0.584803548,
                0.516678826,
                0.472163196,
                0.439866321,
            ],
        ),
        (
            "libdevice.normcdf(x)",
            [3.16712418e-05, 0.0400591569, 0.691462461, 0.997020237, 0.999999713, 1.0, 1.0, 1.0],
        ),
        (
            "libdevice.erfinv(2 * u - 1)",
            [
                -1.70947237,
                -0.737624282,
                -0.393240178,
                -0.125277982,
                0.125277982,
                0.393240178,
                0.737624282,
                1.70947237,
            ],
        ),
        (
            "libdevice.erfcinv(2 * u)",
            [
                1.70947237,
                0.737624282,
                0.393240178,
                0.125277982,
                -0.125277982,
                -0.393240178,
                -0.737624282,
                -1.70947237,
            ],
        ),
        (
            "libdevice.normcdfinv(u)",
            [
                -2.41755902,
                -1.04315826,
                -0.556125594,
                -0.177169821,
                0.177169821,
                0.556125594,
                1.04315826,
                2.41755902,
            ],
        ),
        (
            "libdevice.tgamma(u * 8)",
            [
                15.4812811,
                0.921583776,
                1.17554544,
                3.10395154,
                12.6926655,
                71.0479693,
                508.176798,
                4444.5972,
            ],
        ),
        ("libdevice.llrint(x)", [-4.0, -2.0, 0.0, 3.0, 5.0, 7.0, 10.0, 12.0]),
        ("libdevice.ldexp(x, 3)", [-32.0, -14.0, 4.0, 22.0, 40.0, 58.0, 76.0, 94.0]),
        ("libdevice.remainder(x, 1.5)", [0.5, -0.25, 0.5, -0.25, 0.5, -0.25, 0.5, -0.25]),
    ];
    for (call, expected) in cases {
        let found = computed(call);
        for (found, expected) in found.iter().zip(expected) {
            let off = (f64::from(*found) - expected).abs() / expected.abs().max(1e-3);
            assert!(off < 1e-6, "{call}: {found} for {expected}");
        }
    }
}
