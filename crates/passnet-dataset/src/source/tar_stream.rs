//! Tar read as a stream of entries, with every length checked before memory is taken.
//!
//! The `tar` crate parses headers; its own entry reader is not used because it reads long names and extended headers
//! whole, whatever length an archive claims for them.

use std::io::{self, Read};

const BLOCK: usize = 512;

/// One entry's header, with long names and extended headers applied. Its data comes next in the stream.
#[derive(Debug)]
pub(super) struct TarEntry {
    pub(super) name: Vec<u8>,
    pub(super) kind: TarKind,
    pub(super) size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TarKind {
    File,
    /// A link, or a form of file that is not stored as plain bytes.
    Special,
    /// A folder, or something that is no part of a file tree.
    Other,
}

/// Reads entries one after the other. After an error the position is lost, and so is the rest of the stream.
pub(super) struct TarStream<R> {
    reader: R,
    /// Bytes of the current entry that are still ahead, and the padding after them.
    unread: u64,
    padding: u64,
    longest_name: u64,
}

impl<R: Read> TarStream<R> {
    pub(super) fn new(reader: R, longest_name: u64) -> Self {
        Self { reader, unread: 0, padding: 0, longest_name }
    }

    /// The next entry, or nothing at the end mark. A stream that stops without one is an error.
    pub(super) fn next_entry(&mut self) -> io::Result<Option<TarEntry>> {
        let mut long_name = None;
        let mut extended_size = None;
        loop {
            self.skip_entry()?;
            let mut header = tar::Header::new_old();
            self.reader.read_exact(header.as_mut_bytes())?;
            if header.as_bytes().iter().all(|&byte| byte == 0) {
                self.drain()?;
                return Ok(None);
            }
            check_sum(&header)?;
            let kind = header.entry_type();
            self.unread = match extended_size {
                Some(size) if !is_prelude(kind) => size,
                _ => header.entry_size()?,
            };
            self.padding = self.unread.wrapping_neg() % BLOCK as u64;
            if kind.is_gnu_longname() {
                let mut name = self.read_whole(self.longest_name + 1)?;
                let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                name.truncate(end);
                long_name = Some(name);
            } else if kind.is_pax_local_extensions() {
                // A header holds a path, a link target and small things.
                let text = self.read_whole(self.longest_name.saturating_mul(4))?;
                for extension in tar::PaxExtensions::new(&text) {
                    let extension = extension?;
                    match extension.key_bytes() {
                        b"path" => long_name = Some(extension.value_bytes().to_vec()),
                        b"size" => extended_size = Some(parse_size(extension.value_bytes())?),
                        _ => {}
                    }
                }
            } else if !is_prelude(kind) {
                let name = long_name.unwrap_or_else(|| header.path_bytes().into_owned());
                if name.len() as u64 > self.longest_name {
                    return Err(invalid("a name is too long"));
                }
                let kind = if name.ends_with(b"/") {
                    TarKind::Other
                } else if kind.is_file() || kind.is_contiguous() {
                    TarKind::File
                } else if kind.is_symlink() || kind.is_hard_link() || kind.is_gnu_sparse() {
                    TarKind::Special
                } else {
                    TarKind::Other
                };
                return Ok(Some(TarEntry { name, kind, size: self.unread }));
            }
        }
    }

    /// The data of the current entry. The caller has checked its size.
    pub(super) fn read_data(&mut self) -> io::Result<Vec<u8>> {
        let size = self.unread;
        self.read_whole(size)
    }

    fn read_whole(&mut self, limit: u64) -> io::Result<Vec<u8>> {
        if self.unread > limit {
            return Err(invalid("a header is too long"));
        }
        // The size is only a claim: memory follows the bytes that really come.
        let mut data = Vec::with_capacity(self.unread.min(1 << 20) as usize);
        let read = (&mut self.reader).take(self.unread).read_to_end(&mut data)? as u64;
        if read < self.unread {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.unread = 0;
        Ok(data)
    }

    fn skip_entry(&mut self) -> io::Result<()> {
        let ahead = self.unread.saturating_add(self.padding);
        let skipped = io::copy(&mut (&mut self.reader).take(ahead), &mut io::sink())?;
        if skipped < ahead {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (self.unread, self.padding) = (0, 0);
        Ok(())
    }

    /// Reads what follows the end mark, so that a checksum at the end of the compressed stream is verified.
    fn drain(&mut self) -> io::Result<()> {
        io::copy(&mut self.reader, &mut io::sink()).map(|_| ())
    }
}

/// Entries that only say something about the entry after them, or about the archive.
fn is_prelude(kind: tar::EntryType) -> bool {
    kind.is_gnu_longname()
        || kind.is_gnu_longlink()
        || kind.is_pax_local_extensions()
        || kind.is_pax_global_extensions()
}

fn check_sum(header: &tar::Header) -> io::Result<()> {
    let bytes = header.as_bytes();
    // The sum counts its own field as spaces.
    let sum: u32 = bytes[..148].iter().chain(&bytes[156..]).map(|&byte| u32::from(byte)).sum();
    if header.cksum().is_ok_and(|claimed| claimed == sum + 8 * u32::from(b' ')) {
        Ok(())
    } else {
        Err(invalid("not a tar archive, or a damaged one: a header's checksum does not fit"))
    }
}

fn parse_size(text: &[u8]) -> io::Result<u64> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| invalid("a size is not a number"))
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
