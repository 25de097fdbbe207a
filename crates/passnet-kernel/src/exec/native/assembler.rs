//! Writes AVX-512 instructions: the few that elementwise work needs, always on whole 512-bit registers.

/// A general register by its hardware number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gpr(pub(super) u8);

pub(super) const RAX: Gpr = Gpr(0);
pub(super) const RCX: Gpr = Gpr(1);
pub(super) const RDX: Gpr = Gpr(2);
pub(super) const RBX: Gpr = Gpr(3);
pub(super) const RBP: Gpr = Gpr(5);
pub(super) const RSI: Gpr = Gpr(6);
pub(super) const RDI: Gpr = Gpr(7);
pub(super) const R8: Gpr = Gpr(8);
pub(super) const R9: Gpr = Gpr(9);
pub(super) const R10: Gpr = Gpr(10);
pub(super) const R11: Gpr = Gpr(11);
pub(super) const R12: Gpr = Gpr(12);
pub(super) const R13: Gpr = Gpr(13);
pub(super) const R14: Gpr = Gpr(14);
pub(super) const R15: Gpr = Gpr(15);

/// A vector register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Zmm(pub(super) u8);

/// A mask register; `K0` as a predicate means all lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct K(pub(super) u8);

pub(super) const K0: K = K(0);

/// The last operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Reg(Zmm),
    /// One 32-bit element, spread over the lanes.
    Spread {
        base: Gpr,
        offset: i32,
    },
    /// Lanes at `base + rax * scale + offset`.
    Lanes {
        base: Gpr,
        scale: u8,
        offset: i32,
    },
    /// Lanes at `base + offset`.
    Fixed {
        base: Gpr,
        offset: i32,
    },
}

impl From<Zmm> for Operand {
    fn from(r: Zmm) -> Operand {
        Operand::Reg(r)
    }
}

/// Opcode map and mandatory prefix, as the encoding numbers them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code {
    map: u8,
    prefix: u8,
    opcode: u8,
}

const fn code(map: u8, prefix: u8, opcode: u8) -> Code {
    Code { map, prefix, opcode }
}

pub(super) const MOV: Code = code(1, 0, 0x10);
const MOV_STORE: Code = code(1, 0, 0x11);
const STORE_FIRST: Code = code(1, 2, 0x11);
const STREAM: Code = code(1, 0, 0x2b);
pub(super) const ADD: Code = code(1, 0, 0x58);
pub(super) const MUL: Code = code(1, 0, 0x59);
pub(super) const SUB: Code = code(1, 0, 0x5c);
pub(super) const MIN: Code = code(1, 0, 0x5d);
pub(super) const DIV: Code = code(1, 0, 0x5e);
pub(super) const MAX: Code = code(1, 0, 0x5f);
pub(super) const SQRT: Code = code(1, 0, 0x51);
pub(super) const AND: Code = code(1, 0, 0x54);
pub(super) const OR: Code = code(1, 0, 0x56);
pub(super) const XOR: Code = code(1, 0, 0x57);
const COMPARE: Code = code(1, 0, 0xc2);
pub(super) const INT_TO_FLOAT: Code = code(1, 0, 0x5b);
pub(super) const INT_ADD: Code = code(1, 1, 0xfe);
pub(super) const INT_SUB: Code = code(1, 1, 0xfa);
pub(super) const INT_AND: Code = code(1, 1, 0xdb);
pub(super) const INT_OR: Code = code(1, 1, 0xeb);
const SHIFT: Code = code(1, 1, 0x72);
pub(super) const SPREAD: Code = code(2, 1, 0x18);
/// One 16-bit element; a mask counts the low sixteen of them.
pub(super) const SPREAD_16: Code = code(2, 1, 0x79);
const SPREAD_GPR: Code = code(2, 1, 0x7c);
/// Destination times first operand plus second.
pub(super) const FMA: Code = code(2, 1, 0xa8);
/// Destination times first operand minus second.
pub(super) const FMS: Code = code(2, 1, 0xaa);
/// First operand times second plus destination.
pub(super) const FMA_INTO: Code = code(2, 1, 0xb8);
/// Where the mask is on the second operand, else the first.
pub(super) const BLEND: Code = code(2, 1, 0x65);
/// First operand times two to the power of the second, rounded down.
pub(super) const SCALE: Code = code(2, 1, 0x2c);
pub(super) const FROM_HALF: Code = code(2, 1, 0x13);
pub(super) const WIDEN_16: Code = code(2, 1, 0x33);
const NARROW_16: Code = code(2, 2, 0x33);
const ROUND: Code = code(3, 1, 0x08);
const TO_HALF: Code = code(3, 1, 0x1d);
const INT_COMPARE: Code = code(3, 1, 0x1f);
const TERNARY: Code = code(3, 1, 0x25);
const SHUFFLE_BLOCKS: Code = code(3, 1, 0x23);
const SHUFFLE_IN_BLOCKS: Code = code(3, 1, 0x04);

