//! Every kernel file of `tests/kernels` against Triton's own interpreter.
//!
//! The goldens were made with PyTorch 2.11, Triton 3.6 and NumPy 2.2 by
//! `python -m passnet.kernels.triton_parity golden crates/passnet-kernel/tests/kernels crates/passnet-kernel/tests/goldens.safetensors`;
//! `--add` added later ones (dot_scaled, descriptors, tuples of tensors, …) with PyTorch 2.15 and Triton 3.9.

mod support;

use passnet_graph::DType;
use passnet_graph::syntax::Source;
use passnet_kernel::exec::{RunOptions, gather};
use passnet_kernel::fixture::Fixture;
use passnet_kernel::ir;
use safetensors::SafeTensors;
use std::path::{Path, PathBuf};
use support::python_files;

fn goldens() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens.safetensors")).unwrap()
}

/// Elements as numbers; integers exactly.
fn numbers(bytes: &[u8], dtype: DType) -> Vec<f64> {
    let half = |b: &[u8]| u16::from_le_bytes([b[0], b[1]]);
    let convert = |b: &[u8]| match dtype {
        DType::Float64 => f64::from_le_bytes(b.try_into().unwrap()),
        DType::Float32 => f64::from(f32::from_le_bytes(b.try_into().unwrap())),
        DType::BFloat16 => f64::from(f32::from_bits(u32::from(half(b)) << 16)),
        DType::Float16 => {
            let h = half(b);
            let (exponent, mantissa) = ((h >> 10) & 31, f64::from(h & 1023));
            let magnitude = match exponent {
                0 => mantissa * 2f64.powi(-24),
                31 if mantissa == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                e => (1024.0 + mantissa) * 2f64.powi(i32::from(e) - 25),
            };
            if h & 0x8000 == 0 { magnitude } else { -magnitude }
        }
        DType::Int64 => i64::from_le_bytes(b.try_into().unwrap()) as f64,
        DType::Int32 => f64::from(i32::from_le_bytes(b.try_into().unwrap())),
        DType::Int16 => f64::from(i16::from_le_bytes(b.try_into().unwrap())),
        DType::Int8 => f64::from(b[0] as i8),
        _ => f64::from(b[0]),
    };
    bytes.chunks_exact(dtype.size()).map(convert).collect()
}

/// Largest error relative to the larger of the value and one.
fn worst(ours: &[f64], theirs: &[f64]) -> f64 {
    ours.iter().zip(theirs).fold(0.0, |worst, (&a, &b)| {
        let error = if a == b || (a.is_nan() && b.is_nan()) {
            0.0
        } else {
            (a - b).abs() / b.abs().max(1.0)
        };
        if error.is_nan() { f64::INFINITY } else { worst.max(error) }
    })
}

fn allowed(dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => 2e-3,
        DType::BFloat16 => 1.6e-2,
        DType::Float32 => 2e-6,
        DType::Float64 => 1e-12,
        _ => 0.0,
    }
}

fn check(path: &Path, tensors: &SafeTensors<'_>) -> Result<(), String> {
    let name = path.file_stem().unwrap().to_string_lossy();
    let fixture =
        Fixture::new(Source::read(path).map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    let prepared = fixture.prepare().map_err(|e| e.to_string())?;
    let outputs = fixture
        .run(&prepared, RunOptions { threads: 1, order: Some(1), ..RunOptions::default() })
        .map_err(|e| e.to_string())?;
    let parallel = fixture
        .run(&prepared, RunOptions { threads: 4, order: Some(1), ..RunOptions::default() })
        .map_err(|e| e.to_string())?;
    if outputs.data != parallel.data {
        return Err("the result depends on the number of threads".into());
    }
    let mut checked = fixture.buffers(&prepared);
    passnet_kernel::check::check(
        &fixture.modules,
        &fixture.wrapper().map_err(|e| e.to_string())?,
        &fixture.header.host_args(),
        &prepared,
        checked.iter_mut().map(Vec::as_mut_slice).collect(),
    );
    for (index, (view, data)) in outputs.views.iter().zip(&outputs.data).enumerate() {
        if gather(view, &checked[view.buffer]) != *data {
            return Err(format!("output {index} of the checked mode differs"));
        }
        let golden = tensors.tensor(&format!("{name}.{index}")).map_err(|e| e.to_string())?;
        let shape: Vec<i64> = golden.shape().iter().map(|&d| d as i64).collect();
        if shape != view.shape {
            return Err(format!(
                "output {index} has shape {:?}, Triton's has {shape:?}",
                view.shape
            ));
        }
        let limit = if view.dtype.is_float() {
            fixture.header.tolerance.unwrap_or(allowed(view.dtype))
        } else {
            0.0
        };
        let (ours, theirs) = (numbers(data, view.dtype), numbers(golden.data(), view.dtype));
        let error = worst(&ours, &theirs);
        if error > limit {
            let at =
                (0..ours.len()).find(|&i| worst(&ours[i..=i], &theirs[i..=i]) > limit).unwrap_or(0);
            return Err(format!(
                "output {index} is off by {error:e}, first at {at}: {} for {}",
                ours[at], theirs[at]
            ));
        }
    }
    Ok(())
}

#[test]
fn kernels_agree_with_triton() {
    let bytes = goldens();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut failures = Vec::new();
    let files = python_files("kernels");
    assert!(files.len() >= 120, "{} kernel files", files.len());
    for path in &files {
        if let Err(message) = check(path, &tensors) {
            failures.push(format!("{}: {message}", path.file_stem().unwrap().to_string_lossy()));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} differ:\n{}",
        failures.len(),
        files.len(),
        failures.join("\n")
    );
}

/// Programs of ordinary kernels are proved independent, so that they run on all cores.
#[test]
fn ordinary_kernels_run_in_parallel() {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/kernels");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(benches).unwrap().map(|e| e.unwrap().path()).collect();
    let also = ["bias_by_remainder", "channel_of_element", "group_norm", "in_place", "transpose"];
    files.extend(
        python_files("kernels")
            .into_iter()
            .filter(|p| also.iter().any(|a| p.ends_with(format!("{a}.py")))),
    );
    assert!(files.len() >= 16 + also.len(), "{files:?}");
    for path in files {
        let fixture = Fixture::new(Source::read(&path).unwrap()).unwrap();
        let parallel = fixture.prepare().unwrap().parallel();
        assert!(parallel.iter().all(|&p| p), "{}: {parallel:?}", path.display());
    }
}

#[test]
fn tile_ir_reads_back_what_it_prints() {
    for path in python_files("kernels") {
        let fixture = Fixture::new(Source::read(&path).unwrap()).unwrap();
        for function in fixture.prepare().unwrap().functions() {
            let text = function.to_string();
            let again = ir::parse::parse("printed.ir", &text)
                .unwrap_or_else(|e| panic!("{}: {e}\n{text}", path.display()));
            assert!(*function == again, "{}:\n{text}", path.display());
            ir::verify::verify(&again).unwrap();
        }
    }
}

#[test]
fn plans_survive_json() {
    for path in python_files("kernels") {
        let fixture = Fixture::new(Source::read(&path).unwrap()).unwrap();
        let text = serde_json::to_string(&fixture.plan).unwrap();
        let again: passnet_kernel::plan::LaunchPlan = serde_json::from_str(&text).unwrap();
        assert_eq!(fixture.plan, again, "{}", path.display());
    }
}
