//! Connectionist temporal classification: how unlikely a network makes a text, summed over all ways to spread it over time.

use super::Reduction;
use crate::native::error::{Result, ensure};
use crate::native::tensor::{Buffer, Tensor};

/// What `torch.nn.functional.ctc_loss` takes besides probabilities and targets.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "fields are torch's arguments")]
pub struct Ctc {
    pub input_lengths: Vec<i64>,
    pub target_lengths: Vec<i64>,
    pub blank: i64,
    pub reduction: Reduction,
    /// Targets that no input is long enough for cost nothing, instead of everything.
    pub zero_infinity: bool,
}

impl Ctc {
    /// The loss of `[time, batch, classes]`, or of one sample without the batch.
    pub fn of(&self, log_probs: &Tensor, targets: &Tensor) -> Result<Tensor> {
        ensure!(
            log_probs.dtype().is_float() && matches!(log_probs.ndim(), 2 | 3),
            Shape,
            "ctc_loss expects log_probs of 2 or 3 dimensions, got {:?}",
            log_probs.shape()
        );
        let alone = log_probs.ndim() == 2;
        let batched = if alone { log_probs.unsqueeze(1)? } else { log_probs.clone() };
        let [time, batch, classes] = [batched.shape()[0], batched.shape()[1], batched.shape()[2]];
        let labels = self.labels(targets, batch, time, classes)?;
        let values = batched.to_vec::<f64>()?;
        let mut losses = Buffer::<f64>::new(batch)?;
        for (sample, (loss, labels)) in losses.iter_mut().zip(&labels).enumerate() {
            let steps = self.input_lengths[sample] as usize;
            let at = |step: usize, label: usize| values[(step * batch + sample) * classes + label];
            *loss = -log_likelihood(labels, self.blank as usize, steps, at);
            if self.zero_infinity && *loss == f64::INFINITY {
                *loss = 0.0;
            }
            if self.reduction == Reduction::Mean {
                *loss /= labels.len().max(1) as f64;
            }
        }
        let losses = Tensor::from_buffer(losses, &[batch])?.to_dtype(log_probs.dtype())?;
        match self.reduction {
            Reduction::None if alone => losses.squeeze(Some(&[0])),
            reduction => reduction.of(losses),
        }
    }

    /// The classes of every target, from a row each or from one list of all.
    fn labels(
        &self,
        targets: &Tensor,
        batch: usize,
        time: usize,
        classes: usize,
    ) -> Result<Vec<Vec<usize>>> {
        ensure!(
            self.input_lengths.len() == batch && self.target_lengths.len() == batch,
            Value,
            "input_lengths and target_lengths must be of size batch_size {batch}"
        );
        ensure!((0..classes as i64).contains(&self.blank), Value, "blank must be in label range");
        ensure!(
            self.input_lengths.iter().all(|length| (0..=time as i64).contains(length)),
            Value,
            "Expected input_lengths to have value at most {time}"
        );
        let values = targets.to_vec::<i64>()?;
        let by_row = targets.ndim() == 2;
        let width = if by_row { targets.shape()[1] } else { 0 };
        let mut start = 0;
        let mut labels = Vec::with_capacity(batch);
        for (sample, length) in self.target_lengths.iter().enumerate() {
            let from = if by_row { sample * width } else { start };
            let length = usize::try_from(*length).ok().filter(|length| !by_row || *length <= width);
            let row = length.and_then(|length| values.get(from..from.checked_add(length)?));
            let row: Option<Vec<usize>> = row.and_then(|row| {
                let known = |label: &i64| (0..classes as i64).contains(label);
                row.iter().all(known).then(|| row.iter().map(|label| *label as usize).collect())
            });
            ensure!(
                row.is_some(),
                Value,
                "Expected targets of at least the target_lengths, with labels below {classes}"
            );
            start += length.unwrap_or(0);
            labels.extend(row);
        }
        Ok(labels)
    }
}

/// Sums over all paths, one step of time after the other. Labels stand between blanks; a path may skip a blank between
/// labels that differ.
fn log_likelihood(
    labels: &[usize],
    blank: usize,
    steps: usize,
    at: impl Fn(usize, usize) -> f64,
) -> f64 {
    let states = 2 * labels.len() + 1;
    let label = |state: usize| if state % 2 == 1 { labels[state / 2] } else { blank };
    let mut paths = vec![f64::NEG_INFINITY; states];
    if steps == 0 {
        return if labels.is_empty() { 0.0 } else { f64::NEG_INFINITY };
    }
    paths[0] = at(0, blank);
    if states > 1 {
        paths[1] = at(0, label(1));
    }
    for step in 1..steps {
        let before = paths.clone();
        for (state, path) in paths.iter_mut().enumerate() {
            let skips = state > 1 && state % 2 == 1 && label(state) != label(state - 2);
            let earlier = if skips { before[state - 2] } else { f64::NEG_INFINITY };
            let previous = state.checked_sub(1).map_or(f64::NEG_INFINITY, |one| before[one]);
            *path = log_sum([before[state], previous, earlier]) + at(step, label(state));
        }
    }
    let last_label = states.checked_sub(2).map_or(f64::NEG_INFINITY, |one| paths[one]);
    log_sum([paths[states - 1], last_label, f64::NEG_INFINITY])
}

fn log_sum(terms: [f64; 3]) -> f64 {
    let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY && !terms.iter().any(|term| term.is_nan()) {
        return most;
    }
    most + terms.iter().map(|term| (term - most).exp()).sum::<f64>().ln()
}
