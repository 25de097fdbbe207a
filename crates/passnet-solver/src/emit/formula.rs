//! Formulas of sizes as a reader would write them.

/// A formula with room around its operators; products over the dimensions of one tensor are told by `numel`, so that
/// the text, and the kernel's launch, do not depend on how many dimensions there are.
pub(super) fn readable(formula: &str, rank_of: impl Fn(&str) -> Option<usize>) -> String {
    match whole_dimensions(formula, rank_of) {
        Some(text) => text,
        None => spaced(formula),
    }
}

/// A formula with room around its operators.
pub(super) fn spaced(formula: &str) -> String {
    formula.replace('*', " * ").replace("//", " // ").replace('%', " % ")
}

/// A product in which all dimensions of a tensor, or all but the last, are factors.
fn whole_dimensions(formula: &str, rank_of: impl Fn(&str) -> Option<usize>) -> Option<String> {
    if formula.contains("//") || formula.contains(['+', '-', '%', '(']) {
        return None;
    }
    let mut rest: Vec<&str> = formula.split('*').map(str::trim).collect();
    let mut parts: Vec<String> = Vec::new();
    while let Some((name, _)) = rest.iter().find_map(|factor| dimension(factor)) {
        let rank = rank_of(name)?;
        let mut own: Vec<usize> = Vec::new();
        rest.retain(|factor| match dimension(factor) {
            Some((other, at)) if other == name => {
                own.push(at);
                false
            }
            _ => true,
        });
        own.sort_unstable();
        let last = rank.checked_sub(1)?;
        if own.iter().copied().eq(0..rank) {
            parts.push(format!("{name}.numel()"));
        } else if own.iter().copied().eq(0..last) && last > 0 {
            // In front: what follows multiplies an exact quotient.
            parts.insert(0, format!("{name}.numel() // {name}.shape[-1]"));
        } else if own == [last] {
            parts.push(format!("{name}.shape[-1]"));
        } else {
            parts.extend(own.iter().map(|at| format!("{name}.shape[{at}]")));
        }
    }
    parts.extend(rest.into_iter().map(str::to_string));
    // A second quotient would divide the product before it.
    let quotients = parts.iter().filter(|part| part.contains("//")).count();
    (quotients < 2).then(|| parts.join(" * "))
}

/// `NAME.shape[K]`.
fn dimension(factor: &str) -> Option<(&str, usize)> {
    let (name, rest) = factor.split_once(".shape[")?;
    Some((name, rest.strip_suffix(']')?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::readable;

    fn rank(name: &str) -> Option<usize> {
        match name {
            "x" => Some(3),
            "y" => Some(1),
            _ => None,
        }
    }

    #[test]
    fn products_over_whole_tensors_do_not_name_dimensions() {
        for (formula, text) in [
            ("x.shape[0]*x.shape[1]*x.shape[2]", "x.numel()"),
            ("x.shape[0]*x.shape[1]", "x.numel() // x.shape[-1]"),
            ("y.shape[0]*x.shape[0]*x.shape[1]", "x.numel() // x.shape[-1] * y.numel()"),
            ("x.shape[2]", "x.shape[-1]"),
            ("x.shape[1]", "x.shape[1]"),
            ("x.shape[1]*x.shape[2]*4", "x.shape[1] * x.shape[2] * 4"),
            ("(x.shape[0]+1)//2", "(x.shape[0]+1) // 2"),
            ("z.shape[0]*2", "z.shape[0] * 2"),
        ] {
            assert_eq!(readable(formula, rank), text, "{formula}");
        }
    }
}
