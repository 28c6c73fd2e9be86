//! Where PostgreSQL's programs are, and which version they have.
//!
//! Owns the search order. Refuses to know what the programs are used for.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::account::Account;
use crate::error::SandboxError;

/// The programs a cluster needs. All of them must be in one folder, so that their versions agree.
const PROGRAMS: [&str; 4] = ["postgres", "initdb", "pg_basebackup", "pg_resetwal"];

/// The oldest version that is tested.
const OLDEST_MAJOR: u32 = 15;

/// Where packages put the programs, as (folder, what an entry's name begins with, folder inside).
const USUAL_PLACES: [(&str, &str, &str); 6] = [
    ("/usr/lib/postgresql", "", "bin"), // Debian, Ubuntu
    ("/usr", "pgsql-", "bin"),          // PGDG on Red Hat
    ("/usr/libexec", "postgresql", ""), // Alpine
    ("/usr/local", "pgsql", "bin"),     // built from source
    ("/opt", "postgresql", "bin"),      // containers
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql", "bin"),
];

/// A folder of PostgreSQL server programs that are known to work.
#[derive(Clone, Debug)]
pub struct Binaries {
    dir: PathBuf,
    version: ServerVersion,
}

/// A PostgreSQL version, as the server states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVersion {
    /// The first number: `17` of `17.4`.
    pub major: u32,
    /// The second number: `4` of `17.4`; zero for development versions.
    pub minor: u32,
    /// The whole text, such as `17.4 (Debian 17.4-1.pgdg12+2)`.
    pub text: String,
}

impl Binaries {
    /// Looks in `PG_BIN`, then in every folder of `PATH`, then takes the newest version among the
    /// places where packages put PostgreSQL.
    ///
    /// # Errors
    ///
    /// When nothing is found, or when `PG_BIN` is set and does not hold usable programs: a wrong
    /// setting is reported and never quietly replaced by another version.
    pub fn find() -> Result<Self, SandboxError> {
        Self::search(
            std::env::var_os("PG_BIN"),
            std::env::var_os("PATH").as_deref(),
            &usual_folders(),
        )
    }

    fn search(
        pg_bin: Option<OsString>,
        path: Option<&OsStr>,
        usual: &[PathBuf],
    ) -> Result<Self, SandboxError> {
        if let Some(dir) = pg_bin.filter(|dir| !dir.is_empty()) {
            return Self::in_dir(dir);
        }
        // Clients alone are often on the path: only a folder that has a server counts. Where that is a
        // link to one program, its neighbours are where it leads.
        let programs = path
            .iter()
            .flat_map(std::env::split_paths)
            .map(|dir| dir.join("postgres"));
        let server = programs
            .filter(|program| program.is_file())
            .find_map(|program| program.canonicalize().ok());
        if let Some(dir) = server.as_deref().and_then(Path::parent) {
            return Self::in_dir(dir);
        }
        let mut found: Vec<_> = usual.iter().map(Self::in_dir).filter_map(Result::ok).collect();
        found.sort_by_key(|candidate| Reverse((candidate.version.major, candidate.version.minor)));
        if let Some(newest) = found.into_iter().next() {
            return Ok(newest);
        }
        // A folder that is there but cannot be used is more telling than "nothing found".
        match usual.iter().find(|dir| dir.join("postgres").exists()) {
            Some(dir) => Self::in_dir(dir),
            None => Err(SandboxError::BinariesNotFound {
                searched: "PG_BIN, PATH, /usr/lib/postgresql/*/bin, /usr/pgsql-*/bin and the like".to_owned(),
            }),
        }
    }

