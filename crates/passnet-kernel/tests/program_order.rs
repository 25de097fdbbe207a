//! Programs of a launch run in an order that no kernel knows; what does not depend on it comes out the same.

use passnet_graph::syntax::Source;
use passnet_kernel::check::{Severity, check_in_order};
use passnet_kernel::exec::{RunError, RunOptions};
use passnet_kernel::fixture::Fixture;

fn fixture(body: &str) -> Fixture {
    let text = format!(
        "# wrapper: run
# input: x int32 [64] arange
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, state_ptr, out_ptr):
    pid = tl.program_id(0)
{body}

def run(x):
    state = torch.zeros((1,), dtype=x.dtype, device=x.device)
    out = torch.zeros((64,), dtype=x.dtype, device=x.device)
    kernel[(64,)](x, state, out)
    return out
"
    );
    Fixture::new(Source::new("pass.py", &*text)).unwrap_or_else(|e| panic!("{e}"))
}

fn run(fixture: &Fixture, order: Option<u64>, threads: usize) -> Result<Vec<i32>, RunError> {
    let prepared = fixture.prepare().unwrap();
    let options = RunOptions { order, threads, ..RunOptions::default() };
    let outputs = fixture.run(&prepared, options)?;
    let numbers =
        outputs.data[0].chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap()));
    Ok(numbers.collect())
}

/// Each program notes how many were before it.
const TICKETS: &str = "    tl.store(out_ptr + pid, tl.atomic_add(state_ptr, 1))\n";
/// Programs rely on program 0.
const FIRST_COMES_FIRST: &str = "    if pid == 0:
        tl.store(state_ptr, 7)
    tl.store(out_ptr + pid, tl.load(state_ptr))
";
const INDEPENDENT: &str = "    tl.store(out_ptr + pid, tl.load(x_ptr + pid) * 3)\n";
/// Programs from 5 on leave their buffer.
const FAULTY: &str = "    tl.store(out_ptr + pid, tl.load(x_ptr + pid + (pid // 5) * 1000))\n";

#[test]
fn a_secret_decides_who_is_first() {
    let tickets = fixture(TICKETS);
    let mut seen = std::collections::BTreeSet::new();
    for secret in 0..40 {
        let order = run(&tickets, Some(secret), 1).unwrap();
        assert_eq!(order, run(&tickets, Some(secret), 4).unwrap(), "a secret stands for one order");
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..64), "every program runs once");
        seen.insert((order[0], order[1]));
    }
    assert!(seen.len() > 20, "{seen:?}");
    // Without a secret every call draws one.
    let drawn: std::collections::BTreeSet<Vec<i32>> =
        (0..40).map(|_| run(&tickets, None, 1).unwrap()).collect();
    assert!(drawn.len() > 20, "{} orders", drawn.len());
}

#[test]
fn relying_on_the_first_program_fails_visibly() {
    let relying = fixture(FIRST_COMES_FIRST);
    let wrong = (0..40).filter(|s| run(&relying, Some(*s), 1).unwrap() != [7; 64]).count();
    assert!(wrong > 30, "{wrong} of 40");
}

#[test]
fn what_does_not_depend_on_the_order_comes_out_the_same() {
    let independent = fixture(INDEPENDENT);
    for secret in 0..20 {
        for threads in [1, 4] {
            let result = run(&independent, Some(secret), threads).unwrap();
            assert!(result.into_iter().eq((0..64).map(|i| i * 3)), "{secret}");
        }
    }
}

#[test]
fn the_fault_that_is_reported_does_not_depend_on_the_order() {
    let faulty = fixture(FAULTY);
    for secret in 0..20 {
        for threads in [1, 4] {
            let fault = run(&faulty, Some(secret), threads).unwrap_err().fault;
            assert_eq!(fault.program, [5, 0, 0], "{secret}");
        }
    }
}

#[test]
fn a_watched_run_finds_races_in_any_order() {
    let rules = |body: &str, order: Option<u64>| -> Vec<(&'static str, Severity)> {
        let fixture = fixture(body);
        let prepared = fixture.prepare().unwrap();
        let mut buffers = fixture.buffers(&prepared);
        let found = check_in_order(
            &fixture.modules,
            "run",
            &fixture.header.host_args(),
            &prepared,
            buffers.iter_mut().map(Vec::as_mut_slice).collect(),
            order,
        );
        found.into_iter().map(|f| (f.rule, f.severity)).collect()
    };
    for order in [None, Some(1), Some(2), Some(3), Some(4), Some(5)] {
        assert_eq!(rules(INDEPENDENT, order), [], "{order:?}");
        assert_eq!(rules(TICKETS, order), [], "{order:?}");
        let found = rules(FIRST_COMES_FIRST, order);
        assert!(found.contains(&("race", Severity::Error)), "{order:?}: {found:?}");
    }
}
