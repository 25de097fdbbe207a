//! Elementary functions as code: operation for operation what [`passnet_cpu::math::fast`] does, so the bits agree.
//!
//! Each takes the registers of its result and argument, which differ, and may use the scratch registers.

use super::assembler::*;
use passnet_cpu::math::fast::{
    ERF_EDGE, ERF_FAR, ERF_MOST, ERF_NEAR, EXP, EXP2_MOST, EXP2_VANISHES, LOG, TANH, TANH_EDGE,
    TANH_MOST,
};
use passnet_cpu::math::{
    EXP_MOST, EXP_VANISHES, LN2_HIGH, LN2_LOW, ROOT_HALF, ROUNDER, SUBNORMAL_SCALE,
};
use std::f32::consts::{LN_2, LOG2_E};

impl Assembler {
    /// `to = p[0] * x^n + p[1] * x^(n-1) + …`
    fn poly(&mut self, to: Zmm, x: Zmm, p: &[f32]) {
        let first = self.number(p[0]);
        self.load(to, first);
        for &c in &p[1..] {
            let c = self.number(c);
            self.op(FMA, to, x, c);
        }
    }

    /// `to = exp(r) * 2^n`
    fn exp_of_remainder(&mut self, to: Zmm, r: Zmm, n: Zmm) {
        self.poly(to, r, &EXP);
        self.op(SCALE, to, to, n);
    }

    /// `x` in the second scratch register, at most `high`, and zero where it is below `low`; the mask says where not.
    fn bounded(&mut self, x: Zmm, low: f32, high: f32) {
        let ([a, b, ..], k) = (self.scratch.lanes, self.scratch.mask);
        let (low, high) = (self.number(low), self.number(high));
        self.compare(k, x, low, NOT_LT, K0);
        self.zeroed(MOV, b, x.into(), k);
        // The second operand is taken for NaN: x stays.
        self.load(a, high);
        self.op(MIN, b, a, b);
    }

    /// Uses the first three scratch registers and the mask; `x` may be the first.
    pub(super) fn exp(&mut self, to: Zmm, x: Zmm) {
        self.bounded(x, EXP_VANISHES, EXP_MOST);
        self.exp_in_range(to);
        self.zeroed(MOV, to, to.into(), self.scratch.mask);
    }

    /// The exponential of the second scratch register, which is small enough; uses the third.
    fn exp_in_range(&mut self, to: Zmm) {
        let [_, b, c, _] = self.scratch.lanes;
        let (log2e, rounder) = (self.number(LOG2_E), self.number(ROUNDER));
        self.load(c, log2e);
        self.op(FMA, c, b, rounder);
        self.op(SUB, c, c, rounder);
        let high = self.number(-LN2_HIGH);
        self.op(FMA_INTO, b, c, high);
        let low = self.number(-LN2_LOW);
        self.op(FMA_INTO, b, c, low);
        self.exp_of_remainder(to, b, c);
    }

    pub(super) fn exp2(&mut self, to: Zmm, x: Zmm) {
        let [_, b, c, _] = self.scratch.lanes;
        self.bounded(x, EXP2_VANISHES, EXP2_MOST);
        self.round(c, b, NEAREST);
        self.op(SUB, b, b, c);
        let ln2 = self.number(LN_2);
        self.op(MUL, b, b, ln2);
        self.exp_of_remainder(to, b, c);
        self.zeroed(MOV, to, to.into(), self.scratch.mask);
    }

    pub(super) fn sigmoid(&mut self, to: Zmm, x: Zmm) {
        let [.., d] = self.scratch.lanes;
        let sign = self.number(-0.0);
        self.op(XOR, d, x, sign);
        self.exp(to, d);
        let one = self.number(1.0);
        self.op(ADD, to, to, one);
        self.load(d, one);
        self.op(DIV, to, d, to);
    }

    /// NaN of the argument is the result.
    fn keep_nan(&mut self, to: Zmm, x: Zmm) {
        let k = self.scratch.mask;
        self.compare(k, x, x, UNORDERED, K0);
        self.masked(BLEND, to, to, x, k);
    }

    pub(super) fn tanh(&mut self, to: Zmm, x: Zmm) {
        let ([a, b, _, d], k) = (self.scratch.lanes, self.scratch.mask);
        let rest = self.bits(0x7fff_ffff);
        self.op(AND, d, x, rest);
        let (most, two, one) = (self.number(TANH_MOST), self.number(2.0), self.number(1.0));
        self.op(MIN, b, d, most);
        self.op(MUL, b, b, two);
        self.exp_in_range(to);
        self.op(ADD, to, to, one);
        self.load(a, two);
        self.op(DIV, to, a, to);
        self.load(a, one);
        self.op(SUB, a, a, to);
        self.copy_sign(a, x);
        self.op(MUL, b, x, x);
        self.poly(to, b, &TANH);
        self.op(MUL, to, to, b);
        self.op(FMA, to, x, x);
        // NaN is not large: it comes out of the polynomial.
        let edge = self.number(TANH_EDGE);
        self.compare(k, d, edge, GE, K0);
        self.masked(BLEND, to, to, a, k);
    }

