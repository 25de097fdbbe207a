//! Snappy's block format: literals, and copies of what was written before.

use super::thrift::read_varint;

/// Unpacks a block that must have `size` bytes; `None` where it is none or has another size.
pub(super) fn unpack(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut place = 0;
    if read_varint(bytes, &mut place)? != size as u64 {
        return None;
    }
    let mut out = Vec::new();
    while place < bytes.len() {
        let tag = bytes[place];
        place += 1;
        let number = |place: &mut usize, count: usize| -> Option<usize> {
            let raw = bytes.get(*place..*place + count)?;
            *place += count;
            Some(raw.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)))
        };
        let high = usize::from(tag >> 2);
        let (offset, length) = match tag & 3 {
            0 => {
                let length = 1 + if high < 60 { high } else { number(&mut place, high - 59)? };
                out.extend_from_slice(bytes.get(place..place.checked_add(length)?)?);
                place += length;
                if out.len() > size {
                    return None;
                }
                continue;
            }
            1 => (usize::from(tag >> 5) << 8 | number(&mut place, 1)?, (high & 7) + 4),
            2 => (number(&mut place, 2)?, high + 1),
            _ => (number(&mut place, 4)?, high + 1),
        };
        let from = out.len().checked_sub(offset).filter(|_| offset > 0)?;
        if out.len() + length > size {
            return None;
        }
        // A copy may reach into what it writes itself: then it repeats.
        for at in from..from + length {
            out.push(out[at]);
        }
    }
    (out.len() == size).then_some(out)
}
