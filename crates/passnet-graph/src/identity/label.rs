//! Node labels: 128 bits, mixed by multiplication. Only the final digest is cryptographic; labels are many, short
//! lived and compared within one graph, so speed counts and a wilful collision gains nothing.

/// The label of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label(u64, u64);

impl Label {
    pub(super) const CALL: Label = Label(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344);
    pub(super) const OUTPUT: Label = Label(0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89);
    pub(super) const PLACEHOLDER: Label = Label(0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6c);

    pub(super) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.0) << 64 | u128::from(self.1)).to_le_bytes()
    }
}

/// Absorbs words one after the other; order matters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mixer(u64, u64);

impl Mixer {
    pub(super) fn new(start: Label) -> Self {
        Mixer(start.0, start.1)
    }

    pub(super) fn word(&mut self, word: u64) {
        let first = fold(self.0 ^ word, 0x9e37_79b9_7f4a_7c15);
        self.1 = fold(self.1.rotate_left(29) ^ word, 0xe703_7ed1_a0b4_28db) ^ self.0;
        self.0 = first;
    }

    pub(super) fn label(&mut self, label: Label) {
        self.word(label.0);
        self.word(label.1);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
    }

    pub(super) fn with(mut self, word: u64) -> Self {
        self.word(word);
        self
    }

    pub(super) fn finish(self) -> Label {
        let first = fold(self.0 ^ self.1.rotate_left(17), 0x8ebc_6af0_9c88_c6e3);
        let second = fold(self.1 ^ first, 0x5899_65cc_7537_4cc3);
        Label(first, second)
    }
}

/// Both halves of the product, so that every bit of `a` reaches every bit of the result.
fn fold(a: u64, b: u64) -> u64 {
    // An operand of zero would absorb everything after it.
    let product = u128::from(a ^ 0x2d35_8dcc_aa6c_78a5) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}
