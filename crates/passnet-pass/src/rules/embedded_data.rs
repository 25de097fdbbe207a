//! `embedded-data`: long lists of numbers in the source

use super::{Context, Example, Report, Rule, Severity};
use super::{Unit, facts};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "embedded-data",
    severity: Severity::Warn,
    what: "Long lists of numbers in the source",
    why: "A table of answers, recognised by shape or hash, is not a computation",
    limits: "Tuning tables and small look-up tables are honest; they are usually shorter",
    instead: "compute the values in a kernel",
    example: Example::Lines {
        top: "TABLE = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5, 16.5, 17.5, 18.5, 19.5, 20.5, 21.5, 22.5, 23.5, 24.5, 25.5, 26.5, 27.5, 28.5, 29.5, 30.5, 31.5, 32.5, 33.5, 34.5, 35.5, 36.5, 37.5, 38.5, 39.5, 40.5, 41.5, 42.5, 43.5, 44.5, 45.5, 46.5, 47.5, 48.5, 49.5, 50.5, 51.5, 52.5, 53.5, 54.5, 55.5, 56.5, 57.5, 58.5, 59.5, 60.5, 61.5, 62.5, 63.5, 64.5, 65.5, 66.5, 67.5, 68.5, 69.5, 70.5, 71.5, 72.5, 73.5, 74.5, 75.5, 76.5, 77.5, 78.5, 79.5, 80.5, 81.5, 82.5, 83.5, 84.5, 85.5, 86.5, 87.5, 88.5, 89.5, 90.5, 91.5, 92.5, 93.5, 94.5, 95.5, 96.5, 97.5, 98.5, 99.5, 100.5, 101.5, 102.5, 103.5, 104.5, 105.5, 106.5, 107.5, 108.5, 109.5, 110.5, 111.5, 112.5, 113.5, 114.5, 115.5, 116.5, 117.5, 118.5, 119.5, 120.5, 121.5, 122.5, 123.5, 124.5, 125.5, 126.5, 127.5, 128.5, 129.5, 130.5, 131.5, 132.5, 133.5, 134.5, 135.5, 136.5, 137.5, 138.5, 139.5, 140.5, 141.5, 142.5, 143.5, 144.5, 145.5, 146.5, 147.5, 148.5, 149.5, 150.5, 151.5, 152.5, 153.5, 154.5, 155.5, 156.5, 157.5, 158.5, 159.5, 160.5, 161.5, 162.5, 163.5, 164.5, 165.5, 166.5, 167.5, 168.5, 169.5, 170.5, 171.5, 172.5, 173.5, 174.5, 175.5, 176.5, 177.5, 178.5, 179.5, 180.5, 181.5, 182.5, 183.5, 184.5, 185.5, 186.5, 187.5, 188.5, 189.5, 190.5, 191.5, 192.5, 193.5, 194.5, 195.5, 196.5, 197.5, 198.5, 199.5, 200.5, 201.5, 202.5, 203.5, 204.5, 205.5, 206.5, 207.5, 208.5, 209.5, 210.5, 211.5, 212.5, 213.5, 214.5, 215.5, 216.5, 217.5, 218.5, 219.5, 220.5, 221.5, 222.5, 223.5, 224.5, 225.5, 226.5, 227.5, 228.5, 229.5, 230.5, 231.5, 232.5, 233.5, 234.5, 235.5, 236.5, 237.5, 238.5, 239.5, 240.5, 241.5, 242.5, 243.5, 244.5, 245.5, 246.5, 247.5, 248.5, 249.5, 250.5, 251.5, 252.5, 253.5, 254.5, 255.5, 256.5, 257.5, 258.5, 259.5, 260.5, 261.5, 262.5, 263.5, 264.5, 265.5, 266.5, 267.5, 268.5, 269.5, 270.5, 271.5, 272.5, 273.5, 274.5, 275.5, 276.5, 277.5, 278.5, 279.5, 280.5, 281.5, 282.5, 283.5, 284.5, 285.5, 286.5, 287.5, 288.5, 289.5, 290.5, 291.5, 292.5, 293.5, 294.5, 295.5, 296.5, 297.5, 298.5, 299.5]",
        body: "",
    },
    honest: Example::Lines { top: "SIZES = [32, 64, 128, 256]", body: "" },
    check,
};

/// Shorter lists are taken for what they usually are.
const LONG: usize = 256;

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in &context.units {
        facts::expressions(unit, |expr| {
            let items = match expr {
                ast::Expr::List(list) => list.elts.len(),
                ast::Expr::Tuple(tuple) => tuple.elts.len(),
                ast::Expr::Dict(dict) => dict.items.len(),
                ast::Expr::Set(set) => set.elts.len(),
                ast::Expr::StringLiteral(text) => text.value.to_str().len() / 16,
                ast::Expr::BytesLiteral(bytes) => bytes.value.len() / 4,
                _ => return,
            };
            if items > LONG && !is_docstring(unit, expr) {
                report.unit(
                    unit,
                    expr.range(),
                    format!("{items} values are written into the source"),
                );
            }
        });
    }
}

/// A long text that stands alone is a comment.
fn is_docstring(unit: &Unit<'_>, expr: &ast::Expr) -> bool {
    let mut alone = false;
    facts::walk(unit, &mut |item| {
        if let facts::Item::Stmt(ast::Stmt::Expr(stmt)) = item {
            alone |= stmt.value.range() == expr.range();
        }
    });
    alone
}
