//! Kernels compiled by Triton in the sandbox. `PASSNET_PYTHON` names a Python that has it; `tools/full-check` runs the tests
//! that need it.

use passnet_engine::ErrorKind;
use passnet_engine::sandbox::{Limits, Sandbox};
use passnet_engine::torch::compile::{Compiler, Cubin};
use passnet_graph::syntax::Source;
use passnet_kernel::fixture::Fixture;
use passnet_kernel::plan::{Launch, Step};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn compiler(cache: &Path) -> Compiler {
    let python = std::env::var_os("PASSNET_PYTHON");
    let python = PathBuf::from(python.expect("PASSNET_PYTHON must name a Python with Triton"));
    let sandbox = Sandbox::strongest().unwrap_or_else(|refusal| panic!("{refusal}"));
    Compiler::new(python, cache.into(), sandbox)
}

fn fixture(name: &str) -> Fixture {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../passnet-kernel/tests/kernels");
    let text = std::fs::read_to_string(folder.join(format!("{name}.py"))).unwrap();
    Fixture::new(Source::new(format!("{name}.py"), text)).unwrap()
}

fn launch(fixture: &Fixture) -> &Launch {
    let launch = fixture.plan.steps.iter().find_map(|step| match step {
        Step::Launch(launch) => Some(launch),
        _ => None,
    });
    launch.unwrap()
}

fn compile(compiler: &Compiler, fixture: &Fixture) -> Vec<Cubin> {
    let aligned = vec![true; fixture.plan.buffers.len()];
    compiler.compile_plan(&fixture.modules, &fixture.plan, &aligned).unwrap()
}

#[test]
#[ignore = "needs Triton and a sandbox; tools/full-check runs it"]
fn kernels_become_cubins_and_are_kept() {
    let cache = tempfile::tempdir().unwrap();
    let compiler = compiler(cache.path());
    for name in [
        "layer_norm",
        "matmul_half",
        "gelu_erf",
        "dropout_seeded",
        "optional_bias",
        "welford_reduce",
    ] {
        let fixture = fixture(name);
        let cubins = compile(&compiler, &fixture);
        let launches = fixture.plan.steps.iter().filter(|step| matches!(step, Step::Launch(_)));
        assert_eq!(cubins.len(), launches.count(), "{name}");
        for cubin in &cubins {
            assert_eq!(cubin.scratch, 2, "{name}");
            assert!(cubin.code.starts_with(b"\x7fELF") && cubin.registers.unwrap() > 0, "{name}");
        }
        // The second time no process is needed.
        let kept = Compiler::from_cache(cache.path().into(), compiler.triton().unwrap());
        assert_eq!(compile(&kept, &fixture), cubins, "{name}");
        let (kernels, code) = Cubin::pack(&cubins);
        for (kernel, cubin) in kernels.iter().zip(&cubins) {
            let at = kernel["offset"].as_u64().unwrap() as usize;
            assert_eq!(code[at..at + cubin.code.len()], cubin.code);
        }
    }
}

#[test]
#[ignore = "needs Triton and a sandbox; tools/full-check runs it"]
fn arguments_that_are_compiled_in_are_no_parameters() {
    let cache = tempfile::tempdir().unwrap();
    let compiler = compiler(cache.path());
    let source = "\
# wrapper: run
# input: x float32 [64] normal
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, bias_ptr, out_ptr, one, n, flag, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * one, mask=i < n)
    if flag:
        x = x * factor
    tl.store(out_ptr + i, x, mask=i < n)

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, None, out, 1, 60, True, 0.5, BLOCK=64, num_warps=2)
    return out
";
    let fixture = Fixture::new(Source::new("some.py", source)).unwrap();
    let cubin = compiler.compile(&fixture.modules, launch(&fixture), &[true, false]).unwrap();
    assert_eq!(cubin.parameters, [0, 2, 4, 5, 6]);
    assert_eq!((cubin.aligned, cubin.num_warps, cubin.name.as_str()), (vec![0], 2, "kernel"));
}

