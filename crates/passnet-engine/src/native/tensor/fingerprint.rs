//! Does a tensor hold the bits that another one held? Told without keeping the other, and so by reading half as much.
//!
//! A fingerprint is a universal hash under a key that nobody knows beforehand: two tensors that differ have the same one
//! with a probability below 2^-27, whoever made them: 2^-32 that the sums of a block agree, a few times that because they
//! are taken modulo a prime.

use super::{Result, Tensor};
use passnet_cpu::multiversion;
use passnet_cpu::parallel::for_each_weighted_chunk;
use passnet_graph::DType;
use std::hash::{BuildHasher, Hasher, RandomState};

/// 64-bit words that one sum of products takes; fewer where Miri interprets every one.
const WORDS: usize = if cfg!(miri) { 16 } else { 512 };
const BLOCK: usize = WORDS * 8;
/// Bytes that one thread reads at a time.
const PIECE: usize = 128 * WORDS;
/// Sums of blocks are the coefficients of a polynomial over this field, in one variable within a piece and in another
/// among pieces: each block has a term of its own.
const PRIME: u64 = (1 << 61) - 1;

/// What fingerprints are taken with: those of one key can be compared.
#[derive(Clone)]
pub struct FingerprintKey {
    words: Box<[u64; WORDS]>,
    /// Where the polynomial is taken: for the blocks of a piece, for the pieces.
    points: [u64; 2],
}

/// The key is a secret.
impl std::fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FingerprintKey")
    }
}

impl FingerprintKey {
    /// A key that nobody can guess.
    pub fn random() -> Self {
        let random = || RandomState::new().build_hasher().finish();
        FingerprintKey {
            words: Box::new(std::array::from_fn(|_| random())),
            points: [random() % PRIME, random() % PRIME],
        }
    }

    fn of_bytes(&self, bytes: &[u8]) -> u64 {
        let mut pieces = vec![0; bytes.len().div_ceil(PIECE)];
        // The threads that wrote a tensor find it in their caches.
        for_each_weighted_chunk(&mut pieces, 1, PIECE / 4, |index, piece| {
            let start = index * PIECE;
            piece[0] = self.of_piece(&bytes[start..bytes.len().min(start + PIECE)]);
        });
        polynomial(pieces.into_iter(), self.points[1])
    }

    fn of_piece(&self, piece: &[u8]) -> u64 {
        let (blocks, rest) = piece.as_chunks::<BLOCK>();
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        let whole = blocks.iter().map(|block| products(block, &self.words));
        let rest = (!rest.is_empty()).then(|| products(&last, &self.words));
        polynomial(whole.chain(rest), self.points[0])
    }
}

fn polynomial(coefficients: impl Iterator<Item = u64>, point: u64) -> u64 {
    coefficients.fold(0, |value, coefficient| {
        modulo_prime(u128::from(value) * u128::from(point) + u128::from(coefficient))
    })
}

/// The rest after division by the prime, which is one less than a power of two: bits above it count as much below.
fn modulo_prime(sum: u128) -> u64 {
    let folded = (sum & u128::from(PRIME)) + (sum >> 61);
    let folded = (folded & u128::from(PRIME)) as u64 + (folded >> 61) as u64;
    if folded >= PRIME { folded - PRIME } else { folded }
}

multiversion! {
    /// The sum of products of neighbouring 32-bit halves, each with its key added.
    fn products(block: &[u8; BLOCK], key: &[u64; WORDS]) -> u64 {
        let mut sum = 0u64;
        for (word, key) in block.as_chunks::<8>().0.iter().zip(key) {
            let word = u64::from_le_bytes(*word);
            let low = (word as u32).wrapping_add(*key as u32);
            let high = ((word >> 32) as u32).wrapping_add((*key >> 32) as u32);
            sum = sum.wrapping_add(u64::from(low) * u64::from(high));
        }
        sum
    }
}

/// Stands for type, shape and every bit of every element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    dtype: DType,
    shape: Vec<usize>,
    hash: u64,
}

impl Tensor {
    /// A digest of sizes, type and elements; strides do not count.
    pub fn fingerprint(&self, key: &FingerprintKey) -> Result<Fingerprint> {
        let tensor = self.contiguous()?;
        let bytes = tensor.read::<u8>()?;
        let hash = key.of_bytes(&bytes[tensor.byte_range()]);
        Ok(Fingerprint { dtype: self.dtype(), shape: self.shape().to_vec(), hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_counts_wherever_it_is() {
        let key = FingerprintKey::random();
        for length in [1, 7, 8, BLOCK - 1, BLOCK, BLOCK + 3, PIECE + BLOCK + 5] {
            let mut bytes: Vec<u8> = (0..length).map(|i| (i * 31 % 251) as u8).collect();
            let before = key.of_bytes(&bytes);
            assert_eq!(key.of_bytes(&bytes), before);
            for at in [0, length / 2, length - 1] {
                for bit in [0, 3, 7] {
                    bytes[at] ^= 1 << bit;
                    assert_ne!(key.of_bytes(&bytes), before, "bit {bit} of byte {at} of {length}");
                    bytes[at] ^= 1 << bit;
                }
            }
            if length > 8 * BLOCK {
                let half = length / 2;
                bytes.rotate_left(half);
                assert_ne!(key.of_bytes(&bytes), before, "the order counts too");
            }
        }
    }

    #[test]
    fn the_rest_is_that_of_a_division() {
        let prime = u128::from(PRIME);
        let largest = (prime - 1) * (prime - 1) + u128::from(u64::MAX);
        for sum in [0, 1, prime - 1, prime, prime + 1, 2 * prime, prime * prime - 1, largest] {
            assert_eq!(u128::from(modulo_prime(sum)), sum % prime, "{sum}");
        }
    }

    #[test]
    fn every_block_has_a_place_of_its_own() {
        let key = FingerprintKey::random();
        let pieces: Vec<u8> = (0..3 * PIECE).map(|i| (i / BLOCK * 37 + i % 5) as u8).collect();
        let before = key.of_bytes(&pieces);
        // The last block of a piece, and blocks near the beginning of the next one.
        let last = PIECE - BLOCK;
        for other in [PIECE - 2 * BLOCK, PIECE, PIECE + BLOCK, 2 * PIECE - 2 * BLOCK, 2 * PIECE] {
            let mut swapped = pieces.clone();
            let (head, tail) = swapped.split_at_mut(last.max(other));
            head[last.min(other)..][..BLOCK].swap_with_slice(&mut tail[..BLOCK]);
            assert_ne!(key.of_bytes(&swapped), before, "blocks at {last} and {other} swapped");
        }
    }

    #[test]
    fn type_and_shape_count_and_strides_do_not() {
        let key = FingerprintKey::random();
        let print = |tensor: &Tensor| tensor.fingerprint(&key).unwrap();
        let values: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let tensor = Tensor::from_slice(&values, &[3, 4]).unwrap();
        assert_ne!(print(&tensor), print(&Tensor::from_slice(&values, &[4, 3]).unwrap()));
        let transposed = tensor.transpose(0, 1).unwrap();
        assert_eq!(print(&transposed), print(&transposed.contiguous().unwrap()));
        let zeros = |dtype| Tensor::zeros(&[2], dtype).unwrap();
        assert_ne!(print(&zeros(DType::Float32)), print(&zeros(DType::Int32)));
    }

    #[test]
    fn keys_differ() {
        let print = || FingerprintKey::random().of_bytes(b"the same");
        assert_ne!(print(), print());
    }
}
