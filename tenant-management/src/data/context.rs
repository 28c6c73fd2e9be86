//! The tenant of the request that is being served, for repositories that are not handed one.
//!
//! Owns the task-local value. It has no default: outside of a request, and in a task that a request has spawned, there is
//! no tenant and asking for one is an error. A spawned task must carry its tenant explicitly:
//!
//! ```
//! # use tenant_management::data::{TenantDb, context};
//! # async fn work() {}
//! # fn handler(tasks: &tenant_management::tasks::TaskGroup) -> Result<(), context::NoTenantInContext> {
//! let db = context::current()?;
//! tasks.spawn("report", context::scope(db, async { work().await }));
//! # Ok(())
//! # }
//! ```

use std::future::Future;

use super::TenantDb;

tokio::task_local! {
    static CURRENT: TenantDb;
}

/// Nobody has said which tenant this work is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no tenant in the context: this runs outside of a request, or in a task that did not carry its tenant along"
)]
pub struct NoTenantInContext;

/// Runs a future for a tenant. A scope within a scope counts for as long as it lasts.
pub async fn scope<F: Future>(db: TenantDb, future: F) -> F::Output {
    CURRENT.scope(db, future).await
}

/// The tenant that this work is for.
///
/// # Errors
///
/// [`NoTenantInContext`] outside of every [`scope`].
pub fn current() -> Result<TenantDb, NoTenantInContext> {
    CURRENT.try_with(TenantDb::clone).map_err(|_| NoTenantInContext)
}
