//! Inputs that ordinary draws never give: very large, of mixed size, zeros of both signs, denormals, infinities, NaN,
//! integers at the ends of their ranges, and the same values at other places in memory.
//!
//! Where the extreme values stand is a secret of the run. A kernel that looks at a few elements to tell a check from an
//! ordinary call finds ordinary ones: [`places`](super::places) says how.

use super::places::{Choice, Places, mixed};
use crate::secret::Secret;
use passnet_engine::Value;
use passnet_engine::native::{Result, Scalar, Tensor};
use passnet_graph::DType;

/// A way to change inputs. In rows means whole rows, columns or samples among ordinary ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stress {
    Large,
    LargeRows(Choice),
    LargeHereAndThere,
    Mixed,
    Zeros,
    ZeroRows(Choice),
    ZerosHereAndThere,
    /// Equal values: sums of squared differences vanish.
    EqualRows(Choice),
    Denormal,
    Infinite,
    NotANumber,
    /// Integers at the lower end of their range, booleans false.
    Lowest,
    LowestRows(Choice),
    /// Integers at the upper end of their range, booleans true.
    Highest,
    HighestRows(Choice),
    /// Same values, each tensor starting one element into its memory.
    Misaligned,
    /// Same values, the last two dimensions stored in the other order.
    Transposed,
}

/// The value of many equal ones. Small, because the variance of equal values is nothing but rounding, which a norm divides
/// by the root of its epsilon.
const EQUAL: f32 = 1.0 / 512.0;

/// Of mixed magnitudes. The largest stays away from what overflows: `Large` is for that.
const SCALES: [f32; 8] = [1.0, 1e-3, 10.0, 1e-2, 30.0, 1e-1, 3.0, 100.0];

/// The same for float16, whose largest value is 65,504.
const HALF_SCALES: [f32; 8] = [1.0, 1e-3, 10.0, 1e-2, 30.0, 1e-1, 3.0, 1e-3];

impl Stress {
    pub(super) const ALL: [Stress; 30] = [
        Stress::Large,
        Stress::LargeRows(Choice::Rows),
        Stress::LargeRows(Choice::Bands),
        Stress::LargeRows(Choice::Slabs),
        Stress::LargeRows(Choice::OtherSlabs),
        Stress::LargeHereAndThere,
        Stress::Mixed,
        Stress::Zeros,
        Stress::ZeroRows(Choice::Rows),
        Stress::ZeroRows(Choice::Bands),
        Stress::ZeroRows(Choice::Slabs),
        Stress::ZeroRows(Choice::OtherSlabs),
        Stress::ZerosHereAndThere,
        Stress::EqualRows(Choice::Rows),
        Stress::EqualRows(Choice::Bands),
        Stress::EqualRows(Choice::Slabs),
        Stress::EqualRows(Choice::OtherSlabs),
        Stress::Denormal,
        Stress::Infinite,
        Stress::NotANumber,
        Stress::Lowest,
        Stress::LowestRows(Choice::Rows),
        Stress::LowestRows(Choice::Slabs),
        Stress::LowestRows(Choice::OtherSlabs),
        Stress::Highest,
        Stress::HighestRows(Choice::Rows),
        Stress::HighestRows(Choice::Slabs),
        Stress::HighestRows(Choice::OtherSlabs),
        Stress::Misaligned,
        Stress::Transposed,
    ];

    pub(super) fn name(self) -> String {
        let what = match self {
            Stress::Large | Stress::LargeRows(_) => "large values",
            Stress::LargeHereAndThere => "large values here and there",
            Stress::Mixed => "mixed magnitudes",
            Stress::Zeros => "zeros of both signs",
            Stress::ZeroRows(_) => "zeros",
            Stress::ZerosHereAndThere => "zeros here and there",
            Stress::EqualRows(_) => "equal values",
            Stress::Denormal => "denormal values",
            Stress::Infinite => "infinities",
            Stress::NotANumber => "NaN",
            Stress::Lowest | Stress::LowestRows(_) => "integers at the lower end of their range",
            Stress::Highest | Stress::HighestRows(_) => "integers at the upper end of their range",
            Stress::Misaligned => "misaligned memory",
            Stress::Transposed => "non-contiguous memory",
        };
        self.choice().map_or_else(|| what.into(), |choice| format!("{} of {what}", choice.name()))
    }

