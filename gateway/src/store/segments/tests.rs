//! A segment on disk: what a reader finds after it was cut, damaged, appended to or removed.

use super::*;

fn open(dir: &Path) -> Segments {
    Segments::new(dir.to_owned(), 1)
}

/// An entry and two payloads
fn put(segments: &mut Segments, body: &str) -> Records {
    let hashed = |payload: &'static str| (payload.as_bytes(), Sha256Hex::of(payload.as_bytes()));
    let body = (body.as_bytes(), Sha256Hex::of(body.as_bytes()));
    segments.append(b"entry", &[body, hashed("[]")]).unwrap()
}

fn durable(segments: &mut Segments) {
    segments.write().unwrap();
    segments.sync().unwrap();
}

#[test]
fn records_come_back_and_damage_shows() {
    let dir = tempfile::tempdir().unwrap();
    let mut segments = open(dir.path());
    let first = put(&mut segments, "one");
    let second = put(&mut segments, "");
    durable(&mut segments);
    let read_one = |records: &Records, n: usize| read(dir.path(), records.payloads[n]);
    assert_eq!(read_one(&first, 0).unwrap(), "one");
    assert_eq!(read_one(&second, 0).unwrap(), "");
    assert_eq!(read_one(&second, 1).unwrap(), "[]");
    let file = path(dir.path(), first.segment);
    let bytes = std::fs::read(&file).unwrap();
    // Any changed bit of the record, header or payload
    let from = first.payloads[0].offset as usize;
    for at in from..from + HEADER + 3 {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        std::fs::write(&file, &changed).unwrap();
        let read = read_one(&first, 0);
        assert!(matches!(read, Err(StoreFault::Damaged { .. })), "{at}");
    }
    std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let torn = read_one(&second, 1);
    assert!(matches!(torn, Err(StoreFault::Damaged { .. })));
}

#[test]
fn records_are_found_in_order_and_the_walk_ends_at_zeros_and_torn_ones() {
    let dir = tempfile::tempdir().unwrap();
    let mut segments = open(dir.path());
    let records = put(&mut segments, "body");
    durable(&mut segments);
    let file_of = path(dir.path(), records.segment);
    drop(segments);
    let walk = || {
        let file = File::open(&file_of).unwrap();
        let length = file.metadata().unwrap().len();
        let (mut at, mut found) = (0, Vec::new());
        while let Some((place, payload)) = record_at(&file, length, 1, at).unwrap() {
            at = place.end();
            found.push(payload);
        }
        found
    };
    let whole = std::fs::read(&file_of).unwrap();
    assert_eq!(walk(), ["entry", "body", "[]"]);
    for tail in [&[0_u8; 100][..], &[7; 33], &[255; 12], &[1]] {
        std::fs::write(&file_of, [&whole, tail].concat()).unwrap();
        assert_eq!(walk().len(), 3, "{tail:?}");
    }
    std::fs::write(&file_of, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(walk().len(), 2);
}

#[test]
fn a_group_that_fails_leaves_what_is_durable_and_no_file_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut segments = open(dir.path());
    put(&mut segments, "lost");
    segments.write().unwrap();
    segments.abandon();
    assert_eq!(numbers(dir.path()).unwrap(), [0_u32; 0]);
    let kept = put(&mut segments, "kept");
    durable(&mut segments);
    put(&mut segments, "lost");
    segments.write().unwrap();
    segments.abandon();
    let length = std::fs::metadata(path(dir.path(), kept.segment))
        .unwrap()
        .len();
    assert_eq!(length, kept.end);
    assert_ne!(put(&mut segments, "next").segment, kept.segment);
    assert_eq!(read(dir.path(), kept.payloads[0]).unwrap(), "kept");
}

#[test]
fn a_full_segment_is_closed_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut segments = open(dir.path());
    let big = vec![b'x'; (SEGMENT_BYTES / 4) as usize];
    let hash = Sha256Hex::of(&big);
    let mut put = || segments.append(b"", &[(&big, hash)]).unwrap();
    let first = put();
    for _ in 0..2 {
        assert_eq!(put().segment, 1);
    }
    let next = put();
    assert_eq!((next.segment, next.payloads[0].offset), (2, HEADER as u64));
    // What is behind is durable before anything goes to the next
    assert_eq!(read(dir.path(), first.payloads[0]).unwrap(), big);
    durable(&mut segments);
    assert_eq!(read(dir.path(), next.payloads[0]).unwrap(), big);
}

#[test]
fn a_probe_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).probe(10).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    // Where nothing can be written, it says so
    std::fs::create_dir(dir.path().join("probe")).unwrap();
    assert!(open(dir.path()).probe(10).is_err());
}
