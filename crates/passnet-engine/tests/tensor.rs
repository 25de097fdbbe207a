//! Tensors as a whole: views and aliasing, errors instead of panics, budgets, and independence of the number of threads.

use passnet_engine::native::ops::conv::{Convolution, Padding, convolution};
use passnet_engine::native::ops::pointwise::{self, Binary, Unary};
use passnet_engine::native::ops::{attention, creation, indexing, matmul, movement, norm, reduce};
use passnet_engine::native::random::Generator;
use passnet_engine::native::tensor::{Budget, Dims, Region};
use passnet_engine::native::{Result, Scalar, Tensor, TensorError};
use passnet_graph::DType;
use proptest::prelude::*;

fn counting(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<i64> = (0..count as i64).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

fn ints(tensor: &Tensor) -> Vec<i64> {
    tensor.to_vec().unwrap()
}

#[test]
fn views_share_memory() {
    let base = counting(&[2, 3, 4]);
    let view =
        base.transpose(0, 2).unwrap().select(0, 1).unwrap().slice(0, Some(1), None, 1).unwrap();
    assert_eq!(view.shape(), [2, 2]);
    assert_eq!(ints(&view), [5, 17, 9, 21]);
    view.fill(Scalar::Int(-1)).unwrap();
    assert_eq!(ints(&base)[..10], [0, 1, 2, 3, 4, -1, 6, 7, 8, -1]);
    pointwise::binary_in_place(Binary::Add { alpha: 1.0 }, &view, &100i64.into()).unwrap();
    assert_eq!(ints(&base)[21], 99);
}

#[test]
fn in_place_operations_read_before_they_write() {
    let base = counting(&[6]);
    let (head, tail) = (base.narrow(0, 0, 5).unwrap(), base.narrow(0, 1, 5).unwrap());
    // Overlapping operands: the sum of old values, not of partly new ones.
    pointwise::binary_in_place(Binary::Add { alpha: 1.0 }, &tail, &head.into()).unwrap();
    assert_eq!(ints(&base), [0, 1, 3, 5, 7, 9]);
    let square = counting(&[3, 3]);
    square.copy_from(&square.t().unwrap()).unwrap();
    assert_eq!(ints(&square), [0, 3, 6, 1, 4, 7, 2, 5, 8]);
    pointwise::binary_in_place(Binary::Mul, &square, &(&square).into()).unwrap();
    assert_eq!(ints(&square), [0, 9, 36, 1, 16, 49, 4, 25, 64]);
}

#[test]
fn empty_and_scalar_tensors() {
    // The second column of no rows begins beyond its storage.
    let column = Tensor::zeros(&[0, 2], DType::Int64).unwrap().select(1, 1).unwrap();
    assert_eq!(ints(&column), [0; 0]);
    let empty = Tensor::zeros(&[0, 3], DType::Float32).unwrap();
    assert_eq!(reduce::sum(&empty, None, false, None).unwrap().item().unwrap(), Scalar::Float(0.0));
    assert_eq!(reduce::sum(&empty, Some(&[1]), false, None).unwrap().shape(), [0]);
    assert_eq!(
        matmul::matmul(&empty.t().unwrap(), &empty).unwrap().to_vec::<f64>().unwrap(),
        [0.0; 9]
    );
    assert!(reduce::extreme(&empty, reduce::Extreme::Max, Some(&[0]), false).is_err());
    let number = Tensor::scalar(2.5, DType::Float64).unwrap();
    assert_eq!(number.unsqueeze(0).unwrap().shape(), [1]);
    assert_eq!(
        pointwise::unary(Unary::Square, &number).unwrap().item().unwrap(),
        Scalar::Float(6.25)
    );
    assert_eq!(
        movement::cat(&[Tensor::zeros(&[0], DType::Float32).unwrap(), empty.clone()], 0)
            .unwrap()
            .shape(),
        [0, 3]
    );
}

/// What torch refuses is an error of the right kind with a message; nothing panics.
#[test]
fn bad_input_is_an_error() {
    let x = counting(&[2, 3]);
    let f = Tensor::zeros(&[2, 3], DType::Float32).unwrap();
    let big = i64::MAX;
    let huge = [usize::MAX / 2, 4];
    let shape = |r: Result<Tensor>| matches!(r, Err(TensorError::Shape(m)) if !m.is_empty());
    let index = |r: Result<Tensor>| matches!(r, Err(TensorError::Index(m)) if !m.is_empty());
    assert!(shape(x.view(&[4, 2])));
    assert!(shape(x.view(&[big, big])));
    assert!(shape(x.t().unwrap().view(&[6])));
    assert!(shape(x.expand(&[2, 4])));
    assert!(shape(pointwise::add(&(&x).into(), &counting(&[4]).into(), 1i64.into())));
    assert!(shape(matmul::matmul(&f, &f)));
    assert!(index(x.select(0, 2)));
    assert!(index(x.select(5, 0)));
    assert!(index(x.narrow(1, 2, 2)));
    assert!(index(indexing::index_select(&x, 0, &counting(&[3]))));
    assert!(index(indexing::gather(&x, 1, &counting(&[1, 4]))));
    assert!(index(indexing::embedding(&Tensor::from_slice(&[-1i64], &[1]).unwrap(), &f)));
    let region = |shape: &[usize], strides: &[usize], offset| Region {
        shape: Dims::from_slice(shape),
        strides: Dims::from_slice(strides),
        offset,
    };
    assert!(shape(x.as_strided(region(&[2, 3], &[4, 1], 0))));
    assert!(shape(x.as_strided(region(&[2], &[usize::MAX], 3))));
    assert!(x.as_strided(region(&[2, 2], &[1, 2], 2)).is_ok());
    assert!(matches!(
        pointwise::binary(Binary::FloorDivide, &(&x).into(), &0i64.into()),
        Err(TensorError::Arithmetic(_))
    ));
    assert!(matches!(matmul::matmul(&x, &f.t().unwrap()), Err(TensorError::DType(_))));
    assert!(Tensor::zeros(&huge, DType::Float32).is_err());
    assert!(Tensor::zeros(&[1 << 40], DType::Float64).is_err());
    assert!(creation::arange(0i64.into(), big.into(), 1i64.into(), DType::Int64).is_err());
    assert!(movement::repeat(&x, &[usize::MAX, 2]).is_err());
    assert!(movement::pad(&x, &[big, big], movement::PadMode::Constant(Scalar::Int(0))).is_err());
    assert!(movement::pad(&x, &[big, 0], movement::PadMode::Replicate).is_err());
    assert!(movement::one_hot(&x, big).is_err());
    let conv = |stride: usize, padding: usize, dilation: usize| {
        let options = Convolution {
            stride: vec![stride],
            padding: Padding::Explicit(vec![padding]),
            dilation: vec![dilation],
            groups: 1,
        };
        let image = Tensor::zeros(&[1, 1, 4, 4], DType::Float32).unwrap();
        let weight = Tensor::zeros(&[1, 1, 3, 3], DType::Float32).unwrap();
        convolution(&image, &weight, None, &options)
    };
    assert!(conv(0, 0, 1).is_err());
    assert!(conv(1, 0, usize::MAX).is_err());
    assert!(conv(1, usize::MAX / 4, 1).is_err());
    assert!(conv(usize::MAX / 4, usize::MAX / 4, 1).is_err());
    assert!(conv(1, 1 << 45, 1 << 45).is_err(), "a padded image that fits nowhere");
    assert!(conv(1 << 45, 1 << 45, 1).is_ok(), "of which hardly anything is seen");
    assert!(conv(1, usize::MAX / 2, usize::MAX / 2).is_err());
    assert!(conv(1, 1, 1).is_ok());
}

/// NaN and infinity are values like others: they come out where torch lets them out, and no operation trips over them.
#[test]
fn what_is_no_number_is_carried_along() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let x = Tensor::from_slice(&[1.0, nan, -inf, inf, 0.0], &[5]).unwrap();
    let bits = |t: Tensor| -> Vec<String> {
        t.to_vec::<f32>().unwrap().iter().map(|v| format!("{v}")).collect()
    };
    assert_eq!(bits(pointwise::unary(Unary::Relu, &x).unwrap()), ["1", "NaN", "0", "inf", "0"]);
    let clamped = pointwise::clamp(&x, Some(&(-1.0).into()), Some(&2.0.into())).unwrap();
    assert_eq!(bits(clamped), ["1", "NaN", "-1", "2", "0"]);
    let (values, places) = reduce::sort(&x, 0, false).unwrap();
    assert_eq!(bits(values), ["-inf", "0", "1", "inf", "NaN"]);
    assert_eq!(ints(&places), [2, 4, 0, 3, 1]);
    assert!(bits(reduce::softmax(&x, 0, None).unwrap()).iter().all(|v| v == "NaN"));
    let all = [
        reduce::sum(&x, None, false, None),
        reduce::mean(&x, None, false, None),
        norm::layer_norm(&x, &[5], None, None, 1e-5),
        matmul::matmul(&x, &x),
    ];
    for result in all {
        assert!(result.unwrap().to_vec::<f32>().unwrap().iter().all(|v| v.is_nan()));
    }
    for dtype in [DType::Int64, DType::Int32, DType::UInt8, DType::Bool] {
        assert_eq!(x.to_dtype(dtype).unwrap().numel(), 5);
    }
    let image = Tensor::full(&[1, 1, 4, 4], Scalar::Float(f64::INFINITY), DType::Float32).unwrap();
    let weight = Tensor::full(&[1, 1, 3, 3], Scalar::Float(1.0), DType::Float32).unwrap();
    let options = Convolution {
        stride: vec![1],
        padding: Padding::Explicit(vec![1]),
        dilation: vec![1],
        groups: 1,
    };
    let out = convolution(&image, &weight, None, &options).unwrap();
    assert!(bits(out).iter().all(|v| v == "inf"));
    let ends = [(f64::NAN, 1.0), (0.0, f64::INFINITY), (f64::NEG_INFINITY, 0.0)];
    for (start, end) in ends {
        assert!(creation::arange(start.into(), end.into(), 1i64.into(), DType::Float32).is_err());
    }
}