#[test]
#[ignore = "needs Triton and a sandbox; tools/full-check runs it"]
fn what_triton_refuses_is_reported_at_its_line_of_the_pass() {
    let cache = tempfile::tempdir().unwrap();
    let compiler = compiler(cache.path());
    // Our own front end takes a plain number for a constant; Triton asks for `tl.constexpr`.
    let source = "\
# wrapper: run
# input: x float32 [64] normal
import torch
import triton
import triton.language as tl

WIDTH = 64


@triton.jit
def kernel(x_ptr):
    i = tl.arange(0, 64)
    tl.store(x_ptr + i, WIDTH)

def run(x):
    kernel[(1,)](x)
    return x
";
    let fixture = Fixture::new(Source::new("some.py", source)).unwrap();
    let error = compiler.compile(&fixture.modules, launch(&fixture), &[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Plan);
    assert!(error.message.starts_with("some.py:13: kernel `kernel` does not compile"), "{error}");
    assert!(error.message.contains("WIDTH"), "{error}");
}

#[test]
#[ignore = "needs Triton and a sandbox; tools/full-check runs it"]
fn a_compilation_that_takes_too_long_is_stopped() {
    let cache = tempfile::tempdir().unwrap();
    let compiler = compiler(cache.path());
    compiler.triton().unwrap();
    let short = Limits { time: Duration::from_millis(50), ..Limits::default() };
    let error = compiler
        .with_limits(short)
        .compile(&fixture("layer_norm").modules, launch(&fixture("layer_norm")), &[])
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
}

#[test]
fn without_a_process_only_kept_cubins_are_known() {
    let cache = tempfile::tempdir().unwrap();
    let compiler = Compiler::from_cache(cache.path().into(), "3.6.0");
    let fixture = fixture("relu");
    let error = compiler.compile(&fixture.modules, launch(&fixture), &[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Machine);
    assert!(error.message.contains("compiled beforehand"), "{error}");
}

#[test]
#[ignore = "needs Triton and a sandbox; tools/full-check runs it"]
fn a_damaged_cache_is_compiled_anew_or_refused() {
    let cache = tempfile::tempdir().unwrap();
    let compiler = compiler(cache.path());
    let fixture = fixture("relu");
    let made = compile(&compiler, &fixture);
    let mut files = Vec::new();
    for folder in std::fs::read_dir(cache.path()).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    assert_eq!(files.len(), 1);
    let whole = std::fs::read(&files[0]).unwrap();
    std::fs::write(&files[0], &whole[..whole.len() / 2]).unwrap();
    let kept = Compiler::from_cache(cache.path().into(), compiler.triton().unwrap());
    assert!(kept.compile(&fixture.modules, launch(&fixture), &[true; 2]).is_err());
    assert_eq!(compile(&compiler, &fixture), made);
    assert_eq!(std::fs::read(&files[0]).unwrap(), whole);
}

/// All demonstration passes and all kernel files: minutes of compilation.
#[test]
#[ignore = "needs Triton and a sandbox; tools/full-check runs it"]
fn every_kernel_of_the_repository_becomes_a_cubin() {
    let cache = tempfile::tempdir().unwrap();
    let compiler = compiler(cache.path());
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = |folder: &str| {
        let entries = std::fs::read_dir(repository.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let passes = list("bench/passes");
    let passes =
        passes.iter().map(|path| path.join(path.file_name().unwrap()).with_extension("py"));
    let mut files = list("crates/passnet-kernel/tests/kernels");
    files.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    files.extend(passes);
    let failures: Vec<String> = files
        .iter()
        .filter_map(|file| {
            let fixture = Fixture::new(Source::read(file).unwrap()).unwrap();
            let aligned = vec![true; fixture.plan.buffers.len()];
            let made = compiler.compile_plan(&fixture.modules, &fixture.plan, &aligned);
            made.err().map(|error| error.to_string())
        })
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), files.len(), failures.join("\n"));
}
