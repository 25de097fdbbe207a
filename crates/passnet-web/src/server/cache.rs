//! Pages that were asked for before, as long as nothing changed.

use axum::body::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
struct Kept {
    generation: i64,
    pages: HashMap<String, Bytes>,
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
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.pages.get(address).filter(|_| kept.generation == generation).cloned()
    }

    /// Keeps a page of a generation, unless a later one is known.
    pub fn put(&self, generation: i64, address: &str, page: &Bytes) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if generation < kept.generation || page.len() > self.most {
            return;
        }
        if generation > kept.generation {
            *kept = Kept { generation, ..Kept::default() };
        }
        if kept.pages.insert(address.to_string(), page.clone()).is_none() {
            kept.order.push_back(address.to_string());
            kept.bytes += page.len();
        }
        while kept.bytes > self.most
            && let Some(oldest) = kept.order.pop_front()
        {
            let gone = kept.pages.remove(&oldest).map_or(0, |page| page.len());
            kept.bytes -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_older_generations_are_gone_and_memory_is_bounded() {
        let cache = Cache::new(10);
        let page = |text: &'static str| Bytes::from_static(text.as_bytes());
        cache.put(1, "/a", &page("12345"));
        assert_eq!(cache.get(1, "/a"), Some(page("12345")));
        assert_eq!(cache.get(2, "/a"), None);
        cache.put(1, "/b", &page("12345"));
        cache.put(1, "/c", &page("1"));
        assert_eq!(cache.get(1, "/a"), None, "the oldest went");
        assert_eq!(cache.get(1, "/b"), Some(page("12345")));
        cache.put(2, "/b", &page("2"));
        cache.put(1, "/b", &page("1"));
        assert_eq!(cache.get(2, "/b"), Some(page("2")));
        cache.put(2, "/large", &page("12345678901"));
        assert_eq!(cache.get(2, "/large"), None);
    }
}
