//! Inputs that ordinary draws never give: very large, of mixed size, zeros of both signs, denormals, infinities, NaN,
//! integers at the ends of their ranges, and the same values at other places in memory.
//!
//! Where the extreme values stand is a secret of the run. A kernel that looks at a few elements to tell a check from an
//! ordinary call finds ordinary ones.

use crate::secret::{Dice, Secret};
use passnet_engine::Value;
use passnet_engine::native::{Result, Scalar, Tensor};
use passnet_graph::DType;

/// A way to change inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stress {
    Large,
    /// Large values among ordinary ones.
    SomeLarge,
    Mixed,
    Zeros,
    SomeZeros,
    /// Many equal values: sums of squared differences vanish.
    Equal,
    Denormal,
    Infinite,
    NotANumber,
    /// Integers at the ends of their ranges, booleans of one kind.
    Ends,
    /// Same values, each tensor starting one element into its memory.
    Misaligned,
    /// Same values, the last two dimensions stored in the other order.
    Transposed,
}

/// The value of many equal ones. Small, because the variance of equal values is nothing but rounding, which a norm divides
/// by the root of its epsilon.
const EQUAL: f32 = 1.0 / 512.0;

/// Of mixed magnitudes.
const SCALES: [f32; 8] = [1.0, 1e-3, 10.0, 1e-2, 30.0, 1e-1, 3.0, 1e-3];

