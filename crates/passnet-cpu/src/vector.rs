//! Vectors held in registers, for the kernels whose accumulators the compiler does not keep there by itself.
//!
//! A vector has a fixed number of lanes for each element type, whatever the machine: results are the same on all.

use crate::math::Float;
#[cfg(target_arch = "x86_64")]
use crate::{Isa, avx2, avx512};

/// The most lanes a vector has.
pub const MOST_LANES: usize = 16;

/// Some neighbouring elements.
pub trait Vector<T>: Copy {
    /// How many.
    const LANES: usize;
    /// Rows and vectors of the largest block of accumulators that stays in registers.
    const BLOCK: (usize, usize);

    /// The same value in all lanes.
    fn splat(value: T) -> Self;
    /// Reads neighbouring elements.
    ///
    /// # Safety
    /// `source` is valid for reading `LANES` elements.
    unsafe fn load(source: *const T) -> Self;
    /// Writes them.
    ///
    /// # Safety
    /// `target` is valid for writing `LANES` elements.
    unsafe fn store(self, target: *mut T);
    /// `self * factor + addend`, rounded once.
    fn fused(self, factor: Self, addend: Self) -> Self;
    /// The sum of all lanes, halves added to halves.
    fn total(self) -> T;
}

/// The sum of all lanes, halves added to halves.
#[inline(always)]
pub fn add_lanes<T: Float>(mut lanes: [T; MOST_LANES]) -> T {
    let mut half = MOST_LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = lanes[i] + lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Work that is written once for all vector types.
pub trait VectorKernel<T> {
    /// Does the work with vectors of one type.
    fn run<V: Vector<T>>(self);
}

/// Vectors without vector instructions.
#[derive(Clone, Copy)]
struct Plain<T, const LANES: usize>([T; LANES]);

impl<T: Float, const LANES: usize> Vector<T> for Plain<T, LANES> {
    const LANES: usize = LANES;
    const BLOCK: (usize, usize) = (2, 1);

    #[inline(always)]
    fn splat(value: T) -> Self {
        Plain([value; LANES])
    }
    #[inline(always)]
    unsafe fn load(source: *const T) -> Self {
        // SAFETY: the caller's promise.
        Plain(unsafe { source.cast::<[T; LANES]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { target.cast::<[T; LANES]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    fn fused(self, factor: Self, addend: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i].fused(factor.0[i], addend.0[i])))
    }
    #[inline(always)]
    fn total(self) -> T {
        let mut lanes = [T::ZERO; MOST_LANES];
        lanes[..LANES].copy_from_slice(&self.0);
        add_lanes(lanes)
    }
}

/// A vector made of one or more registers of an instruction set.
#[cfg(target_arch = "x86_64")]
macro_rules! registers {
    ($name:ident, $element:ty, $register:ident * $count:literal, block $block:expr, $set:ident, $load:ident, $store:ident, $fused:ident, $total:ident) => {
        #[derive(Clone, Copy)]
        struct $name([arch::$register; $count]);

        // SAFETY of the instructions used here: `run_vectors` alone names this type, once the instruction set was detected.
        impl Vector<$element> for $name {
            const LANES: usize = $count * size_of::<arch::$register>() / size_of::<$element>();
            const BLOCK: (usize, usize) = $block;

            #[inline(always)]
            fn splat(value: $element) -> Self {
                // SAFETY: see above.
                $name([unsafe { arch::$set(value) }; $count])
            }
            #[inline(always)]
            unsafe fn load(source: *const $element) -> Self {
                // SAFETY: see above; memory is the caller's promise.
                $name(std::array::from_fn(|i| unsafe {
                    arch::$load(source.add(i * Self::LANES / $count))
                }))
            }
            #[inline(always)]
            unsafe fn store(self, target: *mut $element) {
                for (i, register) in self.0.into_iter().enumerate() {
                    // SAFETY: see above; memory is the caller's promise.
                    unsafe { arch::$store(target.add(i * Self::LANES / $count), register) }
                }
            }
            #[inline(always)]
            fn fused(self, factor: Self, addend: Self) -> Self {
                // SAFETY: see above.
                $name(std::array::from_fn(|i| unsafe {
                    arch::$fused(self.0[i], factor.0[i], addend.0[i])
                }))
            }
            #[inline(always)]
            fn total(self) -> $element {
                // SAFETY: see above.
                unsafe { totals::$total(self.0) }
            }
        }
    };
}

/// Sums of lanes without a way through memory, in the order of `add_lanes`.
#[cfg(target_arch = "x86_64")]
mod totals {
    use std::arch::x86_64::*;

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn wide32([lanes]: [__m512; 1]) -> f32 {
        let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(lanes)));
        eight(_mm256_add_ps(_mm512_castps512_ps256(lanes), upper))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn narrow32([lower, upper]: [__m256; 2]) -> f32 {
        eight(_mm256_add_ps(lower, upper))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn eight(lanes: __m256) -> f32 {
        let four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps::<1>(lanes));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }

    /// Eight lanes count as sixteen of which half are zero: a negative zero becomes a positive one.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn wide64([lanes]: [__m512d; 1]) -> f64 {
        let lanes = _mm512_add_pd(lanes, _mm512_setzero_pd());
        four(_mm256_add_pd(_mm512_castpd512_pd256(lanes), _mm512_extractf64x4_pd::<1>(lanes)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn narrow64([lower, upper]: [__m256d; 2]) -> f64 {
        let zero = _mm256_setzero_pd();
        four(_mm256_add_pd(_mm256_add_pd(lower, zero), _mm256_add_pd(upper, zero)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn four(lanes: __m256d) -> f64 {
        let two = _mm_add_pd(_mm256_castpd256_pd128(lanes), _mm256_extractf128_pd::<1>(lanes));
        _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
    }
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as arch;
#[cfg(target_arch = "x86_64")]
registers!(
    Wide32,
    f32,
    __m512 * 1,
    block(8, 3),
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_fmadd_ps,
    wide32
);
#[cfg(target_arch = "x86_64")]
registers!(
    Wide64,
    f64,
    __m512d * 1,
    block(8, 3),
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd,
    wide64
);
#[cfg(target_arch = "x86_64")]
registers!(
    Narrow32,
    f32,
    __m256 * 2,
    block(4, 1),
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_fmadd_ps,
    narrow32
);
#[cfg(target_arch = "x86_64")]
registers!(
    Narrow64,
    f64,
    __m256d * 2,
    block(4, 1),
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd,
    narrow64
);

/// Element types that have vectors.
pub trait Vectors: Sized {
    /// Lanes of every vector of this type.
    const LANES: usize;

    /// Runs a kernel with the widest vectors of this machine.
    fn run_vectors(kernel: impl VectorKernel<Self>);
}

macro_rules! vectors {
    ($element:ty, $lanes:literal, $wide:ident, $narrow:ident) => {
        impl Vectors for $element {
            const LANES: usize = $lanes;

            fn run_vectors(kernel: impl VectorKernel<Self>) {
                #[cfg(target_arch = "x86_64")]
                {
                    avx512! {
                        fn avx512(kernel: impl VectorKernel<$element>) {
                            kernel.run::<$wide>();
                        }
                    }
                    avx2! {
                        fn avx2(kernel: impl VectorKernel<$element>) {
                            kernel.run::<$narrow>();
                        }
                    }
                    match Isa::detect() {
                        // SAFETY: the set was detected on this machine.
                        Isa::Avx512 => return unsafe { avx512(kernel) },
                        // SAFETY: as above.
                        Isa::Avx2 => return unsafe { avx2(kernel) },
                        Isa::Base => {}
                    }
                }
                kernel.run::<Plain<$element, $lanes>>();
            }
        }
    };
}

vectors!(f32, 16, Wide32, Narrow32);
vectors!(f64, 8, Wide64, Narrow64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplies and adds whole vectors of a slice.
    struct Scale<'a, T> {
        values: &'a mut [T],
        factor: T,
    }

    impl<T: Float> VectorKernel<T> for Scale<'_, T> {
        #[inline(always)]
        fn run<V: Vector<T>>(self) {
            for piece in self.values.chunks_exact_mut(V::LANES) {
                // SAFETY: the piece holds exactly one vector.
                unsafe {
                    let vector = V::load(piece.as_ptr());
                    vector.fused(V::splat(self.factor), vector).store(piece.as_mut_ptr());
                }
            }
        }
    }

    fn check<T: Float + Vectors + std::fmt::Debug>() {
        let given: Vec<T> = (0..32).map(|i| T::constant(f64::from(i) * 0.3)).collect();
        let mut values = given.clone();
        T::run_vectors(Scale { values: &mut values, factor: T::constant(1.7) });
        let mut plain = given.clone();
        Scale { values: &mut plain, factor: T::constant(1.7) }.run::<Plain<T, 8>>();
        let expected: Vec<T> =
            given.iter().map(|value| value.fused(T::constant(1.7), *value)).collect();
        assert_eq!(values, expected);
        assert_eq!(plain, expected);
    }

    #[test]
    fn vectors_compute_as_numbers_do() {
        check::<f32>();
        check::<f64>();
    }

    #[test]
    fn all_lanes_are_summed() {
        assert_eq!(Plain([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).total(), 36.0);
        check_total::<f32>();
        check_total::<f64>();
    }

    struct Total<'a, T> {
        values: &'a [T],
        total: &'a mut T,
    }

    impl<T: Float> VectorKernel<T> for Total<'_, T> {
        #[inline(always)]
        fn run<V: Vector<T>>(self) {
            assert!(self.values.len() >= V::LANES);
            // SAFETY: the values hold a whole vector.
            *self.total = unsafe { V::load(self.values.as_ptr()) }.total();
        }
    }

    /// Registers give the bits that plain lanes give.
    fn check_total<T: Float + Vectors + std::fmt::Debug>() {
        let values: Vec<T> =
            (0..16).map(|i| T::constant((f64::from(i) + 0.3).sin() * 10f64.powi(i % 5))).collect();
        let (mut found, mut lanes) = (T::ZERO, [T::ZERO; MOST_LANES]);
        T::run_vectors(Total { values: &values, total: &mut found });
        lanes[..T::LANES].copy_from_slice(&values[..T::LANES]);
        assert_eq!(found, add_lanes(lanes));
    }
}
