//! Do programs stay out of each other's way?
//!
//! Addresses are mixed-radix numbers: if each digit's weight is at least the reach of all smaller digits, different
//! digits give different addresses. Masks cap the reach of the digits they speak about.

use super::linear::{Linear, Sym, SymKind};
use super::touches::{Analysis, Touch};
use crate::ir::Function;
use crate::plan::{ArgValue, Launch};

/// A digit of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digit {
    /// Tells programs apart.
    Program(Sym),
    /// A loop index: the same program takes all its values.
    Loop(Sym),
    Lane(usize),
}

pub(super) fn independent(f: &Function, launch: &Launch, analysis: &Analysis) -> bool {
    if launch.programs() <= 1 {
        return true;
    }
    let buffer_of = |param: usize| {
        let name = &f.params[param].name;
        launch.args.iter().find(|a| a.name == *name).and_then(|a| match &a.value {
            ArgValue::Buffer(view) => Some(view.buffer),
            _ => None,
        })
    };
    let mut written = Vec::new();
    for store in analysis.touches.iter().filter(|t| t.store) {
        let Some(buffer) = store.param.and_then(buffer_of) else { return false };
        if store.atomic {
            return false;
        }
        written.push(buffer);
    }
    written.sort_unstable();
    written.dedup();
    if analysis.touches.iter().any(|t| t.param.and_then(buffer_of).is_none()) {
        return false;
    }
    written.iter().all(|&buffer| {
        let group: Vec<&Touch> = analysis
            .touches
            .iter()
            .filter(|t| t.param.and_then(buffer_of) == Some(buffer))
            .collect();
        disjoint(&group, analysis)
    })
}

/// The axes of the grid by how far apart neighbouring programs store, the nearest first; as they are where that is not
/// known.
pub(super) fn order_of_axes(launch: &Launch, analysis: &Analysis) -> [usize; 3] {
    let store = analysis.touches.iter().find(|touch| touch.store);
    let Some(bytes) = store.and_then(|store| store.bytes.as_ref()) else { return [0, 1, 2] };
    let mut symbols = analysis.programs.iter();
    let mut steps = [0; 3];
    for (axis, step) in steps.iter_mut().enumerate() {
        // An axis with one program has no symbol.
        if launch.grid[axis] > 1
            && let Some(symbol) = symbols.next()
        {
            // A number that was taken apart steps with its smallest part.
            let own = bytes.terms.iter().filter(|(term, _)| depends(**term, *symbol, analysis, 0));
            *step = match own.map(|(_, factor)| factor.unsigned_abs()).min() {
                Some(factor) => factor,
                None => return [0, 1, 2],
            };
        }
    }
    let mut order = [0, 1, 2];
    order.sort_by_key(|axis| steps[*axis]);
    order
}

/// Whether a symbol is made of another one.
fn depends(symbol: Sym, on: Sym, analysis: &Analysis, depth: usize) -> bool {
    const DEEPEST: usize = 8;
    if symbol == on {
        return true;
    }
    match &analysis.symbols[symbol.0 as usize].kind {
        SymKind::Part { of, .. } if depth < DEEPEST => {
            of.terms.keys().any(|term| depends(*term, on, analysis, depth + 1))
        }
        _ => false,
    }
}

/// All accesses to one written buffer together: what one program touches, no other does.
fn disjoint(touches: &[&Touch], analysis: &Analysis) -> bool {
    let Some(first) = touches.first() else { return true };
    let Some(reference) = program_terms(first, analysis) else { return false };
    let (mut low, mut high) = (i128::MAX, i128::MIN);
    for touch in touches {
        if program_terms(touch, analysis).as_ref() != Some(&reference) {
            return false;
        }
        let Some((a, b)) = window(touch, analysis) else { return false };
        low = low.min(a);
        high = high.max(b);
    }
    if !covers(&reference, analysis) {
        return false;
    }
    // One window that holds all accesses of a program, and programs further apart than it reaches.
    let mut reach = high - low;
    let mut weights: Vec<(i128, i128)> = reference
        .iter()
        .map(|(s, c)| {
            let sym = &analysis.symbols[s.0 as usize];
            (i128::from(c.unsigned_abs()), i128::from(sym.high) - i128::from(sym.low))
        })
        .collect();
    weights.sort_unstable();
    let apart = weights.into_iter().all(|(weight, count)| {
        let fits = weight >= reach;
        reach += weight * count;
        fits
    });
    // Programs may also interleave, lane by lane: then the accesses must be one and the same.
    apart || (same_window(touches) && radix(first, analysis))
}

