//! What the assembler writes, read back by an independent disassembler.

use super::assembler::*;
use super::layout::WIDTH;
use crate::fixture::Fixture;
use iced_x86::{Code as Decoded, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use passnet_cpu::Isa;
use passnet_graph::syntax::Source;
use std::path::Path;

/// All instructions of some code, which must be nothing but instructions.
fn decode(code: &[u8]) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut found = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        assert_ne!(instruction.code(), Decoded::INVALID, "at {} of {code:02x?}", instruction.ip());
        found.push(instruction);
    }
    let lengths: usize = found.iter().map(Instruction::len).sum();
    assert_eq!(lengths, code.len(), "the last instruction is cut off");
    found
}

/// The instruction that `write` writes: exactly one.
fn one(write: impl FnOnce(&mut Assembler)) -> Instruction {
    let mut asm = Assembler::new(WIDTH);
    write(&mut asm);
    let found = decode(&asm.code);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

fn zmm(r: Zmm) -> Register {
    Register::ZMM0 + u32::from(r.0)
}

fn gpr(r: Gpr) -> Register {
    Register::RAX + u32::from(r.0)
}

fn mask(k: K) -> Register {
    if k == K0 { Register::None } else { Register::K0 + u32::from(k.0) }
}

/// Operand `index` is a register, or the memory that was asked for.
fn assert_operand(instruction: &Instruction, index: u32, expected: Operand) {
    if let Operand::Reg(r) = expected {
        assert_eq!(instruction.op_register(index), zmm(r), "{instruction:?}");
        return;
    }
    assert_eq!(instruction.op_kind(index), OpKind::Memory, "{instruction:?}");
    let (base, scale, offset) = match expected {
        Operand::Lanes { base, scale, offset } => (base, Some(scale), offset),
        Operand::Spread { base, offset } | Operand::Fixed { base, offset } => (base, None, offset),
        Operand::Reg(_) => return,
    };
    assert_eq!(instruction.memory_base(), gpr(base), "{instruction:?}");
    let index = scale.map_or(Register::None, |_| Register::RAX);
    assert_eq!(instruction.memory_index(), index, "{instruction:?}");
    assert_eq!(instruction.memory_index_scale(), u32::from(scale.unwrap_or(1)), "{instruction:?}");
    assert_eq!(instruction.memory_displacement64() as i64, i64::from(offset), "{instruction:?}");
    let spread = matches!(expected, Operand::Spread { .. });
    assert_eq!(instruction.is_broadcast(), spread, "{instruction:?}");
}

const ALL_GPRS: [Gpr; 15] =
    [RAX, RCX, RDX, RBX, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15];

/// Registers from both halves of both halves, and every way to name memory through every register.
fn operands() -> Vec<Operand> {
    let mut all: Vec<Operand> = [0, 7, 8, 15, 16, 31].map(|r| Operand::Reg(Zmm(r))).to_vec();
    for base in ALL_GPRS {
        for offset in [0, 4, 64, -128, 0x1234] {
            all.push(Operand::Fixed { base, offset });
            all.push(Operand::Lanes { base, scale: 4, offset });
            all.push(Operand::Lanes { base, scale: 2, offset });
            all.push(Operand::Spread { base, offset });
        }
    }
    all
}

#[test]
fn instructions_of_two_operands_are_what_was_asked_for() {
    let known = [
        (ADD, Mnemonic::Vaddps),
        (MUL, Mnemonic::Vmulps),
        (SUB, Mnemonic::Vsubps),
        (MIN, Mnemonic::Vminps),
        (DIV, Mnemonic::Vdivps),
        (MAX, Mnemonic::Vmaxps),
        (AND, Mnemonic::Vandps),
        (OR, Mnemonic::Vorps),
        (XOR, Mnemonic::Vxorps),
        (INT_ADD, Mnemonic::Vpaddd),
        (INT_SUB, Mnemonic::Vpsubd),
        (INT_AND, Mnemonic::Vpandd),
        (INT_OR, Mnemonic::Vpord),
        (FMA, Mnemonic::Vfmadd213ps),
        (FMS, Mnemonic::Vfmsub213ps),
        (FMA_INTO, Mnemonic::Vfmadd231ps),
        (SCALE, Mnemonic::Vscalefps),
    ];
    for (code, mnemonic) in known {
        for last in operands() {
            for (to, first) in [(Zmm(0), Zmm(31)), (Zmm(9), Zmm(16)), (Zmm(30), Zmm(7))] {
                for k in [K0, K(1), K(7)] {
                    let found = one(|asm| asm.masked(code, to, first, last, k));
                    assert_eq!(found.mnemonic(), mnemonic, "{last:?}");
                    assert_eq!(found.op_register(0), zmm(to), "{found:?}");
                    assert_eq!(found.op_register(1), zmm(first), "{found:?}");
                    assert_operand(&found, 2, last);
                    assert_eq!(found.op_mask(), mask(k), "{found:?}");
                    assert!(!found.zeroing_masking());
                }
            }
        }
    }
    let blend = one(|asm| asm.masked(BLEND, Zmm(3), Zmm(20), Zmm(11), K(2)));
    assert_eq!(blend.mnemonic(), Mnemonic::Vblendmps);
    assert_eq!((blend.op_register(1), blend.op_mask()), (zmm(Zmm(20)), Register::K2));
}

#[test]
fn loads_and_stores_are_what_was_asked_for() {
    for place in operands() {
        for r in [Zmm(0), Zmm(8), Zmm(23), Zmm(31)] {
            let sqrt = one(|asm| asm.unary(SQRT, r, place));
            assert_eq!(sqrt.mnemonic(), Mnemonic::Vsqrtps);
            assert_eq!(sqrt.op_register(0), zmm(r));
            assert_operand(&sqrt, 1, place);
            let converted = one(|asm| asm.unary(INT_TO_FLOAT, r, place));
            assert_eq!(converted.mnemonic(), Mnemonic::Vcvtdq2ps);
            let rounded = one(|asm| asm.round(r, place, DOWN));
            assert_eq!(rounded.mnemonic(), Mnemonic::Vrndscaleps);
            assert_eq!(rounded.immediate8(), DOWN);
            assert_operand(&rounded, 1, place);
            if let Operand::Spread { base, offset } = place {
                let spread = one(|asm| asm.load(r, place));
                assert_eq!(spread.mnemonic(), Mnemonic::Vbroadcastss);
                assert_operand(&spread, 1, Operand::Fixed { base, offset });
                continue;
            }
            if matches!(place, Operand::Reg(_)) {
                continue;
            }
            for k in [K0, K(3)] {
                let loaded = one(|asm| asm.zeroed(MOV, r, place, k));
                assert_eq!(loaded.mnemonic(), Mnemonic::Vmovups);
                assert_eq!(loaded.zeroing_masking(), k != K0);
                assert_operand(&loaded, 1, place);
                let half = one(|asm| asm.zeroed(FROM_HALF, r, place, k));
                assert_eq!(half.mnemonic(), Mnemonic::Vcvtph2ps);
                let wide = one(|asm| asm.zeroed(WIDEN_16, r, place, k));
                assert_eq!(wide.mnemonic(), Mnemonic::Vpmovzxwd);
                let spread = one(|asm| asm.zeroed(SPREAD_16, r, place, k));
                assert_eq!(spread.mnemonic(), Mnemonic::Vpbroadcastw);
                let stores = [
                    (one(|asm| asm.store(place, r, k)), Mnemonic::Vmovups),
                    (one(|asm| asm.store_half(place, r, k)), Mnemonic::Vcvtps2ph),
                    (one(|asm| asm.store_16(place, r, k)), Mnemonic::Vpmovdw),
                ];
                for (stored, mnemonic) in stores {
                    assert_eq!(stored.mnemonic(), mnemonic);
                    assert_operand(&stored, 0, place);
                    assert_eq!(stored.op_register(1), zmm(r));
                    assert_eq!(stored.op_mask(), mask(k));
                }
            }
            let streamed = one(|asm| asm.stream(place, r));
            assert_eq!(streamed.mnemonic(), Mnemonic::Vmovntps);
            assert_operand(&streamed, 0, place);
        }
    }
}

#[test]
fn comparisons_shifts_and_shuffles_are_what_was_asked_for() {
    for last in operands() {
        for how in [EQ, LT, LE, UNORDERED, NE, GE, NOT_LT, GT] {
            let found = one(|asm| asm.compare(K(5), Zmm(18), last, how, K(2)));
            assert_eq!(found.mnemonic(), Mnemonic::Vcmpps);
            assert_eq!((found.op_register(0), found.op_mask()), (Register::K5, Register::K2));
            assert_eq!((found.op_register(1), found.immediate8()), (zmm(Zmm(18)), how));
            assert_operand(&found, 2, last);
        }
        for how in [INT_LT, INT_NE, INT_GE] {
            let found = one(|asm| asm.int_compare(K(1), Zmm(4), last, how, K0));
            assert_eq!(found.mnemonic(), Mnemonic::Vpcmpd);
            assert_eq!((found.op_register(0), found.immediate8()), (Register::K1, how));
            assert_operand(&found, 2, last);
        }
    }
    for (to, from) in [(Zmm(2), Zmm(29)), (Zmm(17), Zmm(8))] {
        let shifts = [
            (one(|asm| asm.shift_left(to, from, 13)), Mnemonic::Vpslld),
            (one(|asm| asm.shift_right(to, from, 13)), Mnemonic::Vpsrld),
            (one(|asm| asm.shift_right_signed(to, from, 13)), Mnemonic::Vpsrad),
        ];
        for (found, mnemonic) in shifts {
            assert_eq!((found.mnemonic(), found.immediate8()), (mnemonic, 13));
            assert_eq!((found.op_register(0), found.op_register(1)), (zmm(to), zmm(from)));
        }
        for lanes in [1, 2, 4, 8] {
            let found = one(|asm| asm.swap_halves(to, from, lanes));
            let wide = if lanes >= 4 { Mnemonic::Vshuff32x4 } else { Mnemonic::Vpermilps };
            assert_eq!((found.mnemonic(), found.op_register(0)), (wide, zmm(to)));
            assert_eq!(found.op_register(found.op_count() - 2), zmm(from));
        }
        let narrow = one(|asm| asm.narrow_half(to, from));
        assert_eq!(narrow.mnemonic(), Mnemonic::Vcvtps2ph);
        assert_eq!(narrow.op_register(1), zmm(from));
        let sign = one(|asm| asm.copy_sign(to, from));
        assert_eq!((sign.mnemonic(), sign.immediate8()), (Mnemonic::Vpternlogd, 0xd8));
        assert_eq!((sign.op_register(0), sign.op_register(1)), (zmm(to), zmm(from)));
    }
    for from in ALL_GPRS {
        let spread = one(|asm| asm.spread_index(Zmm(22), from));
        assert_eq!(spread.mnemonic(), Mnemonic::Vpbroadcastd);
        assert_eq!(spread.op_register(0), Register::ZMM22);
        assert_eq!(spread.op_register(1), Register::EAX + u32::from(from.0));
    }
}

#[test]
fn instructions_on_general_registers_are_what_was_asked_for() {
    for a in ALL_GPRS {
        for b in ALL_GPRS {
            let loaded = one(|asm| asm.load_gpr(a, b, -24));
            assert_eq!((loaded.mnemonic(), loaded.op_register(0)), (Mnemonic::Mov, gpr(a)));
            assert_operand(&loaded, 1, Operand::Fixed { base: b, offset: -24 });
            let sum = one(|asm| asm.add_to(a, b, 4096));
            assert_eq!((sum.mnemonic(), sum.op_register(0)), (Mnemonic::Lea, gpr(a)));
            assert_operand(&sum, 1, Operand::Fixed { base: b, offset: 4096 });
            let moved = one(|asm| asm.move_gpr(a, b));
            assert_eq!(moved.mnemonic(), Mnemonic::Mov);
            assert_eq!((moved.op_register(0), moved.op_register(1)), (gpr(a), gpr(b)));
            let mut asm = Assembler::new(WIDTH);
            let skip = asm.skip_if_greater(a, b);
            asm.align();
            asm.land(skip);
            asm.repeat_if_at_most(a, b, 32);
            asm.count_down(0);
            asm.finish();
            let found = decode(&asm.code);
            let of = |mnemonic| found.iter().filter(move |i| i.mnemonic() == mnemonic);
            assert!(
                of(Mnemonic::Cmp).all(|i| (i.op_register(0), i.op_register(1)) == (gpr(a), gpr(b)))
            );
            let targets =
                |mnemonic| of(mnemonic).map(|i| i.near_branch_target()).collect::<Vec<_>>();
            assert_eq!(targets(Mnemonic::Jg), [32]);
            assert_eq!(targets(Mnemonic::Jle), [32]);
            assert_eq!(targets(Mnemonic::Jne), [0]);
            assert_eq!(of(Mnemonic::Dec).next().map(Instruction::memory_base), Some(Register::RSP));
            assert_eq!(found.last().map(Instruction::mnemonic), Some(Mnemonic::Ret));
        }
        let pushed = one(|asm| asm.push(a));
        assert_eq!((pushed.mnemonic(), pushed.op_register(0)), (Mnemonic::Push, gpr(a)));
        let popped = one(|asm| asm.pop(a));
        assert_eq!((popped.mnemonic(), popped.op_register(0)), (Mnemonic::Pop, gpr(a)));
        let at = Operand::Lanes { base: a, scale: 4, offset: 256 };
        let hints = [
            (one(|asm| asm.prefetch(at)), Mnemonic::Prefetcht0),
            (one(|asm| asm.prefetch_write(at)), Mnemonic::Prefetchw),
        ];
        for (hint, mnemonic) in hints {
            assert_eq!(hint.mnemonic(), mnemonic);
            assert_operand(&hint, 0, at);
        }
    }
}

/// Every kernel of the fixtures that has code: nothing but instructions, whose jumps go to instructions and whose stack is
/// balanced.
#[test]
fn whole_programs_decode() {
    if Isa::detect() != Isa::Avx512 {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let mut instructions = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        let fixture = Fixture::new(Source::read(&path).unwrap()).unwrap();
        for code in fixture.prepare().unwrap().machine_code() {
            let found = decode(code);
            let starts: Vec<u64> = found.iter().map(Instruction::ip).collect();
            let mut depth = 0i32;
            for i in &found {
                match i.mnemonic() {
                    Mnemonic::Push => depth += 1,
                    Mnemonic::Pop => depth -= 1,
                    Mnemonic::Ret => assert_eq!(depth, 0, "{}: {i:?}", path.display()),
                    _ => {}
                }
                if i.op_count() > 0 && i.op_kind(0) == OpKind::NearBranch64 {
                    let target = i.near_branch_target();
                    assert!(starts.binary_search(&target).is_ok(), "{}: {i:?}", path.display());
                }
                assert!(!i.is_ip_rel_memory_operand(), "{}: {i:?}", path.display());
            }
            assert_eq!(found.last().map(Instruction::mnemonic), Some(Mnemonic::Ret));
            instructions += found.len();
        }
    }
    assert!(instructions > 10_000, "{instructions} instructions in all");
}
