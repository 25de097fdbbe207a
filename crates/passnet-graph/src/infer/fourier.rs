//! Fourier transforms.

use super::args::{Args, wrap_axis};
use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::value::{Shape, TensorType, Value};
use crate::dtype::{DType, Kind};
use crate::ops::Op;
use smallvec::SmallVec;

/// One transform along one or more dimensions.
pub(super) fn transform(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let op = args.op();
    let real_input = matches!(op, Op::Rfft | Op::Rfft2 | Op::Rfftn);
    let real_output = matches!(op, Op::Irfft | Op::Irfft2 | Op::Irfftn);
    if real_input && input.dtype.is_complex() {
        return Err(Problem::invalid(format!(
            "rfft expects a real input tensor, but got {}",
            super::promote::message_name(input.dtype)
        )));
    }
    let axes = axes(args, input.rank())?;
    let sizes = args.optional_ints(if args.bound.has("n") { "n" } else { "s" })?;
    let mut shape = input.shape.clone();
    for (place, axis) in axes.iter().enumerate() {
        if let Some(size) = sizes.as_ref().and_then(|sizes| sizes.get(place))
            && size.size != -1
        {
            shape[*axis] = size.clone();
        }
    }
    if let Some(last) = axes.last() {
        let given = sizes.as_ref().and_then(|sizes| sizes.get(axes.len() - 1));
        if real_input {
            shape[*last] = shape[*last].divided(2)?.offset(1)?;
        } else if real_output && given.is_none_or(|size| size.size == -1) {
            shape[*last] = shape[*last].offset(-1)?.scaled(2)?;
        }
    }
    if axes.iter().any(|axis| shape[*axis].size < 1) {
        return Err(Problem::invalid("Invalid number of data points specified"));
    }
    let complex = match input.dtype.kind() {
        Kind::Complex => input.dtype,
        _ if input.dtype == DType::Float64 => DType::Complex128,
        _ => DType::Complex64,
    };
    let dtype = if real_output { complex.real() } else { complex };
    Ok(laid_out(dtype, shape, &axes).into())
}

fn axes(args: &Args, rank: usize) -> Inferred<crate::view::List<usize>> {
    let mut axes: crate::view::List<usize> = SmallVec::new();
    match args.optional_ints("dim")? {
        Some(dims) => {
            for dim in &dims {
                axes.push(wrap_axis(dim.size, rank)?);
            }
        }
        None => match args.optional_ints("s")? {
            Some(sizes) => axes.extend(rank.saturating_sub(sizes.len())..rank),
            None => axes.extend(0..rank),
        },
    }
    if rank == 0 || axes.iter().any(|axis| *axis >= rank) {
        return Err(Problem::invalid("a Fourier transform needs at least one dimension"));
    }
    Ok(axes)
}