/// Predicates of float comparisons.
pub(super) const EQ: u8 = 0;
pub(super) const LT: u8 = 1;
pub(super) const LE: u8 = 2;
pub(super) const UNORDERED: u8 = 3;
pub(super) const NE: u8 = 4;
pub(super) const GE: u8 = 13;
/// True for NaN.
pub(super) const NOT_LT: u8 = 21;
pub(super) const GT: u8 = 14;
/// Predicates of integer comparisons.
pub(super) const INT_LT: u8 = 1;
pub(super) const INT_NE: u8 = 4;
pub(super) const INT_GE: u8 = 5;

/// Rounding to integers.
pub(super) const NEAREST: u8 = 8;
pub(super) const DOWN: u8 = 9;
pub(super) const UP: u8 = 10;
pub(super) const TO_ZERO: u8 = 11;

/// Registers that functions may use on the way to a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scratch {
    pub(super) lanes: [Zmm; 4],
    pub(super) mask: K,
}

#[derive(Debug)]
pub(super) struct Assembler {
    pub(super) code: Vec<u8>,
    /// Numbers the code reads, addressed from `rdx`.
    pub(super) constants: Vec<u32>,
    pub(super) scratch: Scratch,
    /// Where vector instructions begin.
    starts: Vec<usize>,
}

impl Assembler {
    /// The first constants number the lanes.
    pub(super) fn new(lanes: usize) -> Assembler {
        Assembler {
            code: Vec::new(),
            constants: (0..lanes as u32).collect(),
            scratch: Scratch { lanes: [Zmm(0); 4], mask: K0 },
            starts: Vec::new(),
        }
    }

    /// Writes the same work for several independent sets of registers and deals the instructions out in turn: a long
    /// chain of dependent instructions fills the processor's queue, several side by side keep it busy.
    pub(super) fn interleaved(
        &mut self,
        ways: usize,
        mut write: impl FnMut(&mut Assembler, usize) -> Option<()>,
    ) -> Option<()> {
        let begin = self.code.len();
        let mut streams: Vec<Vec<Vec<u8>>> = Vec::new();
        for way in 0..ways {
            self.starts.clear();
            write(self, way)?;
            let ends = self.starts.iter().skip(1).copied().chain([self.code.len()]);
            let pieces = self.starts.iter().zip(ends).map(|(&a, b)| self.code[a..b].to_vec());
            streams.push(pieces.collect());
            self.code.truncate(begin);
        }
        let longest = streams.iter().map(Vec::len).max().unwrap_or(0);
        for i in 0..longest {
            for stream in &streams {
                self.code.extend(stream.get(i).into_iter().flatten());
            }
        }
        Some(())
    }

    /// A constant as an operand.
    pub(super) fn bits(&mut self, bits: u32) -> Operand {
        let at = self.constants.iter().position(|&c| c == bits).unwrap_or_else(|| {
            self.constants.push(bits);
            self.constants.len() - 1
        });
        Operand::Spread { base: RDX, offset: 4 * at as i32 }
    }

    pub(super) fn number(&mut self, x: f32) -> Operand {
        self.bits(x.to_bits())
    }

    fn vector(&mut self, c: Code, reg: u8, first: u8, last: Operand, (mask, zeroing): (K, bool)) {
        let (rm, index_bit, spread) = match last {
            Operand::Reg(r) => (r.0, r.0 >> 4 & 1, false),
            Operand::Spread { base, .. } => (base.0, 0, true),
            Operand::Lanes { base, .. } | Operand::Fixed { base, .. } => (base.0, 0, false),
        };
        self.starts.push(self.code.len());
        let bit = |x: u8, n: u8| x >> n & 1;
        let not = |x: u8| x ^ 1;
        self.code.extend([
            0x62,
            not(bit(reg, 3)) << 7
                | not(index_bit) << 6
                | not(bit(rm, 3)) << 5
                | not(bit(reg, 4)) << 4
                | c.map,
            (!first & 15) << 3 | 1 << 2 | c.prefix,
            u8::from(zeroing) << 7
                | 2 << 5
                | u8::from(spread) << 4
                | not(bit(first, 4)) << 3
                | mask.0,
            c.opcode,
        ]);
        self.address(reg & 7, last);
    }

