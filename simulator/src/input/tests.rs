use super::*;
use crate::random::Random;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Cursor, Write};

const COLUMNS: [&str; 2] = ["name", "count"];

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<(String, u32, f64)>, String> {
    let path = Path::new("f.csv");
    let rows = || {
        let reader = decompress(path, Cursor::new(bytes.to_vec()))?;
        let mut table = Table::of_reader(path, reader, &COLUMNS, &["share"])?;
        let mut rows = Vec::new();
        while let Some(row) = table.next_row()? {
            let share = match row.text(2)? {
                "" => 0.0,
                _ => row.decimal(2)?,
            };
            rows.push((row.name(0)?.to_owned(), row.whole(1, 100_u32)?, share));
        }
        Ok(rows)
    };
    rows().map_err(|error: InputError| error.to_string())
}

fn message(bytes: &[u8]) -> String {
    read(bytes).unwrap_err()
}

#[test]
fn columns_are_found_by_name_whatever_their_order() {
    let expected = vec![("a".to_owned(), 7, 0.0), ("b,\"".to_owned(), 8, 0.0)];
    assert_eq!(
        read(b"count,x,name\n7,?,a\n\n 8 ,?,\"b,\"\"\"\n").unwrap(),
        expected
    );
    let text = b"\xEF\xBB\xBF name , count\r\na,7\r\n\"b,\"\"\",8";
    assert_eq!(read(text).unwrap(), expected);
    assert_eq!(
        read(b"name,count,share\na,1,0.25\n").unwrap(),
        [("a".to_owned(), 1, 0.25)]
    );
}

#[test]
fn gzip_is_known_by_its_first_bytes() {
    let whole = gzip(b"name,count\na,7\n");
    assert_eq!(read(&whole).unwrap().len(), 1);
    let two_members = [whole, gzip(b"b,8\n")].concat();
    assert_eq!(read(&two_members).unwrap().len(), 2);
    let other = message(b"\x28\xB5\x2F\xFD....");
    assert_eq!(
        other,
        "f.csv: is compressed with zstd; only gzip and plain text are read"
    );
}

#[test]
fn a_broken_header_is_refused() {
    let empty = "f.csv: is empty; a header is expected: name,count";
    assert_eq!(message(b""), empty);
    assert_eq!(message(b"\n\n"), empty);
    assert_eq!(message(&gzip(b"")), empty);
    assert_eq!(
        message(b"name,Count\n"),
        "f.csv:1: count: the header lacks this column: \"name,Count\""
    );
    assert_eq!(
        message(b"name,count,name\n"),
        "f.csv:1: name: the header has this column twice"
    );
}

#[test]
fn a_wrong_value_is_named_with_its_line_and_column() {
    let row = |row: &str| message(format!("name,count\nok,1\n{row}\n").as_bytes());
    assert_eq!(row("a,-7"), "f.csv:3: count: \"-7\" is negative");
    assert_eq!(row("a,101"), "f.csv:3: count: \"101\" is over 100");
    assert_eq!(
        row("a,1.5"),
        "f.csv:3: count: \"1.5\" is not a whole number"
    );
    assert_eq!(
        row("a,- 1"),
        "f.csv:3: count: \"- 1\" is not a whole number"
    );
    assert_eq!(row("a,"), "f.csv:3: count: is empty");
    assert_eq!(row(",1"), "f.csv:3: name: is empty");
    assert_eq!(row("a"), "f.csv:3: the line has 1 values and the header 2");
    assert_eq!(
        row("a,1,2"),
        "f.csv:3: the line has 3 values and the header 2"
    );
    assert_eq!(
        row("\n\na"),
        "f.csv:5: the line has 1 values and the header 2"
    );
    assert_eq!(row("\r\n\r\na"), row("\n\na"));
    assert_eq!(row("\"a,1"), "f.csv:3: has a quote that is not closed");
    assert_eq!(row("\"a\"b,1"), "f.csv:3: has text after a quoted value");
    let endless = "a".repeat(1 << 20);
    assert_eq!(row(&endless), "f.csv:3: is longer than 1048576 bytes");
    let huge = "9".repeat(1000);
    assert_eq!(
        row(&format!("a,{huge}")),
        format!("f.csv:3: count: \"{}\"... is over 100", "9".repeat(40))
    );
    assert_eq!(
        message(b"name,count\n\xFFa,1\n"),
        "f.csv:2: name: is not UTF-8 text"
    );
    assert_eq!(
        message(b"name,count,share\na,1,inf\n"),
        "f.csv:2: share: \"inf\" is not a number"
    );
}