/// First and last byte of an access, plus one, counted from where the program's own part of the address puts it.
fn window(touch: &Touch, analysis: &Analysis) -> Option<(i128, i128)> {
    let bytes = touch.bytes.as_ref()?;
    let mut rest = bytes.clone();
    rest.terms.retain(|s, _| matches!(analysis.symbols[s.0 as usize].kind, SymKind::Loop));
    let (low, mut high) = rest.range(&analysis.symbols, &touch.shape);
    let mut digits: Vec<Digit> = rest.terms.keys().map(|&s| Digit::Loop(s)).collect();
    for (d, (&stride, &size)) in rest.lanes.iter().zip(&touch.shape).enumerate() {
        if stride != 0 && size > 1 {
            digits.push(Digit::Lane(d));
        }
    }
    for condition in &touch.conditions {
        if let Some((capped, cap)) = capped(condition, bytes, &digits, analysis, &touch.shape)
            && capped.len() == digits.len()
        {
            high = high.min(low + cap);
        }
    }
    Some((low, high + touch.elem.size() as i128))
}

/// Whether the accesses differ in nothing but what they do.
fn same_window(touches: &[&Touch]) -> bool {
    touches.windows(2).all(|w| {
        w[0].bytes == w[1].bytes && w[0].shape == w[1].shape && w[0].conditions == w[1].conditions
    })
}

/// The terms that depend on the program, or `None` when the address depends on something opaque.
fn program_terms(store: &Touch, analysis: &Analysis) -> Option<Vec<(Sym, i64)>> {
    let mut terms = Vec::new();
    for (&sym, &c) in &store.bytes.as_ref()?.terms {
        match analysis.symbols[sym.0 as usize].kind {
            SymKind::Program | SymKind::Part { .. } => terms.push((sym, c)),
            SymKind::Loop => {}
            SymKind::Opaque => return None,
        }
    }
    Some(terms)
}

/// Whether the symbols determine the program: each program id itself, or both parts of it.
fn covers(terms: &[(Sym, i64)], analysis: &Analysis) -> bool {
    fn covered(
        sym: Sym,
        terms: &[(Sym, i64)],
        analysis: &Analysis,
        used: &mut Vec<Sym>,
        depth: usize,
    ) -> bool {
        let symbol = &analysis.symbols[sym.0 as usize];
        if symbol.low == symbol.high {
            return true;
        }
        if terms.iter().any(|(s, _)| *s == sym) {
            used.push(sym);
            return true;
        }
        if depth > 8 {
            return false;
        }
        let this = Linear::symbol(sym);
        let part = |quotient: bool, divisor: i64| {
            analysis.symbols.iter().position(|s| {
                matches!(&s.kind, SymKind::Part { of, divisor: d, quotient: q } if *of == this && *q == quotient && *d == divisor)
            })
        };
        let divisors: Vec<i64> = analysis
            .symbols
            .iter()
            .filter_map(|s| match &s.kind {
                SymKind::Part { of, divisor, .. } if *of == this => Some(*divisor),
                _ => None,
            })
            .collect();
        divisors.into_iter().any(|d| match (part(true, d), part(false, d)) {
            (Some(q), Some(r)) => {
                covered(Sym(q as u32), terms, analysis, used, depth + 1)
                    && covered(Sym(r as u32), terms, analysis, used, depth + 1)
            }
            _ => false,
        })
    }
    let mut used = Vec::new();
    let all = analysis.programs.iter().all(|&p| covered(p, terms, analysis, &mut used, 0));
    // A symbol beyond the cover is a function of the others: its weight would not be a digit's.
    all && terms.iter().all(|(s, _)| used.contains(s))
}

