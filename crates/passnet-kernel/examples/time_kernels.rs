//! Times kernel files on request, so that another program can alternate its own measurements with ours.
//!
//! `time_kernels [--threads N] FILE...` reads one command a line from standard input and answers each with one
//! line of JSON (best wall time, and mean time on the cores of all threads together): `run INDEX REPEATS` (times of a prepared plan on warm buffers), `copy INDEX REPEATS` (a plain copy
//! that moves as many bytes as the plan has buffers), `first INDEX` (from text to the first result, inputs at hand).
//! `tools/bench_kernels.py` is the other program.

use passnet_graph::syntax::Source;
use passnet_kernel::exec::{PreparedPlan, RunOptions};
use passnet_kernel::fixture::Fixture;
use rayon::prelude::*;
use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

struct Loaded {
    path: String,
    text: String,
    prepared: PreparedPlan,
    buffers: Vec<Aligned>,
}

fn load(path: &str) -> Result<Loaded, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let fixture = Fixture::new(Source::read(Path::new(path))?)?;
    let prepared = fixture.prepare()?;
    let buffers = fixture.buffers(&prepared).iter().map(|b| Aligned::new(b)).collect();
    Ok(Loaded { path: path.to_string(), text, prepared, buffers })
}

/// Bytes that begin at a cache line, as those of PyTorch's tensors do.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn new(data: &[u8]) -> Aligned {
        let mut bytes = vec![0; data.len() + 64];
        let start = bytes.as_ptr().align_offset(64);
        bytes[start..start + data.len()].copy_from_slice(data);
        Aligned { bytes, start, len: data.len() }
    }
}

fn slices(buffers: &mut [Aligned]) -> Vec<&mut [u8]> {
    buffers.iter_mut().map(|b| &mut b.bytes[b.start..b.start + b.len]).collect()
}

/// Seconds that the threads of this process have been on a core, where the system tells.
fn busy_seconds() -> f64 {
    let mut nanoseconds = 0.0;
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        nanoseconds += text.split(' ').next().and_then(|t| t.parse().ok()).unwrap_or(0.0);
    }
    nanoseconds * 1e-9
}

fn time(
    repeats: usize,
    mut work: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<String, Box<dyn Error>> {
    let repeats = repeats.clamp(1, 100_000);
    let mut wall = f64::INFINITY;
    let before = busy_seconds();
    for _ in 0..repeats {
        let started = Instant::now();
        work()?;
        wall = wall.min(started.elapsed().as_secs_f64());
    }
    let busy = (busy_seconds() - before) / repeats as f64;
    Ok(format!("\"min\": {wall:e}, \"busy\": {busy:e}"))
}

fn answer(
    kernels: &mut [Loaded],
    options: RunOptions,
    line: &str,
) -> Result<String, Box<dyn Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |i: usize| -> Result<usize, Box<dyn Error>> {
        Ok(words.get(i).ok_or("a command needs a kernel and a count")?.parse()?)
    };
    let kernel = kernels.get_mut(number(1)?).ok_or("no such kernel")?;
    let bytes: usize = kernel.buffers.iter().map(|b| b.len).sum();
    let times = match words[0] {
        "run" => {
            time(number(2)?, || Ok(kernel.prepared.run(slices(&mut kernel.buffers), options)?))?
        }
        "copy" => {
            let mut both = [Aligned::new(&vec![1; bytes / 2]), Aligned::new(&vec![0; bytes / 2])];
            let [from, to] = &mut slices(&mut both)[..] else { return Err("two".into()) };
            let part = (bytes / 2).div_ceil(options.threads).max(1);
            time(number(2)?, || {
                to.par_chunks_mut(part)
                    .zip(from.par_chunks(part))
                    .for_each(|(to, from)| to.copy_from_slice(from));
                Ok(())
            })?
        }
        "first" => time(1, || {
            let fixture = Fixture::new(Source::new(&kernel.path, &*kernel.text))?;
            let prepared = fixture.prepare()?;
            Ok(prepared.run(slices(&mut kernel.buffers), options)?)
        })?,
        other => return Err(format!("unknown command `{other}`").into()),
    };
    Ok(format!("{{{times}, \"bytes\": {bytes}, \"parallel\": {:?}}}", kernel.prepared.parallel()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    if files.first().is_some_and(|f| f == "--threads") {
        let threads = files.get(1).ok_or("`--threads` needs a number")?.parse()?;
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
        files.drain(..2);
    }
    let options = RunOptions::default();
    let mut kernels = files.iter().map(|f| load(f)).collect::<Result<Vec<_>, _>>()?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&mut kernels, options, &line?)?)?;
        out.flush()?;
    }
    Ok(())
}
