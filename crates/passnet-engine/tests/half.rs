//! Half precision is widened a block at a time: results are those of the whole widened tensor, rounded once, and memory
//! beside the result stays small.

use passnet_engine::native::ops::{fold, matmul, norm, reduce};
use passnet_engine::native::random::Generator;
use passnet_engine::native::tensor::Budget;
use passnet_engine::native::{Result, Tensor};
use passnet_graph::DType;

const HALVES: [DType; 2] = [DType::Float16, DType::BFloat16];

fn drawn(shape: &[usize], dtype: DType) -> Tensor {
    let mut generator = Generator::new(shape.iter().sum::<usize>() as u64);
    generator.randn(shape, DType::Float32).unwrap().to_dtype(dtype).unwrap()
}

/// Small whole numbers: sums of their products are exact in any order.
fn whole(shape: &[usize], dtype: DType) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * 7 + count) % 5) as f32 - 2.0).collect();
    Tensor::from_slice(&values, shape).unwrap().to_dtype(dtype).unwrap()
}

fn wide(tensor: &Tensor) -> Tensor {
    tensor.to_dtype(DType::Float32).unwrap()
}

/// The operation on half-precision operands gives the bits of the same on widened ones, rounded.
fn assert_rounded(operands: &[&Tensor], run: impl Fn(&[Tensor]) -> Result<Tensor>, what: &str) {
    let dtype = operands[0].dtype();
    let given: Vec<Tensor> = operands.iter().map(|t| (*t).clone()).collect();
    let widened: Vec<Tensor> = operands.iter().map(|t| wide(t)).collect();
    let (found, expected) = (run(&given).unwrap(), run(&widened).unwrap().to_dtype(dtype).unwrap());
    assert_eq!(found.dtype(), dtype);
    assert_eq!(found.shape(), expected.shape());
    assert!(found.to_bytes().unwrap() == expected.to_bytes().unwrap(), "{what} in {dtype}");
}

#[test]
fn products_are_those_of_widened_matrices() {
    let sizes: &[[usize; 3]] = &[
        [1, 1, 1],
        [1, 9, 200],
        [7, 1, 33],
        [6, 24, 128],
        [13, 50, 140],
        [9, 100, 5],
        [65, 49, 64],
        [3, 4, 0],
    ];
    for dtype in HALVES {
        for &[m, n, k] in sizes {
            let what = format!("{m}x{n}x{k}");
            let (a, w, bias) = (whole(&[m, k], dtype), whole(&[n, k], dtype), whole(&[n], dtype));
            assert_rounded(&[&a, &w], |t| matmul::linear(&t[0], &t[1], None), &what);
            assert_rounded(&[&a, &w, &bias], |t| matmul::linear(&t[0], &t[1], Some(&t[2])), &what);
            let (b, turned) = (whole(&[k, n], dtype), whole(&[k, m], dtype).t().unwrap());
            assert_rounded(&[&a, &b], |t| matmul::matmul(&t[0], &t[1]), &what);
            assert_rounded(&[&turned, &w.t().unwrap()], |t| matmul::matmul(&t[0], &t[1]), &what);
            let base = whole(&[m, 1], dtype);
            assert_rounded(
                &[&base, &a, &b],
                |t| matmul::addmm(&t[0], &t[1], &t[2], 0.5.into(), 3i64.into()),
                &what,
            );
            let (left, right) = (whole(&[3, m, k], dtype), whole(&[1, k, n], dtype));
            let right = right.expand(&[3, k as i64, n as i64]).unwrap();
            assert_rounded(&[&left, &right], |t| matmul::bmm(&t[0], &t[1]), &what);
        }
    }
}

#[test]
fn long_products_have_the_bits_of_single_precision() {
    for dtype in HALVES {
        let (a, w) = (drawn(&[20, 700], dtype), drawn(&[90, 700], dtype));
        assert_rounded(&[&a, &w], |t| matmul::linear(&t[0], &t[1], None), "linear");
        let b = drawn(&[700, 90], dtype);
        assert_rounded(&[&a, &b], |t| matmul::matmul(&t[0], &t[1]), "matmul");
    }
}