    /// Uses the programs of one folder.
    ///
    /// # Errors
    ///
    /// When a program is missing, cannot be run by the user that runs the servers, or is too old.
    pub fn in_dir(dir: impl AsRef<Path>) -> Result<Self, SandboxError> {
        let unusable = |reason| SandboxError::BinariesUnusable {
            dir: dir.as_ref().to_owned(),
            reason,
        };
        let dir = std::path::absolute(&dir).map_err(|error| unusable(error.to_string()))?;

        if let Some(missing) = PROGRAMS.iter().find(|program| !dir.join(program).is_file()) {
            return Err(unusable(format!(
                "`{missing}` is missing. PG_BIN must name the folder that holds {}",
                PROGRAMS.map(|program| format!("`{program}`")).join(", ")
            )));
        }
        let version = ask_version(Account::for_servers()?.command(dir.join("postgres")))
            .map_err(|error| unusable(error.to_string()))?;
        if version.major < OLDEST_MAJOR {
            return Err(unusable(format!(
                "version {version} is too old; {OLDEST_MAJOR} or newer is needed"
            )));
        }
        Ok(Self { dir, version })
    }

    /// The path of one program, such as `pg_dump`. Whether it exists is not checked.
    pub fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The version of the server.
    pub fn version(&self) -> &ServerVersion {
        &self.version
    }
}

impl ServerVersion {
    /// Reads the answer of `postgres --version`, such as `postgres (PostgreSQL) 17.4`.
    fn parse(answer: &str) -> Option<Self> {
        let text = answer.trim().split_once("(PostgreSQL) ")?.1;
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        let major = numbers.next()?.parse().ok()?;
        // "18beta1" and "19devel" have no minor version.
        let minor = match text.strip_prefix(&format!("{major}.")) {
            Some(_) => numbers.next()?.parse().ok()?,
            None => 0,
        };
        Some(Self {
            major,
            minor,
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Every folder in which a package may have put the programs, whether they are there or not.
fn usual_folders() -> Vec<PathBuf> {
    let entries = |(parent, prefix, inside): (&str, &'static str, &'static str)| {
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        entries
            .filter(move |entry| {
                entry
                    .file_name()
                    .as_encoded_bytes()
                    .starts_with(prefix.as_bytes())
            })
            .map(move |entry| entry.path().join(inside))
    };
    USUAL_PLACES.into_iter().flat_map(entries).collect()
}

/// Runs `postgres --version`; this also proves that the program can be run at all.
fn ask_version(mut postgres: Command) -> io::Result<ServerVersion> {
    let program = postgres.get_program().to_owned();
    let output = postgres.arg("--version").output().map_err(|error| {
        let user = "It must be readable and executable for the user that runs the servers";
        io::Error::new(
            error.kind(),
            format!("{} cannot be run: {error}. {user}", display(&program)),
        )
    })?;
    let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ServerVersion::parse(&answer).ok_or_else(|| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!(
            "{} --version answered `{}{}`",
            display(&program),
            answer,
            complaint.trim()
        ))
    })
}

fn display(program: &OsStr) -> impl fmt::Display {
    Path::new(program).display()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(answer: &str) -> Option<(u32, u32, String)> {
        ServerVersion::parse(answer).map(|version| (version.major, version.minor, version.text))
    }

    #[test]
    fn versions_are_read_as_servers_state_them() {
        assert_eq!(
            version("postgres (PostgreSQL) 17.4\n"),
            Some((17, 4, "17.4".into()))
        );
        assert_eq!(
            version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"),
            Some((15, 18, "15.18 (Debian 15.18-0+deb12u1)".into()))
        );
        assert_eq!(
            version("postgres (PostgreSQL) 19devel"),
            Some((19, 0, "19devel".into()))
        );
        assert_eq!(version("psql: no such thing"), None);
    }

    #[test]
    fn nothing_found_says_what_to_install() {
        let error =
            Binaries::search(None, Some(OsStr::new("/nonexistent")), &["/nonexistent".into()]).unwrap_err();
        assert!(
            error.to_string().contains("apt-get install postgresql"),
            "{error}"
        );
        assert!(error.to_string().contains("PG_BIN"), "{error}");
    }

    #[test]
    fn a_wrong_pg_bin_is_an_error_and_not_a_reason_to_look_elsewhere() {
        let error = Binaries::search(
            Some("/nonexistent".into()),
            std::env::var_os("PATH").as_deref(),
            &usual_folders(),
        );
        assert!(error.unwrap_err().to_string().contains("/nonexistent"));
    }
}