impl Stress {
    pub(super) const ALL: [Stress; 12] = [
        Stress::Large,
        Stress::SomeLarge,
        Stress::Mixed,
        Stress::Zeros,
        Stress::SomeZeros,
        Stress::Equal,
        Stress::Denormal,
        Stress::Infinite,
        Stress::NotANumber,
        Stress::Ends,
        Stress::Misaligned,
        Stress::Transposed,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Stress::Large => "large values",
            Stress::SomeLarge => "large values among ordinary ones",
            Stress::Mixed => "mixed magnitudes",
            Stress::Zeros => "zeros of both signs",
            Stress::SomeZeros => "zeros among ordinary values",
            Stress::Equal => "equal values among ordinary ones",
            Stress::Denormal => "denormal values",
            Stress::Infinite => "infinities",
            Stress::NotANumber => "NaN",
            Stress::Ends => "integers at the ends of their ranges",
            Stress::Misaligned => "misaligned memory",
            Stress::Transposed => "non-contiguous memory",
        }
    }

    /// Whether a failure is only reported. The graphs of a task say how their inputs lie in memory, so a pass that
    /// is right for that layout is right; that it would be wrong elsewhere is good to know.
    pub(super) fn is_advice(self) -> bool {
        self == Stress::Transposed
    }

    /// Whether it changes anything about such inputs.
    pub(super) fn concerns(self, inputs: &Stressed<'_>) -> bool {
        let concerns = |(value, is_fixed): (&Value, &bool)| match (self, value.as_tensor()) {
            (_, None) => false,
            (Stress::Misaligned | Stress::Transposed, _) => true,
            (Stress::Ends, Some(tensor)) => !is_fixed && is_counted(tensor.dtype()),
            (_, Some(tensor)) => tensor.dtype().is_float(),
        };
        inputs.draw.iter().zip(inputs.fixed).any(concerns)
    }

    /// The inputs with their values changed; those that stay are shared. Infinities stand in the largest inputs only: a
    /// statistic or a weight that is infinite makes NaN or infinity of the same formula, depending on how it is folded.
    pub(super) fn apply(self, inputs: &Stressed<'_>, secret: &Secret) -> Result<Vec<Value>> {
        let mut dice = secret.dice(self.name());
        // Inputs of the same shape are changed in the same rows, so that sums of them are extreme, too.
        let mut throw = Throw { start: dice.number(), dice };
        let floats =
            inputs.draw.iter().filter_map(Value::as_tensor).filter(|t| t.dtype().is_float());
        let largest = floats.map(|tensor| tensor.numel()).max().unwrap_or(0);
        let mut changed = Vec::with_capacity(inputs.draw.len());
        for (index, value) in inputs.draw.iter().enumerate() {
            changed.push(match value {
                Value::Tensor(tensor) if self == Stress::Infinite && tensor.numel() < largest => {
                    Value::Tensor(tensor.clone())
                }
                Value::Tensor(tensor) => Value::Tensor(self.tensor(
                    tensor,
                    inputs.fixed[index],
                    inputs.ranges[index],
                    &mut throw,
                )?),
                other => other.clone(),
            });
        }
        Ok(changed)
    }

    fn tensor(
        self,
        tensor: &Tensor,
        is_fixed: bool,
        range: Option<(i64, i64)>,
        throw: &mut Throw,
    ) -> Result<Tensor> {
        let dtype = tensor.dtype();
        match self {
            Stress::Misaligned => shifted(tensor),
            Stress::Transposed => transposed(tensor),
            Stress::Ends if is_fixed || !is_counted(dtype) => Ok(tensor.clone()),
            Stress::Ends => at_ends(tensor, range, throw),
            _ if !dtype.is_float() => Ok(tensor.clone()),
            _ => self.changed(tensor, throw),
        }
    }

    fn changed(self, tensor: &Tensor, throw: &mut Throw) -> Result<Tensor> {
        let places = self.places(tensor.numel(), throw);
        let scatter = Scatter { places, key: throw.dice.number() };
        match tensor.dtype() {
            DType::Float64 => tensor
                .changed(PIECE, |at, piece| self.change::<f64>(at, piece, &scatter, 1e4, 1e-310)),
            DType::Float16 => tensor
                .changed(PIECE, |at, piece| self.change::<f32>(at, piece, &scatter, 30.0, 1e-7)),
            _ => tensor
                .changed(PIECE, |at, piece| self.change::<f32>(at, piece, &scatter, 1e4, 1e-40)),
        }
    }

    /// Which elements are changed.
    fn places(self, elements: usize, throw: &mut Throw) -> Places {
        // However few elements there are, some are changed.
        let scattered =
            |one_in: usize| Places::Scattered { below: below(one_in.min(elements / 2 + 1)) };
        match self {
            Stress::Large | Stress::Mixed | Stress::Zeros | Stress::Denormal => Places::All,
            // Few: most rows of a reduction stay ordinary.
            Stress::Infinite | Stress::NotANumber => scattered(256 + throw.dice.below(1024)),
            _ => Places::Thirds {
                start: throw.start(elements),
                elements,
                below: below((3 + throw.dice.below(60)).min(elements / 2 + 1)),
            },
        }
    }

    /// Changes the values of a piece that begins at element `at`.
    fn change<T: Real>(self, at: usize, piece: &mut [T], scatter: &Scatter, large: T, denormal: T) {
        // What needs no random bits is done in loops that vectorise.
        match (self, scatter.places) {
            (Stress::Large, Places::All) => {
                return piece.iter_mut().for_each(|value| *value = *value * large);
            }
            (Stress::Denormal, Places::All) => {
                return piece.iter_mut().for_each(|value| *value = denormal.copysign(*value));
            }
            _ => {}
        }
        let [one, zero, infinity, nan] = [1.0, 0.0, f32::INFINITY, f32::NAN].map(T::from_f32);
        for (index, value) in piece.iter_mut().enumerate() {
            let Some(random) = scatter.at(at + index) else { continue };
            let sign = if random & 1 == 0 { one } else { T::from_f32(-1.0) };
            *value = match self {
                Stress::Large | Stress::SomeLarge => *value * large,
                Stress::Mixed => {
                    *value * T::from_f32(SCALES[(random >> 1) as usize % SCALES.len()])
                }
                Stress::Zeros | Stress::SomeZeros => zero.copysign(sign),
                Stress::Equal => T::from_f32(EQUAL),
                Stress::Denormal => denormal.copysign(*value),
                Stress::Infinite => infinity.copysign(sign),
                Stress::NotANumber => nan,
                Stress::Ends | Stress::Misaligned | Stress::Transposed => *value,
            };
        }
    }
}

