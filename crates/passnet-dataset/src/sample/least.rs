//! How many graphs a task of each kind has at least.

use super::buckets::PieceKind;
use std::str::FromStr;

/// Graphs that a task has at least, by its kind: `6`, or `6,fusible=8` where one kind has others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeastGraphs {
    fusible: usize,
    sole_op: usize,
    typical: usize,
}

impl LeastGraphs {
    /// The same number for every kind.
    pub const fn all(least: usize) -> Self {
        LeastGraphs { fusible: least, sole_op: least, typical: least }
    }

    /// The number of one kind.
    pub fn of(self, kind: PieceKind) -> usize {
        match kind {
            PieceKind::Fusible => self.fusible,
            PieceKind::SoleOp => self.sole_op,
            PieceKind::Typical => self.typical,
        }
    }
}

impl FromStr for LeastGraphs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let number = |text: &str| {
            text.trim().parse().map_err(|_| {
                format!("`{}` is no number; write `6`, or `6,fusible=8`", text.escape_debug())
            })
        };
        let mut least = LeastGraphs::all(number(parts.next().unwrap_or_default())?);
        for part in parts {
            let Some((kind, of_kind)) = part.split_once('=') else {
                let part = part.escape_debug();
                return Err(format!("`{part}` names no kind; write `6`, or `6,fusible=8`"));
            };
            let of_kind = number(of_kind)?;
            match kind.trim() {
                "fusible" => least.fusible = of_kind,
                "sole-op" => least.sole_op = of_kind,
                "typical" => least.typical = of_kind,
                other => {
                    let kinds = "there are fusible, sole-op and typical";
                    return Err(format!("no kind `{}`: {kinds}", other.escape_debug()));
                }
            }
        }
        Ok(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_may_have_its_own_number() {
        let least: LeastGraphs = "6,fusible=8, sole-op=2".parse().unwrap();
        let kinds = [PieceKind::Fusible, PieceKind::SoleOp, PieceKind::Typical];
        assert_eq!(kinds.map(|kind| least.of(kind)), [8, 2, 6]);
        assert_eq!("7".parse(), Ok(LeastGraphs::all(7)));
        for (text, says) in [
            ("", "`` is no number"),
            ("six", "`six` is no number"),
            ("6,8", "`8` names no kind"),
            ("6,fusible=-1", "`-1` is no number"),
            ("6,full=8", "no kind `full`"),
        ] {
            let error = text.parse::<LeastGraphs>().unwrap_err();
            assert!(error.starts_with(says), "{text}: {error}");
        }
    }
}
