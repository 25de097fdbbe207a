//! Blobs in and out of their compressed form.
//!
//! A subgraph's files are a few hundred bytes to a few kilobytes: too short for a compressor to learn from. Each kind
//! of file therefore has a zstd dictionary trained on the store's own content. Every blob names the dictionary it was
//! compressed with, so dictionaries can be added at any time without touching older blobs.

use passnet_graph::FileName;
use std::collections::BTreeMap;
use std::io;
use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::EncoderDictionary;

/// For writing: on whole models, 1.1 times smaller than level 3 for 1.5 times the time. Small graphs hardly differ.
pub(super) const FAST: i32 = 5;
/// For compaction, which is asked for to make the file small.
pub(super) const DENSE: i32 = 12;

const DICTIONARY_BYTES: usize = 64 << 10;
/// zstd asks for about a hundred times the dictionary's size in samples.
const SAMPLE_BYTES: usize = 100 * DICTIONARY_BYTES;
/// Long files contribute pieces of this size from all over them.
const PIECE_BYTES: usize = 1 << 10;
const PIECES_PER_FILE: usize = 4;
/// Fewer samples than this teach nothing.
const FEWEST_SAMPLES: usize = 64;
/// Longer files learn from themselves; a dictionary would only pin the compressor's parameters to small inputs.
const LONGEST_WITH_DICTIONARY: usize = 256 << 10;
/// What a blob may claim to unpack to: the largest file a source delivers, with room for other makers.
const LARGEST_BLOB: usize = 256 << 20;

/// How a blob is stored: as it is, compressed alone, or compressed with a dictionary.
pub(super) const RAW: i64 = -1;
pub(super) const NO_DICTIONARY: i64 = 0;

/// The newest dictionary of each kind of file.
pub(super) struct Encoder {
    level: i32,
    dictionaries: BTreeMap<FileName, (i64, EncoderDictionary<'static>)>,
}

impl Encoder {
    pub(super) fn new(level: i32) -> Self {
        Self { level, dictionaries: BTreeMap::new() }
    }

    pub(super) fn set(&mut self, file: FileName, id: i64, dictionary: &[u8]) -> io::Result<()> {
        let prepared = EncoderDictionary::try_copy(dictionary, self.level)?;
        self.dictionaries.insert(file, (id, prepared));
        Ok(())
    }

    pub(super) fn session(&self) -> EncoderSession<'_> {
        EncoderSession { encoder: self, compressors: BTreeMap::new() }
    }
}

/// Compresses blobs one after the other on one thread, with the working memory kept between them.
pub(super) struct EncoderSession<'a> {
    encoder: &'a Encoder,
    compressors: BTreeMap<i64, Compressor<'a>>,
}

impl EncoderSession<'_> {
    /// The dictionary used (or [`RAW`], [`NO_DICTIONARY`]) and the bytes to store.
    pub(super) fn pack(&mut self, file: FileName, bytes: &[u8]) -> io::Result<(i64, Vec<u8>)> {
        let chosen =
            self.encoder.dictionaries.get(&file).filter(|_| bytes.len() <= LONGEST_WITH_DICTIONARY);
        let id = chosen.map_or(NO_DICTIONARY, |(id, _)| *id);
        let compressor = match self.compressors.entry(id) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(match chosen {
                Some((_, dictionary)) => Compressor::with_prepared_dictionary(dictionary)?,
                None => Compressor::new(self.encoder.level)?,
            }),
        };
        let mut packed = compressor.compress(bytes)?;
        // The buffer was made for the worst case; a batch of them would hold its raw size again.
        packed.shrink_to_fit();
        if packed.len() < bytes.len() { Ok((id, packed)) } else { Ok((RAW, bytes.to_vec())) }
    }
}

/// Reads blobs back; dictionaries are loaded the first time a blob names them.
#[derive(Default)]
pub(super) struct Decoder {
    decompressors: BTreeMap<i64, Decompressor<'static>>,
}

impl Decoder {
    /// Unpacks a blob of `size` bytes. `load` fetches a dictionary by its id.
    pub(super) fn unpack<E: From<io::Error>>(
        &mut self,
        dictionary: i64,
        size: usize,
        packed: Vec<u8>,
        load: impl FnOnce(i64) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        if size > LARGEST_BLOB {
            return Err(io::Error::other(format!("a file claims {size} bytes")).into());
        }
        let bytes = if dictionary == RAW {
            packed
        } else {
            let decompressor = match self.decompressors.entry(dictionary) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(if dictionary == NO_DICTIONARY {
                        Decompressor::new()?
                    } else {
                        Decompressor::with_dictionary(&load(dictionary)?)?
                    })
                }
            };
            decompressor.decompress(&packed, size)?
        };
        if bytes.len() == size {
            Ok(bytes)
        } else {
            Err(io::Error::other(format!("a file of {size} bytes has {}", bytes.len())).into())
        }
    }
}

/// Collects samples of one kind of file and learns a dictionary from them.
#[derive(Default)]
pub(super) struct Trainer {
    bytes: Vec<u8>,
    sizes: Vec<usize>,
}

impl Trainer {
    /// Whether files of this size are worth reading for [`Trainer::add`].
    pub(super) fn wants(size: i64) -> bool {
        usize::try_from(size).is_ok_and(|size| size <= LONGEST_WITH_DICTIONARY)
    }

    pub(super) fn add(&mut self, file: &[u8]) {
        if file.len() <= PIECES_PER_FILE * PIECE_BYTES {
            self.add_piece(file);
        } else {
            let step = (file.len() - PIECE_BYTES) / (PIECES_PER_FILE - 1);
            for start in (0..PIECES_PER_FILE).map(|piece| piece * step) {
                self.add_piece(&file[start..start + PIECE_BYTES]);
            }
        }
    }

    fn add_piece(&mut self, piece: &[u8]) {
        // zstd refuses samples shorter than this.
        if piece.len() >= 8 && self.bytes.len() + piece.len() <= SAMPLE_BYTES {
            self.bytes.extend_from_slice(piece);
            self.sizes.push(piece.len());
        }
    }

    /// A dictionary, or nothing where there is too little to learn from.
    pub(super) fn train(&self) -> Option<Vec<u8>> {
        if self.sizes.len() < FEWEST_SAMPLES {
            return None;
        }
        let size = DICTIONARY_BYTES.min(self.bytes.len() / 8);
        // Samples without anything in common are an error to zstd and no loss to us.
        zstd::dict::from_continuous(&self.bytes, &self.sizes, size).ok()
    }
}