/// The transformed dimensions are innermost in memory: torch moves them last, transforms, and views back.
fn laid_out(dtype: DType, shape: Shape, axes: &[usize]) -> TensorType {
    let mut order: SmallVec<[usize; 6]> =
        (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let mut transformed: SmallVec<[usize; 6]> = axes.iter().copied().collect();
    transformed.sort_unstable();
    order.extend(transformed);
    let permuted: crate::view::List<Dim> = order.iter().map(|axis| shape[*axis].clone()).collect();
    let dense = super::strides::contiguous(&permuted);
    let mut strides = dense.clone();
    for (place, axis) in order.iter().enumerate() {
        strides[*axis] = dense[place];
    }
    TensorType::strided(dtype, shape, strides)
}

/// What both short-time transforms are told: the length of a transform, of a step and of the window.
struct Steps {
    length: Dim,
    hop: Dim,
}

fn steps(args: &Args) -> Inferred<Steps> {
    let length = args.int("n_fft")?;
    let hop = match args.optional_int("hop_length")? {
        Some(hop) => hop,
        None => length.divided(4)?,
    };
    let window = args.optional_int("win_length")?.unwrap_or_else(|| length.clone());
    if length.size < 1 || hop.size < 1 || window.size < 1 || window.size > length.size {
        return Err(Problem::invalid(format!(
            "expected n_fft, hop_length > 0 and 0 < win_length <= n_fft, but got {}, {} and {}",
            length.size, hop.size, window.size
        )));
    }
    if let Some(tensor) = args.optional_tensor("window")?
        && (tensor.rank() != 1 || !args.scope.same(&tensor.shape[0], &window))
    {
        return Err(Problem::invalid(format!(
            "expected a 1D window tensor of size equal to win_length={}, but got window with size {}",
            window.size,
            super::strides::describe(&tensor.shape)
        )));
    }
    Ok(Steps { length, hop })
}

/// The type of the transform of a signal that is multiplied by a window.
fn complex_of(input: &TensorType, window: Option<&TensorType>) -> DType {
    let dtype = window.map_or(input.dtype, |window| input.dtype.promote(window.dtype));
    if dtype.is_complex() { dtype } else { dtype.complex() }
}

/// `stft`: the transform of every window, frequencies before windows.
pub(super) fn stft(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let steps = steps(args)?;
    let last = match (input.rank(), input.shape.last()) {
        (1 | 2, Some(last)) if input.dtype.is_float() || input.dtype.is_complex() => last,
        _ => {
            return Err(Problem::invalid(
                "stft expected a 1D or 2D tensor of floating point or complex values",
            ));
        }
    };
    if args.flag("align_to_window")? {
        return Err(Problem::unknown("`align_to_window` is not followed"));
    }
    let mut signal = last.clone();
    if args.flag("center")? {
        let pad = steps.length.divided(2)?;
        if args.text("pad_mode")?.as_deref() == Some("reflect") && pad.size >= last.size {
            return Err(Problem::invalid(
                "Padding size should be less than the corresponding input dimension",
            ));
        }
        signal = signal.add(&pad.scaled(2)?)?;
    }
    if steps.length.size > signal.size {
        return Err(Problem::invalid(format!(
            "expected 0 < n_fft <= {}, but got n_fft={}",
            signal.size, steps.length.size
        )));
    }
    let frames = signal.sub(&steps.length)?.floor_div(&steps.hop)?.offset(1)?;
    let of_complex = input.dtype.is_complex()
        || args.optional_tensor("window")?.is_some_and(|window| window.dtype.is_complex());
    let one_sided = match &*args.value("onesided")? {
        Value::None => !of_complex,
        _ => args.flag("onesided")?,
    };
    let frequencies =
        if one_sided { steps.length.divided(2)?.offset(1)? } else { steps.length.clone() };
    let wide = Shape::from_iter(
        [input.shape[..input.rank() - 1].to_vec(), vec![frames, frequencies]].concat(),
    );
    let mut result =
        TensorType::contiguous(complex_of(input, args.optional_tensor("window")?), wide);
    let rank = result.rank();
    result.shape.swap(rank - 2, rank - 1);
    result.strides.swap(rank - 2, rank - 1);
    if args.flag("return_complex")? {
        return Ok(result.into());
    }
    if !of_complex && matches!(&*args.value("return_complex")?, Value::None) {
        return Err(Problem::invalid(
            "stft requires the return_complex parameter be given for real inputs",
        ));
    }
    // Pairs of real numbers in the same memory.
    result.strides.iter_mut().for_each(|step| *step = step.saturating_mul(2));
    result.shape.push(Dim::fixed(2));
    result.strides.push(1);
    result.dtype = result.dtype.real();
    Ok(result.into())
}

/// `istft`: windows overlapped to a signal again.
pub(super) fn istft(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    let steps = steps(args)?;
    if !input.dtype.is_complex() || !matches!(input.rank(), 2 | 3) {
        return Err(Problem::invalid(
            "istft requires a complex-valued input tensor of 2 or 3 dimensions",
        ));
    }
    let frequencies = input.shape[input.rank() - 2].size;
    let one_sided = match &*args.value("onesided")? {
        Value::None => frequencies != steps.length.size,
        _ => args.flag("onesided")?,
    };
    let wanted = if one_sided { steps.length.size / 2 + 1 } else { steps.length.size };
    let complex = args.flag("return_complex")?;
    if frequencies != wanted || (complex && one_sided) || steps.hop.size > steps.length.size {
        return Err(Problem::invalid(format!(
            "istft expected a frequency dimension of {wanted} and no onesided transform of a complex signal, got {frequencies}"
        )));
    }
    let length = match args.optional_int("length")? {
        Some(length) => length,
        None => {
            let all =
                input.shape[input.rank() - 1].offset(-1)?.mul(&steps.hop)?.add(&steps.length)?;
            match args.flag("center")? {
                true => all.sub(&steps.length.divided(2)?.scaled(2)?)?,
                false => all,
            }
        }
    };
    let mut shape: Shape = input.shape[..input.rank() - 2].into();
    shape.push(length);
    let dtype = if complex { input.dtype } else { input.dtype.real() };
    Ok(TensorType::contiguous(dtype, shape).into())
}

/// `fftshift` and its inverse: a roll of the given dimensions, or of all.
pub(super) fn shift(args: &Args) -> Inferred<Value> {
    let input = args.first_tensor()?;
    for axis in args.optional_ints("dim")?.iter().flatten() {
        wrap_axis(axis.size, input.rank())?;
    }
    Ok(TensorType::contiguous(input.dtype, input.shape.clone()).into())
}
