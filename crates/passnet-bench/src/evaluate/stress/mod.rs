//! Inputs that ordinary draws never give: very large, of mixed size, zeros of both signs, denormals, infinities, NaN,
//! integers at the ends of their ranges, numbers that the graph compares with, and the same values at other places in memory.
//!
//! Where the extreme values stand is a secret of the run. A kernel that looks at a few elements to tell a check from an
//! ordinary call finds ordinary ones: [`places`](super::places) says how.

mod values;

use super::named::Named;
use super::places::Choice;
use crate::secret::Secret;
use passnet_engine::Value;
use passnet_engine::native::{Result, Tensor};
use passnet_graph::DType;
pub(super) use values::varied;
use values::{Keys, anywhere, shifted, transposed};

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
    /// Numbers that the graph compares with, at one place of so many: whoever looks for one at a few places finds none where
    /// they are few, and where they are many there is one at every other place.
    NamedHereAndThere(usize),
    /// The same, of integers alone: a row of one number.
    NamedRows(Choice),
    /// Same values, each tensor starting one element into its memory.
    Misaligned,
    /// Same values, the last two dimensions stored in the other order.
    Transposed,
}

impl Stress {
    pub(super) const ALL: [Stress; 36] = [
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
        Stress::NamedHereAndThere(8),
        Stress::NamedHereAndThere(64),
        Stress::NamedHereAndThere(1024),
        Stress::NamedRows(Choice::Rows),
        Stress::NamedRows(Choice::Slabs),
        Stress::NamedRows(Choice::OtherSlabs),
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
            Stress::NamedHereAndThere(_) => "numbers that the graph compares with here and there",
            Stress::NamedRows(_) => "numbers that the graph compares with",
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
        let is_scattered = matches!(
            self,
            Stress::LargeHereAndThere
                | Stress::ZerosHereAndThere
                | Stress::NamedHereAndThere(_)
                | Stress::Mixed
                | Stress::Infinite
                | Stress::NotANumber
        );
        is_scattered || self.choice().is_some()
    }

    /// Which rows it changes, where it changes rows.
    fn choice(self) -> Option<Choice> {
        match self {
            Stress::LargeRows(choice)
            | Stress::ZeroRows(choice)
            | Stress::EqualRows(choice)
            | Stress::LowestRows(choice)
            | Stress::HighestRows(choice)
            | Stress::NamedRows(choice) => Some(choice),
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
        let concerns = |(value, is_fixed, range): (&Value, &bool, Option<(i64, i64)>)| match (
            self,
            value.as_tensor(),
        ) {
            (_, None) => false,
            (Stress::Misaligned | Stress::Transposed, _) => true,
            (_, Some(tensor)) if !self.choice().is_none_or(|it| it.concerns(tensor.shape())) => {
                false
            }
            (Stress::NamedHereAndThere(_), Some(tensor)) if tensor.dtype().is_float() => {
                !inputs.named.reals().is_empty()
            }
            (Stress::NamedHereAndThere(_) | Stress::NamedRows(_), Some(tensor)) => {
                let may_hold = |range| !inputs.named.integers(range).is_empty();
                !is_fixed && tensor.dtype().is_integer() && range.is_some_and(may_hold)
            }
            (_, Some(tensor)) if self.is_of_integers() => !is_fixed && is_counted(tensor.dtype()),
            (_, Some(tensor)) => tensor.dtype().is_float(),
        };
        let inputs_and_facts = inputs.draw.iter().zip(inputs.fixed).zip(inputs.ranges);
        inputs_and_facts.map(|((value, is_fixed), range)| (value, is_fixed, *range)).any(concerns)
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
                    inputs.named,
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
        named: &Named,
        keys: Keys,
    ) -> Result<Tensor> {
        let dtype = tensor.dtype();
        let is_counted = is_counted(dtype);
        match self {
            Stress::Misaligned => shifted(tensor),
            Stress::Transposed => transposed(tensor),
            _ if is_counted && is_fixed => Ok(tensor.clone()),
            Stress::NamedHereAndThere(_) | Stress::NamedRows(_) if dtype.is_integer() => {
                self.named_integers(tensor, range, named, keys)
            }
            Stress::NamedHereAndThere(_) if dtype.is_float() => {
                self.named_reals(tensor, &named.reals(), keys)
            }
            Stress::NamedRows(_) => Ok(tensor.clone()),
            _ if is_counted && self.is_of_integers() => self.at_end(tensor, range, keys),
            _ if self.is_of_integers() => Ok(tensor.clone()),
            // A single truth value may switch everything else off: each kind has one of its own.
            _ if is_counted && tensor.numel() == 1 => anywhere(tensor, range, keys.elements),
            _ if !dtype.is_float() => Ok(tensor.clone()),
            _ => self.changed(tensor, keys),
        }
    }
}

/// Whether values of a type are integers or truth values.
fn is_counted(dtype: DType) -> bool {
    dtype.is_integer() || dtype == DType::Bool
}

/// Inputs that are to be changed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stressed<'a> {
    pub(super) draw: &'a [Value],
    /// Of every input: whether it has only one value.
    pub(super) fixed: &'a [bool],
    /// Of every input: its least and largest integer, where they are known.
    pub(super) ranges: &'a [Option<(i64, i64)>],
    pub(super) named: &'a Named,
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_engine::native::Scalar;

