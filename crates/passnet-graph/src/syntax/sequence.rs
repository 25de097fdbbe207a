//! Places in sequences as Python counts them, for everyone who evaluates it.

/// Index of an element, counted from the end if negative; `None` outside.
pub fn position(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index.checked_add(length)? } else { index };
    (0..length).contains(&index).then_some(index as usize)
}

/// The indices of `items[start:stop:step]`; `None` where the step is zero.
pub fn slice(
    length: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> Option<impl Iterator<Item = usize>> {
    let length = i64::try_from(length).ok()?;
    let clamped = |index: i64, low: i64, high: i64| {
        let index = if index < 0 { index.saturating_add(length) } else { index };
        index.clamp(low, high)
    };
    let (start, stop) = match step {
        0 => return None,
        1.. => (
            start.map_or(0, |start| clamped(start, 0, length)),
            stop.map_or(length, |stop| clamped(stop, 0, length)),
        ),
        _ => (
            start.map_or(length - 1, |start| clamped(start, -1, length - 1)),
            stop.map_or(-1, |stop| clamped(stop, -1, length - 1)),
        ),
    };
    let next = move |index: &i64| Some(index.saturating_add(step));
    let inside = move |index: &i64| if step > 0 { *index < stop } else { *index > stop };
    Some(std::iter::successors(Some(start), next).take_while(inside).map(|index| index as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sliced(start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<usize> {
        slice(5, start, stop, step).unwrap().collect()
    }

    #[test]
    fn slices_count_as_python_does() {
        assert_eq!(sliced(None, None, 1), [0, 1, 2, 3, 4]);
        assert_eq!(sliced(Some(1), Some(-1), 2), [1, 3]);
        assert_eq!(sliced(None, None, -1), [4, 3, 2, 1, 0]);
        assert_eq!(sliced(Some(-2), Some(0), -2), [3, 1]);
        assert_eq!(sliced(Some(i64::MIN), Some(i64::MAX), i64::MAX), [0]);
        assert_eq!(sliced(Some(i64::MAX), Some(i64::MIN), i64::MIN), [4]);
        assert_eq!(sliced(Some(3), Some(1), 1), [0usize; 0]);
        assert!(slice(5, None, None, 0).is_none());
        assert_eq!(slice(0, None, None, -1).unwrap().count(), 0);
    }

    #[test]
    fn positions_count_from_both_ends() {
        assert_eq!([position(0, 3), position(-1, 3), position(-3, 3)], [Some(0), Some(2), Some(0)]);
        assert_eq!([position(3, 3), position(-4, 3), position(i64::MIN, 3)], [None; 3]);
    }
}
