use super::thrift::varint;
use super::*;
use proptest::prelude::*;
use std::path::PathBuf;
use tempfile::TempDir;

fn fields() -> Vec<Field> {
    vec![
        Field::required("name", Type::Text),
        Field::optional("body", Type::Bytes),
        Field::optional("small", Type::Int32),
        Field::group("more", vec![Field::required("large", Type::Int64)]),
        Field::texts("words"),
    ]
}

type Row = (String, Option<Vec<u8>>, Option<i32>, i64, Vec<String>);

fn write(rows: &[Row], group: usize) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.parquet");
    let mut table = Table::create(&path, fields()).unwrap();
    for rows in rows.chunks(group.max(1)) {
        table
            .group(|group| {
                group.texts(rows.iter().map(|row| &row.0))?;
                group.optional_texts(rows.iter().map(|row| row.1.as_ref()))?;
                group.optional_numbers(rows.iter().map(|row| row.2.map(i64::from)))?;
                group.numbers(rows.iter().map(|row| row.3))?;
                group.lists(rows.iter().map(|row| &row.4))
            })
            .unwrap();
    }
    table.close().unwrap();
    (folder, path)
}

fn read(path: &std::path::Path) -> Vec<Row> {
    let mut reader = Reader::open(path).unwrap();
    let mut rows = Vec::new();
    for group in 0..reader.groups() {
        let names = reader.texts(group, "name").unwrap();
        let Cells::Texts(bodies) = reader.column(group, "body").unwrap() else { panic!() };
        let Cells::Numbers(small) = reader.column(group, "small").unwrap() else { panic!() };
        let Cells::Numbers(large) = reader.column(group, "more").unwrap() else { panic!() };
        let words = reader.lists(group, "words").unwrap();
        for (row, name) in names.into_iter().enumerate() {
            let small = small[row].map(|number| number as i32);
            rows.push((name, bodies[row].clone(), small, large[row].unwrap(), words[row].clone()));
        }
    }
    rows
}

fn row() -> impl Strategy<Value = Row> {
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    let words = prop::collection::vec(".{0,6}", 0..4);
    (".{0,12}", prop::option::of(bytes), any::<Option<i32>>(), any::<i64>(), words)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(rows in prop::collection::vec(row(), 0..60), group in 1usize..70) {
        let (_folder, path) = write(&rows, group);
        prop_assert_eq!(read(&path), rows);
    }

    #[test]
    fn a_damaged_table_is_an_error_or_another_table(
        rows in prop::collection::vec(row(), 1..20), at in any::<prop::sample::Index>(), with: u8,
    ) {
        let (_folder, path) = write(&rows, 7);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = with;
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(mut reader) = Reader::open(&path) {
            for group in 0..reader.groups() {
                for name in ["name", "body", "small", "more", "words"] {
                    let _ = reader.column(group, name);
                }
            }
        }
    }
}

#[test]
fn columns_are_written_in_the_order_and_of_the_type_of_the_fields() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.parquet");
    let mut table = Table::create(&path, fields()).unwrap();
    let wrong = table.group(|group| group.numbers([1])).unwrap_err().to_string();
    assert!(wrong.contains("another type"), "{wrong}");
    let few = table.group(|group| group.texts(["a"])).unwrap_err().to_string();
    assert!(few.contains("not every column"), "{few}");
    let uneven = table.group(|group| {
        group.texts(["a", "b"])?;
        group.optional_texts([Some("a")])
    });
    assert!(uneven.unwrap_err().to_string().contains("different numbers of rows"));
    assert!(!path.exists(), "a table that was not closed has no name");
}

#[test]
fn texts_longer_than_a_page_are_kept() {
    let long = "x".repeat(9 << 20);
    let row = |text: &str| (text.to_string(), None, None, 1, vec![text.to_string(); 2]);
    let rows = vec![row("a"), row(&long), row("b"), row(&long)];
    let (_folder, path) = write(&rows, 10);
    assert_eq!(read(&path), rows);
}

#[test]
fn what_is_no_table_says_so() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.parquet");
    for (bytes, says) in [
        (&b""[..], "is no Parquet table"),
        (b"PAR1", "is no Parquet table"),
        (b"not a table at all", "is no Parquet table"),
        (b"PAR1\xff\xff\xff\xffPAR1", "no possible length"),
        (b"PAR1\x15\x02\x02\0\0\0PAR1", "footer cannot be read"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = Reader::open(&path).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("t.parquet"), "{error}");
    }
    let (_folder, path) = write(&[("a".into(), None, None, 1, vec![])], 1);
    let mut reader = Reader::open(&path).unwrap();
    assert!(reader.has("name") && !reader.has("other"));
    let error = reader.column(0, "other").unwrap_err().to_string();
    assert!(error.contains("column `other`: the table does not have it"), "{error}");
    assert!(reader.texts(0, "body").unwrap_err().to_string().contains("the text is missing"));
}

#[test]
fn packed_numbers_and_runs_are_read() {
    // Three groups of eight bits: 0 to 7 in three bits each, as the format's own description has it.
    let packed = [0x03, 0x88, 0xc6, 0xfa];
    assert_eq!(levels::read(&packed, 3, 8), Some((0..8).collect()));
    let mut run = Vec::new();
    varint(&mut run, 5 << 1);
    run.extend([0x2c, 0x01]);
    assert_eq!(levels::read(&run, 9, 5), Some(vec![300; 5]));
    assert_eq!(levels::read(&run, 9, 6), None);
    assert_eq!(levels::read(&[0x01], 3, 1), None, "an empty group would never end");
}

#[test]
fn snappy_literals_and_copies_are_unpacked() {
    // "abcd", then a copy of eight bytes from four back, which reaches into itself.
    let block = [12, 3 << 2, b'a', b'b', b'c', b'd', (4 << 2) | 1, 4];
    assert_eq!(snappy::unpack(&block, 12).as_deref(), Some(&b"abcdabcdabcd"[..]));
    assert_eq!(snappy::unpack(&block, 11), None);
    assert_eq!(snappy::unpack(&[4, 1, 9], 4), None, "a copy of what was not written");
}
