//! Vectors held in registers, for the kernels whose accumulators the compiler does not keep there by itself.
//!
//! A vector has a fixed number of lanes for each element type, whatever the machine: results are the same on all.

use super::math::Real;

/// The most lanes a vector has.
pub(crate) const MOST_LANES: usize = 16;

/// Some neighbouring elements.
pub(crate) trait Vector<T>: Copy {
    const LANES: usize;
    /// Rows and vectors of the largest block of accumulators that stays in registers.
    const BLOCK: (usize, usize);

    fn splat(value: T) -> Self;
    /// # Safety
    /// `source` is valid for reading `LANES` elements.
    unsafe fn load(source: *const T) -> Self;
    /// # Safety
    /// `target` is valid for writing `LANES` elements.
    unsafe fn store(self, target: *mut T);
    /// `self * factor + addend`, rounded once.
    fn fused(self, factor: Self, addend: Self) -> Self;
}

/// The sum of all lanes of a vector.
#[inline(always)]
pub(crate) fn sum<T: Real, V: Vector<T>>(vector: V) -> T {
    let mut lanes = [T::ZERO; MOST_LANES];
    // SAFETY: no vector has more than MOST_LANES lanes.
    unsafe { vector.store(lanes.as_mut_ptr()) };
    add_lanes(lanes)
}

/// The sum of all lanes, halves added to halves.
#[inline(always)]
pub(crate) fn add_lanes<T: Real>(mut lanes: [T; MOST_LANES]) -> T {
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
pub(crate) trait VectorKernel<T> {
    fn run<V: Vector<T>>(self);
}

/// Vectors without vector instructions.
#[derive(Clone, Copy)]
struct Plain<T, const LANES: usize>([T; LANES]);

impl<T: Real, const LANES: usize> Vector<T> for Plain<T, LANES> {
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
}

/// A vector made of one or more registers of an instruction set.
///
/// Loops, not closures: a closure that is not inlined is compiled for the baseline, and calls every instruction.
#[cfg(target_arch = "x86_64")]
macro_rules! registers {
    ($name:ident, $element:ty, $register:ident * $count:literal, block $block:expr, $set:ident, $load:ident, $store:ident, $fused:ident) => {
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
                let mut registers = [unsafe { arch::$load(source) }; $count];
                for (i, register) in registers.iter_mut().enumerate().skip(1) {
                    // SAFETY: as above.
                    *register = unsafe { arch::$load(source.add(i * Self::LANES / $count)) };
                }
                $name(registers)
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
                let mut registers = self.0;
                for (i, register) in registers.iter_mut().enumerate() {
                    // SAFETY: see above.
                    *register = unsafe { arch::$fused(*register, factor.0[i], addend.0[i]) };
                }
                $name(registers)
            }
        }
    };
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
    _mm512_fmadd_ps
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
    _mm512_fmadd_pd
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
    _mm256_fmadd_ps
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
    _mm256_fmadd_pd
);

/// Element types that have vectors.
pub(crate) trait Vectors: Sized {
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
                    #[target_feature(
                        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2"
                    )]
                    fn avx512(kernel: impl VectorKernel<$element>) {
                        kernel.run::<$wide>();
                    }
                    #[target_feature(enable = "avx2,fma,f16c,bmi2")]
                    fn avx2(kernel: impl VectorKernel<$element>) {
                        kernel.run::<$narrow>();
                    }
                    match *super::LEVEL {
                        // SAFETY: the level was detected on this machine.
                        super::Level::Avx512 => return unsafe { avx512(kernel) },
                        // SAFETY: as above.
                        super::Level::Avx2 => return unsafe { avx2(kernel) },
                        super::Level::Baseline => {}
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

    impl<T: Real> VectorKernel<T> for Scale<'_, T> {
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

    fn check<T: Real + Vectors + std::fmt::Debug>() {
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
        assert_eq!(sum(Plain([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])), 36.0);
    }
}