#[test]
fn a_budget_bounds_an_operation() {
    let budget = Budget::new(1 << 16);
    budget.scope(|| {
        let x = Tensor::zeros(&[64, 64], DType::Float32).unwrap();
        assert!(pointwise::unary(Unary::Exp, &x).is_ok());
        let wide = x.expand(&[64, 64, 64]).unwrap();
        assert!(matches!(pointwise::unary(Unary::Exp, &wide), Err(TensorError::Allocation { .. })));
    });
    assert_eq!(budget.used(), 0);
}

/// One result of each kind of parallel kernel, as bytes.
fn sample_results() -> Vec<Vec<u8>> {
    let mut generator = Generator::new(7);
    let mut randn = |shape: &[usize]| generator.randn(shape, DType::Float32).unwrap();
    let (x, w, long) = (randn(&[150, 300]), randn(&[260, 300]), randn(&[300_000]));
    let (image, filters) = (randn(&[2, 24, 40, 40]), randn(&[32, 24, 3, 3]));
    let (q, k, v) = (randn(&[2, 4, 130, 16]), randn(&[2, 4, 130, 16]), randn(&[2, 4, 130, 16]));
    let options = Convolution {
        stride: vec![1],
        padding: Padding::Explicit(vec![1]),
        dilation: vec![1],
        groups: 1,
    };
    let plain = attention::Attention::default();
    let results = [
        reduce::sum(&long, None, false, None),
        reduce::sum(&image, Some(&[0, 2, 3]), false, None),
        reduce::mean(&image, Some(&[1]), false, None),
        reduce::softmax(&x, 1, None),
        matmul::linear(&x, &w, None),
        matmul::matmul(&q, &k.transpose(-2, -1).unwrap()),
        convolution(&image, &filters, None, &options),
        norm::layer_norm(&x, &[300], None, None, 1e-5),
        attention::scaled_dot_product_attention(&q, &k, &v, &plain),
        pointwise::unary(Unary::Gelu, &long),
        image.permute(&[0, 2, 3, 1]).unwrap().contiguous(),
    ];
    results.into_iter().map(|r| r.unwrap().to_bytes().unwrap()).collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(sample_results)
    };
    let alone = with(1);
    for threads in [2, 3, 5] {
        for (i, (a, b)) in alone.iter().zip(with(threads)).enumerate() {
            assert!(*a == b, "result {i} differs with {threads} threads");
        }
    }
}

