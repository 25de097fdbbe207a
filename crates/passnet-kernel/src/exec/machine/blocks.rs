//! Whole-block operations that are not worth vectorising by hand, and atomics.

use super::{Machine, Result, read_lane, write_lane};
use crate::exec::fault::FaultKind;
use crate::exec::simd;
use crate::exec::tape::{Atomic, AxisSizes, LaneOrder};
use crate::ir::AtomicOp;
use crate::lane::Lane;
use crate::types::Elem;
use passnet_cpu::Isa;
use passnet_cpu::halves::{round_to_bf16, round_to_f16};

/// Order of two lanes held as register bits.
fn less(a: u64, b: u64, order: LaneOrder) -> bool {
    match order.lane {
        Lane::I64 if order.unsigned => a < b,
        Lane::F32 => f32::from_bits(a as u32) < f32::from_bits(b as u32),
        Lane::F64 => f64::from_bits(a) < f64::from_bits(b),
        Lane::I32 | Lane::I64 => (a as i64) < (b as i64),
        Lane::B8 => a < b,
    }
}

fn is_nan(a: u64, lane: Lane) -> bool {
    match lane {
        Lane::F32 => f32::from_bits(a as u32).is_nan(),
        Lane::F64 => f64::from_bits(a).is_nan(),
        _ => false,
    }
}

pub(super) fn arg_reduce(
    value: *mut u8,
    index: *mut u8,
    from: *const u8,
    order: LaneOrder,
    axis: &AxisSizes,
    max: bool,
    tie_left: bool,
) {
    let lane = order.lane;
    for outer in 0..axis.outer {
        for inner in 0..axis.inner {
            let at = |k: usize| {
                read_lane(
                    from.wrapping_add(((outer * axis.size + k) * axis.inner + inner) * lane.size()),
                    lane,
                )
            };
            let (mut best, mut best_index) = (at(0), 0usize);
            for k in 1..axis.size {
                let x = at(k);
                let better = if max { less(best, x, order) } else { less(x, best, order) };
                let tie =
                    !tie_left && !less(best, x, order) && !less(x, best, order) && !is_nan(x, lane);
                if better || tie || (is_nan(best, lane) && !is_nan(x, lane)) {
                    (best, best_index) = (x, k);
                }
            }
            let out = outer * axis.inner + inner;
            write_lane(value.wrapping_add(out * lane.size()), best, lane);
            write_lane(index.wrapping_add(out * 4), best_index as u64, Lane::I32);
        }
    }
}

pub(super) fn sort(block: *mut u8, order: LaneOrder, rows: usize, size: usize, descending: bool) {
    let lane = order.lane;
    for row in 0..rows {
        let start = block.wrapping_add(row * size * lane.size());
        let mut values: Vec<u64> =
            (0..size).map(|i| read_lane(start.wrapping_add(i * lane.size()), lane)).collect();
        values.sort_by(|&a, &b| match (less(a, b, order), less(b, a, order)) {
            (true, _) => std::cmp::Ordering::Less,
            (_, true) => std::cmp::Ordering::Greater,
            // NaN goes last, so that the order is total.
            _ => is_nan(a, lane).cmp(&is_nan(b, lane)),
        });
        if descending {
            values.reverse();
        }
        for (i, v) in values.into_iter().enumerate() {
            write_lane(start.wrapping_add(i * lane.size()), v, lane);
        }
    }
}

pub(super) fn histogram(
    to: *mut u8,
    bins: usize,
    from: *const u8,
    lane: Lane,
    lanes: usize,
    mask: Option<*const u8>,
) {
    let mut counts = vec![0i32; bins];
    for i in 0..lanes {
        if mask.is_some_and(|m| read_lane(m.wrapping_add(i), Lane::B8) == 0) {
            continue;
        }
        let value = read_lane(from.wrapping_add(i * lane.size()), lane) as i64;
        if let Some(count) = usize::try_from(value).ok().and_then(|v| counts.get_mut(v)) {
            *count += 1;
        }
    }
    for (i, count) in counts.into_iter().enumerate() {
        write_lane(to.wrapping_add(i * 4), count as u64, Lane::I32);
    }
}

