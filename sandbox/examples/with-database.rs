//! Runs a command with a throw-away database:
//! `with-database [--role <name>]… <folder> -- <command> [arguments…]`.
//!
//! The database has the schema that the folder's `V<number>__<name>.sql` files make, applied in the
//! order of their numbers. Roles that the scripts grant to and do not make are made before. The command
//! finds the database in `DATABASE_URL`; its exit code is passed on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail, ensure};
use sandbox::{Cluster, Node};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

const DATABASE: &str = "scratch";

const USAGE: &str =
    "usage: with-database [--role <name>]… <folder with V*.sql files> -- <command> [arguments…]";

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let mut arguments = arguments.as_slice();
    let mut roles = Vec::new();
    while let [option, role, rest @ ..] = arguments
        && option == "--role"
    {
        roles.push(role);
        arguments = rest;
    }
    let [folder, separator, program, arguments @ ..] = arguments else {
        bail!(USAGE)
    };
    ensure!(separator == "--", "{USAGE}");
    let scripts = scripts_in(Path::new(folder))?;

    let cluster = Cluster::builder().start().await?;
    prepare(cluster.primary(), &roles, &scripts).await?;
    // Nothing else is going on here that a blocking call could hold up.
    let status = Command::new(program)
        .args(arguments)
        .env("DATABASE_URL", cluster.primary().url(DATABASE))
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    cluster.stop().await?;

    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The scripts of a folder in the order in which they are applied.
fn scripts_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut scripts = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if let Some(number) = number_of(&path) {
            scripts.push((number, path));
        }
    }
    ensure!(
        !scripts.is_empty(),
        "there is no V<number>__<name>.sql in {}",
        folder.display()
    );
    scripts.sort();
    if let Some(twins) = scripts.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        bail!(
            "{} and {} have the same number",
            twins[0].1.display(),
            twins[1].1.display()
        );
    }
    Ok(scripts.into_iter().map(|(_, path)| path).collect())
}

/// The number in a script's name: 2 comes before 10.
fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_suffix(".sql")?;
    name.strip_prefix('V')?.split_once("__")?.0.parse().ok()
}

/// Creates the roles and the database, and applies the scripts to it.
async fn prepare(node: &Node, roles: &[&String], scripts: &[PathBuf]) -> anyhow::Result<()> {
    let mut server = PgConnection::connect_with(&node.connect_options("postgres")).await?;
    for role in roles {
        server
            .execute(AssertSqlSafe(format!("create role \"{role}\"")))
            .await?;
    }
    server
        .execute(AssertSqlSafe(format!("create database {DATABASE}")))
        .await?;
    server.close().await?;

    let mut database = PgConnection::connect_with(&node.connect_options(DATABASE)).await?;
    for script in scripts {
        let sql = fs::read_to_string(script).with_context(|| format!("cannot read {}", script.display()))?;
        // A script is SQL by definition, and may hold many statements.
        let applied = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut database).await;
        applied.with_context(|| format!("{} failed", script.display()))?;
    }
    database.close().await?;
    Ok(())
}