/// A change of view that keeps every element.
#[derive(Debug, Clone)]
enum Step {
    Transpose(usize, usize),
    Reverse,
    Unsqueeze(usize),
    Flatten,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..8usize, 0..8usize).prop_map(|(a, b)| Step::Transpose(a, b)),
        Just(Step::Reverse),
        (0..8usize).prop_map(Step::Unsqueeze),
        Just(Step::Flatten),
    ]
}

proptest! {
    /// Views and copies of them always hold the same elements, whatever chain of views led there.
    #[test]
    fn copies_of_views_agree(shape in prop::collection::vec(1..5usize, 1..4), steps in prop::collection::vec(step(), 0..6)) {
        let mut view = counting(&shape);
        for step in steps {
            let n = view.ndim().max(1);
            view = match step {
                Step::Transpose(a, b) if view.ndim() > 0 => view.transpose((a % n) as i64, (b % n) as i64).unwrap(),
                Step::Reverse => view.permute(&(0..view.ndim() as i64).rev().collect::<Vec<_>>()).unwrap(),
                Step::Unsqueeze(d) => view.unsqueeze((d % (view.ndim() + 1)) as i64).unwrap(),
                Step::Flatten => view.flatten(0, -1).unwrap(),
                Step::Transpose(..) => view,
            };
            let dense = view.contiguous().unwrap();
            prop_assert_eq!(ints(&view), ints(&dense));
            prop_assert_eq!(ints(&view.copy().unwrap()), ints(&dense));
            let mut sorted = ints(&dense);
            sorted.sort_unstable();
            prop_assert_eq!(sorted, ints(&counting(&[shape.iter().product()])));
        }
    }
}

