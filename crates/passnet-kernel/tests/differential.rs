//! Random kernels three ways: machine code, the interpreter, and a slow evaluator of the tile IR.
//!
//! Cases come from a fixed seed; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` ask for others and for more.

#[path = "differential/generate.rs"]
mod generate;

use generate::{Agreement, Choices, ELEMENTS, Kernel, STORED};
use passnet_graph::syntax::Source;
use passnet_kernel::exec::{PreparedPlan, RunOptions, gather};
use passnet_kernel::fixture::Fixture;
use passnet_kernel::plan::View;
use passnet_kernel::reference;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::path::Path;

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Elements of an input: small numbers for the most part, any bits now and then.
fn data(elem: &str, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::new();
    for _ in 0..ELEMENTS {
        let bits = random(&mut state);
        let is_odd = bits & 7 == 0;
        let small = ((bits >> 8) % 33) as i64 - 16;
        let number = small as f32 / 4.0;
        let any = bits >> 16;
        match elem {
            "float64" if is_odd => {
                bytes.extend(f64::from(f32::from_bits(any as u32)).to_le_bytes())
            }
            "float64" => bytes.extend(f64::from(number).to_le_bytes()),
            "float32" if is_odd => bytes.extend((any as u32).to_le_bytes()),
            "float32" => bytes.extend(number.to_le_bytes()),
            "float16" | "bfloat16" if is_odd => bytes.extend((any as u16).to_le_bytes()),
            "bfloat16" => bytes.extend(((number.to_bits() >> 16) as u16).to_le_bytes()),
            "float16" => bytes.extend(small_half(small).to_le_bytes()),
            "int1" => bytes.push((any & 1) as u8),
            _ => {
                let size = if elem == "int8" || elem == "uint8" {
                    1
                } else {
                    elem[3..].parse::<usize>().unwrap() / 8
                };
                let value = if is_odd { any as i64 } else { small };
                bytes.extend(&value.to_le_bytes()[..size]);
            }
        }
    }
    bytes
}

/// A quarter of a small whole number as `float16`.
fn small_half(quarters: i64) -> u16 {
    let sign = if quarters < 0 { 0x8000 } else { 0 };
    let magnitude = quarters.unsigned_abs();
    if magnitude == 0 {
        return sign;
    }
    let exponent = magnitude.ilog2();
    let mantissa = ((magnitude << 10) >> exponent) as u16 & 1023;
    sign | ((exponent as u16 + 13) << 10) | mantissa
}

fn number(bytes: &[u8], size: usize) -> Option<f64> {
    let half = |b: &[u8]| u16::from_le_bytes([b[0], b[1]]);
    Some(match size {
        8 => f64::from_le_bytes(bytes.try_into().ok()?),
        4 => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
        _ => f64::from(half(bytes)),
    })
}

fn is_nan(bytes: &[u8], dtype: &str) -> bool {
    let half = |limit: u16| u16::from_le_bytes([bytes[0], bytes[1]]) & 0x7fff > limit;
    match dtype {
        "float16" => half(0x7c00),
        "bfloat16" => half(0x7f80),
        "float32" | "float64" => number(bytes, bytes.len()).is_some_and(f64::is_nan),
        _ => false,
    }
}

/// The first element in which two outputs do not agree.
fn first_difference(a: &[u8], b: &[u8], view: &View, agreement: Agreement) -> Option<usize> {
    let (size, dtype) = (view.dtype.size(), view.dtype.name());
    let near = |x: &[u8], y: &[u8]| match agreement {
        Agreement::Exact => false,
        Agreement::Near { units, apart } => {
            let (Some(x), Some(y)) = (number(x, size), number(y, size)) else { return false };
            let unit = f64::from(f32::EPSILON) * y.abs().max(f64::from(f32::MIN_POSITIVE));
            (x - y).abs() <= (units * unit).max(apart)
        }
    };
    let pairs = a.chunks_exact(size).zip(b.chunks_exact(size));
    let mut agree =
        pairs.map(|(x, y)| x == y || (is_nan(x, dtype) && is_nan(y, dtype)) || near(x, y));
    if a.len() == b.len() { agree.position(|same| !same) } else { Some(0) }
}

/// What became of the cases.
#[derive(Default)]
struct Tally {
    run: Cell<u32>,
    /// Those that our front end does not take, or that stop.
    refused: Cell<u32>,
    /// Those in which machine code ran.
    compiled: Cell<u32>,
}

fn count(cell: &Cell<u32>) {
    cell.set(cell.get() + 1);
}

fn outputs(prepared: &PreparedPlan, buffers: &[Vec<u8>]) -> Vec<Vec<u8>> {
    prepared.plan().returns.iter().map(|view| gather(view, &buffers[view.buffer])).collect()
}

