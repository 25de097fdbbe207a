//! Levels and dictionary places: small numbers in runs of one value, or packed by bits in groups of eight.

use super::thrift::{read_varint, varint};

/// How many bits numbers up to `largest` take.
pub(super) fn bits(largest: u16) -> u32 {
    u16::BITS - largest.leading_zeros()
}

/// Writes levels of one bit as runs. Levels seldom change inside a table, so packing them would gain little.
pub(super) fn write(levels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for run in levels.chunk_by(|a, b| a == b) {
        varint(&mut bytes, (run.len() as u64) << 1);
        bytes.push(run[0]);
    }
    bytes
}

/// Reads `count` numbers of `width` bits; `None` where there are fewer.
pub(super) fn read(bytes: &[u8], width: u32, count: usize) -> Option<Vec<u32>> {
    if width == 0 {
        return Some(vec![0; count]);
    }
    if width > u32::BITS {
        return None;
    }
    let mut numbers = Vec::new();
    let mut place = 0;
    while numbers.len() < count {
        let head = read_varint(bytes, &mut place)?;
        let length = usize::try_from(head >> 1).ok()?;
        let left = count - numbers.len();
        if head & 1 == 0 {
            let size = width.div_ceil(8) as usize;
            let raw = bytes.get(place..place.checked_add(size)?)?;
            place += size;
            let value = raw.iter().rev().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
            if length == 0 {
                return None;
            }
            numbers.extend(std::iter::repeat_n(value, length.min(left)));
        } else {
            let size = length.checked_mul(width as usize)?;
            let raw = bytes.get(place..place.checked_add(size)?)?;
            place += size;
            if length == 0 {
                return None;
            }
            let packed = length.checked_mul(8)?.min(left);
            numbers.extend((0..packed).map(|index| unpack(raw, index * width as usize, width)));
        }
    }
    Some(numbers)
}

/// The number whose lowest bit is the one at `from`.
fn unpack(bytes: &[u8], from: usize, width: u32) -> u32 {
    (0..width as usize).fold(0, |value, bit| {
        let at = from + bit;
        let set = bytes.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
        value | u32::from(set) << bit
    })
}
