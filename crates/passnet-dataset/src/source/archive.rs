//! Graphs in a `.tar` or `.tar.zst`, streamed: one graph is in memory at a time, however large the archive is.
//!
//! A graph is complete when the archive goes on with a folder outside it, which is how archives of folder trees are
//! written. Files that come for a folder already left are reported.

use super::tar_stream::{TarEntry, TarKind, TarStream};
use super::{GraphSource, Limits, Meter, shown};
use crate::content::{ContentKey, check_path_part};
use passnet_graph::Diagnostic;
use passnet_graph::{FileName, GraphFiles};
use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// `zstd --long=27` is what large corpora are packed with; a larger window would let a header claim gigabytes.
const WINDOW_LOG_MAX: u32 = 27;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Graphs of a tar archive, plain or compressed with zstd.
pub struct ArchiveSource {
    archive: String,
    /// The name of a graph whose files stand at the archive's root.
    root_name: String,
    stream: Option<TarStream<Box<dyn Read + Send>>>,
    /// Folders whose files are still coming, each inside the one before.
    open: Vec<OpenFolder>,
    /// Folders that have been left.
    left: HashSet<ContentKey>,
    ready: VecDeque<Result<GraphFiles, Diagnostic>>,
    limits: Limits,
    meter: Meter,
}

impl std::fmt::Debug for ArchiveSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveSource").field("archive", &self.archive).finish_non_exhaustive()
    }
}

struct OpenFolder {
    /// Empty for the root.
    folder: String,
    graph: GraphFiles,
    /// The first thing wrong with the graph; a graph with one is not delivered.
    error: Option<Diagnostic>,
}

