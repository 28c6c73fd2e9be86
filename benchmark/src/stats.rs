//! Summaries of samples. Refuses to know their unit and what they are samples of.

/// What a report says about samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many samples there are.
    pub runs: usize,
    /// The middle one.
    pub median: f64,
    /// Lower end of the interval that holds the true median with at least 95 % confidence.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
    /// The smallest.
    pub min: f64,
    /// 95 of 100 are not above it (nearest rank).
    pub p95: f64,
    /// The largest.
    pub max: f64,
}

/// Summarises samples. `None`: there are none.
///
/// The interval comes from the ranks of the samples and assumes nothing about their distribution: how many of `n` fall
/// below the median is binomial with probability one half, here in its normal approximation, rounded outwards by a rank.
pub fn summarise(samples: &[f64]) -> Option<Summary> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (&min, &max) = (sorted.first()?, sorted.last()?);
    let runs = sorted.len();
    let half_width = 0.98 * (as_float(runs)).sqrt();
    let below = ((as_float(runs) / 2.0 - half_width).floor() - 1.0).max(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between zero and the number of samples"
    )]
    let below = below as usize;
    Some(Summary {
        runs,
        median: (sorted[(runs - 1) / 2] + sorted[runs / 2]) / 2.0,
        low: sorted[below],
        high: sorted[runs - 1 - below],
        min,
        p95: sorted[(runs * 95).div_ceil(100) - 1],
        max,
    })
}

/// The ratio of `samples` to `base`, pair by pair: the pairs were measured next to each other.
pub fn paired_ratio(samples: &[f64], base: &[f64]) -> Option<Summary> {
    let ratios: Vec<f64> = samples
        .iter()
        .zip(base)
        .map(|(sample, base)| sample / base)
        .collect();
    summarise(&ratios)
}

/// The upper end of the 95 % interval for the rate of something that has not been seen in `tries` independent tries.
pub fn rule_of_three(tries: u64) -> f64 {
    3.0 / as_float(tries)
}

/// A count as a float.
#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
pub fn as_float(count: impl TryInto<u64>) -> f64 {
    count.try_into().map_or(f64::NAN, |count| count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_one_to_a_hundred() {
        let samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let summary = summarise(&samples).unwrap();
        assert_eq!((summary.runs, summary.min, summary.max), (100, 1.0, 100.0));
        assert_eq!((summary.median, summary.p95), (50.5, 95.0));
        // As the exact binomial interval has it.
        assert_eq!((summary.low, summary.high), (40.0, 61.0));
    }

    #[test]
    fn few_samples_give_their_whole_range() {
        assert_eq!(summarise(&[]), None);
        let summary = summarise(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!(
            (summary.low, summary.median, summary.high, summary.p95),
            (1.0, 2.0, 3.0, 3.0)
        );
    }

    #[test]
    fn pairs_cancel_what_both_met() {
        let ratio = paired_ratio(&[2.0, 20.0, 200.0], &[1.0, 10.0, 100.0]).unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high), (2.0, 2.0, 2.0));
    }

    #[test]
    fn nothing_in_a_million_is_at_most_three_in_a_million() {
        assert!((rule_of_three(1_000_000) - 3e-6).abs() < 1e-12);
    }
}
