//! Pages that were asked for before, as long as nothing changed. They are kept packed: a page is mostly the same words over and
//! over, so all pages of a thousand runs fit where a tenth of them would not.

use axum::body::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// The quickest way to pack.
const LEVEL: i32 = 1;
/// What a page costs besides its own bytes.
const OVERHEAD: usize = 256;

#[derive(Debug)]
struct Packed {
    bytes: Vec<u8>,
    /// Unpacked.
    length: usize,
}

impl Packed {
    fn of(page: &[u8]) -> Option<Packed> {
        let bytes = zstd::bulk::compress(page, LEVEL).ok()?;
        Some(Packed { bytes, length: page.len() })
    }

    fn page(&self) -> Option<Bytes> {
        zstd::bulk::decompress(&self.bytes, self.length).ok().map(Bytes::from)
    }

    fn cost(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }
}

#[derive(Debug, Default)]
struct Kept {
    generation: i64,
    pages: HashMap<String, Arc<Packed>>,
    /// The oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

/// A bounded store of pages of one generation.
#[derive(Debug)]
pub struct Cache {
    kept: Mutex<Kept>,
    most: usize,
}

impl Cache {
    pub fn new(most: usize) -> Cache {
        Cache { kept: Mutex::default(), most }
    }

    pub fn get(&self, generation: i64, address: &str) -> Option<Bytes> {
        let packed = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.pages.get(address).filter(|_| kept.generation == generation).cloned()
        };
        packed?.page()
    }

    /// Keeps a page of a generation, unless a later one is known.
    pub fn put(&self, generation: i64, address: &str, page: &[u8]) {
        let Some(packed) = Packed::of(page).map(Arc::new) else { return };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if generation < kept.generation || packed.cost() > self.most {
            return;
        }
        if generation > kept.generation {
            *kept = Kept { generation, ..Kept::default() };
        }
        kept.bytes += packed.cost();
        match kept.pages.insert(address.to_string(), packed) {
            // Two threads wrote the same page.
            Some(before) => kept.bytes -= before.cost(),
            None => kept.order.push_back(address.to_string()),
        }
        while kept.bytes > self.most
            && let Some(oldest) = kept.order.pop_front()
        {
            let gone = kept.pages.remove(&oldest).map_or(0, |page| page.cost());
            kept.bytes -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_older_generations_are_gone() {
        let cache = Cache::new(100_000);
        cache.put(1, "/a", b"12345");
        assert_eq!(cache.get(1, "/a").as_deref(), Some(&b"12345"[..]));
        assert_eq!(cache.get(2, "/a"), None);
        cache.put(2, "/b", b"2");
        cache.put(1, "/b", b"1");
        assert_eq!(cache.get(2, "/b").as_deref(), Some(&b"2"[..]));
        assert_eq!(cache.get(2, "/a"), None);
    }

    #[test]
    fn memory_is_bounded_and_pages_are_kept_packed() {
        let page = "<tr><td>the same words over and over</td></tr>".repeat(2000);
        let cache = Cache::new(20 << 10);
        for index in 0..1000 {
            cache.put(1, &format!("/{index}"), page.as_bytes());
            cache.put(1, &format!("/{index}"), page.as_bytes());
            assert!(cache.kept.lock().unwrap().bytes <= 20 << 10);
        }
        assert_eq!(cache.get(1, "/999").as_deref(), Some(page.as_bytes()));
        assert_eq!(cache.get(1, "/0"), None, "the oldest went");
        let kept = cache.kept.lock().unwrap();
        assert_eq!(kept.pages.len(), kept.order.len());
        assert!(kept.pages.len() * page.len() > 5 * kept.bytes, "{} pages", kept.pages.len());
        let noise: Vec<u8> =
            (0..40_000u64).map(|at| blake3::hash(&at.to_le_bytes()).as_bytes()[0]).collect();
        drop(kept);
        cache.put(1, "/large", &noise);
        assert_eq!(cache.get(1, "/large"), None);
    }
}
