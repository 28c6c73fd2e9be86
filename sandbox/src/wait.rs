//! Waiting without fixed sleeps: look often, and never for longer than a limit.

use std::time::{Duration, Instant};

/// Short enough not to be felt, long enough not to keep a core busy.
const PAUSE: Duration = Duration::from_millis(5);

/// Calls `look` until it returns a value. `None` when `limit` has passed.
pub(crate) async fn until<T, E>(
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    until_async(limit, async || look()).await
}

/// Like [`until`], for a question whose answer takes a moment itself.
pub(crate) async fn until_async<T, E>(
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let began = Instant::now();
    loop {
        if let Some(value) = look().await? {
            return Ok(Some(value));
        }
        if began.elapsed() > limit {
            return Ok(None);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
