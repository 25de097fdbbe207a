//! How speed-ups are distributed.

use serde::Serialize;

/// Bins for one doubling of the speed-up.
const PER_DOUBLING: i32 = 2;
/// The open bins at both ends begin at 2^±4.
const END: i32 = 4 * PER_DOUBLING;

/// Speed-ups from `low` up to but not including `high`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bin {
    /// `None` in the lowest bin.
    pub low: Option<f64>,
    /// `None` in the highest bin.
    pub high: Option<f64>,
    /// Graphs in it.
    pub count: usize,
}

/// Counts of speed-ups in bins of equal ratio; eager (1) is a border between two of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Histogram {
    /// From the first bin that holds something to the last.
    pub bins: Vec<Bin>,
}

impl Histogram {
    /// Counts speed-ups on a logarithmic scale.
    pub fn of(speedups: impl IntoIterator<Item = f64>) -> Histogram {
        let border = |i: i32| 2f64.powf(f64::from(i) / f64::from(PER_DOUBLING));
        let borders: Vec<f64> = (-END..=END).map(border).collect();
        let mut counts = vec![0usize; borders.len() + 1];
        for speedup in speedups {
            counts[borders.partition_point(|border| *border <= speedup)] += 1;
        }
        let bins = counts.iter().enumerate().map(|(i, &count)| Bin {
            low: i.checked_sub(1).and_then(|i| borders.get(i)).copied(),
            high: borders.get(i).copied(),
            count,
        });
        let bins: Vec<Bin> = bins.collect();
        let first = bins.iter().position(|bin| bin.count > 0);
        let last = bins.iter().rposition(|bin| bin.count > 0);
        let range = first.zip(last).map_or(0..0, |(first, last)| first..last + 1);
        Histogram { bins: bins[range].to_vec() }
    }

    /// Graphs in the fullest bin.
    pub fn largest(&self) -> usize {
        self.bins.iter().map(|bin| bin.count).max().unwrap_or(0)
    }
}

impl Bin {
    /// `0.71 to 1.00`, `below 0.06`, `16.00 and more`.
    pub fn label(&self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{low:.2} to {high:.2}"),
            (None, Some(high)) => format!("below {high:.2}"),
            (Some(low), None) => format!("{low:.2} and more"),
            (None, None) => "all".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eager_is_the_lower_border_of_its_bin() {
        let histogram = Histogram::of([0.99, 1.0, 1.2, 2.0]);
        let counts: Vec<(String, usize)> =
            histogram.bins.iter().map(|bin| (bin.label(), bin.count)).collect();
        let expected =
            [("0.71 to 1.00", 1), ("1.00 to 1.41", 2), ("1.41 to 2.00", 0), ("2.00 to 2.83", 1)];
        assert_eq!(counts, expected.map(|(label, count)| (label.to_string(), count)));
    }

    #[test]
    fn extremes_have_open_bins_and_nothing_has_none() {
        let histogram = Histogram::of([1e-300, 1e300]);
        assert_eq!(histogram.bins.first().map(Bin::label).as_deref(), Some("below 0.06"));
        assert_eq!(histogram.bins.last().map(Bin::label).as_deref(), Some("16.00 and more"));
        assert_eq!(histogram.bins.iter().map(|bin| bin.count).sum::<usize>(), 2);
        assert!(Histogram::of([]).bins.is_empty());
    }
}