/// Picks along the axis; an index outside it is given back as the error.
pub(super) fn gather(
    to: *mut u8,
    from: *const u8,
    index: *const u8,
    index_lane: Lane,
    size: usize,
    axis: &AxisSizes,
    source: usize,
) -> std::result::Result<(), i64> {
    for outer in 0..axis.outer {
        for k in 0..axis.size {
            for inner in 0..axis.inner {
                let at = (outer * axis.size + k) * axis.inner + inner;
                let picked =
                    read_lane(index.wrapping_add(at * index_lane.size()), index_lane) as i64;
                let Some(row) = usize::try_from(picked).ok().filter(|&p| p < source) else {
                    return Err(picked);
                };
                let src = (outer * source + row) * axis.inner + inner;
                // SAFETY: `row` is inside the source block and `at` inside the result, both made by the lowering.
                unsafe {
                    std::ptr::copy_nonoverlapping(from.add(src * size), to.add(at * size), size)
                };
            }
        }
    }
    Ok(())
}

fn combine(op: AtomicOp, old: u64, value: u64, elem: Elem, lane: Lane) -> u64 {
    let order = LaneOrder { lane, unsigned: elem == Elem::U64 };
    match (op, lane) {
        (AtomicOp::Xchg, _) => value,
        (AtomicOp::Add, Lane::F32) => {
            let sum = f32::from_bits(old as u32) + f32::from_bits(value as u32);
            let sum = match elem {
                Elem::F16 => round_to_f16(sum),
                Elem::BF16 => round_to_bf16(sum),
                _ => sum,
            };
            u64::from(sum.to_bits())
        }
        (AtomicOp::Add, Lane::F64) => (f64::from_bits(old) + f64::from_bits(value)).to_bits(),
        (AtomicOp::Add, _) => (old as i64).wrapping_add(value as i64) as u64,
        (AtomicOp::Max, _) => {
            let smaller = less(old, value, order);
            if smaller { value } else { old }
        }
        (AtomicOp::Min, _) => {
            let smaller = less(value, old, order);
            if smaller { value } else { old }
        }
        (AtomicOp::And, _) => old & value,
        (AtomicOp::Or, _) => old | value,
        (AtomicOp::Xor, _) => old ^ value,
    }
}

impl Machine<'_, '_> {
    /// Programs with atomics run one after another, so plain reads and writes are atomic enough, and the
    /// result is the same every time.
    pub(super) fn atomic(&mut self, a: &Atomic) -> Result<()> {
        let load = simd::load_row(Isa::Base, a.elem);
        let store = simd::store_row(Isa::Base, a.elem);
        let size = a.elem.size();
        let (ptrs, values, olds) = (self.arena(a.ptr), self.arena(a.value), self.arena(a.old));
        let compares = a.compare.map(|c| self.arena(c));
        let masks = a.mask.map(|m| self.arena(m));
        for i in 0..a.lanes {
            let out = olds.wrapping_add(i * a.lane.size());
            if masks.is_some_and(|m| read_lane(m.wrapping_add(i), Lane::B8) == 0) {
                write_lane(out, 0, a.lane);
                continue;
            }
            let address = read_lane(ptrs.wrapping_add(i * 8), Lane::I64) as i64;
            let Some((buffer, ptr)) = self.reach(a.buffer, address, 0, size as i64) else {
                return Err(self.out_of_bounds(address, i, a.elem, true, a.loc));
            };
            self.track_atomic(buffer, address, size, a.loc);
            let mut word = [0u64; 1];
            // SAFETY: the element is inside a buffer; a word holds any lane.
            unsafe { load(word.as_mut_ptr().cast(), ptr, 0, 1) };
            let old = read_lane(word.as_ptr().cast(), a.lane);
            let value = read_lane(values.wrapping_add(i * a.lane.size()), a.lane);
            let new = match (a.op, compares) {
                (Some(op), _) => combine(op, old, value, a.elem, a.lane),
                (None, Some(c)) => {
                    let expected = read_lane(c.wrapping_add(i * a.lane.size()), a.lane);
                    if expected == old { value } else { old }
                }
                (None, None) => {
                    return Err(
                        self.fault(FaultKind::Assert("atomic without operation".into()), a.loc)
                    );
                }
            };
            let bits = [new; 1];
            // SAFETY: as above; the low bytes of the word are the lane.
            unsafe { store(ptr, bits.as_ptr().cast(), size as isize, 1) };
            self.after_atomic(buffer, address, size, new != old, a.loc);
            write_lane(out, old, a.lane);
        }
        Ok(())
    }
}
