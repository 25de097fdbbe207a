//! How values change.

use super::super::named::Named;
use super::super::places::{Places, mixed};
use super::Stress;
use passnet_engine::native::{Result, Scalar, Tensor};
use passnet_graph::DType;

/// The value of many equal ones. Small, because the variance of equal values is nothing but rounding, which a norm divides
/// by the root of its epsilon.
const EQUAL: f32 = 1.0 / 512.0;

/// Of mixed magnitudes. The largest stays away from what overflows: `Large` is for that.
const SCALES: [f32; 8] = [1.0, 1e-3, 10.0, 1e-2, 30.0, 1e-1, 3.0, 100.0];

/// The same for float16, whose largest value is 65,504.
const HALF_SCALES: [f32; 8] = [1.0, 1e-3, 10.0, 1e-2, 30.0, 1e-1, 3.0, 1e-3];

impl Stress {
    pub(super) fn changed(self, tensor: &Tensor, keys: Keys) -> Result<Tensor> {
        let places = self.places(tensor.shape(), keys);
        let key = keys.elements;
        match tensor.dtype() {
            DType::Float64 => {
                let extremes = Extremes { large: 1e4, denormal: 1e-310, scales: SCALES };
                tensor.changed::<f64>(PIECE, |at, piece| {
                    self.change(at, piece, &places, key, &extremes);
                })
            }
            dtype => {
                let extremes = match dtype {
                    DType::Float16 => Extremes { large: 30.0, denormal: 1e-7, scales: HALF_SCALES },
                    _ => Extremes { large: 1e4, denormal: 1e-40, scales: SCALES },
                };
                tensor.changed::<f32>(PIECE, |at, piece| {
                    self.change(at, piece, &places, key, &extremes);
                })
            }
        }
    }

    /// Which elements are changed.
    fn places(self, shape: &[usize], keys: Keys) -> Places {
        if let Some(choice) = self.choice() {
            return Places::rows(shape, keys.indices, choice);
        }
        match self {
            Stress::LargeHereAndThere => Places::scattered(shape, 64, keys.elements),
            Stress::NamedHereAndThere(one_in) => Places::scattered(shape, one_in, keys.elements),
            // A zero is nothing out of the ordinary, so there may be many: at the head of some row, too.
            Stress::ZerosHereAndThere => Places::scattered(shape, 16, keys.elements),
            // Few: most rows of a reduction stay ordinary.
            Stress::Infinite | Stress::NotANumber => Places::scattered(shape, 512, keys.elements),
            _ => Places::All,
        }
    }

    /// Changes the values of a piece that begins at element `at`.
    fn change<T: Real>(
        self,
        at: usize,
        piece: &mut [T],
        places: &Places,
        key: u64,
        extremes: &Extremes<T>,
    ) {
        let [zero, infinity, nan] = [0.0, f32::INFINITY, f32::NAN].map(T::from_f32);
        let equal = T::from_f32(EQUAL);
        let scales = extremes.scales.map(T::from_f32);
        // One loop for each kind: those without random bits vectorise.
        places.for_each_run(at, piece, |first, run| match self {
            Stress::Large | Stress::LargeRows(_) | Stress::LargeHereAndThere => {
                run.iter_mut().for_each(|value| *value = *value * extremes.large);
            }
            Stress::Denormal => {
                run.iter_mut().for_each(|value| *value = extremes.denormal.copysign(*value));
            }
            Stress::Mixed => for_each_random(key, first, run, |random, value| {
                *value = *value * scales[usize::from(random) % SCALES.len()];
            }),
            Stress::Zeros | Stress::ZeroRows(_) | Stress::ZerosHereAndThere => {
                for_each_random(key, first, run, |random, value| *value = zero.signed(random));
            }
            Stress::Infinite => {
                for_each_random(key, first, run, |random, value| *value = infinity.signed(random));
            }
            Stress::EqualRows(_) => run.fill(equal),
            Stress::NotANumber => run.fill(nan),
            _ => {}
        });
    }

    /// Integers that the graph compares with: any of them here and there, one of them in rows.
    pub(super) fn named_integers(
        self,
        tensor: &Tensor,
        range: Option<(i64, i64)>,
        named: &Named,
        keys: Keys,
    ) -> Result<Tensor> {
        let is_row = self.choice().is_some();
        let integers = match (range, is_row) {
            (None, _) => Vec::new(),
            (Some(range), true) => named.integers_of_rows(range),
            (Some(range), false) => named.integers(range),
        };
        if integers.is_empty() {
            return Ok(tensor.clone());
        }
        let places = self.places(tensor.shape(), keys);
        tensor.changed::<i64>(PIECE, |at, piece| {
            places.for_each_run(at, piece, |first, run| {
                for (index, value) in run.iter_mut().enumerate() {
                    let element = if is_row { 0 } else { first + index };
                    *value = any_of(&integers, keys.elements, element);
                }
            });
        })
    }

    /// Reals that the graph compares with, here and there.
    pub(super) fn named_reals(self, tensor: &Tensor, reals: &[f32], keys: Keys) -> Result<Tensor> {
        if reals.is_empty() {
            return Ok(tensor.clone());
        }
        let places = self.places(tensor.shape(), keys);
        match tensor.dtype() {
            DType::Float64 => tensor.changed::<f64>(PIECE, |at, piece| {
                fill_with_any(reals, keys.elements, &places, at, piece);
            }),
            _ => tensor.changed::<f32>(PIECE, |at, piece| {
                fill_with_any(reals, keys.elements, &places, at, piece);
            }),
        }
    }

