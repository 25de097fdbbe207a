//! Sources: what is delivered, in which order, and what hostile or damaged input costs.

use passnet_dataset::source::{self, Limits};
use passnet_graph::{FileName, GraphFiles};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Each item in short: `+path file=bytes ...` for a graph, `!file: message` for an error, the root cut away.
fn read(path: &Path, limits: Limits) -> Vec<String> {
    let root = path.display().to_string();
    source::open(path, limits)
        .unwrap()
        .map(|item| match item {
            Ok(graph) => {
                let files = graph.files.iter().map(|(name, bytes)| {
                    format!(" {}={}", name.as_str(), String::from_utf8_lossy(bytes))
                });
                format!("+{}{}", graph.path, files.collect::<String>())
            }
            Err(error) => format!("!{error}").replace(&root, "ROOT"),
        })
        .collect()
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

mod folder {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn tree(files: &[(&str, &str)]) -> TempDir {
        let dir = TempDir::new().unwrap();
        write(dir.path(), files);
        dir
    }

    #[test]
    fn graphs_come_in_sorted_order_with_the_files_that_belong_to_them() {
        let dir = tree(&[
            ("b/two/model.py", "2"),
            ("b/two/notes.md", "not ours"),
            ("b/one/model.py", "1"),
            ("b/one/weight_meta.py", "w"),
            ("b/one/subgraph_0/model.py", "0"),
            ("a/readme/input_meta.py", "no model, no graph"),
        ]);
        assert_eq!(
            read(dir.path(), Limits::default()),
            [
                "+b/one model.py=1 weight_meta.py=w",
                "+b/one/subgraph_0 model.py=0",
                "+b/two model.py=2"
            ]
        );
    }

    #[test]
    fn one_graph_folder_or_its_model_is_a_source_too() {
        let dir = tree(&[("resnet/model.py", "m"), ("resnet/sub/model.py", "s")]);
        let expected = ["+resnet model.py=m", "+resnet/sub model.py=s"];
        assert_eq!(read(&dir.path().join("resnet"), Limits::default()), expected);
        assert_eq!(read(&dir.path().join("resnet/model.py"), Limits::default()), expected);
    }

    #[test]
    fn links_are_followed_once_and_loops_end() {
        let dir = tree(&[("a/model.py", "a"), ("a/deep/x", ""), ("shared/model.py", "s")]);
        let root = dir.path();
        symlink(root, root.join("a/deep/up")).unwrap();
        symlink(root.join("shared"), root.join("again")).unwrap();
        symlink(root.join("nowhere"), root.join("broken")).unwrap();
        symlink("self", root.join("self")).unwrap();
        symlink(root.join("a/deep/x"), root.join("shared/weight_meta.py")).unwrap();
        let items = read(root, Limits::default());
        assert_eq!(
            items,
            [
                "+a model.py=a",
                "!ROOT/a/deep/up: a loop: a link to the enclosing folder `ROOT`, which is read already",
                "+again model.py=s weight_meta.py=",
                "!ROOT/broken: this link leads nowhere: No such file or directory (os error 2)",
                "!ROOT/self: this link leads nowhere: Too many levels of symbolic links (os error 40)",
                "!ROOT/shared: a link to `ROOT/again`, which is read already",
            ]
        );
    }

    #[test]
    fn links_upon_links_do_not_multiply() {
        let dir = TempDir::new().unwrap();
        for level in 0..20 {
            let here = dir.path().join(format!("level{level:02}"));
            fs::create_dir(&here).unwrap();
            for side in ["left", "right"] {
                symlink(format!("../level{:02}", level + 1), here.join(side)).unwrap();
            }
        }
        write(dir.path(), &[("level20/model.py", "end")]);
        let items = read(dir.path(), Limits::default());
        assert_eq!(items.iter().filter(|item| item.starts_with('+')).count(), 1);
        assert!(items.len() < 50, "{} items", items.len());
    }

    #[test]
    fn what_cannot_be_read_is_reported_and_the_rest_is_done() {
        let dir = tree(&[
            ("a/model.py", "a"),
            ("b/model.py", "much too long"),
            ("d/model.py/x", "a folder"),
            ("locked/model.py", "l"),
            ("z/model.py", "z"),
        ]);
        // Reading one's own memory at address 0 fails, for every user.
        fs::create_dir(dir.path().join("c")).unwrap();
        symlink("/proc/self/mem", dir.path().join("c/model.py")).unwrap();
        let locked = dir.path().join("locked");
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
        // The superuser reads it all the same.
        let locked_item = match fs::read_dir(&locked) {
            Ok(_) => "+locked model.py=l".to_owned(),
            Err(error) => format!("!ROOT/locked: this folder cannot be read: {error}"),
        };
        let items = read(dir.path(), Limits { file_bytes: 5, ..Limits::default() });
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(
            items,
            [
                "+a model.py=a",
                "!ROOT/b/model.py: is larger than the 5 bytes allowed here",
                "!ROOT/c/model.py: cannot be read: Input/output error (os error 5)",
                "!ROOT/d/model.py: is not a regular file",
                &locked_item,
                "+z model.py=z",
            ]
        );
    }

    #[test]
    fn names_that_would_break_a_list_are_refused() {
        let dir = tree(&[("good/model.py", ""), ("new\nline/model.py", "")]);
        let items = read(dir.path(), Limits::default());
        assert_eq!(
            items,
            ["+good model.py=", r"!ROOT/new\nline: the name holds a control character"]
        );
    }

    #[test]
    fn the_meter_grows_to_one() {
        let files: Vec<_> = (0..40).map(|n| format!("{}/{n}/model.py", n % 4)).collect();
        let dir = tree(&files.iter().map(|name| (name.as_str(), "")).collect::<Vec<_>>());
        let mut source = source::open(dir.path(), Limits::default()).unwrap();
        let meter = source.meter();
        let mut last = 0.0;
        while source.next().is_some() {
            assert!(meter.fraction() >= last);
            last = meter.fraction();
        }
        assert!(last > 0.9);
        assert!((meter.fraction() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_missing_path_is_a_clear_error() {
        let error = source::open(Path::new("no/such/place"), Limits::default()).err().unwrap();
        assert_eq!(error.file, "no/such/place");
        assert!(error.message.contains("cannot be read"));
    }
}

mod archive {
    use super::*;
    use proptest::prelude::*;

    /// A tar with these files, in this order; names are written as they are, however hostile.
    fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = ::tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = ::tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            if name.ends_with('/') {
                header.set_entry_type(::tar::EntryType::Directory);
            }
            if name.len() < 100 {
                header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
                header.set_cksum();
                builder.append(&header, *bytes).unwrap();
            } else {
                builder.append_data(&mut header, name, *bytes).unwrap();
            }
        }
        builder.into_inner().unwrap()
    }

    fn on_disk(bytes: &[u8]) -> (TempDir, PathBuf) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("corpus.tar");
        fs::write(&path, bytes).unwrap();
        (dir, path)
    }

    fn read_bytes(bytes: &[u8], limits: Limits) -> Vec<String> {
        let (_dir, path) = on_disk(bytes);
        read(&path, limits)
    }

    const SMALL: &[(&str, &[u8])] = &[
        ("samples/", b""),
        ("samples/a/", b""),
        ("samples/a/model.py", b"a"),
        ("samples/a/weight_meta.py", b"wa"),
        ("samples/b/sub/model.py", b"inner"),
        ("samples/b/model.py", b"outer"),
        ("samples/c/input_meta.py", b"no graph"),
        ("samples/d/model.py", b"d"),
    ];
    const SMALL_ITEMS: &[&str] = &[
        "+samples/a model.py=a weight_meta.py=wa",
        "+samples/b/sub model.py=inner",
        "+samples/b model.py=outer",
        "+samples/d model.py=d",
    ];

    #[test]
    fn plain_and_compressed_archives_give_the_same_graphs() {
        let plain = tar(SMALL);
        assert_eq!(read_bytes(&plain, Limits::default()), SMALL_ITEMS);
        let packed = zstd::encode_all(plain.as_slice(), 3).unwrap();
        assert_eq!(read_bytes(&packed, Limits::default()), SMALL_ITEMS);
    }

    #[test]
    fn a_folder_may_hold_graphs_and_be_one() {
        let bytes = tar(&[
            ("./a/model.py", b"a"),
            ("./a/sub/model.py", b"s"),
            ("./a/weight_meta.py", b"w"),
            ("./model.py", b"root"),
        ]);
        assert_eq!(
            read_bytes(&bytes, Limits::default()),
            ["+a/sub model.py=s", "+a model.py=a weight_meta.py=w", "+corpus model.py=root"]
        );
    }

    #[test]
    fn long_names_are_read() {
        let folder = format!("deep/{}", "x".repeat(300));
        let bytes = tar(&[(&format!("{folder}/model.py"), b"long"), ("short/model.py", b"s")]);
        let expected = [format!("+{folder} model.py=long"), "+short model.py=s".to_owned()];
        assert_eq!(read_bytes(&bytes, Limits::default()), expected);
        // The same name in the other notation for it.
        let path = format!("{folder}/model.py");
        let mut builder = ::tar::Builder::new(Vec::new());
        builder.append_pax_extensions([("path", path.as_bytes()), ("size", b"4")]).unwrap();
        let mut header = ::tar::Header::new_ustar();
        header.set_size(4);
        header.set_path("replaced").unwrap();
        header.set_cksum();
        builder.append(&header, b"long".as_slice()).unwrap();
        let bytes = builder.into_inner().unwrap();
        assert_eq!(read_bytes(&bytes, Limits::default()), expected[..1]);
    }

    #[test]
    fn names_that_leave_the_archive_are_refused_and_the_rest_is_read() {
        let bytes = tar(&[
            ("a/model.py", b"a"),
            ("../../etc/model.py", b"x"),
            ("/etc/model.py", b"x"),
            ("a/../../model.py", b"x"),
            ("b/model.py", b"b"),
        ]);
        assert_eq!(
            read_bytes(&bytes, Limits::default()),
            [
                "!ROOT/../../etc/model.py: refused: the name climbs out of its folder with `..`",
                "!ROOT//etc/model.py: refused: the name is absolute",
                "!ROOT/a/../../model.py: refused: the name climbs out of its folder with `..`",
                "+a model.py=a",
                "+b model.py=b",
            ]
        );
    }

    #[test]
    fn links_large_files_and_doubles_fail_their_graph_only() {
        let mut builder = ::tar::Builder::new(tar(&[("a/model.py", b"a")])[..1024].to_vec());
        let mut header = ::tar::Header::new_gnu();
        header.set_entry_type(::tar::EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, "b/model.py", "/etc/passwd").unwrap();
        let mut bytes = builder.into_inner().unwrap();
        bytes.truncate(1536);
        bytes.extend(tar(&[
            ("c/model.py", b"more than ten bytes"),
            ("c/weight_meta.py", b"w"),
            ("d/model.py", b"one"),
            ("d/model.py", b"two"),
            ("e/model.py", b"e"),
        ]));
        assert_eq!(
            read_bytes(&bytes, Limits { file_bytes: 10, ..Limits::default() }),
            [
                "+a model.py=a",
                "!ROOT/b/model.py: is a link or a sparse file; only plain files are read",
                "!ROOT/c/model.py: is larger than the 10 bytes allowed here",
                "!ROOT/d/model.py: stands twice in the archive",
                "+e model.py=e",
            ]
        );
    }

    #[test]
    fn files_that_come_after_their_folder_was_left_are_reported() {
        let bytes =
            tar(&[("a/model.py", b"a"), ("b/model.py", b"b"), ("a/weight_meta.py", b"late")]);
        assert_eq!(
            read_bytes(&bytes, Limits::default()),
            [
                "+a model.py=a",
                "+b model.py=b",
                "!ROOT/a/weight_meta.py: the other files of this folder stand elsewhere in the archive \
                 (hint: pack the tree again with one `tar` command)",
            ]
        );
    }

    #[test]
    fn a_cut_archive_delivers_what_was_complete_and_says_so() {
        let plain = tar(SMALL);
        let packed = zstd::encode_all(plain.as_slice(), 3).unwrap();
        // One zero block is the end mark; everything before it is needed.
        let needed = plain.len() - 512;
        for (bytes, needed) in [(&plain, needed), (&packed, packed.len())] {
            for cut in (0..needed).step_by(if needed > 2000 { 97 } else { 1 }) {
                let items = read_bytes(&bytes[..cut], Limits::default());
                let (error, graphs) = items.split_last().unwrap();
                assert!(error.starts_with("!ROOT: the archive"), "cut at {cut}: {items:?}");
                assert_eq!(graphs, &SMALL_ITEMS[..graphs.len()], "cut at {cut}");
            }
        }
    }

    #[test]
    fn the_graph_in_flight_is_named_when_an_archive_is_cut() {
        let plain = tar(&[("a/model.py", b"a"), ("b/model.py", b"b"), ("b/weight_meta.py", b"w")]);
        let items = read_bytes(&plain[..2048 + 512], Limits::default());
        assert_eq!(
            items,
            ["+a model.py=a", "!ROOT: the archive is cut off; incomplete and left out: `b`"]
        );
    }

    #[test]
    fn bombs_are_stopped() {
        // 64 MB of zeros in 6 kB, under a name nobody wants: skipped, but counted.
        let zeros = vec![0; 64 << 20];
        let packed = zstd::encode_all(tar(&[("z/junk", &zeros)]).as_slice(), 3).unwrap();
        let limits = Limits { archive_bytes: 1 << 20, ..Limits::default() };
        assert_eq!(
            read_bytes(&packed, limits),
            ["!ROOT: the archive cannot be read further: it unpacks to more than is allowed"]
        );
        // A header that claims a name of a terabyte.
        let mut header = ::tar::Header::new_gnu();
        header.set_entry_type(::tar::EntryType::GNULongName);
        header.set_size(1 << 40);
        header.set_cksum();
        assert_eq!(
            read_bytes(header.as_bytes(), Limits::default()),
            ["!ROOT: the archive cannot be read further: a header is too long"]
        );
    }

    #[test]
    fn windows_up_to_27_bits_are_read_and_larger_ones_refused() {
        for (window_log, fine) in [(27, true), (30, false)] {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(window_log).unwrap();
            std::io::Write::write_all(&mut encoder, &tar(SMALL)).unwrap();
            let items = read_bytes(&encoder.finish().unwrap(), Limits::default());
            if fine {
                assert_eq!(items, SMALL_ITEMS);
            } else {
                assert_eq!(items.len(), 1);
                assert!(items[0].contains("too much memory"), "{items:?}");
            }
        }
    }

    #[test]
    fn a_file_that_is_no_archive_is_a_clear_error() {
        let items = read_bytes(&[b'x'; 4096], Limits::default());
        assert_eq!(items.len(), 1);
        assert!(items[0].contains("not a tar archive"), "{items:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Damage anywhere gives errors, never a panic, and never a graph from outside the archive.
        #[test]
        fn damage_is_survived(spots in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), pack: bool) {
            let mut bytes = tar(SMALL);
            if pack {
                bytes = zstd::encode_all(bytes.as_slice(), 3).unwrap();
            }
            for (index, byte) in spots {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
            let (_dir, path) = on_disk(&bytes);
            let source = source::open(&path, Limits::default()).unwrap();
            for graph in source.flatten() {
                prop_assert!(graph.files.contains_key(&FileName::Model));
                prop_assert!(!graph.path.split('/').any(|part| part == ".." || part.is_empty()));
            }
        }
    }

    #[test]
    fn the_meter_reaches_one() {
        let (_dir, path) = on_disk(&tar(SMALL));
        let mut source = source::open(&path, Limits::default()).unwrap();
        let graphs: Vec<GraphFiles> = source.by_ref().map(Result::unwrap).collect();
        assert_eq!(graphs.len(), SMALL_ITEMS.len());
        assert!((source.meter().fraction() - 1.0).abs() < 1e-9);
    }
}
