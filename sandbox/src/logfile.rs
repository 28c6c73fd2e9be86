//! The log of a server, which grows for as long as the server lives.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Longer lines than this many bytes on average are cut short at the front.
const BYTES_PER_LINE: u64 = 400;

/// From this size on a log makes room for a new one when its cluster starts.
const LARGE: u64 = 16 * 1024 * 1024;

/// The last lines, without reading the whole file; empty when there is none.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let read = || {
        let mut file = File::open(path)?;
        let wanted = lines as u64 * BYTES_PER_LINE;
        file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(wanted)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let all: Vec<_> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Sets a large log aside. A failure is no reason not to start.
pub(crate) fn make_room(path: &Path) {
    if fs::metadata(path).is_ok_and(|log| log.len() > LARGE) {
        let _ = fs::rename(path, path.with_extension("log.old"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert_eq!(tail(&path, 3), "");
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(tail(&path, 2), "two\nthree");
        assert_eq!(tail(&path, 9), "one\ntwo\nthree");
    }
}