    /// What both choices of slabs share.
    fn family(self) -> String {
        let name = self.name();
        name.strip_prefix("other ").unwrap_or(&name).into()
    }

    /// Whether a look at some elements may find nothing unusual.
    pub(super) fn has_ordinary_places(self) -> bool {
        use Stress::{Infinite, LargeHereAndThere, Mixed, NotANumber, ZerosHereAndThere};
        let is_scattered =
            matches!(self, LargeHereAndThere | ZerosHereAndThere | Mixed | Infinite | NotANumber);
        is_scattered || self.choice().is_some()
    }

    /// Which rows it changes, where it changes rows.
    fn choice(self) -> Option<Choice> {
        match self {
            Stress::LargeRows(choice)
            | Stress::ZeroRows(choice)
            | Stress::EqualRows(choice)
            | Stress::LowestRows(choice)
            | Stress::HighestRows(choice) => Some(choice),
            _ => None,
        }
    }

    /// Whether integers and truth values are what it changes.
    fn is_of_integers(self) -> bool {
        use Stress::{Highest, HighestRows, Lowest, LowestRows};
        matches!(self, Lowest | LowestRows(_) | Highest | HighestRows(_))
    }

    /// What passes that fail it usually overlook.
    pub(super) fn hint(self) -> Option<&'static str> {
        match self {
            Stress::NotANumber => Some(
                "torch hands NaN on; `tl.maximum` and `tl.minimum` drop it without `propagate_nan=tl.PropagateNan.ALL`",
            ),
            _ => None,
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
            (_, Some(tensor)) if !self.choice().is_none_or(|it| it.concerns(tensor.shape())) => {
                false
            }
            (_, Some(tensor)) if self.is_of_integers() => !is_fixed && is_counted(tensor.dtype()),
            (_, Some(tensor)) => tensor.dtype().is_float(),
        };
        inputs.draw.iter().zip(inputs.fixed).any(concerns)
    }

    /// The inputs with their values changed; those that stay are shared. Infinities stand in the largest inputs only: a
    /// statistic or a weight that is infinite makes NaN or infinity of the same formula, depending on how it is folded.
    /// Every round has places of its own.
    pub(super) fn apply(
        self,
        inputs: &Stressed<'_>,
        secret: &Secret,
        round: usize,
    ) -> Result<Vec<Value>> {
        let mut dice = secret.dice(&format!("{}, {round}", self.name()));
        // Inputs of the same shape are changed at the same indices, so that sums of them are extreme, too.
        let key = secret.dice(&format!("{}, {round}", self.family())).number();
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
                    Keys { indices: key, elements: dice.number() },
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
        keys: Keys,
    ) -> Result<Tensor> {
        let dtype = tensor.dtype();
        let is_counted = is_counted(dtype);
        match self {
            Stress::Misaligned => shifted(tensor),
            Stress::Transposed => transposed(tensor),
            _ if is_counted && is_fixed => Ok(tensor.clone()),
            _ if is_counted && self.is_of_integers() => self.at_end(tensor, range, keys),
            _ if self.is_of_integers() => Ok(tensor.clone()),
            // A single truth value may switch everything else off: each kind has one of its own.
            _ if is_counted && tensor.numel() == 1 => anywhere(tensor, range, keys.elements),
            _ if !dtype.is_float() => Ok(tensor.clone()),
            _ => self.changed(tensor, keys),
        }
    }

    fn changed(self, tensor: &Tensor, keys: Keys) -> Result<Tensor> {
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

    /// Integers at one end of their range.
    fn at_end(self, tensor: &Tensor, range: Option<(i64, i64)>, keys: Keys) -> Result<Tensor> {
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
fn anywhere(tensor: &Tensor, range: Option<(i64, i64)>, key: u64) -> Result<Tensor> {
    let (least, largest) = range_of(tensor, range)?;
    let count = (i128::from(largest) - i128::from(least) + 1).max(1);
    let value = i128::from(least) + i128::from(mixed(key, 0)) % count;
    tensor.changed::<i64>(PIECE, |_, piece| piece.fill(value as i64))
}

/// What decides which elements of an input are changed, and how.
#[derive(Debug, Clone, Copy)]
struct Keys {
    /// The same for all inputs.
    indices: u64,
    elements: u64,
}

/// How large and how small values of a type become.
#[derive(Debug, Clone, Copy)]
struct Extremes<T> {
    large: T,
    denormal: T,
    scales: [f32; 8],
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

/// Values that lie between a half and one and a half times what they were, each by its own factor.
pub(super) fn varied(tensor: &Tensor, key: u64) -> Result<Tensor> {
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
        let changed = stress.apply(&inputs, &Secret::random(), 0).unwrap();
        changed[0].as_tensor().unwrap().clone()
    }

    /// A kernel that looks at the first elements must not see what the rest holds.
    #[test]
    fn extreme_values_stand_anywhere_and_leave_others_ordinary() {
        let ones = Tensor::full(&[64, 64], Scalar::Float(1.0), DType::Float32).unwrap();
        let mut first_ordinary = 0;
        for _ in 0..64 {
            let found = stressed(Stress::LargeRows(Choice::Rows), &inputs(&ones), None)
                .to_vec::<f32>()
                .unwrap();
            let is_large = |row: &[f32]| row.iter().all(|value| *value == 1e4);
            let rows = found.chunks(64).filter(|row| is_large(row)).count();
            assert!((1..32).contains(&rows), "{rows} rows are large");
            first_ordinary += usize::from(found[..8].iter().all(|value| *value == 1.0));
        }
        assert!(first_ordinary > 32, "{first_ordinary} of 64");
    }

    /// A single number has no place to hide.
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

    #[test]
    fn single_numbers_change_in_every_kind() {
        let one = Tensor::full(&[], Scalar::Float(1.0), DType::Float32).unwrap();
        let value = |stress| stressed(stress, &inputs(&one), None).to_vec::<f32>().unwrap()[0];
        assert_eq!(value(Stress::LargeRows(Choice::Rows)), 1e4);
        assert_eq!(value(Stress::ZerosHereAndThere), 0.0);
        let flag = Tensor::full(&[], Scalar::Int(1), DType::Bool).unwrap();
        let truth = || stressed(Stress::Large, &inputs(&flag), None).to_vec::<i64>().unwrap()[0];
        let truths: Vec<i64> = (0..64).map(|_| truth()).collect();
        assert!(truths.contains(&0) && truths.contains(&1));
    }

    #[test]
    fn scalars_and_halves_are_stressed_too() {
        let one = Tensor::full(&[], Scalar::Float(1.0), DType::Float16).unwrap();
        assert_eq!(stressed(Stress::Large, &inputs(&one), None).to_vec::<f32>().unwrap(), [30.0]);
    }

    #[test]
    fn integers_stay_in_their_range_and_reach_its_ends() {
        let fives = Tensor::full(&[999], Scalar::Int(5), DType::Int64).unwrap();
        let found =
            |stress| stressed(stress, &inputs(&fives), Some((2, 9))).to_vec::<i64>().unwrap();
        assert_eq!(found(Stress::Lowest), [2; 999]);
        assert_eq!(found(Stress::Highest), [9; 999]);
        let (low, high) =
            (found(Stress::LowestRows(Choice::Rows)), found(Stress::HighestRows(Choice::Rows)));
        assert!(low.contains(&2) && low.iter().all(|value| [2, 5].contains(value)));
        assert!(high.contains(&9) && high.iter().all(|value| [5, 9].contains(value)));
    }

    #[test]
    fn values_that_a_folder_lists_stay() {
        let fives = Tensor::full(&[9], Scalar::Int(5), DType::Int64).unwrap();
        let draw = inputs(&fives);
        let inputs = Stressed { draw: &draw, fixed: &[true], ranges: &[Some((2, 9))] };
        assert!(!Stress::Lowest.concerns(&inputs));
        let changed = Stress::Highest.apply(&inputs, &Secret::random(), 0).unwrap();
        assert_eq!(changed[0].as_tensor().unwrap().to_vec::<i64>().unwrap(), [5; 9]);
    }
}
