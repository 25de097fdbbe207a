//! Buffers that a plan fills itself, queued before its first step.

use super::driver::{Driver, Stream};
use crate::failure::Failure;
use passnet_kernel::exec::element_bytes;
use passnet_kernel::plan::{BufferSpec, Init};

/// What one buffer is filled with.
#[derive(Debug)]
pub(super) struct Fill {
    pub(super) buffer: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Bytes(u8, usize),
    Halves(u16, usize),
    Words(u32, usize),
    /// Elements of two different words: low, high.
    Pairs([u32; 2], usize),
    Values(Box<[u8]>),
}

impl Fill {
    pub(super) fn of(specs: &[BufferSpec]) -> Vec<Fill> {
        let specs = specs.iter().enumerate().filter(|(_, spec)| spec.elements > 0);
        specs.filter_map(|(buffer, spec)| Some(Fill { buffer, content: content(spec)? })).collect()
    }

    pub(super) fn queue(
        &self,
        driver: &Driver,
        address: u64,
        stream: Stream,
    ) -> Result<(), Failure> {
        let call = &driver.functions;
        let check = |code| driver.check("filling a buffer", code);
        // SAFETY: the caller of `pn_plan_run` lends the whole buffer, which is as long as the plan says; the values that are
        // copied live as long as the plan, and the driver stages pageable memory before the call returns.
        unsafe {
            match &self.content {
                Content::Bytes(value, count) => {
                    check((call.set_bytes)(address, *value, *count, stream))
                }
                Content::Halves(value, count) => {
                    check((call.set_halves)(address, *value, *count, stream))
                }
                Content::Words(value, count) => {
                    check((call.set_words)(address, *value, *count, stream))
                }
                Content::Pairs([low, high], count) => {
                    check((call.set_word_rows)(address, 8, *low, 1, *count, stream))?;
                    check((call.set_word_rows)(address + 4, 8, *high, 1, *count, stream))
                }
                Content::Values(bytes) => {
                    check((call.upload)(address, bytes.as_ptr().cast(), bytes.len(), stream))
                }
            }
        }
    }
}

fn content(spec: &BufferSpec) -> Option<Content> {
    let count = usize::try_from(spec.elements).ok()?;
    let value = match &spec.init {
        Init::Input(_) | Init::Uninitialized => return None,
        Init::Values(values) => {
            let mut bytes: Vec<u8> =
                values.iter().flat_map(|value| element_bytes(value, spec.dtype)).collect();
            bytes.truncate(usize::try_from(spec.bytes()).ok()?);
            return Some(Content::Values(bytes.into()));
        }
        Init::Fill(value) => element_bytes(value, spec.dtype),
    };
    Some(match value[..] {
        [byte] => Content::Bytes(byte, count),
        [a, b] => Content::Halves(u16::from_le_bytes([a, b]), count),
        [a, b, c, d] => Content::Words(u32::from_le_bytes([a, b, c, d]), count),
        [a, b, c, d, e, f, g, h] => {
            let words = [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])];
            match words {
                [low, high] if low == high => Content::Words(low, count * 2),
                words => Content::Pairs(words, count),
            }
        }
        // Complex numbers: a plan fills them with zeros only.
        _ => Content::Bytes(0, count.checked_mul(value.len())?),
    })
}