#[test]
fn normalisations_and_sums_are_those_of_widened_tensors() {
    for dtype in HALVES {
        for length in [1, 7, 512, 1300] {
            let x = drawn(&[40, length], dtype);
            let (w, b) = (drawn(&[length], dtype), whole(&[length], dtype));
            for x in [x.clone(), drawn(&[length, 40], dtype).t().unwrap()] {
                let layer = |t: &[Tensor]| {
                    norm::layer_norm(&t[0], &[length], Some(&t[1]), Some(&t[2]), 1e-5)
                };
                assert_rounded(&[&x, &w, &b], layer, "layer_norm");
                assert_rounded(
                    &[&x],
                    |t| norm::layer_norm(&t[0], &[length], None, None, 1e-5),
                    "layer_norm",
                );
                assert_rounded(
                    &[&x],
                    |t| norm::rms_norm(&t[0], &[length], None, Some(1e-6)),
                    "rms_norm",
                );
                for dim in [0, 1] {
                    assert_rounded(&[&x], |t| reduce::sum(&t[0], Some(&[dim]), false, None), "sum");
                    assert_rounded(
                        &[&x],
                        |t| reduce::mean(&t[0], Some(&[dim]), true, None),
                        "mean",
                    );
                    assert_rounded(&[&x], |t| reduce::var(&t[0], Some(&[dim]), 1.0, false), "var");
                    assert_rounded(
                        &[&x],
                        |t| reduce::extreme(&t[0], reduce::Extreme::Max, Some(&[dim]), false),
                        "amax",
                    );
                }
            }
        }
        let image = drawn(&[2, 12, 5, 9], dtype);
        let (w, b) = (drawn(&[12], dtype), drawn(&[12], dtype));
        for image in [image.clone(), image.channels_last().unwrap()] {
            let group = |t: &[Tensor]| norm::group_norm(&t[0], 3, Some(&t[1]), Some(&t[2]), 1e-5);
            assert_rounded(&[&image, &w, &b], group, "group_norm");
        }
    }
}

/// Bytes that an operation needed at one time, its result included.
fn peak(run: impl Fn() -> Result<Tensor>) -> usize {
    let budget = Budget::new(1 << 30);
    budget.scope(|| run().unwrap());
    budget.peak()
}

#[test]
fn nothing_is_widened_or_copied_as_a_whole() {
    let threads = rayon::current_num_threads();
    for dtype in HALVES {
        let (x, w) = (drawn(&[256, 1024], dtype), drawn(&[512, 1024], dtype));
        let bias = drawn(&[512], dtype);
        let result = 256 * 512 * 2;
        // Six rows and 24 columns for each thread, and two tiles of results.
        let blocks = threads * (30 * 1024 + 2 * 6 * 24) * 4;
        let linear = peak(|| matmul::linear(&x, &w, Some(&bias)));
        assert!(linear <= result + blocks, "{linear} bytes");
        let row = threads * 1024 * 4;
        let normal = peak(|| norm::layer_norm(&x, &[1024], None, None, 1e-5));
        assert!(normal <= 256 * 1024 * 2 + row, "{normal} bytes");
        assert_eq!(peak(|| reduce::mean(&x, Some(&[1]), false, None)), 256 * 2);
        assert_eq!(peak(|| reduce::mean(&x, Some(&[0]), false, None)), 1024 * 2);
    }
    let image = drawn(&[1, 16, 32, 32], DType::Float32).channels_last().unwrap();
    let patches =
        fold::Patches { kernel: [2, 2], dilation: [1, 1], padding: [0, 0], stride: [2, 2] };
    assert_eq!(peak(|| fold::unfold(&image, &patches)), 16 * 32 * 32 * 4);
}