    /// The bytes that name the last operand; memory always with a 32-bit offset.
    fn address(&mut self, reg: u8, last: Operand) {
        let offset = match last {
            Operand::Reg(r) => {
                self.code.push(3 << 6 | reg << 3 | r.0 & 7);
                return;
            }
            Operand::Spread { base, offset } | Operand::Fixed { base, offset } => {
                self.code.push(2 << 6 | reg << 3 | base.0 & 7);
                if base.0 & 7 == 4 {
                    self.code.push(0x24);
                }
                offset
            }
            Operand::Lanes { base, scale, offset } => {
                self.code.push(2 << 6 | reg << 3 | 4);
                // Index register 0 is `rax`.
                self.code.push((scale.trailing_zeros() as u8) << 6 | base.0 & 7);
                offset
            }
        };
        self.code.extend(offset.to_le_bytes());
    }

    /// `to = first op last`
    pub(super) fn op(&mut self, c: Code, to: Zmm, first: Zmm, last: impl Into<Operand>) {
        self.vector(c, to.0, first.0, last.into(), (K0, false));
    }

    /// The same where the mask is on; `to` keeps its other lanes.
    pub(super) fn masked(&mut self, c: Code, to: Zmm, first: Zmm, last: impl Into<Operand>, k: K) {
        self.vector(c, to.0, first.0, last.into(), (k, false));
    }

    /// `to = op last`
    pub(super) fn unary(&mut self, c: Code, to: Zmm, last: impl Into<Operand>) {
        self.vector(c, to.0, 0, last.into(), (K0, false));
    }

    /// `to = op last` where the mask is on, zero elsewhere.
    pub(super) fn zeroed(&mut self, c: Code, to: Zmm, last: Operand, k: K) {
        self.vector(c, to.0, 0, last, (k, k != K0));
    }

    /// Any operand in a register.
    pub(super) fn load(&mut self, to: Zmm, from: Operand) {
        match from {
            Operand::Reg(r) if r == to => {}
            // The element's size is part of the instruction: no spread bit.
            Operand::Spread { base, offset } => {
                self.unary(SPREAD, to, Operand::Fixed { base, offset })
            }
            other => self.unary(MOV, to, other),
        }
    }

    pub(super) fn store(&mut self, to: Operand, from: Zmm, k: K) {
        self.vector(MOV_STORE, from.0, 0, to, (k, false));
    }

    /// All lanes to memory, past the caches; the address must be a multiple of a register's size.
    pub(super) fn stream(&mut self, to: Operand, from: Zmm) {
        self.vector(STREAM, from.0, 0, to, (K0, false));
    }

    /// The first lane of a register to memory.
    pub(super) fn store_first(&mut self, base: Gpr, from: Zmm) {
        self.vector(STORE_FIRST, from.0, 0, Operand::Fixed { base, offset: 0 }, (K0, false));
    }

    /// `to` is `from` with neighbouring runs of so many lanes exchanged.
    pub(super) fn swap_halves(&mut self, to: Zmm, from: Zmm, lanes: usize) {
        let first = if lanes >= 4 { from.0 } else { 0 };
        let code = if lanes >= 4 { SHUFFLE_BLOCKS } else { SHUFFLE_IN_BLOCKS };
        self.vector(code, to.0, first, Operand::Reg(from), (K0, false));
        // Two of four exchanged with the other two, or each with its neighbour.
        self.code.push(if lanes == 8 || lanes == 2 { 0x4e } else { 0xb1 });
    }

    pub(super) fn store_half(&mut self, to: Operand, from: Zmm, k: K) {
        self.vector(TO_HALF, from.0, 0, to, (k, false));
        self.code.push(NEAREST);
    }

    /// The low halves of 32-bit lanes.
    pub(super) fn store_16(&mut self, to: Operand, from: Zmm, k: K) {
        self.vector(NARROW_16, from.0, 0, to, (k, false));
    }

    /// Rounds to a half and keeps it in the low half of `to`.
    pub(super) fn narrow_half(&mut self, to: Zmm, from: Zmm) {
        self.vector(TO_HALF, from.0, 0, Operand::Reg(to), (K0, false));
        self.code.push(NEAREST);
    }

    pub(super) fn round(&mut self, to: Zmm, from: impl Into<Operand>, how: u8) {
        self.unary(ROUND, to, from);
        self.code.push(how);
    }

    /// Compares where `within` is on.
    pub(super) fn compare(&mut self, to: K, a: Zmm, b: impl Into<Operand>, how: u8, within: K) {
        self.vector(COMPARE, to.0, a.0, b.into(), (within, false));
        self.code.push(how);
    }

    pub(super) fn int_compare(&mut self, to: K, a: Zmm, b: Operand, how: u8, within: K) {
        self.vector(INT_COMPARE, to.0, a.0, b, (within, false));
        self.code.push(how);
    }

    pub(super) fn shift_left(&mut self, to: Zmm, from: Zmm, by: u8) {
        self.vector(SHIFT, 6, to.0, Operand::Reg(from), (K0, false));
        self.code.push(by);
    }

