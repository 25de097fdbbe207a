//! The literals of a call that are sizes: what `view`, `expand`, `arange`, `zeros`, slices and the like say about
//! shapes in plain numbers. They are the ones that have to follow when an input changes its size.

use crate::ops::Op;
use crate::{Arg, Call};

/// How a call uses its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The same elements under another shape.
    Reshape,
    /// A shape that the input is stretched to.
    Expand,
    /// How often to repeat each dimension.
    Repeat,
    /// The shape of a new tensor.
    Create,
    /// The bounds of a new range of numbers.
    Count,
    /// The bounds of slices.
    Slice,
    /// The spatial size of a resampled image.
    Resample,
}

/// A size of a call.
#[derive(Debug)]
pub(super) struct Size<'a> {
    pub arg: &'a mut Arg,
    /// The axis it speaks of: its place in the list of sizes, or the sliced axis (negative: from the end).
    pub axis: isize,
}

/// Everything in `call` that stands where a size stands: literals and values, in order.
pub(super) fn sizes(call: &mut Call) -> Option<(Use, Vec<Size<'_>>)> {
    let how = match call.op()? {
        Op::View | Op::Reshape => Use::Reshape,
        Op::Expand | Op::BroadcastTo => Use::Expand,
        Op::Repeat | Op::Tile => Use::Repeat,
        Op::Zeros | Op::Ones | Op::Empty | Op::Rand | Op::Randn => Use::Create,
        Op::NewZeros | Op::NewOnes | Op::NewEmpty | Op::Full | Op::NewFull => Use::Create,
        Op::Arange => Use::Count,
        Op::GetItem | Op::SetItem => Use::Slice,
        Op::Interpolate => Use::Resample,
        _ => return None,
    };
    let op = call.op()?;
    let mut found = Vec::new();
    if how == Use::Slice {
        slices(call.args.get_mut(1)?, &mut found);
        return Some((how, found));
    }
    // What comes before the sizes, and how many arguments they are; a keyword names them otherwise.
    let (first, count) = match op {
        Op::Full => (0, 1),
        Op::NewFull | Op::Interpolate => (1, 1),
        Op::Arange => (0, 2),
        Op::Zeros | Op::Ones | Op::Empty | Op::Rand | Op::Randn => (0, usize::MAX),
        _ => (1, usize::MAX),
    };
    for arg in call.args.iter_mut().skip(first).take(count) {
        flat(arg, &mut found);
    }
    for (name, arg) in &mut call.kwargs {
        if matches!(&**name, "size" | "shape" | "repeats" | "dims" | "start" | "end") {
            flat(arg, &mut found);
        }
    }
    for (axis, size) in found.iter_mut().enumerate() {
        size.axis = axis as isize;
    }
    Some((how, found))
}

fn flat<'a>(arg: &'a mut Arg, found: &mut Vec<Size<'a>>) {
    match arg {
        Arg::Tuple(items) | Arg::List(items) => {
            items.iter_mut().for_each(|item| found.push(Size { arg: item, axis: 0 }));
        }
        arg => found.push(Size { arg, axis: 0 }),
    }
}

/// The bounds of all slices of an index, each with the axis it slices.
fn slices<'a>(index: &'a mut Arg, found: &mut Vec<Size<'a>>) {
    let items: Vec<&mut Arg> = match index {
        Arg::Tuple(items) => items.iter_mut().collect(),
        single => vec![single],
    };
    let takes_axis = |arg: &Arg| !matches!(arg, Arg::None | Arg::Ellipsis | Arg::Bool(_));
    let after_ellipsis = items
        .iter()
        .position(|item| matches!(item, Arg::Ellipsis))
        .map(|place| items[place..].iter().filter(|item| takes_axis(item)).count());
    let total = items.iter().filter(|item| takes_axis(item)).count();
    let mut axis = 0_usize;
    for item in items {
        let taken = takes_axis(item);
        // Behind an ellipsis axes are known from the end only.
        let shown = match after_ellipsis {
            Some(after) if axis >= total - after => axis as isize - total as isize,
            _ => axis as isize,
        };
        if let Arg::Slice(parts) = item {
            let [start, stop, _] = &mut **parts;
            found.push(Size { arg: start, axis: shown });
            found.push(Size { arg: stop, axis: shown });
        }
        axis += usize::from(taken);
    }
}