/// Whether values of a type are integers or truth values.
fn is_counted(dtype: DType) -> bool {
    dtype.is_integer() || dtype == DType::Bool
}

/// Elements that one thread changes at a time.
const PIECE: usize = 1 << 14;

/// Inputs that are to be changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stressed<'a> {
    pub(super) draw: &'a [Value],
    /// Of every input: whether it has only one value.
    pub(super) fixed: &'a [bool],
    /// Of every input: its least and largest integer, where they are known.
    pub(super) ranges: &'a [Option<(i64, i64)>],
}

/// What decides which elements are changed.
#[derive(Debug)]
struct Throw {
    dice: Dice,
    /// Where changes begin, as a share of the elements in units of 2^-64: the same for all inputs.
    start: u64,
}

impl Throw {
    fn start(&self, elements: usize) -> usize {
        ((u128::from(self.start) * elements as u128) >> 64) as usize
    }
}

/// Which elements of a tensor are changed.
#[derive(Debug, Clone, Copy)]
enum Places {
    All,
    /// From a secret place on, around the end: a third stays ordinary, a third is changed throughout, so that whole rows
    /// are, and in a third every element may be.
    Thirds {
        start: usize,
        elements: usize,
        below: u32,
    },
    /// Where the upper half of an element's random bits lies below this number.
    Scattered {
        below: u32,
    },
}

/// The bound below which one in so many 32-bit numbers lies.
fn below(one_in: usize) -> u32 {
    u32::try_from((1u64 << 32) / one_in.max(1) as u64).unwrap_or(u32::MAX)
}

/// Places with a key that decides what happens at each.
#[derive(Debug)]
struct Scatter {
    places: Places,
    key: u64,
}

