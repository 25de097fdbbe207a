//! What public kernels use and Triton's interpreter cannot run: atomics through descriptors, assembly of one instruction, mapped functions;
//! and what stays refused, with what to write instead.

use passnet_graph::syntax::Source;
use passnet_kernel::exec::RunOptions;
use passnet_kernel::fixture::Fixture;

/// A kernel over 64 floats with `body`, which stores 64 more.
fn computed(body: &str) -> Result<(Vec<f32>, Vec<f32>), String> {
    let text = format!(
        r#"# wrapper: run
# input: x float32 [8, 8] normal
import torch
import triton
import triton.language as tl


@tl.core._aggregate
class Pair:
    first: tl.tensor
    second: tl.tensor


@triton.jit
def piecewise(x, y):
    if x < 0:
        if y > 0:
            return x * 2.0, y + 1
        else:
            return x - 1.0, y
    else:
        return x, -y


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
{body}


def run(x):
    out = torch.ones((8, 8), dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, N=8)
    return x.clone(), out
"#
    );
    let fixture = Fixture::new(Source::new("real.py", text)).map_err(|e| e.to_string())?;
    let prepared = fixture.prepare().map_err(|e| e.to_string())?;
    let outputs =
        fixture.run(&prepared, RunOptions::default()).map_err(|e| format!("{:?}", e.fault))?;
    let floats = |data: &[u8]| -> Vec<f32> {
        data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    Ok((floats(&outputs.data[0]), floats(&outputs.data[1])))
}

#[test]
fn a_descriptor_adds_where_it_stands() {
    let (x, out) = computed(
        "    d = tl.make_tensor_descriptor(out_ptr, [N, N], [N, 1], [8, 8])\n    \
             d.atomic_add([2, 4], x)\n    \
             d.atomic_max([6, 0], x)",
    )
    .unwrap();
    let at = |row: usize, column: usize| x[row * 8 + column];
    for row in 0..8 {
        for column in 0..8 {
            let mut expected = 1.0;
            if row >= 2 && column >= 4 {
                expected += at(row - 2, column - 4);
            }
            if row >= 6 {
                expected = f32::max(expected, at(row - 6, column));
            }
            assert_eq!(out[row * 8 + column], expected, "{row}, {column}");
        }
    }
}

#[test]
fn a_function_that_branches_is_mapped_over_lanes() {
    let (x, out) = computed(
        "    y = (tl.arange(0, N) - 4)[:, None]\n    \
             a, b = tl.map_elementwise(piecewise, x, y)\n    \
             tl.static_assert(a.dtype == tl.float32 and b.dtype == tl.int32)\n    \
             tl.store(out_ptr + at, a * 100 + b)",
    )
    .unwrap();
    for (i, (&x, &found)) in x.iter().zip(&out).enumerate() {
        let y = i as i32 / 8 - 4;
        let (a, b) = match (x < 0.0, y > 0) {
            (true, true) => (x * 2.0, y + 1),
            (true, false) => (x - 1.0, y),
            (false, _) => (x, -y),
        };
        let expected = a * 100.0 + b as f32;
        assert!((found - expected).abs() <= 1e-4, "{x}, {y}: {found}, not {expected}");
    }
}

#[test]
fn assembly_of_one_known_instruction_is_read() {
    let call = |asm: &str, args: &str| {
        let constraints = if args.contains(',') { "=f,f,f" } else { "=f,f" };
        computed(&format!(
            "    y = tl.inline_asm_elementwise(\"{asm}\", \"{constraints}\", [{args}], dtype=tl.float32, is_pure=True, pack=1)\n    \
             tl.store(out_ptr + at, y)"
        ))
    };
    type Case = (&'static str, &'static str, fn(f32) -> f32);
    let cases: [Case; 4] = [
        ("tanh.approx.f32 $0, $1;", "x", f32::tanh),
        ("{ ex2.approx.ftz.f32 $0, $1; }", "x", f32::exp2),
        ("rcp.approx.f32 $0, $1;", "x", f32::recip),
        ("div.rn.f32 $0, $1, $2;", "x, x + 1.0", |x| x / (x + 1.0)),
    ];
    for (asm, args, function) in cases {
        let (x, out) = call(asm, args).unwrap_or_else(|e| panic!("{asm}: {e}"));
        for (x, y) in x.iter().zip(&out) {
            let expected = function(*x);
            assert!((y - expected).abs() <= 4e-6 * expected.abs().max(1.0), "{asm} {x}: {y}");
        }
    }
    for asm in
        ["lop3.b32 $0, $1;", "tanh.approx.f32 $1, $0;", "bar.sync 0;", "tanh.approx.f32 $0, $1"]
    {
        let error = call(asm, "x").unwrap_err();
        assert!(error.contains("runs on a GPU only"), "{asm}: {error}");
    }
}

#[test]
fn what_stays_refused_says_what_to_write() {
    let cases = [
        ("    tl.atomic_poll(out_ptr, 1)", "must not wait for another program"),
        ("    y = x.to(tl.float8e4b15)", "expected an element type"),
        ("    y = isinstance(x, int)", "ask for `tl.tensor`"),
        ("    y = Pair(x, x)", "pass its values as a tuple"),
        ("    y = tl.zeros([1] * 40, tl.float32)", "at most 32 dimensions"),
    ];
    for (body, wanted) in cases {
        let error = computed(body).unwrap_err();
        assert!(error.contains(wanted), "{body}: {error}");
    }
}

#[test]
fn an_assertion_that_is_known_to_fail_fails_when_it_runs() {
    let error = computed("    assert N == 16").unwrap_err();
    assert!(error.contains("assertion is false"), "{error}");
}
