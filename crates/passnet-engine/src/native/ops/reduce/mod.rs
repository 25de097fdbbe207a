//! Reductions, scans, softmax and sorting. Results never depend on the number of threads.

mod extremes;
pub(crate) mod plan;
mod ranked;
mod scan;
mod selection;
mod softmax;
mod sums;

pub use extremes::{
    Extreme, all, any, arg_extreme, count_nonzero, extreme, extreme_with_index, sort, topk,
};
pub(crate) use extremes::{Ordered, extreme_run};
pub use ranked::{Between, kth_value, log_cum_sum_exp, quantile};
pub use scan::{Scan, scan};
pub(crate) use softmax::exponentials;
pub use softmax::{log_softmax, logsumexp, softmax};
pub(crate) use sums::{Term, mean_and_var, moments, row_moments, sum_run};
pub use sums::{mean, prod, std, sum, var, vector_norm};
