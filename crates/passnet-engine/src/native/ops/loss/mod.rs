//! Losses, built from the parts that PyTorch builds them from.

mod ctc;
mod each;
mod margin;

pub use ctc::Ctc;
pub use each::{
    binary_cross_entropy, binary_cross_entropy_with_logits, gaussian_nll, huber, kl_div,
    poisson_nll, smooth_l1,
};
pub use margin::{
    TripletMargin, cosine_embedding, hinge_embedding, margin_ranking, multi_margin,
    multilabel_soft_margin, soft_margin,
};

use super::pointwise::{self, Comparison, Unary};
use super::{indexing, reduce};
use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::{Arg, Scalar, Tensor};
use passnet_graph::DType;

/// What becomes of the losses of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// A loss for each element.
    None,
    /// The mean over those that count.
    Mean,
    /// The sum.
    Sum,
}

impl Reduction {
    /// By torch's `reduction` argument.
    pub fn from_name(name: Option<&str>) -> Result<Reduction> {
        Ok(match name {
            Some("none") => Reduction::None,
            Some("mean") => Reduction::Mean,
            Some("sum") => Reduction::Sum,
            other => bail!(Value, "{} is not a valid value for reduction", other.unwrap_or("None")),
        })
    }

    fn of(self, losses: Tensor) -> Result<Tensor> {
        match self {
            Reduction::None => Ok(losses),
            Reduction::Mean => reduce::mean(&losses, None, false, None),
            Reduction::Sum => reduce::sum(&losses, None, false, None),
        }
    }
}

/// `torch.nn.functional.mse_loss` and `l1_loss`, each element weighed by `weight` where there is one.
pub fn difference(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    is_squared: bool,
    reduction: Reduction,
) -> Result<Tensor> {
    let apart = pointwise::sub(&input.into(), &target.into(), Scalar::Int(1))?;
    let each = match is_squared {
        true => pointwise::mul(&(&apart).into(), &(&apart).into())?,
        false => pointwise::unary(Unary::Abs, &apart)?,
    };
    let Some(weight) = weight else { return reduction.of(each) };
    let weighed = pointwise::mul(&each.into(), &weight.into())?;
    match reduction {
        Reduction::Mean => {
            let total = reduce::sum(&weighed, None, false, None)?;
            pointwise::div(&total.into(), &reduce::sum(weight, None, false, None)?.into())
        }
        other => other.of(weighed),
    }
}

/// What `torch.nn.functional.cross_entropy` takes besides scores and targets.
#[derive(Debug)]
pub struct CrossEntropy<'a> {
    /// A factor for each class.
    pub weight: Option<&'a Tensor>,
    /// Targets of this class do not count.
    pub ignored: i64,
    pub(crate) smoothing: f64,
    /// What becomes of the losses of all samples.
    pub reduction: Reduction,
}

impl CrossEntropy<'_> {
    /// `torch.nn.functional.cross_entropy`.
    pub fn of(&self, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        let classes = i64::from(input.ndim() > 1);
        let count = input.shape()[classes as usize];
        let scores = reduce::log_softmax(input, classes, None)?;
        match target.dtype().is_float() && target.ndim() == input.ndim() {
            true => self.of_probabilities(&scores, target, classes, count),
            false => self.of_indices(&scores, target, classes, count),
        }
    }

    /// `torch.nn.functional.nll_loss`, whose input is logarithms already.
    pub fn of_scores(&self, scores: &Tensor, target: &Tensor) -> Result<Tensor> {
        ensure!(
            scores.dtype().is_float() && scores.ndim() > 0,
            DType,
            "nll_loss needs floating point scores for each class"
        );
        let classes = usize::from(scores.ndim() > 1);
        self.of_indices(scores, target, classes as i64, scores.shape()[classes])
    }

    /// Weights of the classes, laid along their dimension.
    fn weighed(&self, scores: Tensor, classes: i64) -> Result<Tensor> {
        let Some(weight) = self.weight else { return Ok(scores) };
        let mut shape = vec![1; scores.ndim()];
        shape[classes as usize] = -1;
        pointwise::mul(&(&scores).into(), &weight.reshape(&shape)?.into())
    }

    fn of_probabilities(
        &self,
        scores: &Tensor,
        target: &Tensor,
        classes: i64,
        count: usize,
    ) -> Result<Tensor> {
        let scaled = |by: f64, t: &Tensor| pointwise::mul(&t.into(), &Scalar::Float(by).into());
        let target = match self.smoothing > 0.0 {
            true => pointwise::add(
                &scaled(1.0 - self.smoothing, target)?.into(),
                &Scalar::Float(self.smoothing / count as f64).into(),
                Scalar::Int(1),
            )?,
            false => target.clone(),
        };
        let products = pointwise::mul(&scores.into(), &target.into())?;
        let products = self.weighed(products, classes)?;
        let each = negated(&reduce::sum(&products, Some(&[classes]), false, None)?)?;
        match self.reduction {
            // Over the samples, however many targets each has.
            Reduction::Mean => {
                let total = reduce::sum(&each, None, false, None)?;
                scaled(1.0 / each.numel().max(1) as f64, &total)
            }
            other => other.of(each),
        }
    }

    fn of_indices(
        &self,
        scores: &Tensor,
        target: &Tensor,
        classes: i64,
        count: usize,
    ) -> Result<Tensor> {
        let target = target.to_dtype(DType::Int64)?;
        let ignored: Arg = Scalar::Int(self.ignored).into();
        let counts = pointwise::compare(Comparison::Ne, &(&target).into(), &ignored)?;
        let zero: Arg = Scalar::Int(0).into();
        let index = pointwise::where_select(&counts, &(&target).into(), &zero)?;
        let picked = indexing::gather(scores, classes, &index.unsqueeze(classes)?)?;
        let mut each = negated(&picked.squeeze(Some(&[classes]))?)?;
        let weights = match self.weight {
            Some(weight) => {
                let shape: Vec<i64> = index.shape().iter().map(|size| *size as i64).collect();
                let flat = index.reshape(&[-1])?;
                indexing::index_select(weight, 0, &flat)?.reshape(&shape)?
            }
            None => Tensor::full(index.shape(), Scalar::Int(1), scores.dtype())?,
        };
        let nothing: Arg = Scalar::Float(0.0).into();
        let weights = pointwise::where_select(&counts, &weights.into(), &nothing)?;
        let weights = weights.to_dtype(scores.dtype())?;
        each = pointwise::mul(&each.into(), &(&weights).into())?;
        each = pointwise::where_select(&counts, &each.into(), &nothing)?;
        let total = reduce::sum(&weights, None, false, None)?;
        let reduced = |each: Tensor| match self.reduction {
            Reduction::Mean => {
                let sum = reduce::sum(&each, None, false, None)?;
                pointwise::div(&sum.into(), &(&total).into())
            }
            other => other.of(each),
        };
        if self.smoothing <= 0.0 {
            return reduced(each);
        }
        let all = self.weighed(scores.clone(), classes)?;
        let smooth = negated(&reduce::sum(&all, Some(&[classes]), false, None)?)?;
        let smooth = pointwise::where_select(&counts, &smooth.into(), &nothing)?;
        let part = |by: f64, t: Tensor| pointwise::mul(&t.into(), &Scalar::Float(by).into());
        let own = part(1.0 - self.smoothing, reduced(each)?)?;
        let others = part(self.smoothing / count as f64, reduced(smooth)?)?;
        pointwise::add(&own.into(), &others.into(), Scalar::Int(1))
    }
}

fn negated(tensor: &Tensor) -> Result<Tensor> {
    pointwise::unary(Unary::Neg, tensor)
}