    pub(super) fn erf(&mut self, to: Zmm, x: Zmm) {
        let ([a, b, c, d], k) = (self.scratch.lanes, self.scratch.mask);
        let rest = self.bits(0x7fff_ffff);
        self.op(AND, d, x, rest);
        let most = self.number(ERF_MOST);
        self.load(a, most);
        self.op(MIN, d, a, d);
        self.op(MUL, a, d, d);
        let [r, r0, u, u0, rest @ ..] = ERF_FAR.map(|coefficient| self.number(coefficient));
        self.load(b, r);
        self.op(FMA, b, d, r0);
        self.load(c, u);
        self.op(FMA, c, d, u0);
        self.op(FMA, b, a, c);
        for coefficient in rest {
            self.op(FMA, b, d, coefficient);
        }
        self.op(FMS, b, d, d);
        self.exp_in_range(to);
        let one = self.number(1.0);
        self.load(b, one);
        self.op(SUB, b, b, to);
        self.copy_sign(b, x);
        self.poly(to, a, &ERF_NEAR);
        self.op(FMA, to, x, x);
        // NaN is not large: it comes out of the polynomial.
        let edge = self.number(ERF_EDGE);
        self.compare(k, d, edge, GT, K0);
        self.masked(BLEND, to, to, b, k);
    }

    pub(super) fn log(&mut self, to: Zmm, x: Zmm) {
        let ([a, b, c, d], k) = (self.scratch.lanes, self.scratch.mask);
        // Mantissa in [sqrt(1/2), sqrt(2)) minus one, and the exponent; subnormals are scaled first.
        let least = self.number(f32::MIN_POSITIVE);
        self.compare(k, x, least, LT, K0);
        self.load(a, Operand::Reg(x));
        let scale = self.number(SUBNORMAL_SCALE.0);
        self.masked(MUL, a, x, scale, k);
        let root = self.bits(ROOT_HALF as u32);
        self.op(INT_SUB, b, a, root);
        self.shift_right_signed(b, b, 23);
        self.shift_left(c, b, 23);
        self.op(INT_SUB, c, a, c);
        let one = self.number(1.0);
        self.op(SUB, c, c, one);
        self.unary(INT_TO_FLOAT, b, b);
        let shifted = self.number(SUBNORMAL_SCALE.1);
        self.masked(SUB, b, b, shifted, k);
        self.poly(d, c, &LOG);
        for _ in 0..3 {
            self.op(MUL, d, d, c);
        }
        let low = self.number(LN2_LOW);
        self.op(FMA_INTO, d, b, low);
        self.op(MUL, a, c, c);
        let half = self.number(-0.5);
        self.op(FMA_INTO, d, a, half);
        self.op(ADD, to, c, d);
        let high = self.number(LN2_HIGH);
        self.op(FMA_INTO, to, b, high);
        let infinity = self.number(f32::INFINITY);
        self.compare(k, x, infinity, EQ, K0);
        self.masked(BLEND, to, to, x, k);
        let zero = self.number(0.0);
        self.compare(k, x, zero, EQ, K0);
        let minus_infinity = self.number(f32::NEG_INFINITY);
        self.masked(BLEND, to, to, minus_infinity, k);
        // Below zero, or no number.
        self.compare(k, x, zero, 9, K0);
        let nan = self.number(f32::NAN);
        self.masked(BLEND, to, to, nan, k);
    }

    /// Rounds to the nearest `float16` value.
    pub(super) fn round_f16(&mut self, to: Zmm, x: Zmm) {
        let [a, ..] = self.scratch.lanes;
        self.narrow_half(a, x);
        self.unary(FROM_HALF, to, a);
        self.keep_nan(to, x);
    }

    /// Adds half a unit of the last place of `bfloat16`, and not quite that where the place is even: what is above the
    /// place is then rounded.
    fn add_half_bf16(&mut self, to: Zmm, x: Zmm) {
        let one = self.bits(1);
        self.shift_right(to, x, 16);
        self.op(INT_AND, to, to, one);
        self.op(INT_ADD, to, to, x);
        let half = self.bits(0x7fff);
        self.op(INT_ADD, to, to, half);
    }

    /// Rounds to the nearest `bfloat16` value.
    pub(super) fn round_bf16(&mut self, to: Zmm, x: Zmm) {
        let ([a, ..], k) = (self.scratch.lanes, self.scratch.mask);
        self.add_half_bf16(a, x);
        let kept = self.bits(0xffff_0000);
        self.op(INT_AND, to, a, kept);
        self.compare(k, x, x, UNORDERED, K0);
        let quiet = self.bits(0x0040_0000);
        self.masked(INT_OR, to, x, quiet, k);
    }

    /// Lanes as `float16` in memory, NaN as the one quiet NaN.
    pub(super) fn store_f16(&mut self, to: Operand, x: Zmm, k: K) {
        let ([a, ..], spare) = (self.scratch.lanes, self.scratch.mask);
        self.compare(spare, x, x, UNORDERED, K0);
        let sign = self.number(-0.0);
        self.load(a, sign);
        self.op(AND, a, a, x);
        let nan = self.number(f32::NAN);
        self.op(OR, a, a, nan);
        self.masked(BLEND, a, x, a, spare);
        self.store_half(to, a, k);
    }

    /// Lanes as `bfloat16` in memory.
    pub(super) fn store_bf16(&mut self, to: Operand, x: Zmm, k: K) {
        let ([a, ..], spare) = (self.scratch.lanes, self.scratch.mask);
        self.add_half_bf16(a, x);
        self.compare(spare, x, x, UNORDERED, K0);
        let quiet = self.bits(0x0040_0000);
        self.masked(INT_OR, a, x, quiet, spare);
        self.shift_right(a, a, 16);
        self.store_16(to, a, k);
    }
}
