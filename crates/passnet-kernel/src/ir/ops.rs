//! The operations of the tile IR and their textual names.

use std::fmt;

/// A constant of an integer, boolean or float type; the instruction's result type says which.
#[derive(Debug, Clone, Copy)]
pub enum Literal {
    /// Of an integer type, or a truth.
    Int(i64),
    /// Of a float type.
    Float(f64),
}

impl PartialEq for Literal {
    /// Floats compare by bits, so that NaN and signed zeros round-trip through text.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Literal::Int(a), Literal::Int(b)) => a == b,
            (Literal::Float(a), Literal::Float(b)) => a.to_bits() == b.to_bits(),
            _ => false,
        }
    }
}

/// Declares an enum of operations whose variants have fixed names in the text form.
macro_rules! named_ops {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the text form names each")]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// In the order of the text form's table.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name in the text form.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// By the name in the text form.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named_ops! {
    /// One argument, same type out (except `isnan` and its like, which give `i1`).
    UnaryOp {
        Neg = "neg", Not = "not", Abs = "abs",
        Exp = "exp", Exp2 = "exp2", Expm1 = "expm1",
        Log = "log", Log2 = "log2", Log10 = "log10", Log1p = "log1p",
        Sqrt = "sqrt", Rsqrt = "rsqrt", Cbrt = "cbrt",
        Sin = "sin", Cos = "cos", Tan = "tan",
        Asin = "asin", Acos = "acos", Atan = "atan",
        Sinh = "sinh", Cosh = "cosh", Tanh = "tanh",
        Asinh = "asinh", Acosh = "acosh", Atanh = "atanh",
        Erf = "erf", Erfc = "erfc", Lgamma = "lgamma",
        Floor = "floor", Ceil = "ceil", Trunc = "trunc",
        /// To the nearest integer, halves away from zero.
        Round = "round",
        /// To the nearest integer, halves to even.
        Rint = "rint",
        IsNan = "isnan", IsInf = "isinf", IsFinite = "isfinite", SignBit = "signbit",
        Popc = "popc", Clz = "clz",
    }
}

named_ops! {
    /// Two arguments of one type, same type out.
    BinaryOp {
        Add = "add", Sub = "sub", Mul = "mul",
        /// Float division; integer division truncates towards zero.
        Div = "div",
        /// Remainder with the sign of the dividend.
        Rem = "rem",
        And = "and", Or = "or", Xor = "xor",
        Shl = "shl", Shr = "shr",
        /// The non-NaN operand wins.
        Min = "min", Max = "max",
        /// NaN wins.
        MinNan = "min_nan", MaxNan = "max_nan",
        Pow = "pow", Atan2 = "atan2", Fmod = "fmod", CopySign = "copysign", Hypot = "hypot",
        UMulHi = "umulhi",
    }
}

named_ops! {
    /// Comparison; `i1` out.
    CmpOp { Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge" }
}

named_ops! {
    /// Associative combination along an axis.
    ReduceOp { Sum = "sum", Prod = "prod", Max = "max", Min = "min", Xor = "xor", And = "and", Or = "or" }
}

named_ops! {
    AtomicOp {
        Add = "add", Max = "max", Min = "min", And = "and", Or = "or", Xor = "xor", Xchg = "xchg",
    }
}

/// What an instruction does. Arguments in brackets are optional and named by the flags.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "operands and fields are named in the sentence of each operation")]
pub enum Op {
    Const(Literal),
    ProgramId(u8),
    NumPrograms(u8),
    /// `start, start + 1, ...` as many as the result has lanes.
    Arange(i64),
    /// scalar -> block
    Splat,
    /// block with dimensions of one -> block
    Broadcast,
    /// block -> block with as many lanes, in row-major order
    Reshape,
    /// block -> block; result dimension `i` is argument dimension `order[i]`
    Permute(Vec<u8>),
    /// a, b -> a block with a new last dimension of two
    Join,
    /// block whose last dimension is two -> its two halves
    Split,
    /// a, b -> one after the other along dimension 0
    Cat,
    Unary(UnaryOp),
    Binary(BinaryOp),
    Compare(CmpOp),
    /// condition, a, b
    Select,
    /// a, b, c -> a * b + c with one rounding
    Fma,
    /// Conversion by value.
    Cast,
    /// Same bits, another type of the same width.
    Bitcast,
    /// pointer, offset in elements
    AddPtr,
    /// pointer, optionally mask and other
    Load {
        mask: bool,
        other: bool,
    },
    /// pointer, value, optionally mask
    Store {
        mask: bool,
    },
    /// pointer, value, optionally mask; gives the old value
    Atomic {
        op: AtomicOp,
        mask: bool,
    },
    /// pointer, compare, value -> the old value
    AtomicCas,
    /// block -> block without the axis
    Reduce {
        op: ReduceOp,
        axis: u8,
    },
    /// block -> the extreme value and its index along the axis
    ArgReduce {
        max: bool,
        /// Among equal values the lowest index wins; otherwise the highest.
        tie_left: bool,
        axis: u8,
    },
    /// block -> block of running results
    Scan {
        op: ReduceOp,
        axis: u8,
        reverse: bool,
    },
    /// blocks -> blocks without the axis; region: (accumulators, elements) -> accumulators, on scalars
    ReduceWith {
        axis: u8,
    },
    /// blocks -> blocks; region as for `ReduceWith`
    ScanWith {
        axis: u8,
        reverse: bool,
    },
    /// a, b, accumulator -> a @ b + accumulator
    Dot,
    /// source, indices -> source picked along the axis
    Gather {
        axis: u8,
    },
    /// block sorted along its last axis
    Sort {
        descending: bool,
    },
    /// block of bins -> how often each value occurs
    Histogram {
        mask: bool,
    },
    /// condition, then results; two regions without parameters
    If,
    /// low, high, step, initial values...; region: (index, carried...) -> carried...
    For,
    /// initial values...; regions: (carried...) -> condition and (carried...) -> carried...
    While,
    /// condition; stops the program with the message when false
    Assert(String),
}

impl Op {
    /// Whether each result lane depends on the same lane of the arguments only.
    pub fn is_elementwise(&self) -> bool {
        matches!(
            self,
            Op::Unary(_)
                | Op::Binary(_)
                | Op::Compare(_)
                | Op::Select
                | Op::Fma
                | Op::Cast
                | Op::Bitcast
                | Op::AddPtr
        )
    }
}