/// PyTorch 2.11: `1.702 * torch.tensor([3.0], dtype=torch.bfloat16)` is 5.09375, not 5.125.
#[test]
fn a_number_before_a_product_is_not_rounded_to_half() {
    let x = Tensor::from_slice(&[3.0f32], &[1]).unwrap().to_dtype(DType::BFloat16).unwrap();
    for product in
        [pointwise::mul(&1.702.into(), &(&x).into()), pointwise::mul(&(&x).into(), &1.702.into())]
    {
        let wide = product.unwrap().to_dtype(DType::Float32).unwrap();
        assert_eq!(wide.to_vec::<f32>().unwrap(), [5.09375]);
    }
}

#[test]
fn elements_fill_another_shape_over_and_over() {
    let tensor = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    let turned = tensor.transpose(0, 1).unwrap();
    assert_eq!(
        turned.cycled(&[6]).unwrap().to_vec::<f32>().unwrap(),
        [1.0, 3.0, 2.0, 4.0, 1.0, 3.0]
    );
    assert_eq!(turned.cycled(&[1, 3]).unwrap().to_vec::<f32>().unwrap(), [1.0, 3.0, 2.0]);
    let nothing = Tensor::zeros(&[0], DType::Int64).unwrap();
    assert_eq!(nothing.cycled(&[2]).unwrap().to_vec::<i64>().unwrap(), [0, 0]);
    assert_eq!(nothing.cycled(&[0, 3]).unwrap().numel(), 0);
}

#[test]
fn masked_fill_lies_row_by_row_whatever_its_input_does() {
    let input = Tensor::full(&[3, 4], Scalar::Int(1), DType::Float32).unwrap();
    let input = input.transpose(0, 1).unwrap();
    let mask = Tensor::full(&[4, 1], Scalar::Int(0), DType::Bool).unwrap();
    let filled = pointwise::masked_fill(&input, &mask, &Scalar::Int(0).into()).unwrap();
    assert_eq!((filled.shape(), filled.strides()), (&[4, 3][..], &[3, 1][..]));
}

#[test]
fn padding_lies_row_by_row_unless_channels_come_last() {
    let padded = |input: &Tensor| {
        let padded = movement::pad(input, &[1, 1], movement::PadMode::Constant(Scalar::Int(0)));
        padded.unwrap().strides().to_vec()
    };
    let rows = Tensor::full(&[2, 4, 3], Scalar::Int(1), DType::Float32).unwrap();
    assert_eq!(padded(&rows.transpose(1, 2).unwrap()), [18, 6, 1]);
    let image = Tensor::full(&[2, 3, 4, 5], Scalar::Int(1), DType::Float32).unwrap();
    assert_eq!(padded(&image.channels_last().unwrap()), [84, 1, 21, 3]);
}
