//! Times matrix products of the native engine and of the crate `gemm`, in turns, on one thread and on all.
//!
//!     cargo run --release -p passnet-engine --example products_against_gemm
//!
//! The sizes are those of graphs of the corpus. `rows` has the right matrix as it is written (`matmul`), `columns` the
//! transpose of one (`linear`). Each line gives the medians over rounds in which both take their turn on the same matrices,
//! both with memory of their own for the result. The engine hands `rows` wider than 1024 and every other layout to `gemm`
//! itself: there the ratio is what the engine adds around it.

#![allow(clippy::print_stdout, reason = "an example that prints a table")]

use gemm::Parallelism;
use passnet_cpu::{threads, without_helpers};
use passnet_engine::native::ops::matmul::mm;
use passnet_engine::native::{Scalar, Tensor};
use passnet_graph::DType;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 21;
/// Operations of a measurement, so that short products are repeated.
const WORK: usize = 1 << 24;

/// Rows of the result, its columns, and the products of each sum.
const SIZES: &[[usize; 3]] = &[
    [1, 768, 768],
    [1, 3072, 768],
    [768, 1, 768],
    [8, 768, 768],
    [64, 768, 3072],
    [64, 3072, 768],
    [49, 49, 32],
    [197, 197, 64],
    [197, 64, 197],
    [784, 384, 96],
    [3136, 96, 96],
    [512, 512, 512],
    [1024, 1024, 1024],
];

/// `a·b` by the crate; `b` is transposed where its columns lie one after the other.
fn by_crate(size: [usize; 3], a: &[f32], b: &[f32], columns: bool, ways: Parallelism) -> Vec<f32> {
    let [m, n, k] = size;
    assert!(a.len() == m * k && b.len() == k * n);
    let mut out = vec![0.0f32; m * n];
    let (b_column, b_row) = if columns { (k as isize, 1) } else { (1, n as isize) };
    let (target, a_row, n_row) = (out.as_mut_ptr(), k as isize, n as isize);
    let (a, b) = (a.as_ptr(), b.as_ptr());
    // SAFETY: the strides stay inside the three matrices, whose lengths were checked.
    unsafe {
        gemm::gemm(
            m, n, k, target, 1, n_row, false, a, 1, a_row, b, b_column, b_row, 1.0, 1.0, false,
            false, false, ways,
        );
    }
    out
}

fn microseconds(times: usize, product: impl Fn()) -> f64 {
    let begin = Instant::now();
    (0..times).for_each(|_| product());
    begin.elapsed().as_secs_f64() * 1e6 / times as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{ROUNDS} rounds; microseconds a product, float32");
    println!(
        "{:>5} {:>5} {:>5} {:>8} {:>8} {:>9} {:>9} {:>10}",
        "m", "n", "k", "right", "threads", "ours", "gemm", "gemm/ours"
    );
    for &size in SIZES {
        for columns in [false, true] {
            let [m, n, k] = size;
            let filled = |shape: &[usize]| Tensor::full(shape, Scalar::Float(0.5), DType::Float32);
            let left = filled(&[m, k])?;
            let right = if columns { filled(&[n, k])?.transpose(0, 1)? } else { filled(&[k, n])? };
            let (a, b) = (vec![0.5; m * k], vec![0.5; k * n]);
            let times = (WORK / (m * n * k)).max(1);
            // The result of a product that was made wrongly would be fast, too.
            let sum = k as f32 * 0.25;
            assert!(mm(&left, &right)?.to_vec::<f32>()?.iter().all(|v| *v == sum));
            for count in [1, threads()] {
                let ways = if count == 1 { Parallelism::None } else { Parallelism::Rayon(count) };
                assert!(by_crate(size, &a, &b, columns, ways).iter().all(|v| *v == sum));
                let own = || drop(black_box(mm(black_box(&left), black_box(&right))));
                let other = || drop(black_box(by_crate(size, black_box(&a), &b, columns, ways)));
                let (mut ours, mut crates) = (Vec::new(), Vec::new());
                for _ in 0..ROUNDS {
                    ours.push(match count {
                        1 => without_helpers(|| microseconds(times, own)),
                        _ => microseconds(times, own),
                    });
                    crates.push(microseconds(times, other));
                }
                let (ours, crates) = (median(ours), median(crates));
                let layout = if columns { "columns" } else { "rows" };
                println!(
                    "{m:>5} {n:>5} {k:>5} {layout:>8} {count:>8} {ours:>9.1} {crates:>9.1} {:>10.2}",
                    crates / ours
                );
            }
        }
    }
    Ok(())
}
