//! Operations on whole blocks: shapes, reductions, scans, products, sorting, gathering.

use super::Lanes;
use super::lane::{self, Lane};
use crate::ir::{Op, ReduceOp};
use crate::types::{Elem, Type};

/// The index of a lane along each dimension.
fn index(lane: usize, shape: &[u32]) -> Vec<usize> {
    let mut rest = lane;
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&size| {
            let here = rest % size as usize;
            rest /= size as usize;
            here
        })
        .collect();
    index.reverse();
    index
}

/// The lane at an index.
fn lane_at(index: &[usize], shape: &[u32]) -> usize {
    index.iter().zip(shape).fold(0, |lane, (i, &size)| lane * size as usize + i)
}

/// The lanes along an axis, from the first to the last, for each place in the other dimensions.
pub(super) fn lines(shape: &[u32], axis: usize) -> Vec<Vec<usize>> {
    let lanes: usize = shape.iter().map(|&d| d as usize).product();
    (0..lanes)
        .map(|lane| index(lane, shape))
        .filter(|first| first[axis] == 0)
        .map(|mut place| {
            (0..shape[axis] as usize)
                .map(|k| {
                    place[axis] = k;
                    lane_at(&place, shape)
                })
                .collect()
        })
        .collect()
}

/// The lanes of a result, each from the index of its place.
fn each(ty: &Type, lane: impl Fn(Vec<usize>) -> Lane) -> Lanes {
    (0..ty.numel()).map(|i| lane(index(i, &ty.shape))).collect()
}

/// A finished sum in its own type.
fn settled(x: Lane, elem: Elem) -> Lane {
    lane::cast(x, if elem.is_int() { elem } else { Elem::F64 }, elem)
}

pub(super) fn evaluate(
    op: &Op,
    args: &[&Lanes],
    types: &[&Type],
    results: &[&Type],
) -> Result<Vec<Lanes>, String> {
    let one = |lanes: Lanes| Ok(vec![lanes]);
    match op {
        Op::Const(literal) => one(vec![lane::literal(*literal, results[0].elem())]),
        Op::Arange(start) => {
            one(each(results[0], |i| Lane::Int(i128::from(*start) + i[0] as i128)))
        }
        Op::Splat => one(vec![args[0][0]; results[0].numel()]),
        Op::Broadcast => one(each(results[0], |mut i| {
            for (at, &size) in i.iter_mut().zip(&types[0].shape) {
                *at = if size == 1 { 0 } else { *at };
            }
            args[0][lane_at(&i, &types[0].shape)]
        })),
        Op::Reshape => one(args[0].clone()),
        Op::Permute(order) => one(each(results[0], |i| {
            let mut from = vec![0; i.len()];
            for (d, &axis) in order.iter().enumerate() {
                from[usize::from(axis)] = i[d];
            }
            args[0][lane_at(&from, &types[0].shape)]
        })),
        Op::Join => one(args[0].iter().zip(args[1]).flat_map(|(a, b)| [*a, *b]).collect()),
        Op::Split => {
            Ok((0..2).map(|k| args[0].iter().skip(k).step_by(2).copied().collect()).collect())
        }
        Op::Cat => one(args[0].iter().chain(args[1]).copied().collect()),
        Op::Reduce { op, axis } => one(reduce(*op, args[0], types[0], *axis)?),
        Op::Scan { op, axis, reverse } => one(scan(*op, args[0], types[0], *axis, *reverse)?),
        Op::ArgReduce { max, tie_left, axis } => {
            Ok(arg_reduce(args[0], types[0], *axis, *max, *tie_left))
        }
        Op::Dot => one(dot(args, types, results[0])?),
        Op::Gather { axis } => one(gather(args, types, usize::from(*axis))?),
        Op::Sort { descending } => one(sort(args[0], types[0], *descending)),
        Op::Histogram { mask } => {
            let counted = |bin: usize| {
                let is_meant = |i: usize| !*mask || args[1][i].is_true();
                let hits = |(i, x): &(usize, &Lane)| x.int() == bin as i128 && is_meant(*i);
                args[0].iter().enumerate().filter(hits).count()
            };
            one(each(results[0], |i| Lane::Int(counted(i[0]) as i128)))
        }
        Op::Assert(message) => match args[0].iter().all(|x| x.is_true()) {
            true => Ok(Vec::new()),
            false => Err(format!("assertion failed: {message}")),
        },
        other => Err(format!("the reference does not know {other}")),
    }
}

