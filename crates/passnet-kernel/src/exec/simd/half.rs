//! Half-precision rounding with integer arithmetic that compilers vectorise.

/// The nearest `float16` value, ties to even, as `f32`.
#[inline(always)]
pub(crate) fn round_to_f16(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Normal halves: drop 13 bits of the mantissa with rounding.
    let rounded = (magnitude + 0x0fff + ((magnitude >> 13) & 1)) & !0x1fff;
    // Below 2^-14 halves are subnormal: their quantum is 2^-24, that of floats between 0.5 and 1.
    let small = (f32::from_bits(magnitude) + 0.5) - 0.5;
    let value = if magnitude < 0x3880_0000 { small.to_bits() } else { rounded };
    let value = if rounded >= 0x4780_0000 { 0x7f80_0000 } else { value };
    let value = if magnitude > 0x7f80_0000 { magnitude } else { value };
    f32::from_bits(value | (bits & 0x8000_0000))
}

/// The nearest `bfloat16` value, ties to even, as `f32`.
#[inline(always)]
pub(crate) fn round_to_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000;
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { bits | 0x0040_0000 } else { rounded })
}

#[inline(always)]
pub(crate) fn f16_to_f32(h: u16) -> f32 {
    let sign = u32::from(h & 0x8000) << 16;
    let magnitude = u32::from(h & 0x7fff);
    // Shift into place and scale the exponent by multiplication: exact for subnormals too.
    let normal = f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000);
    let special = f32::from_bits((magnitude << 13) | 0x7f80_0000);
    let value = if magnitude >= 0x7c00 { special } else { normal };
    f32::from_bits(value.to_bits() | sign)
}

#[inline(always)]
pub(crate) fn f32_to_f16(x: f32) -> u16 {
    let r = round_to_f16(x);
    let bits = r.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let sign = (bits >> 16) & 0x8000;
    // Scaling by 2^-112 turns a half's exponent into a float's bit pattern.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits(0x0780_0000)).to_bits() >> 13;
    let value = if magnitude >= 0x7f80_0000 {
        if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 }
    } else {
        scaled
    };
    (value | sign) as u16
}

#[inline(always)]
pub(crate) fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits(u32::from(h) << 16)
}

#[inline(always)]
pub(crate) fn f32_to_bf16(x: f32) -> u16 {
    (round_to_bf16(x).to_bits() >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_round_trip() {
        for h in 0..=u16::MAX {
            let x = f16_to_f32(h);
            if x.is_nan() {
                assert!(f16_to_f32(f32_to_f16(x)).is_nan());
            } else {
                assert_eq!(f32_to_f16(x), h, "{h:04x} {x}");
                assert_eq!(round_to_f16(x).to_bits(), x.to_bits());
            }
            let y = bf16_to_f32(h);
            if !y.is_nan() {
                assert_eq!(f32_to_bf16(y), h);
            }
        }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        // Midpoints between neighbouring halves, and one bit to each side of them.
        for h in 0..0x7bffu16 {
            let (low, high) = (f16_to_f32(h), f16_to_f32(h + 1));
            let mid = (f64::from(low) + f64::from(high)) / 2.0;
            let even = if h & 1 == 0 { low } else { high };
            assert_eq!(round_to_f16(mid as f32), even, "{h:04x}");
            let above = f32::from_bits((mid as f32).to_bits() + 1);
            assert_eq!(round_to_f16(above), high, "{h:04x}");
            let below = f32::from_bits((mid as f32).to_bits() - 1);
            assert_eq!(round_to_f16(below), low, "{h:04x}");
        }
        assert_eq!(round_to_f16(65519.996), 65504.0);
        assert_eq!(round_to_f16(65520.0), f32::INFINITY);
    }
}