    /// Integers at one end of their range.
    pub(super) fn at_end(
        self,
        tensor: &Tensor,
        range: Option<(i64, i64)>,
        keys: Keys,
    ) -> Result<Tensor> {
        let (least, largest) = range_of(tensor, range)?;
        let is_lowest = matches!(self, Stress::Lowest | Stress::LowestRows(_));
        let end = if is_lowest { least } else { largest };
        let places = self.places(tensor.shape(), keys);
        tensor.changed::<i64>(PIECE, |at, piece| {
            places.for_each_run(at, piece, |_, run| run.fill(end));
        })
    }
}

/// The least and the largest integer that a tensor may hold, or that it holds where nothing is known.
fn range_of(tensor: &Tensor, range: Option<(i64, i64)>) -> Result<(i64, i64)> {
    if tensor.dtype() == DType::Bool {
        return Ok((0, 1));
    }
    range.map_or_else(
        || {
            let values = tensor.to_vec::<i64>()?;
            let ends = (values.iter().min(), values.iter().max());
            Ok((ends.0.copied().unwrap_or(0), ends.1.copied().unwrap_or(0)))
        },
        Ok,
    )
}

/// Any integer of the range.
pub(super) fn anywhere(tensor: &Tensor, range: Option<(i64, i64)>, key: u64) -> Result<Tensor> {
    let (least, largest) = range_of(tensor, range)?;
    let count = (i128::from(largest) - i128::from(least) + 1).max(1);
    let value = i128::from(least) + i128::from(mixed(key, 0)) % count;
    tensor.changed::<i64>(PIECE, |_, piece| piece.fill(value as i64))
}

/// Puts some of the reals into the places of a piece that begins at element `at`.
fn fill_with_any<T: Real>(reals: &[f32], key: u64, places: &Places, at: usize, piece: &mut [T]) {
    places.for_each_run(at, piece, |first, run| {
        for (index, value) in run.iter_mut().enumerate() {
            *value = T::from_f32(any_of(reals, key, first + index));
        }
    });
}

/// One of some values, by the element that is to hold it.
fn any_of<T: Copy>(values: &[T], key: u64, element: usize) -> T {
    // Not the number that decided whether the element is changed.
    values[mixed(!key, element) as usize % values.len()]
}

/// What decides which elements of an input are changed, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys {
    /// The same for all inputs.
    pub(super) indices: u64,
    pub(super) elements: u64,
}

/// How large and how small values of a type become.
#[derive(Debug, Clone, Copy)]
struct Extremes<T> {
    large: T,
    denormal: T,
    scales: [f32; 8],
}

/// Elements that one thread changes at a time.
const PIECE: usize = 1 << 14;

/// Values that lie between a half and one and a half times what they were, each by its own factor.
pub(in super::super) fn varied(tensor: &Tensor, key: u64) -> Result<Tensor> {
    tensor.changed::<f32>(PIECE, |at, piece| {
        for (index, value) in piece.iter_mut().enumerate() {
            let random = mixed(key, at + index);
            *value *= 0.5 + (random >> 40) as f32 / (1u32 << 24) as f32;
        }
    })
}

/// Random bits of one element. Several elements share a random number.
const BITS: usize = 8;

/// Calls `change` with every element of a run that begins at element `first`, and with random bits of its own.
fn for_each_random<T>(key: u64, first: usize, run: &mut [T], change: impl Fn(u8, &mut T)) {
    const TOGETHER: usize = u64::BITS as usize / BITS;
    let (mut number, mut element) = (mixed(key, first / TOGETHER), first);
    for value in run {
        if element.is_multiple_of(TOGETHER) {
            number = mixed(key, element / TOGETHER);
        }
        change((number >> (element % TOGETHER * BITS)) as u8, value);
        element += 1;
    }
}

/// The floating-point types that values are changed in.
trait Real: Copy + Send + Sync + std::ops::Mul<Output = Self> {
    fn from_f32(value: f32) -> Self;
    fn copysign(self, sign: Self) -> Self;

    /// Positive or negative, by a random bit.
    fn signed(self, random: u8) -> Self {
        self.copysign(Self::from_f32(if random & 1 == 0 { 1.0 } else { -1.0 }))
    }
}

impl Real for f32 {
    fn from_f32(value: f32) -> Self {
        value
    }

    fn copysign(self, sign: Self) -> Self {
        f32::copysign(self, sign)
    }
}

impl Real for f64 {
    fn from_f32(value: f32) -> Self {
        f64::from(value)
    }

    fn copysign(self, sign: Self) -> Self {
        f64::copysign(self, sign)
    }
}

pub(super) fn shifted(tensor: &Tensor) -> Result<Tensor> {
    let dense = tensor.contiguous()?;
    let longer = Tensor::empty(&[dense.numel() + 1], dense.dtype())?;
    longer.fill(Scalar::Int(0))?;
    let sizes: Vec<i64> = dense.shape().iter().map(|size| *size as i64).collect();
    let room = longer.narrow(0, 1, dense.numel())?.view(&sizes)?;
    room.copy_from(&dense)?;
    Ok(room)
}

pub(super) fn transposed(tensor: &Tensor) -> Result<Tensor> {
    if tensor.ndim() < 2 {
        return tensor.copy();
    }
    tensor.transpose(-2, -1)?.contiguous()?.transpose(-2, -1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in two halves finds the bits that it finds in one.
    #[test]
    fn random_bits_belong_to_elements() {
        let bits = |first, count| {
            let mut found = vec![0; count];
            for_each_random(5, first, &mut found, |random, value| *value = random);
            found
        };
        let whole = bits(3, 100);
        assert_eq!(whole, [bits(3, 42), bits(45, 58)].concat());
        assert!(whole.iter().collect::<std::collections::BTreeSet<_>>().len() > 50);
    }
}
