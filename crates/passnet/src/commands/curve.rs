//! An ES(t) curve as bars of text.

use crate::error::CommandError;
use crate::output::Output;
use passnet_bench::score::Curve;

const BAR_WIDTH: f64 = 40.0;

/// One bar per level; the mark stands where eager is.
pub fn print_curve(curve: &Curve, out: &mut Output) -> Result<(), CommandError> {
    let top = curve.iter().map(|(_, value)| value).fold(1.0, f64::max);
    let columns = |value: f64| (value / top * BAR_WIDTH).round() as usize;
    let eager = columns(1.0);
    out.line(format!("  t    ES(t)  {:>width$}", "1 = eager ▼", width = eager.max(11)))?;
    for (t, value) in curve.iter() {
        let filled = columns(value);
        let bar: String = (1..=filled.max(eager))
            .map(|column| match (column <= filled, column == eager) {
                (true, _) => '█',
                (false, true) => '│',
                (false, false) => ' ',
            })
            .collect();
        out.line(format!("{t:>3}  {value:>7.4}  {bar}"))?;
    }
    Ok(())
}