fn radix(store: &Touch, analysis: &Analysis) -> bool {
    let Some(bytes) = &store.bytes else { return false };
    let mut digits: Vec<(i128, i128, Digit)> = Vec::new();
    for (&sym, &c) in &bytes.terms {
        let s = &analysis.symbols[sym.0 as usize];
        let digit = if s.kind == SymKind::Loop { Digit::Loop(sym) } else { Digit::Program(sym) };
        digits.push((i128::from(c.unsigned_abs()), i128::from(s.high) - i128::from(s.low), digit));
    }
    for (d, (&stride, &size)) in bytes.lanes.iter().zip(&store.shape).enumerate() {
        if stride != 0 && size > 1 {
            digits.push((i128::from(stride.unsigned_abs()), i128::from(size) - 1, Digit::Lane(d)));
        }
    }
    // Small weights first; among equals, the program's own lanes before other programs.
    digits.sort_by_key(|(weight, _, digit)| (*weight, matches!(digit, Digit::Program(_))));
    let mut reaches = Reaches { groups: Vec::new() };
    let mut included: Vec<Digit> = Vec::new();
    let mut seen_program = false;
    for (weight, count, digit) in digits {
        let program = matches!(digit, Digit::Program(_));
        let reach = store.elem.size() as i128 + reaches.sum();
        if (program || seen_program) && weight < reach {
            return false;
        }
        seen_program |= program;
        included.push(digit);
        reaches.groups.push((vec![digit], weight * count));
        for condition in &store.conditions {
            if let Some((digits, cap)) = capped(condition, bytes, &included, analysis, &store.shape)
            {
                reaches.cap(&digits, cap);
            }
        }
    }
    true
}

/// How far groups of digits reach, each group together.
struct Reaches {
    groups: Vec<(Vec<Digit>, i128)>,
}

impl Reaches {
    fn sum(&self) -> i128 {
        self.groups.iter().map(|(_, reach)| reach).sum()
    }

    /// Takes into account that these digits together reach no further, where they are whole groups.
    fn cap(&mut self, digits: &[Digit], cap: i128) {
        let (inside, outside): (Vec<_>, Vec<_>) = std::mem::take(&mut self.groups)
            .into_iter()
            .partition(|(group, _)| group.iter().all(|digit| digits.contains(digit)));
        self.groups = outside;
        if inside.iter().map(|(group, _)| group.len()).sum::<usize>() == digits.len() {
            let sum: i128 = inside.iter().map(|(_, reach)| reach).sum();
            self.groups.push((digits.to_vec(), sum.min(cap)));
        } else {
            self.groups.extend(inside);
        }
    }
}

/// If the condition bounds some of the included digits, in the same proportion as the address: which, and how far they
/// reach together.
fn capped(
    condition: &Linear,
    bytes: &Linear,
    included: &[Digit],
    analysis: &Analysis,
    shape: &[u32],
) -> Option<(Vec<Digit>, i128)> {
    let mut ratio: Option<i64> = None;
    let mut lowest = 0i128;
    let mut digits = Vec::new();
    let mut agree = |digit: &Digit, c: i64, weight: i64, low: i64| {
        if c <= 0 || weight <= 0 || weight % c != 0 || ratio.is_some_and(|r| r != weight / c) {
            return false;
        }
        ratio = Some(weight / c);
        lowest += i128::from(c) * i128::from(low);
        digits.push(*digit);
        true
    };
    for (&sym, &c) in &condition.terms {
        let weight = bytes.terms.get(&sym).copied().unwrap_or(0);
        let is_sym = |d: &&Digit| matches!(d, Digit::Program(s) | Digit::Loop(s) if *s == sym);
        let digit = included.iter().find(is_sym)?;
        if !agree(digit, c, weight, analysis.symbols[sym.0 as usize].low) {
            return None;
        }
    }
    for (d, &c) in condition.lanes.iter().enumerate() {
        if c == 0 || shape.get(d).is_none_or(|&s| s == 1) {
            continue;
        }
        let weight = bytes.lanes.get(d).copied().unwrap_or(0);
        let digit = included.iter().find(|digit| **digit == Digit::Lane(d))?;
        if !agree(digit, c, weight, 0) {
            return None;
        }
    }
    // constant + sum < 0, so the sum is at most -constant - 1.
    let most = -i128::from(condition.constant) - 1 - lowest;
    Some((digits, i128::from(ratio?) * most.max(0)))
}