    pub(super) fn shift_right(&mut self, to: Zmm, from: Zmm, by: u8) {
        self.vector(SHIFT, 2, to.0, Operand::Reg(from), (K0, false));
        self.code.push(by);
    }

    pub(super) fn shift_right_signed(&mut self, to: Zmm, from: Zmm, by: u8) {
        self.vector(SHIFT, 4, to.0, Operand::Reg(from), (K0, false));
        self.code.push(by);
    }

    /// The 32-bit register in all lanes.
    pub(super) fn spread_index(&mut self, to: Zmm, from: Gpr) {
        self.vector(SPREAD_GPR, to.0, 0, Operand::Reg(Zmm(from.0)), (K0, false));
    }

    /// Asks for the cache line at an address, which need not be valid.
    pub(super) fn prefetch(&mut self, at: Operand) {
        self.hint(0x18, at);
    }

    /// The same for a line that will be written.
    pub(super) fn prefetch_write(&mut self, at: Operand) {
        self.hint(0x0d, at);
    }

    fn hint(&mut self, opcode: u8, at: Operand) {
        if let Operand::Lanes { base, .. } = at {
            self.starts.push(self.code.len());
            self.code.extend([0x40 | base.0 >> 3, 0x0f, opcode]);
            self.address(1, at);
        }
    }

    /// `y` with the sign of `x`.
    pub(super) fn copy_sign(&mut self, y: Zmm, x: Zmm) {
        let sign = self.number(-0.0);
        self.vector(TERNARY, y.0, x.0, sign, (K0, false));
        // Where the third operand is on the second, else the first.
        self.code.push(0xd8);
    }

    /// `to = [base + offset]`, 64 bits.
    pub(super) fn load_gpr(&mut self, to: Gpr, base: Gpr, offset: i32) {
        self.code.extend([0x48 | (to.0 >> 3) << 2 | base.0 >> 3, 0x8b]);
        self.address(to.0 & 7, Operand::Fixed { base, offset });
    }

    /// `to = base + offset`
    pub(super) fn add_to(&mut self, to: Gpr, base: Gpr, offset: i32) {
        self.code.extend([0x48 | (to.0 >> 3) << 2 | base.0 >> 3, 0x8d]);
        self.address(to.0 & 7, Operand::Fixed { base, offset });
    }

    pub(super) fn move_gpr(&mut self, to: Gpr, from: Gpr) {
        self.code.extend([
            0x48 | (from.0 >> 3) << 2 | to.0 >> 3,
            0x89,
            3 << 6 | (from.0 & 7) << 3 | to.0 & 7,
        ]);
    }

    pub(super) fn push(&mut self, r: Gpr) {
        self.code.extend([0x40 | r.0 >> 3, 0x50 | r.0 & 7]);
    }

    pub(super) fn pop(&mut self, r: Gpr) {
        self.code.extend([0x40 | r.0 >> 3, 0x58 | r.0 & 7]);
    }

    /// Takes one from the number on top of the stack and jumps while it is not zero.
    pub(super) fn count_down(&mut self, to: usize) {
        self.code.extend([0x48, 0xff, 0x0c, 0x24, 0x0f, 0x85]);
        self.jump(to);
    }

    fn compare_gpr(&mut self, a: Gpr, b: Gpr) {
        self.code.extend([
            0x48 | (b.0 >> 3) << 2 | a.0 >> 3,
            0x39,
            3 << 6 | (b.0 & 7) << 3 | a.0 & 7,
        ]);
    }

    /// Jumps back if `a <= b`, signed.
    pub(super) fn repeat_if_at_most(&mut self, a: Gpr, b: Gpr, to: usize) {
        self.compare_gpr(a, b);
        self.code.extend([0x0f, 0x8e]);
        self.jump(to);
    }

    /// Jumps forward if `a > b`, signed, to where [`Assembler::land`] is called with the result.
    pub(super) fn skip_if_greater(&mut self, a: Gpr, b: Gpr) -> usize {
        self.compare_gpr(a, b);
        self.code.extend([0x0f, 0x8f, 0, 0, 0, 0]);
        self.code.len()
    }

    pub(super) fn land(&mut self, from: usize) {
        let distance = (self.code.len() - from) as i32;
        self.code[from - 4..from].copy_from_slice(&distance.to_le_bytes());
    }

    fn jump(&mut self, to: usize) {
        let from = self.code.len() + 4;
        self.code.extend((to as i32 - from as i32).to_le_bytes());
    }

    /// Loops start on a fresh fetch block.
    pub(super) fn align(&mut self) {
        while !self.code.len().is_multiple_of(32) {
            self.code.push(0x90);
        }
    }

    /// Leaves the function; vector state is clean for code that follows.
    pub(super) fn finish(&mut self) {
        self.code.extend([0xc5, 0xf8, 0x77, 0xc3]);
    }
}
