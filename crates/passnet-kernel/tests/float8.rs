//! Floats of eight bits: every code, and numbers of all sizes, against their definition.
//!
//! Triton's interpreter loses a carry where a mantissa rounds up, so it is no judge here; PyTorch's `float8_e4m3fn` and
//! `float8_e5m2` give what is expected below.

use passnet_graph::syntax::Source;
use passnet_kernel::exec::RunOptions;
use passnet_kernel::fixture::Fixture;

/// What a kernel gives for 256 floats and 256 bytes.
fn run(format: &str) -> (Vec<f32>, Vec<f32>, Vec<u8>) {
    let text = format!(
        r#"# wrapper: run
# input: x float32 [256] normal
# input: codes uint8 [256] arange
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, codes_ptr, scaled_ptr, decoded_ptr, bits_ptr, FORMAT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    scaled = tl.load(x_ptr + at) * tl.exp2((at % 40).to(tl.float32) - 20.0)
    scaled = tl.where(at == 7, float("inf"), tl.where(at == 8, float("nan"), scaled))
    narrow = scaled.to(FORMAT)
    tl.static_assert(narrow.dtype.is_fp8() and narrow.dtype.primitive_bitwidth == 8)
    tl.store(scaled_ptr + at, scaled)
    tl.store(bits_ptr + at, narrow.to(tl.uint8, bitcast=True))
    # Through a pointer, as a kernel that reads such a tensor does.
    typed = codes_ptr.to(tl.pointer_type(FORMAT), bitcast=True)
    tl.store(decoded_ptr + at, tl.load(typed + at, mask=at < BLOCK, other=0.0).to(tl.float32))


def run(x, codes):
    scaled = torch.empty_like(x)
    decoded = torch.empty_like(x)
    bits = torch.empty_like(codes)
    kernel[(1,)](x, codes, scaled, decoded, bits, FORMAT=tl.{format}, BLOCK=256)
    return scaled, decoded, bits
"#
    );
    let fixture = Fixture::new(Source::new("float8.py", text)).unwrap_or_else(|e| panic!("{e}"));
    let prepared = fixture.prepare().unwrap_or_else(|e| panic!("{e}"));
    let outputs = fixture.run(&prepared, RunOptions::default()).unwrap();
    let floats = |data: &[u8]| {
        data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    (floats(&outputs.data[0]), floats(&outputs.data[1]), outputs.data[2].clone())
}

/// The number that a code means.
fn decode(code: u8, mantissa: i32, bias: i32, infinities: bool) -> f64 {
    let steps = 1 << mantissa;
    let (exponent, rest) = (i32::from(code & 0x7f) / steps, i32::from(code & 0x7f) % steps);
    let highest = (1 << (7 - mantissa)) - 1;
    let size = match exponent {
        e if e == highest && infinities && rest == 0 => f64::INFINITY,
        e if e == highest && (infinities || rest == steps - 1) => f64::NAN,
        0 => f64::from(rest) * 2f64.powi(1 - bias - mantissa),
        e => f64::from(steps + rest) * 2f64.powi(e - bias - mantissa),
    };
    if code & 0x80 == 0 { size } else { -size }
}

/// The code of the nearest finite number, an even one among two.
fn encode(value: f64, decode: &dyn Fn(u8) -> f64) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let finite = (0..0x7fu8).filter(|&code| decode(code).is_finite());
    let off = |code: u8| (decode(code) - value.abs().min(1e6)).abs();
    let best = finite.min_by(|&a, &b| off(a).total_cmp(&off(b)).then((a & 1).cmp(&(b & 1))));
    sign | best.unwrap()
}

fn check(format: &str, mantissa: i32, bias: i32, infinities: bool) {
    let (scaled, decoded, bits) = run(format);
    let number = |code: u8| decode(code, mantissa, bias, infinities);
    for code in 0..=255u8 {
        let (found, meant) = (f64::from(decoded[usize::from(code)]), number(code));
        assert!(
            found == meant || (found.is_nan() && meant.is_nan()),
            "{format} {code:#x}: {found}"
        );
    }
    for (&value, &code) in scaled.iter().zip(&bits) {
        match value.is_nan() {
            true => assert!(number(code).is_nan(), "{format}: {code:#x} for NaN"),
            false => assert_eq!(code, encode(f64::from(value), &number), "{format}: {value}"),
        }
    }
}

#[test]
fn codes_are_the_nearest_and_mean_what_they_say() {
    check("float8e4nv", 3, 7, false);
    check("float8e5", 2, 15, true);
}

#[test]
fn they_are_multiplied_but_not_added() {
    let kernel = |body: &str| {
        format!(
            r#"# wrapper: run
# input: a uint8 [16, 16] int 0 112
# input: b float16 [16, 16] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, out_ptr):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a = tl.load(a_ptr + at).to(tl.float8e4nv, bitcast=True)
    b = tl.load(b_ptr + at).to(tl.float8e5)
    tl.store(out_ptr + at, {body})


def run(a, b):
    out = torch.empty((16, 16), dtype=torch.float32, device=a.device)
    kernel[(1,)](a, b, out)
    return out
"#
        )
    };
    let run = |body: &str| {
        let fixture = Fixture::new(Source::new("float8.py", kernel(body))).unwrap();
        let prepared = fixture.prepare().map_err(|e| e.to_string())?;
        Ok::<_, String>(fixture.run(&prepared, RunOptions::default()).unwrap().data.remove(0))
    };
    let narrow = run("tl.dot(a, b)").unwrap();
    let wide = run("tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision=\"ieee\")").unwrap();
    assert_eq!(narrow, wide);
    let refused = run("a + a").unwrap_err();
    assert!(refused.contains("does not take floats of eight bits"), "{refused}");
    assert!(refused.contains("`.to(tl.float16)`"), "{refused}");
}
