//! Element types and the conversions between them, rounded and wrapped as PyTorch's CPU casts are.

use half::{bf16, f16};
use passnet_graph::DType;

/// Types for which any bit pattern is a value, so that bytes may be read as them.
///
/// # Safety
/// Every bit pattern is valid, there is no padding, and the alignment is at most that of a buffer.
pub unsafe trait Plain: Copy + Default + Send + Sync + std::fmt::Debug + 'static {}

/// A bool as stored: zero is false.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Truth(pub u8);

/// A complex number as torch stores it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

macro_rules! plain {
    ($($t:ty),*) => { $(
        // SAFETY: numbers (or pairs and wrappers of numbers) without padding.
        unsafe impl Plain for $t {}
    )* };
}
plain!(u8, u16, u32, u64, u128, i8, i16, i32, i64, f16, bf16, f32, f64, Truth);
plain!(Complex<f32>, Complex<f64>);

/// A type that tensors hold.
pub trait Element: Plain {
    /// The type of torch that it is.
    const DTYPE: DType;
    /// Rounded where it is wider.
    fn to_f32(self) -> f32;
    /// Complex numbers lose their imaginary part.
    fn to_f64(self) -> f64;
    /// Floats lose their fraction.
    fn to_i64(self) -> i64;
    /// Rounded or cut as torch converts.
    fn from_f32(value: f32) -> Self;
    /// Rounded or cut as torch converts.
    fn from_f64(value: f64) -> Self;
    /// Rounded or cut as torch converts.
    fn from_i64(value: i64) -> Self;
    /// Zero but for complex numbers.
    fn imaginary(self) -> f64 {
        0.0
    }
    /// From a real and an imaginary part.
    fn from_parts(re: f64, _im: f64) -> Self {
        Self::from_f64(re)
    }
}

/// Truncation as the machine does it: what does not fit becomes the smallest number.
#[inline(always)]
fn truncate(value: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

#[inline(always)]
fn truncate_i32(value: f64) -> i32 {
    if value > -2_147_483_649.0 && value < 2_147_483_648.0 { value as i32 } else { i32::MIN }
}

macro_rules! integer {
    ($t:ty, $dtype:ident, $from:expr) => {
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                Self::from_f64(f64::from(value))
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                $from(value) as $t
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                value as $t
            }
        }
    };
}
integer!(u8, UInt8, truncate);
integer!(i8, Int8, truncate_i32);
integer!(i16, Int16, truncate_i32);
integer!(i32, Int32, truncate_i32);
integer!(i64, Int64, truncate);

macro_rules! float {
    ($t:ty, $dtype:ident, $to_f32:expr, $to_f64:expr, $from_f32:expr, $from_f64:expr) => {
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn to_f32(self) -> f32 {
                $to_f32(self)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to_f64(self)
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                truncate(self.to_f64())
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                $from_f32(value)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                $from_f64(value)
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                Self::from_f32(value as f32)
            }
        }
    };
}
// Doubles reach the half types through float, as in torch.
float!(f16, Float16, f16::to_f32, f16::to_f64, f16::from_f32, |v| f16::from_f32(v as f32));
float!(bf16, BFloat16, bf16::to_f32, bf16::to_f64, bf16::from_f32, |v| bf16::from_f32(v as f32));
float!(f32, Float32, |v| v, f64::from, |v| v, |v| v as f32);

impl Element for f64 {
    const DTYPE: DType = DType::Float64;
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        truncate(self)
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        f64::from(value)
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        value as f64
    }
}

impl Element for Truth {
    const DTYPE: DType = DType::Bool;
    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from(u8::from(self.0 != 0))
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self.0 != 0))
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        i64::from(self.0 != 0)
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Truth(u8::from(value != 0.0))
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Truth(u8::from(value != 0.0))
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        Truth(u8::from(value != 0))
    }
}

macro_rules! complex {
    ($t:ty, $dtype:ident) => {
        impl Element for Complex<$t> {
            const DTYPE: DType = DType::$dtype;
            fn to_f32(self) -> f32 {
                self.re.to_f32()
            }
            fn to_f64(self) -> f64 {
                self.re.to_f64()
            }
            fn to_i64(self) -> i64 {
                self.re.to_i64()
            }
            fn from_f32(value: f32) -> Self {
                Complex { re: <$t>::from_f32(value), im: 0.0 }
            }
            fn from_f64(value: f64) -> Self {
                Complex { re: <$t>::from_f64(value), im: 0.0 }
            }
            fn from_i64(value: i64) -> Self {
                Complex { re: <$t>::from_i64(value), im: 0.0 }
            }
            fn imaginary(self) -> f64 {
                self.im.to_f64()
            }
            fn from_parts(re: f64, im: f64) -> Self {
                Complex { re: <$t>::from_f64(re), im: <$t>::from_f64(im) }
            }
        }
    };
}
complex!(f32, Complex64);
complex!(f64, Complex128);

/// The types in which kernels compute: few, so that each kernel exists once or twice and not once per element type.
pub trait Compute: Element {
    /// An element as what is computed with.
    fn load<S: Element>(value: S) -> Self;
    /// What was computed as an element.
    fn store<O: Element>(self) -> O;
}

/// The float types in which kernels compute.
pub(crate) trait Real: Compute + passnet_cpu::Float {}

impl<T: Compute + passnet_cpu::Float> Real for T {}

macro_rules! compute {
    ($t:ty, $to:ident, $from:ident) => {
        impl Compute for $t {
            #[inline(always)]
            fn load<S: Element>(value: S) -> Self {
                value.$to()
            }
            #[inline(always)]
            fn store<O: Element>(self) -> O {
                O::$from(self)
            }
        }
    };
}
compute!(f32, to_f32, from_f32);
compute!(f64, to_f64, from_f64);
compute!(i64, to_i64, from_i64);

impl Compute for Complex<f64> {
    fn load<S: Element>(value: S) -> Self {
        Complex { re: value.to_f64(), im: value.imaginary() }
    }
    fn store<O: Element>(self) -> O {
        O::from_parts(self.re, self.im)
    }
}

/// Runs the body with `$t` bound to the element type of a dtype.
macro_rules! with_element {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use $crate::native::tensor::element::{Complex, Truth};
        match $dtype {
            passnet_graph::DType::Bool => {
                type $t = Truth;
                $body
            }
            passnet_graph::DType::UInt8 => {
                type $t = u8;
                $body
            }
            passnet_graph::DType::Int8 => {
                type $t = i8;
                $body
            }
            passnet_graph::DType::Int16 => {
                type $t = i16;
                $body
            }
            passnet_graph::DType::Int32 => {
                type $t = i32;
                $body
            }
            passnet_graph::DType::Int64 => {
                type $t = i64;
                $body
            }
            passnet_graph::DType::Float16 => {
                type $t = half::f16;
                $body
            }
            passnet_graph::DType::BFloat16 => {
                type $t = half::bf16;
                $body
            }
            passnet_graph::DType::Float32 => {
                type $t = f32;
                $body
            }
            passnet_graph::DType::Float64 => {
                type $t = f64;
                $body
            }
            passnet_graph::DType::Complex64 => {
                type $t = Complex<f32>;
                $body
            }
            passnet_graph::DType::Complex128 => {
                type $t = Complex<f64>;
                $body
            }
        }
    }};
}

/// Runs the body with `$t` bound to an integer as wide as the dtype: enough for whatever only moves elements.
macro_rules! with_width {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype.size() {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            8 => {
                type $t = u64;
                $body
            }
            _ => {
                type $t = u128;
                $body
            }
        }
    };
}

pub(crate) use {with_element, with_width};
