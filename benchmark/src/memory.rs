//! How much memory this process holds, as its allocator and as the kernel see it.
//!
//! Owns the allocator of everything that links this crate: the service's own, with a counter in front of it. Refuses to
//! know what is measured.

use anyhow::Context;
use cap::Cap;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

/// Bytes that are allocated now.
pub fn heap_bytes() -> usize {
    ALLOCATOR.allocated()
}

/// Bytes that have been allocated since the process began, those that were freed again included. The difference between
/// two calls is zero exactly when nothing was allocated between them.
pub fn bytes_ever_allocated() -> usize {
    ALLOCATOR.total_allocated()
}

/// Bytes of this process that are in physical memory.
///
/// # Errors
///
/// When the kernel does not say, as on systems other than Linux.
pub fn resident_bytes() -> anyhow::Result<usize> {
    let rollup =
        std::fs::read_to_string("/proc/self/smaps_rollup").context("the kernel shows no smaps_rollup")?;
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Rss:"))
        .context("smaps_rollup has no Rss")?;
    let kilobytes = line.trim().trim_end_matches("kB").trim();
    Ok(kilobytes.parse::<usize>().context("Rss is no number")? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_is_seen() {
        let before = bytes_ever_allocated();
        let block = vec![1_u8; 4 << 20];
        assert!(bytes_ever_allocated() - before >= block.len());
        assert!(heap_bytes() >= block.len());
        assert!(resident_bytes().unwrap() >= block.len());
    }
}