impl Scatter {
    /// Random bits for an element that is changed; `None` for one that stays.
    fn at(&self, element: usize) -> Option<u64> {
        let random =
            mixed(self.key.wrapping_add((element as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        match self.places {
            Places::All => Some(random),
            Places::Thirds { start, elements, below } => {
                let place =
                    if element >= start { element - start } else { element + elements - start };
                let is_changed = match 3 * place / elements.max(1) {
                    0 => false,
                    1 => true,
                    _ => ((random >> 32) as u32) < below,
                };
                is_changed.then_some(random)
            }
            Places::Scattered { below } => (((random >> 32) as u32) < below).then_some(random),
        }
    }
}

/// Values that lie between a half and one and a half times what they were, each by its own factor.
pub(super) fn varied(tensor: &Tensor, key: u64) -> Result<Tensor> {
    let scatter = Scatter { places: Places::All, key };
    tensor.changed::<f32>(PIECE, |at, piece| {
        for (index, value) in piece.iter_mut().enumerate() {
            let random = scatter.at(at + index).unwrap_or(0);
            *value *= 0.5 + (random >> 40) as f32 / (1u32 << 24) as f32;
        }
    })
}

/// A number in which every bit depends on every bit of another one.
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The floating-point types that values are changed in.
trait Real: Copy + Send + Sync + std::ops::Mul<Output = Self> {
    fn from_f32(value: f32) -> Self;
    fn copysign(self, sign: Self) -> Self;
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

/// Integers at the ends of the range that is allowed, or that was drawn where none is known, and booleans of one kind:
/// a third of the elements at the lower end, a third at the upper one, from a secret place on, so that whole rows are; the
/// rest as drawn.
fn at_ends(tensor: &Tensor, range: Option<(i64, i64)>, throw: &Throw) -> Result<Tensor> {
    let drawn = || -> Result<(i64, i64)> {
        let values = tensor.to_vec::<i64>()?;
        let ends = (values.iter().min(), values.iter().max());
        Ok((ends.0.copied().unwrap_or(0), ends.1.copied().unwrap_or(0)))
    };
    let (least, largest) = match tensor.dtype() {
        DType::Bool => (0, 1),
        _ => range.map_or_else(drawn, Ok)?,
    };
    let elements = tensor.numel();
    let start = throw.start(elements);
    tensor.changed::<i64>(PIECE, |at, piece| {
        for (index, value) in piece.iter_mut().enumerate() {
            let element = at + index;
            let place = if element >= start { element - start } else { element + elements - start };
            match 3 * place / elements.max(1) {
                0 => *value = least,
                1 => *value = largest,
                _ => {}
            }
        }
    })
}

fn shifted(tensor: &Tensor) -> Result<Tensor> {
    let dense = tensor.contiguous()?;
    let longer = Tensor::empty(&[dense.numel() + 1], dense.dtype())?;
    longer.fill(Scalar::Int(0))?;
    let sizes: Vec<i64> = dense.shape().iter().map(|size| *size as i64).collect();
    let room = longer.narrow(0, 1, dense.numel())?.view(&sizes)?;
    room.copy_from(&dense)?;
    Ok(room)
}

fn transposed(tensor: &Tensor) -> Result<Tensor> {
    if tensor.ndim() < 2 {
        return tensor.copy();
    }
    tensor.transpose(-2, -1)?.contiguous()?.transpose(-2, -1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(tensor: &Tensor) -> [Value; 1] {
        [Value::Tensor(tensor.clone())]
    }

    fn stressed(stress: Stress, draw: &[Value], range: Option<(i64, i64)>) -> Tensor {
        let inputs = Stressed { draw, fixed: &[false], ranges: &[range] };
        let changed = stress.apply(&inputs, &Secret::random()).unwrap();
        changed[0].as_tensor().unwrap().clone()
    }

    /// A kernel that looks at the first elements must not see what the rest holds.
    #[test]
    fn extreme_values_stand_anywhere_and_leave_others_ordinary() {
        let ones = Tensor::full(&[64, 64], Scalar::Float(1.0), DType::Float32).unwrap();
        let mut first_ordinary = 0;
        for _ in 0..64 {
            let found = stressed(Stress::SomeLarge, &inputs(&ones), None).to_vec::<f32>().unwrap();
            let large = found.iter().filter(|value| **value == 1e4).count();
            assert!(large > 0 && large < found.len());
            first_ordinary += usize::from(found[..4].iter().all(|value| *value == 1.0));
        }
        assert!(first_ordinary > 24, "{first_ordinary} of 64");
    }

    #[test]
    fn scalars_and_halves_are_stressed_too() {
        let one = Tensor::full(&[], Scalar::Float(1.0), DType::Float16).unwrap();
        assert_eq!(stressed(Stress::Large, &inputs(&one), None).to_vec::<f32>().unwrap(), [30.0]);
    }

    #[test]
    fn integers_stay_in_their_range_and_reach_its_ends() {
        let fives = Tensor::full(&[999], Scalar::Int(5), DType::Int64).unwrap();
        let found = stressed(Stress::Ends, &inputs(&fives), Some((2, 9))).to_vec::<i64>().unwrap();
        assert!(found.iter().all(|value| [2, 5, 9].contains(value)));
        assert!(found.contains(&2) && found.contains(&9));
    }

    #[test]
    fn values_that_a_folder_lists_stay() {
        let fives = Tensor::full(&[9], Scalar::Int(5), DType::Int64).unwrap();
        let draw = inputs(&fives);
        let inputs = Stressed { draw: &draw, fixed: &[true], ranges: &[Some((2, 9))] };
        assert!(!Stress::Ends.concerns(&inputs));
        let changed = Stress::Ends.apply(&inputs, &Secret::random()).unwrap();
        assert_eq!(changed[0].as_tensor().unwrap().to_vec::<i64>().unwrap(), [5; 9]);
    }
}
