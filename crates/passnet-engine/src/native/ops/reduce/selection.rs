//! Selection and sorting with the steps of the C++ standard library that PyTorch is built with.
//!
//! `torch.topk` is not stable: which of several equal elements it picks follows from the steps of `std::partial_sort`,
//! `std::nth_element` and `std::sort`. Taking the same steps picks the same ones. `before(a, b)` says whether `a` comes
//! first; it must be a strict weak order, as every caller's is.

/// Ranges up to this length are sorted by insertion.
const SHORT: usize = 16;

/// The first `count` elements in order, the rest in some order.
pub(super) fn partial_sort<T: Copy>(
    items: &mut [T],
    count: usize,
    before: &impl Fn(&T, &T) -> bool,
) {
    if count == 0 {
        return;
    }
    heap_select(items, count, before);
    for last in (1..count).rev() {
        pop_heap(items, last, last, before);
    }
}

/// Puts the element of rank `nth` in its place, those that come before it ahead of it.
pub(super) fn nth_element<T: Copy>(items: &mut [T], nth: usize, before: &impl Fn(&T, &T) -> bool) {
    if nth >= items.len() {
        return;
    }
    let (mut first, mut last) = (0, items.len());
    let mut depth = 2 * items.len().ilog2();
    while last - first > 3 {
        if depth == 0 {
            heap_select(&mut items[first..last], nth + 1 - first, before);
            items.swap(first, nth);
            return;
        }
        depth -= 1;
        let cut = first + partition(&mut items[first..last], before);
        if cut <= nth {
            first = cut;
        } else {
            last = cut;
        }
    }
    insertion_sort(&mut items[first..last], before);
}

pub(super) fn sort<T: Copy>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) {
    if items.is_empty() {
        return;
    }
    introsort(items, 2 * items.len().ilog2(), before);
    if items.len() > SHORT {
        insertion_sort(&mut items[..SHORT], before);
        for at in SHORT..items.len() {
            insert(items, at, before);
        }
    } else {
        insertion_sort(items, before);
    }
}

fn introsort<T: Copy>(items: &mut [T], mut depth: u32, before: &impl Fn(&T, &T) -> bool) {
    let mut last = items.len();
    while last > SHORT {
        if depth == 0 {
            partial_sort(&mut items[..last], last, before);
            return;
        }
        depth -= 1;
        let cut = partition(&mut items[..last], before);
        introsort(&mut items[cut..last], depth, before);
        last = cut;
    }
}

/// Splits around the median of three elements; gives where the second part begins.
fn partition<T: Copy>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) -> usize {
    let (a, b, c) = (1, items.len() / 2, items.len() - 1);
    let median = if before(&items[a], &items[b]) {
        if before(&items[b], &items[c]) {
            b
        } else if before(&items[a], &items[c]) {
            c
        } else {
            a
        }
    } else if before(&items[a], &items[c]) {
        a
    } else if before(&items[b], &items[c]) {
        c
    } else {
        b
    };
    items.swap(0, median);
    let pivot = items[0];
    let (mut low, mut high) = (1, items.len());
    loop {
        // The median itself stops both walks.
        while before(&items[low], &pivot) {
            low += 1;
        }
        high -= 1;
        while before(&pivot, &items[high]) {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        items.swap(low, high);
        low += 1;
    }
}

fn insertion_sort<T: Copy>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) {
    for at in 1..items.len() {
        if before(&items[at], &items[0]) {
            items[..=at].rotate_right(1);
        } else {
            insert(items, at, before);
        }
    }
}

/// Moves an element towards the front, past all that it comes before; one of these must stop it.
fn insert<T: Copy>(items: &mut [T], mut at: usize, before: &impl Fn(&T, &T) -> bool) {
    let value = items[at];
    while at > 0 && before(&value, &items[at - 1]) {
        items[at] = items[at - 1];
        at -= 1;
    }
    items[at] = value;
}

/// Brings the first `count` in order, as a heap, to the front.
fn heap_select<T: Copy>(items: &mut [T], count: usize, before: &impl Fn(&T, &T) -> bool) {
    for parent in (0..count / 2).rev() {
        let value = items[parent];
        adjust_heap(&mut items[..count], parent, value, before);
    }
    for at in count..items.len() {
        if before(&items[at], &items[0]) {
            pop_heap(items, count, at, before);
        }
    }
}

/// Moves the top of the heap of `length` elements to `to`, and what was there into the heap.
fn pop_heap<T: Copy>(items: &mut [T], length: usize, to: usize, before: &impl Fn(&T, &T) -> bool) {
    let value = items[to];
    items[to] = items[0];
    adjust_heap(&mut items[..length], 0, value, before);
}

/// Sifts a hole down to a leaf, then the value up from there.
fn adjust_heap<T: Copy>(
    heap: &mut [T],
    mut hole: usize,
    value: T,
    before: &impl Fn(&T, &T) -> bool,
) {
    let (top, length) = (hole, heap.len());
    let mut child = hole;
    while child < length.saturating_sub(1) / 2 {
        child = 2 * (child + 1);
        if before(&heap[child], &heap[child - 1]) {
            child -= 1;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    if length.is_multiple_of(2) && length >= 2 && child == (length - 2) / 2 {
        child = 2 * (child + 1);
        heap[hole] = heap[child - 1];
        hole = child - 1;
    }
    while hole > top && before(&heap[(hole - 1) / 2], &value) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, below: u64) -> Vec<(u64, usize)> {
        let mut state = 88_172_645_463_325_252u64;
        (0..count)
            .map(|at| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state % below, at)
            })
            .collect()
    }

    #[test]
    fn they_sort_and_select() {
        let before = |a: &(u64, usize), b: &(u64, usize)| a.0 < b.0;
        let counts: &[usize] =
            if cfg!(miri) { &[1, 3, 17, 40] } else { &[1, 2, 3, 4, 15, 16, 17, 100, 1000] };
        for &count in counts {
            for below in [1, 3, 1_000_000] {
                let items = numbers(count, below);
                let mut sorted: Vec<u64> = items.iter().map(|item| item.0).collect();
                sorted.sort_unstable();
                let keys = |items: &[(u64, usize)]| items.iter().map(|i| i.0).collect::<Vec<_>>();
                let mut own = items.clone();
                sort(&mut own, &before);
                assert_eq!(keys(&own), sorted);
                for rank in [0, count / 2, count - 1] {
                    let mut own = items.clone();
                    nth_element(&mut own, rank, &before);
                    assert_eq!(own[rank].0, sorted[rank]);
                    let mut own = items.clone();
                    partial_sort(&mut own, rank + 1, &before);
                    assert_eq!(keys(&own[..=rank]), sorted[..=rank]);
                }
            }
        }
    }
}