impl ArchiveSource {
    /// Opens the archive; how it is compressed is seen from its first bytes.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, Diagnostic> {
        let archive = shown(&path.to_string_lossy());
        let cannot =
            |error: io::Error| Diagnostic::file(&archive, format!("cannot be read: {error}"));
        let file = File::open(path).map_err(cannot)?;
        let meter = Meter::default();
        let total = file.metadata().map_err(cannot)?.len();
        let mut packed = BufReader::new(Metered { file, read: 0, total, meter: meter.clone() });
        let is_zstd = packed.fill_buf().map_err(cannot)?.starts_with(&ZSTD_MAGIC);
        let unpacked: Box<dyn Read + Send> = if is_zstd {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(cannot)?;
            decoder.window_log_max(WINDOW_LOG_MAX).map_err(cannot)?;
            Box::new(decoder)
        } else {
            Box::new(packed)
        };
        let bounded = Box::new(Bounded { reader: unpacked, left: limits.archive_bytes });
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let stem = name.trim_end_matches(".zst").trim_end_matches(".tar");
        Ok(Self {
            root_name: if check_path_part(stem).is_ok() { stem } else { "graph" }.to_owned(),
            archive,
            stream: Some(TarStream::new(bounded, limits.name_bytes)),
            open: Vec::new(),
            left: HashSet::new(),
            ready: VecDeque::new(),
            limits,
            meter,
        })
    }

    /// Reads one entry and makes ready what it completes.
    fn step(&mut self, mut stream: TarStream<Box<dyn Read + Send>>) {
        match stream.next_entry() {
            Ok(Some(entry)) => match self.take(&entry, &mut stream) {
                Ok(()) => self.stream = Some(stream),
                Err(error) => self.stop(&error),
            },
            Ok(None) => self.leave_all_but(|_| false),
            Err(error) => self.stop(&error),
        }
    }

    /// Sorts one entry in. An error is the stream's; what is wrong with the entry is made ready as an item.
    fn take<R: Read>(&mut self, entry: &TarEntry, stream: &mut TarStream<R>) -> io::Result<()> {
        let (folder, file) = match split_name(&entry.name) {
            Ok(parts) => parts,
            Err(why) => {
                let name = String::from_utf8_lossy(&entry.name);
                self.ready.push_back(Err(self.problem(&name, format!("refused: the name {why}"))));
                return Ok(());
            }
        };
        self.leave_all_but(|open| open.is_empty() || folder == open || is_below(&folder, open));
        let Some(name) = FileName::parse(&file).filter(|_| entry.kind != TarKind::Other) else {
            return Ok(());
        };
        let full_name = if folder.is_empty() { file } else { format!("{folder}/{file}") };
        if self.left.contains(&ContentKey::of(folder.as_bytes())) {
            let message = "the other files of this folder stand elsewhere in the archive";
            let hint = "pack the tree again with one `tar` command";
            self.ready.push_back(Err(self.problem(&full_name, message.into()).with_hint(hint)));
            return Ok(());
        }
        let held: usize = self.open.iter().map(|open| open.graph.size()).sum();
        let room = self.limits.graph_bytes.saturating_sub(held as u64).min(self.limits.file_bytes);
        let wrong = if entry.kind == TarKind::Special {
            Some("is a link or a sparse file; only plain files are read".to_owned())
        } else if entry.size > room {
            Some(format!("is larger than the {room} bytes allowed here"))
        } else {
            None
        };
        let wrong = wrong.map(|message| self.problem(&full_name, message));
        if self.open.last().is_none_or(|open| open.folder != folder) {
            let path = if folder.is_empty() { self.root_name.clone() } else { folder.clone() };
            let graph = GraphFiles::new(path);
            self.open.push(OpenFolder { folder, graph, error: None });
        }
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        if wrong.is_some() {
            open.error = open.error.take().or(wrong);
            // The name counts as seen, so that a bad `model.py` still makes its folder a graph.
            open.graph.files.entry(name).or_default();
        } else if open.graph.files.insert(name, stream.read_data()?).is_some() {
            let error = Diagnostic::file(
                format!("{}/{}", self.archive, shown(&full_name)),
                "stands twice in the archive",
            );
            open.error.get_or_insert(error);
        }
        Ok(())
    }

    /// Delivers the innermost open folders until one is met that `stays`.
    fn leave_all_but(&mut self, stays: impl Fn(&str) -> bool) {
        while let Some(open) = self.open.pop_if(|open| !stays(&open.folder)) {
            self.left.insert(ContentKey::of(open.folder.as_bytes()));
            if open.graph.files.contains_key(&FileName::Model) {
                self.ready.push_back(open.error.map_or(Ok(open.graph), Err));
            }
        }
    }

    /// The stream broke. Open folders may lack files, so they are named in the error instead of delivered.
    fn stop(&mut self, error: &io::Error) {
        let mut message = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the archive is cut off".to_owned(),
            _ => format!("the archive cannot be read further: {error}"),
        };
        for open in std::mem::take(&mut self.open) {
            if open.graph.files.contains_key(&FileName::Model) {
                message += &format!("; incomplete and left out: `{}`", shown(&open.graph.path));
            }
        }
        self.ready.push_back(Err(Diagnostic::file(&self.archive, message)));
    }

    fn problem(&self, name: &str, message: String) -> Diagnostic {
        Diagnostic::file(format!("{}/{}", self.archive, shown(name)), message)
    }
}

impl Iterator for ArchiveSource {
    type Item = Result<GraphFiles, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            let stream = self.stream.take()?;
            self.step(stream);
        }
    }
}

impl GraphSource for ArchiveSource {
    fn meter(&self) -> Meter {
        self.meter.clone()
    }
}

/// The folder and the last part of an entry's name; `.` parts are dropped.
fn split_name(name: &[u8]) -> Result<(String, String), &'static str> {
    let name = std::str::from_utf8(name).map_err(|_| "is not UTF-8")?;
    if name.starts_with('/') {
        return Err("is absolute");
    }
    let mut parts: Vec<&str> =
        name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.iter().try_for_each(|part| check_path_part(part))?;
    let file = parts.pop().unwrap_or_default().to_owned();
    Ok((parts.join("/"), file))
}

fn is_below(folder: &str, other: &str) -> bool {
    folder.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// Tells the meter how much of the file has been read.
struct Metered {
    file: File,
    read: u64,
    total: u64,
    meter: Meter,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read += count as u64;
        self.meter.set(self.read as f64 / self.total.max(1) as f64);
        Ok(count)
    }
}

/// Stops a stream that unpacks to more than it may. `Read::take` would make that look like its proper end.
struct Bounded<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "it unpacks to more than is allowed")
        })?;
        Ok(count)
    }
}