#[test]
fn a_cut_or_broken_archive_is_refused() {
    let text: String = (0..50_000).map(|n| format!("n{n},{}\n", n % 99)).collect();
    let whole = gzip(format!("name,count\n{text}").as_bytes());
    assert_eq!(read(&whole).unwrap().len(), 50_000);
    for cut in [3, 20, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        let message = message(&whole[..cut]);
        let expected = "the compressed data is cut off; the file is incomplete";
        assert!(message.starts_with("f.csv:"), "{cut}: {message}");
        assert!(message.ends_with(expected), "{cut}: {message}");
    }
    let mut checksum = whole.clone();
    let at = checksum.len() - 6;
    checksum[at] ^= 1;
    assert!(
        message(&checksum).contains("corrupt"),
        "{}",
        message(&checksum)
    );
    let mut garbage = whole;
    garbage.extend(b"garbage");
    assert!(read(&garbage).is_err());
}

#[test]
fn what_cannot_be_opened_is_refused() {
    let error = |path: &Path| open(path).err().unwrap().to_string();
    let missing = error(Path::new("no-such-file.csv"));
    assert!(missing.starts_with("no-such-file.csv: "), "{missing}");
    let folder = Table::open(Path::new(env!("CARGO_MANIFEST_DIR")), &COLUMNS, &[]);
    assert!(folder.is_err());
}

/// Gzip has a checksum: what is read from a damaged archive is what was in it, or nothing.
#[test]
fn no_damage_to_an_archive_is_a_panic_or_goes_unnoticed() {
    let text: String = (0..200).map(|n| format!("n{n},{}\n", n % 99)).collect();
    let whole = gzip(format!("name,count\n{text}").as_bytes());
    let rows = read(&whole).unwrap();
    let mut refused = 0;
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let mut damaged = whole.clone();
        for _ in 0..random.between(1, 4) {
            let at = usize::try_from(random.below(damaged.len() as u64)).unwrap();
            // The two bytes by which gzip is known stay, or it is text like any other.
            damaged[at.max(2)] = random.next_u64().to_le_bytes()[0];
        }
        match read(&damaged) {
            Ok(found) => assert_eq!(found, rows, "seed {seed}"),
            Err(message) => {
                assert!(message.starts_with("f.csv:"), "seed {seed}: {message}");
                refused += 1;
            }
        }
    }
    assert!((2_000..3_000).contains(&refused), "{refused} were refused");
}

#[test]
fn what_the_csv_crate_writes_is_read_as_it_was() {
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let values: Vec<String> = (0..2)
            .map(|_| {
                let inner = (0..random.below(8)).map(|_| *random.pick(b" ,\"ab;'\t"));
                let inner = String::from_utf8(inner.collect()).unwrap();
                format!("<{inner}>")
            })
            .collect();
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(COLUMNS).unwrap();
        writer.write_record(&values).unwrap();
        let written = writer.into_inner().unwrap();
        let reader = Box::new(Cursor::new(written));
        let mut table = Table::of_reader(Path::new("f.csv"), reader, &COLUMNS, &[]).unwrap();
        let row = table.next_row().unwrap().unwrap();
        assert_eq!([0, 1].map(|column| row.text(column).unwrap()), *values);
    }
}
