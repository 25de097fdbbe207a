//! Runs kernel files on the inputs their headers describe and prints the first values of each output.

use passnet_graph::syntax::Source;
use passnet_kernel::exec::RunOptions;
use passnet_kernel::fixture::Fixture;
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for path in std::env::args().skip(1) {
        let fixture = Fixture::new(Source::read(Path::new(&path))?)?;
        let prepared = fixture.prepare()?;
        if std::env::var_os("SHOW_IR").is_some() {
            for f in prepared.functions() {
                writeln!(out, "{f}")?;
            }
        }
        let outputs = fixture.run(&prepared, RunOptions::default())?;
        for (view, data) in outputs.views.iter().zip(&outputs.data) {
            let values: Vec<f32> =
                data.chunks_exact(4).take(8).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            writeln!(out, "{path}: {:?} {} {values:?}", view.shape, view.dtype)?;
        }
    }
    Ok(())
}
