//! The private PostgreSQL cluster: where its data is, and the catalog's role and database in it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use sandbox::{Cluster, Node, SandboxError};
use secrecy::SecretString;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tenant_management::secret::scram_verifier;

use super::folder::{Folder, Memory, failed};
use crate::cli::Failure;

/// The catalog's role and its database.
pub(super) const CATALOG: &str = "tenantry";
/// Connections that a server accepts: enough for a few instances, each with its own budget.
const MAX_CONNECTIONS: u32 = 400;
/// How long servers of an earlier start may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Starts the cluster on the data of an earlier start, or a new one.
pub(super) async fn start(folder: &Folder, memory: &mut Memory, replicas: usize) -> Result<Cluster, Failure> {
    let data = memory.servers.clone().unwrap_or_else(|| folder.servers());
    let started = match start_in(&data, replicas).await {
        // Root's own folders are closed to the user that the servers run as.
        Err(SandboxError::Unreachable { .. }) if memory.servers.is_none() => {
            let elsewhere = reachable(folder.path());
            eprintln!(
                "The user that runs PostgreSQL cannot enter {}; its data is in {}.",
                data.display(),
                elsewhere.display()
            );
            // What the attempt has made is empty but for its lock.
            fs::remove_dir_all(&data).map_err(failed("remove", &data))?;
            memory.servers = Some(elsewhere.clone());
            folder.remember(memory)?;
            start_in(&elsewhere, replicas).await
        }
        started => started,
    };
    started.map_err(Failure::operation)
}

async fn start_in(data: &Path, replicas: usize) -> Result<Cluster, SandboxError> {
    Cluster::builder()
        .data_dir(data)
        .replicas(replicas)
        .durable(true)
        .setting("max_connections", MAX_CONNECTIONS.to_string())
        .start()
        .await
}

/// A place for data that does not fit into `folder`: its name tells whose it is.
fn reachable(folder: &Path) -> PathBuf {
    let name: String = folder.display().to_string().trim_matches('/').replace('/', "-");
    Path::new("/var/lib/tenantry-dev").join(name)
}

/// Removes the data of earlier starts, once its servers have stopped.
pub(super) async fn remove(folder: &Folder) -> Result<(), Failure> {
    let elsewhere = folder.glimpse().and_then(|memory| memory.servers);
    for data in [Some(folder.servers()), elsewhere]
        .into_iter()
        .flatten()
        .filter(|data| data.exists())
    {
        if !data.join("cluster.json").exists() && !data.join("lock").exists() {
            return Err(Failure::operation(format_args!(
                "{} was not made by `tenantry dev`, so it is not removed\n  Remove it yourself, or choose another --data-dir.",
                data.display()
            )));
        }
        // The lock is held until the last server has stopped, also when the process that started it was killed.
        let lock = File::open(data.join("lock")).map_err(failed("open the lock of", &data))?;
        tokio::time::timeout(STOP_LIMIT, async {
            while lock.try_lock().is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await
        .map_err(|_| {
            Failure::operation(format_args!(
                "the servers in {} are still running",
                data.display()
            ))
        })?;
        fs::remove_dir_all(&data).map_err(failed("remove", &data))?;
    }
    Ok(())
}

/// Makes sure that there is a role for the catalog, with this password, and a database of its own.
pub(super) async fn provide_catalog(primary: &Node, password: &SecretString) -> Result<(), Failure> {
    let work = async {
        let mut connection = PgConnection::connect_with(&primary.connect_options("postgres")).await?;
        let roles: i64 = sqlx::query_scalar("select count(*) from pg_roles where rolname = $1")
            .bind(CATALOG)
            .fetch_one(&mut connection)
            .await?;
        let verb = if roles == 0 { "create" } else { "alter" };
        let verifier = scram_verifier(password);
        connection
            .execute(AssertSqlSafe(format!(
                "{verb} role {CATALOG} login password '{verifier}'"
            )))
            .await?;
        let databases: i64 = sqlx::query_scalar("select count(*) from pg_database where datname = $1")
            .bind(CATALOG)
            .fetch_one(&mut connection)
            .await?;
        if databases == 0 {
            connection
                .execute(AssertSqlSafe(format!(
                    "create database {CATALOG} owner {CATALOG}"
                )))
                .await?;
        }
        // Tenants' roles live on the same server and have no business in the catalog.
        connection
            .execute(AssertSqlSafe(format!(
                "revoke all on database {CATALOG} from public"
            )))
            .await?;
        connection.close().await
    };
    work.await.map_err(|error: sqlx::Error| {
        Failure::operation(format_args!("cannot make the catalog's database: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_elsewhere_has_a_name_that_tells_whose_it_is() {
        assert_eq!(
            reachable(Path::new("/root/x/.dev")),
            Path::new("/var/lib/tenantry-dev/root-x-.dev")
        );
    }
}