/// Runs a kernel all three ways; what disagrees, in words.
fn compare(kernel: &Kernel, tally: &Tally) -> Result<(), String> {
    count(&tally.run);
    let source = Source::new("kernel.py", &*kernel.text);
    let planned = Fixture::new(source).and_then(|f| f.prepare().map(|p| (f, p)));
    let (fixture, prepared) = match planned {
        Ok(both) => both,
        Err(refusal) => {
            let refusal = refusal.to_string();
            if refusal.contains("internal error") {
                return Err(refusal);
            }
            count(&tally.refused);
            return Ok(());
        }
    };
    let mut start = fixture.buffers(&prepared);
    for (index, elem) in kernel.inputs.iter().enumerate() {
        start[index] = data(elem, 11 + index as u64);
    }
    let run = |interpret: bool| {
        let mut buffers = start.clone();
        let options = RunOptions { interpret, threads: 1, ..RunOptions::default() };
        let ran = prepared.run(buffers.iter_mut().map(Vec::as_mut_slice).collect(), options);
        ran.map(|()| outputs(&prepared, &buffers)).map_err(|e| e.to_string())
    };
    let interpreted = run(true);
    let before = prepared.machine_code_runs();
    let compiled = run(false);
    if prepared.machine_code_runs() > before {
        count(&tally.compiled);
    }
    let mut buffers = start.clone();
    let evaluated = prepared
        .launches()
        .try_for_each(|(launch, function)| reference::launch(launch, function, &mut buffers))
        .map(|()| outputs(&prepared, &buffers));
    let (interpreted, compiled, evaluated) = match (interpreted, compiled, evaluated) {
        (Ok(a), Ok(b), Ok(c)) => (a, b, c),
        // An index that overflows its type stops the executor, which the reference knows nothing of.
        (Err(a), Err(b), _) if a == b && a.contains("overflows") => {
            count(&tally.refused);
            return Ok(());
        }
        (a, b, c) => return Err(format!("interpreter: {a:?}\ncode: {b:?}\nreference: {c:?}")),
    };
    for (index, view) in prepared.plan().returns.iter().enumerate() {
        let exact = first_difference(&compiled[index], &interpreted[index], view, Agreement::Exact);
        if let Some(at) = exact {
            return Err(format!("machine code: output {index}, element {at}"));
        }
        let agreement = kernel.outputs[index];
        if let Some(at) = first_difference(&interpreted[index], &evaluated[index], view, agreement)
        {
            let size = view.dtype.size();
            let element = |bytes: &[u8]| bytes[at * size..(at + 1) * size].to_vec();
            return Err(format!(
                "reference: output {index}, element {at}: {:02x?} and not {:02x?} ({agreement:?})",
                element(&interpreted[index]),
                element(&evaluated[index]),
            ));
        }
    }
    Ok(())
}

#[test]
fn random_kernels_agree_with_the_reference() {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    config.cases = config.cases.max(20_000);
    config.max_shrink_iters = 4000;
    let cases = config.cases;
    let tally = Tally::default();
    let choices = prop::collection::vec(any::<u16>(), 0..160);
    let result = TestRunner::new(config).run(&choices, |choices| {
        let kernel = generate::kernel(&mut Choices::new(&choices));
        compare(&kernel, &tally).map_err(|e| TestCaseError::fail(format!("{e}\n{}", kernel.text)))
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    let (run, refused, compiled) = (tally.run.get(), tally.refused.get(), tally.compiled.get());
    assert_eq!(run, cases);
    assert!(refused * 5 < run, "{refused} of {run} kernels were refused");
    if cfg!(feature = "machine-code") && has_machine_code() {
        assert!(compiled * 5 > run, "machine code ran in {compiled} of {run} kernels only");
    }
}

/// Kernels that the random ones found, made small by hand.
#[test]
fn kernels_that_once_differed_agree_with_the_reference() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/found");
    let tally = Tally::default();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let dtypes =
            text.lines().filter_map(|line| line.strip_prefix("# input: ")?.split(' ').nth(1));
        let inputs = dtypes.map(|dtype| match dtype {
            "bool" => "int1",
            other => STORED.into_iter().find(|known| *known == other).unwrap(),
        });
        let kernel = Kernel { inputs: inputs.collect(), outputs: vec![Agreement::Exact; 8], text };
        compare(&kernel, &tally).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    assert!(tally.run.get() >= 4);
    assert_eq!(tally.refused.get(), 0);
}

/// Whether this machine runs machine code at all.
fn has_machine_code() -> bool {
    let kernel = generate::kernel(&mut Choices::new(&[0, 0, 3]));
    let fixture = Fixture::new(Source::new("kernel.py", &*kernel.text)).unwrap();
    fixture.prepare().unwrap().has_machine_code()
}
