//! Times short steps of a few tasks each on our pool of threads and on rayon's, in turns, and a call of a function that is
//! compiled for several sets of instructions.
//!
//!     cargo run --release -p passnet-cpu --example pool_against_rayon [THREADS]
//!
//! A step stands for an operation of a graph: all its tasks must be done before the next one begins. Each line gives the
//! medians over rounds in which both take their turn on the same work, and their ratio; the fewer cores are free, the less
//! it says. The third way, one thread, is what both must beat.

#![allow(clippy::print_stdout, reason = "an example that prints a table")]

use passnet_cpu::{multiversion, run_tasks, threads};
use rayon::prelude::*;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const ROUNDS: usize = 31;
const STEPS: usize = 40;

/// Work that the compiler cannot leave out.
fn task(length: u64) -> u64 {
    (0..length).fold(1, |value, step| black_box(value) ^ (step << 1))
}

fn microseconds(step: impl Fn()) -> f64 {
    let begin = Instant::now();
    (0..STEPS).for_each(|_| step());
    begin.elapsed().as_secs_f64() * 1e6 / STEPS as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

multiversion! {
    fn next(value: &mut u64) {
        *value = value.wrapping_mul(5).wrapping_add(1);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(wanted) = std::env::args().nth(1) {
        rayon::ThreadPoolBuilder::new().num_threads(wanted.parse()?).build_global()?;
    }
    println!("{} threads, {ROUNDS} rounds of {STEPS} steps; microseconds a step", threads());
    println!(
        "{:>5} {:>9} {:>9} {:>9} {:>9} {:>11}",
        "tasks", "a task", "ours", "rayon", "alone", "rayon/ours"
    );
    for length in [1_000, 4_000, 16_000, 64_000] {
        for tasks in [2, 8, 32] {
            let sum = AtomicU64::new(0);
            let work = |_: usize| {
                sum.fetch_add(task(length), Ordering::Relaxed);
            };
            let (mut ours, mut rayons, mut alone) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                ours.push(microseconds(|| run_tasks(tasks, threads(), &|task, _| work(task))));
                rayons.push(microseconds(|| (0..tasks).into_par_iter().for_each(work)));
                alone.push(microseconds(|| (0..tasks).for_each(work)));
            }
            black_box(sum.into_inner());
            let (ours, rayons, alone) = (median(ours), median(rayons), median(alone));
            println!(
                "{tasks:>5} {:>9.1} {ours:>9.1} {rayons:>9.1} {alone:>9.1} {:>11.2}",
                alone / tasks as f64,
                rayons / ours
            );
        }
    }
    let calls = 10_000_000u32;
    let mut value = 1;
    let begin = Instant::now();
    (0..calls).for_each(|_| next(black_box(&mut value)));
    let chosen = begin.elapsed();
    let begin = Instant::now();
    (0..calls).for_each(|_| *black_box(&mut value) = value.wrapping_mul(5).wrapping_add(1));
    let plain = begin.elapsed();
    let cost = (chosen.as_secs_f64() - plain.as_secs_f64()) * 1e9 / f64::from(calls);
    println!("a call that chooses its variant: {cost:.2} ns more than the work itself ({value})");
    Ok(())
}
