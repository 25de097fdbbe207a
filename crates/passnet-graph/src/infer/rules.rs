//! Which rule infers which operation. The match is exhaustive: an operation without a rule does not compile.

use super::args::Args;
use super::value::Value;
use super::{
    Inferred, contraction, convert, convolution, creation, effect, einsum, fourier, indexing, join,
    linalg, loss, movement, normalisation, part, pointwise, recurrent, reduction, sampling, scalar,
    subscript, view,
};
use crate::ops::Op;

/// Infers the result of a bound call, in-place spellings as if they were not.
pub(super) fn apply(args: &Args) -> Inferred<Value> {
    rule(args.op())(args)
}

pub(super) fn rule(op: Op) -> fn(&Args) -> Inferred<Value> {
    match op {
        Op::Add | Op::Sub | Op::Rsub | Op::Mul | Op::Div | Op::FloorDivide | Op::Remainder => {
            pointwise::binary
        }
        Op::Fmod | Op::Pow | Op::FloatPower | Op::Maximum | Op::Minimum | Op::Atan2 => {
            pointwise::binary
        }
        Op::Xlogy | Op::Hypot | Op::Copysign | Op::Heaviside => pointwise::binary,
        Op::Logaddexp | Op::Logaddexp2 => pointwise::binary,
        Op::BitwiseAnd | Op::BitwiseOr | Op::BitwiseXor | Op::LeftShift | Op::RightShift => {
            pointwise::binary
        }
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::IsClose => pointwise::binary,
        Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor => pointwise::binary,
        Op::Addcmul | Op::Addcdiv | Op::Lerp | Op::Where | Op::WhereMethod => pointwise::several,
        Op::Clamp | Op::ClampMin | Op::ClampMax => pointwise::several,
        Op::MaskedFill => pointwise::masked_fill,
        Op::Neg | Op::Positive | Op::Abs | Op::Sign | Op::Ceil | Op::Floor | Op::Round => {
            pointwise::unary
        }
        Op::Trunc | Op::Frac | Op::Exp | Op::Exp2 | Op::Expm1 | Op::Log | Op::Log2 | Op::Log10 => {
            pointwise::unary
        }
        Op::Log1p | Op::Logit | Op::Sqrt | Op::Rsqrt | Op::Square | Op::Reciprocal => {
            pointwise::unary
        }
        Op::Sin | Op::Cos | Op::Tan | Op::Asin | Op::Acos | Op::Atan | Op::Sinh | Op::Cosh => {
            pointwise::unary
        }
        Op::Tanh | Op::Erf | Op::Erfc | Op::Erfinv | Op::Sigmoid | Op::BitwiseNot => {
            pointwise::unary
        }
        Op::Asinh | Op::Acosh | Op::Atanh | Op::Sinc | Op::Lgamma | Op::Digamma => pointwise::unary,
        Op::BesselI0 | Op::Deg2rad | Op::Rad2deg | Op::Tanhshrink => pointwise::unary,
        Op::LogicalNot | Op::IsNan | Op::IsInf | Op::IsFinite | Op::NanToNum => pointwise::unary,
        Op::Relu | Op::Relu6 | Op::Silu | Op::Mish | Op::Hardswish | Op::Hardsigmoid => {
            pointwise::activation
        }
        Op::Hardtanh | Op::LeakyRelu | Op::Elu | Op::Celu | Op::Selu | Op::Gelu => {
            pointwise::activation
        }
        Op::Softplus | Op::Softsign | Op::LogSigmoid | Op::Hardshrink | Op::Softshrink => {
            pointwise::activation
        }
        Op::Threshold => pointwise::activation,
        Op::Prelu => pointwise::prelu,
        Op::Sum | Op::Mean | Op::NanSum | Op::Prod | Op::Amax | Op::Amin => reduction::fold,
        Op::Argmax | Op::Argmin | Op::All | Op::Any | Op::Logsumexp | Op::CountNonzero => {
            reduction::fold
        }
        Op::NanMean => reduction::fold,
        Op::Max | Op::Min | Op::Median => reduction::extremum,
        Op::Aminmax | Op::Kthvalue => reduction::pair,
        Op::Quantile => reduction::quantile,
        Op::Trapezoid => reduction::trapezoid,
        Op::Logcumsumexp => reduction::scan,
        Op::Var | Op::Std | Op::VarMean | Op::StdMean => reduction::moments,
        Op::Norm | Op::LinalgNorm | Op::VectorNorm => reduction::norm,
        Op::Cumsum | Op::Cumprod | Op::Cummax | Op::Cummin => reduction::scan,
        Op::Topk | Op::Sort | Op::Argsort => reduction::order,
        Op::Fft | Op::Ifft | Op::Rfft | Op::Irfft => fourier::transform,
        Op::Fft2 | Op::Ifft2 | Op::Rfft2 | Op::Irfft2 => fourier::transform,
        Op::Fftn | Op::Ifftn | Op::Rfftn | Op::Irfftn => fourier::transform,
        Op::Fftshift | Op::Ifftshift => fourier::shift,
        Op::Stft => fourier::stft,
        Op::Istft => fourier::istft,
        Op::View | Op::ViewAs | Op::Reshape | Op::ReshapeAs | Op::Flatten | Op::Unflatten => {
            view::reshape
        }
        Op::Transpose | Op::TransposeMatrix | Op::ReverseDims | Op::MatrixTranspose => {
            view::permute
        }
        Op::Permute | Op::Movedim => view::permute,
        Op::Squeeze | Op::Unsqueeze => view::singleton,
        Op::Expand | Op::ExpandAs | Op::BroadcastTo => view::expand,
        Op::BroadcastTensors => view::broadcast_tensors,
        Op::Chunk | Op::Split | Op::TensorSplit => part::pieces,
        Op::Narrow | Op::Select | Op::Unbind | Op::Diagonal | Op::UnfoldDim | Op::AsStrided => {
            part::part
        }
        Op::Detach | Op::Real | Op::Imag | Op::ViewAsReal | Op::ViewAsComplex => {
            convert::reinterpret
        }
        Op::Conj | Op::RequiresGrad => convert::reinterpret,
        Op::Contiguous | Op::To | Op::TypeAs | Op::Type | Op::Cpu | Op::Cuda => convert::convert,
        Op::Float | Op::Double | Op::Half | Op::Bfloat16 | Op::Long | Op::Int => convert::convert,
        Op::Short | Op::Byte | Op::Bool => convert::convert,
        Op::Cat | Op::Stack | Op::Hstack | Op::Vstack => join::join,
        Op::Pad | Op::ConstantPadNd => movement::pad,
        Op::Diff => join::diff,
        Op::Roll | Op::Flip | Op::Rot90 | Op::Repeat | Op::Tile | Op::RepeatInterleave => {
            movement::rearrange
        }
        Op::Clone | Op::Copy | Op::Tril | Op::Triu | Op::Diag | Op::DiagEmbed => {
            movement::rearrange
        }
        Op::PixelShuffle | Op::PixelUnshuffle | Op::ChannelShuffle => movement::rearrange,
        Op::Unfold | Op::Fold => movement::patches,
        Op::Meshgrid | Op::CartesianProd => join::grid,
        Op::Complex | Op::Polar => join::complex,
        Op::Linear => contraction::linear,
        Op::Bilinear => contraction::bilinear,
        Op::Matmul => contraction::matmul,
        Op::Mm | Op::Bmm | Op::Mv | Op::Dot | Op::Outer => contraction::product,
        Op::Addmm | Op::Addbmm | Op::Baddbmm => contraction::sum_and_product,
        Op::Einsum => einsum::einsum,
        Op::Tensordot => contraction::tensordot,
        Op::Cdist | Op::CosineSimilarity => contraction::distance,
        Op::Inner => linalg::inner,
        Op::Addmv | Op::Addr => linalg::sum_and_product,
        Op::MultiDot => linalg::multi_dot,
        Op::PairwiseDistance => linalg::pairwise_distance,
        Op::Kron => linalg::kron,
        Op::Cross | Op::LinalgCross => linalg::cross,
        Op::Trace => linalg::trace,
        Op::Inverse | Op::Det | Op::Cholesky => linalg::of_square,
        Op::Solve | Op::SolveTriangular => linalg::solve,
        Op::Conv1d | Op::Conv2d | Op::Conv3d => convolution::convolution,
        Op::ConvTranspose1d | Op::ConvTranspose2d | Op::ConvTranspose3d => convolution::convolution,
        Op::ScaledDotProductAttention
        | Op::MultiHeadAttentionForward
        | Op::NativeMultiHeadAttention => contraction::attention,
        Op::Lstm | Op::Gru | Op::RnnTanh | Op::RnnRelu => recurrent::layers,
        Op::LstmCell | Op::GruCell | Op::RnnTanhCell | Op::RnnReluCell => recurrent::cell,
        Op::LayerNorm | Op::RmsNorm => normalisation::over_trailing,
        Op::BatchNorm | Op::GroupNorm | Op::InstanceNorm => normalisation::over_channels,
        Op::LocalResponseNorm | Op::Normalize | Op::WeightNorm => normalisation::scaled,
        Op::Softmax | Op::LogSoftmax | Op::Softmin => normalisation::softmax,
        Op::Glu => normalisation::glu,
        Op::Dropout | Op::Dropout1d | Op::Dropout2d | Op::Dropout3d | Op::AlphaDropout => {
            normalisation::dropout
        }
        Op::MaxPool1d | Op::MaxPool2d | Op::MaxPool3d => sampling::pool,
        Op::LpPool1d | Op::LpPool2d | Op::LpPool3d => sampling::pool,
        Op::AvgPool1d | Op::AvgPool2d | Op::AvgPool3d => sampling::pool,
        Op::AdaptiveAvgPool1d | Op::AdaptiveAvgPool2d | Op::AdaptiveAvgPool3d => sampling::adaptive,
        Op::AdaptiveMaxPool1d | Op::AdaptiveMaxPool2d | Op::AdaptiveMaxPool3d => sampling::adaptive,
        Op::Interpolate => sampling::interpolate,
        Op::GridSample | Op::AffineGrid => sampling::grid,
        Op::GetItem => subscript::get,
        Op::SetItem => subscript::set,
        Op::IndexTensors | Op::IndexPut => subscript::by_tensors,
        Op::Embedding | Op::EmbeddingBag => indexing::embedding,
        Op::OneHot => indexing::one_hot,
        Op::Gather | Op::IndexSelect | Op::TakeAlongDim | Op::Take | Op::MaskedSelect => {
            indexing::pick
        }
        Op::MaskedScatter | Op::Scatter | Op::ScatterAdd | Op::ScatterReduce => indexing::scatter,
        Op::IndexAdd | Op::IndexCopy | Op::IndexFill => indexing::scatter,
        Op::MaxUnpool1d | Op::MaxUnpool2d | Op::MaxUnpool3d => sampling::unpool,
        Op::Nonzero | Op::Bincount => indexing::counting,
        Op::Searchsorted | Op::Bucketize => indexing::search,
        Op::IsIn => loss::is_in,
        Op::Unique | Op::UniqueConsecutive => indexing::unique,
        Op::MseLoss | Op::L1Loss | Op::SmoothL1Loss | Op::HuberLoss => loss::difference,
        Op::KlDiv | Op::PoissonNllLoss | Op::GaussianNllLoss => loss::divergence,
        Op::BinaryCrossEntropy | Op::BinaryCrossEntropyWithLogits => loss::binary_cross_entropy,
        Op::SoftMarginLoss | Op::HingeEmbeddingLoss | Op::MarginRankingLoss => loss::margin,
        Op::CosineEmbeddingLoss | Op::TripletMarginLoss => loss::distance,
        Op::NllLoss | Op::MultiMarginLoss => loss::of_classes,
        Op::CtcLoss => loss::of_sequences,
        Op::MultilabelSoftMarginLoss => loss::multilabel,
        Op::CrossEntropy => loss::cross_entropy,
        Op::Tensor | Op::AsTensor | Op::ScalarTensor | Op::NewTensor => creation::from_data,
        Op::Zeros | Op::Ones | Op::Empty | Op::Full => creation::sized,
        Op::NewZeros | Op::NewOnes | Op::NewEmpty | Op::NewFull => creation::sized,
        Op::Rand | Op::Randn | Op::Randint => creation::sized,
        Op::ZerosLike | Op::OnesLike | Op::EmptyLike | Op::FullLike => creation::like,
        Op::RandLike | Op::RandnLike => creation::like,
        Op::Arange | Op::Linspace | Op::Logspace => creation::range,
        Op::Eye | Op::TrilIndices | Op::TriuIndices => creation::matrix,
        Op::Fftfreq | Op::Rfftfreq => creation::matrix,
        Op::HannWindow | Op::HammingWindow | Op::BlackmanWindow => creation::matrix,
        Op::BartlettWindow | Op::KaiserWindow => creation::matrix,
        Op::Fill | Op::Zero | Op::NormalInPlace | Op::UniformInPlace => creation::filled,
        Op::Randperm | Op::Bernoulli | Op::Multinomial => creation::drawn,
        Op::Item | Op::ToList | Op::Size | Op::Shape | Op::Numel | Op::Dim | Op::Stride => {
            scalar::property
        }
        Op::StorageOffset | Op::DeviceOf | Op::DtypeOf | Op::IsContiguous => scalar::property,
        Op::SymSum | Op::SymInt | Op::SymFloat | Op::SymMax | Op::SymMin => scalar::number,
        Op::SymNot | Op::SymIte | Op::SymSqrt | Op::MathCeil | Op::MathFloor => scalar::number,
        Op::RoundNumber | Op::MakeSize | Op::MakeDevice | Op::PromoteTypes => scalar::number,
        Op::SetGradEnabled | Op::EnterAutocast | Op::ExitAutocast | Op::LogApiUsage => {
            effect::effect
        }
        Op::AssertScalar | Op::AssertAsync | Op::CheckSize | Op::FunctionCtx => effect::effect,
        Op::LazyLoadDecompositions | Op::VmapIncrementNesting | Op::VmapDecrementNesting => {
            effect::effect
        }
        Op::AddBatchDim | Op::RemoveBatchDim => effect::effect,
    }
}