    fn inputs(tensor: &Tensor) -> [Value; 1] {
        [Value::Tensor(tensor.clone())]
    }

    fn stressed(stress: Stress, draw: &[Value], range: Option<(i64, i64)>) -> Tensor {
        let inputs = Stressed { draw, fixed: &[false], ranges: &[range], named: &Named::default() };
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

    /// A padded sentence is a row of one number; single ones stand anywhere.
    #[test]
    fn numbers_of_the_graph_stand_in_rows_and_here_and_there() {
        let text = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, ids):\n        \
                    mask = ids != 7\n        return (mask,)\n";
        let source = passnet_graph::syntax::Source::new("model.py", text);
        let named = &Named::of(&passnet_graph::read::read_model(&source).unwrap());
        let draw = inputs(&Tensor::full(&[40, 64], Scalar::Int(99), DType::Int64).unwrap());
        let inputs = Stressed { draw: &draw, fixed: &[false], ranges: &[Some((7, 100))], named };
        let found = |stress: Stress| {
            assert!(stress.concerns(&inputs));
            let changed = stress.apply(&inputs, &Secret::random(), 0).unwrap();
            changed[0].as_tensor().unwrap().to_vec::<i64>().unwrap()
        };
        for _ in 0..16 {
            let single = found(Stress::NamedHereAndThere(64));
            assert!(single.contains(&7) && single.contains(&8) && !single.contains(&6));
            assert!(single.iter().filter(|value| **value == 99).count() > 2000);
            let rows = found(Stress::NamedRows(Choice::Rows));
            let is_of_one = |row: &[i64]| [[7; 64], [8; 64]].iter().any(|of| row == of);
            assert!(rows.chunks(64).any(is_of_one));
            assert_eq!([7, 8].map(|it| rows.contains(&it)).iter().filter(|it| **it).count(), 1);
        }
    }

    #[test]
    fn values_that_a_folder_lists_stay() {
        let fives = Tensor::full(&[9], Scalar::Int(5), DType::Int64).unwrap();
        let draw = inputs(&fives);
        let (fixed, ranges, named) = (&[true], &[Some((2, 9))], &Named::default());
        let inputs = Stressed { draw: &draw, fixed, ranges, named };
        assert!(!Stress::Lowest.concerns(&inputs));
        let changed = Stress::Highest.apply(&inputs, &Secret::random(), 0).unwrap();
        assert_eq!(changed[0].as_tensor().unwrap().to_vec::<i64>().unwrap(), [5; 9]);
    }
}
