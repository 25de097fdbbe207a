//! The vectorised Box-Muller transform that torch uses for sixteen or more float32 normals.
//!
//! Torch evaluates the logarithm, sine and cosine by the Cephes single-precision polynomials, with the multiplications and
//! additions its compiler fuses. The order of operations below is therefore part of the result.

// The published coefficients, digit for digit.
#![allow(clippy::excessive_precision, clippy::unreadable_literal)]

use passnet_cpu::multiversion;

/// The Cephes `logf` polynomial, highest power first.
const LOG: [f32; 9] = [
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
];

/// Natural logarithm of a positive, normal number.
#[inline(always)]
fn log(value: f32) -> f32 {
    let bits = value.max(f32::MIN_POSITIVE).to_bits();
    let mut exponent = ((bits >> 23) as i32 - 127) as f32 + 1.0;
    let mut x = f32::from_bits((bits & 0x807f_ffff) | 0.5f32.to_bits());
    let small = x < std::f32::consts::FRAC_1_SQRT_2;
    let doubled = if small { x } else { 0.0 };
    x -= 1.0;
    exponent -= if small { 1.0 } else { 0.0 };
    x += doubled;
    let z = x * x;
    let mut y = LOG[0];
    for coefficient in &LOG[1..] {
        y = y.mul_add(x, *coefficient);
    }
    y *= x;
    y = y.mul_add(z, exponent * -2.12194440e-4);
    y = (-z).mul_add(0.5, y);
    x += y;
    exponent.mul_add(0.693359375, x)
}

/// Sine and cosine of an angle in [0, 2π].
#[inline(always)]
fn sin_cos(angle: f32) -> (f32, f32) {
    let octant = ((angle * 1.27323954473516) as i32 + 1) & !1;
    let y = octant as f32;
    let x = y.mul_add(-0.785_156_25, angle);
    let x = y.mul_add(-2.4187564849853515625e-4, x);
    let x = y.mul_add(-3.77489497744594108e-8, x);
    let z = x * x;
    let c = 2.443315711809948e-5f32.mul_add(z, -1.388731625493765e-3);
    let c = c.mul_add(z, 4.166664568298827e-2) * z;
    let cosine = c.mul_add(z, -(z * 0.5)) + 1.0;
    let s = (-1.9515295891e-4f32).mul_add(z, 8.3321608736e-3);
    let s = s.mul_add(z, -1.6666654611e-1) * z;
    let sine = s.mul_add(x, x);
    let straight = octant & 2 == 0;
    let sine_sign = ((octant & 4) as u32) << 29;
    let cosine_sign = ((!(octant - 2) & 4) as u32) << 29;
    let (in_sine, in_cosine) = if straight { (sine, cosine) } else { (cosine, sine) };
    (
        f32::from_bits(in_sine.to_bits() ^ sine_sign),
        f32::from_bits(in_cosine.to_bits() ^ cosine_sign),
    )
}

/// Normals that are made of as many uniform numbers at a time.
const BLOCK: usize = 16;

multiversion! {
    /// Turns each sixteen uniform numbers into sixteen standard normal ones.
    pub(crate) fn transform(values: &mut [f32]) {
        // Two blocks fill the widest vectors.
        let (pairs, rest) = values.as_chunks_mut::<{ 2 * BLOCK }>();
        for pair in pairs {
            let mut halves = [[0.0; BLOCK]; 2];
            for i in 0..BLOCK {
                halves[0][i] = pair[place_of(i, 0)];
                halves[1][i] = pair[place_of(i, 1)];
            }
            let [first, second] = &mut halves;
            for (a, b) in first.iter_mut().zip(second) {
                normals(a, b);
            }
            for i in 0..BLOCK {
                pair[place_of(i, 0)] = halves[0][i];
                pair[place_of(i, 1)] = halves[1][i];
            }
        }
        for block in rest.chunks_exact_mut(BLOCK) {
            let (first, second) = block.split_at_mut(BLOCK / 2);
            for (a, b) in first.iter_mut().zip(second) {
                normals(a, b);
            }
        }
    }
}

/// Where in two blocks the numbers of a half (0 or 1) lie.
#[inline(always)]
fn place_of(index: usize, half: usize) -> usize {
    index / (BLOCK / 2) * BLOCK + half * (BLOCK / 2) + index % (BLOCK / 2)
}

/// Two uniform numbers become two normal ones.
#[inline(always)]
fn normals(a: &mut f32, b: &mut f32) {
    let radius = (-2.0 * log(1.0 - *a)).sqrt();
    let (sine, cosine) = sin_cos(*b * std::f32::consts::TAU);
    *a = radius * cosine;
    *b = radius * sine;
}