fn reduce(op: ReduceOp, lanes: &Lanes, ty: &Type, axis: u8) -> Result<Lanes, String> {
    let elem = ty.elem();
    lines(&ty.shape, usize::from(axis))
        .into_iter()
        .map(|line| {
            let mut sum = lanes[line[0]];
            for &at in &line[1..] {
                sum = lane::reduce(op, sum, lanes[at], elem)?;
            }
            Ok(settled(sum, elem))
        })
        .collect()
}

fn scan(op: ReduceOp, lanes: &Lanes, ty: &Type, axis: u8, reverse: bool) -> Result<Lanes, String> {
    let elem = ty.elem();
    let mut out = lanes.clone();
    for mut line in lines(&ty.shape, usize::from(axis)) {
        if reverse {
            line.reverse();
        }
        let mut sum = lanes[line[0]];
        for &at in &line[1..] {
            sum = lane::reduce(op, sum, lanes[at], elem)?;
            out[at] = settled(sum, elem);
        }
    }
    Ok(out)
}

/// The extreme element and where it is; a number is better than no number.
fn arg_reduce(lanes: &Lanes, ty: &Type, axis: u8, max: bool, tie_left: bool) -> Vec<Lanes> {
    let is_nan = |x: Lane| matches!(x, Lane::Float(x) if x.is_nan());
    let less = |a: Lane, b: Lane| lane::compare(crate::ir::CmpOp::Lt, a, b);
    let found: Vec<(Lane, Lane)> = lines(&ty.shape, usize::from(axis))
        .into_iter()
        .map(|line| {
            let mut best = 0;
            for k in 1..line.len() {
                let (old, new) = (lanes[line[best]], lanes[line[k]]);
                let better = if max { less(old, new) } else { less(new, old) };
                let equal = !less(old, new) && !less(new, old) && !is_nan(new);
                if better || (is_nan(old) && !is_nan(new)) || (equal && !tie_left) {
                    best = k;
                }
            }
            (lanes[line[best]], Lane::Int(best as i128))
        })
        .collect();
    let (values, places) = found.into_iter().unzip();
    vec![values, places]
}

fn dot(args: &[&Lanes], types: &[&Type], result: &Type) -> Result<Lanes, String> {
    let elem = result.elem();
    let wide = if elem.is_half() { Elem::F32 } else { elem };
    let rank = result.shape.len();
    let depth = types[0].shape[rank - 1] as usize;
    (0..result.numel())
        .map(|lane| {
            let place = index(lane, &result.shape);
            let (mut left, mut right) = (place.clone(), place);
            let mut sum = args[2][lane];
            for k in 0..depth {
                left[rank - 1] = k;
                right[rank - 2] = k;
                let a = args[0][lane_at(&left, &types[0].shape)];
                let b = args[1][lane_at(&right, &types[1].shape)];
                sum = lane::fma(a, b, sum, wide)?;
            }
            Ok(settled(sum, elem))
        })
        .collect()
}

fn gather(args: &[&Lanes], types: &[&Type], axis: usize) -> Result<Lanes, String> {
    let size = i128::from(types[0].shape[axis]);
    (0..types[1].numel())
        .map(|lane| {
            let mut place = index(lane, &types[1].shape);
            let picked = args[1][lane].int();
            if !(0..size).contains(&picked) {
                return Err(format!("gathers at index {picked} of {size}"));
            }
            place[axis] = picked as usize;
            Ok(args[0][lane_at(&place, &types[0].shape)])
        })
        .collect()
}

/// Numbers that are none come last when ascending.
fn sort(lanes: &Lanes, ty: &Type, descending: bool) -> Lanes {
    let mut out = lanes.clone();
    for line in lines(&ty.shape, ty.shape.len() - 1) {
        let mut row: Lanes = line.iter().map(|&at| lanes[at]).collect();
        row.sort_by(|a, b| match (a, b) {
            (Lane::Int(x), Lane::Int(y)) => x.cmp(y),
            _ => {
                let (x, y) = (a.float(), b.float());
                x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
            }
        });
        if descending {
            row.reverse();
        }
        for (&at, x) in line.iter().zip(row) {
            out[at] = x;
        }
    }
    out
}
