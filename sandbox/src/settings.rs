//! The configuration files of a node.
//!
//! Everything is in files that are written anew at each start, so a node's command line holds nothing
//! but its folder, and `alter system` still has the last word. Refuses to know when servers run.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use crate::account::Account;

/// Our settings, read after `postgresql.conf`.
const FILE: &str = "sandbox.conf";

/// Passwords everywhere, on loopback only: what is not listed is refused. Never `trust`: a test that
/// one tenant cannot reach another's database is worth nothing on a server that does not ask.
const HBA: &str = "\
host  all          all  127.0.0.1/32  scram-sha-256
host  replication  all  127.0.0.1/32  scram-sha-256
";

/// What is the same for all nodes of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Whether data must survive a crash of the machine.
    pub(crate) durable: bool,
    /// Whether the folder is removed in the end.
    pub(crate) temporary: bool,
    /// What the caller asked for, in order; wins over everything below.
    pub(crate) chosen: Vec<(String, String)>,
}

/// Whom a replica follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upstream<'a> {
    /// The primary's port.
    pub(crate) port: u16,
    /// The replication slot on the primary that keeps what this replica has not received.
    pub(crate) slot: &'a str,
    /// The file with the password. Not the password itself: PostgreSQL logs changed settings.
    pub(crate) passfile: &'a Path,
}

impl Settings {
    /// Writes the files of one node.
    pub(crate) fn write(
        &self,
        account: &Account,
        data: &Path,
        name: &str,
        port: u16,
        upstream: Option<Upstream<'_>>,
    ) -> io::Result<()> {
        account.write_private(&data.join("pg_hba.conf"), HBA)?;
        account.write_private(&data.join(FILE), &self.render(name, port, upstream))
    }

    fn render(&self, name: &str, port: u16, upstream: Option<Upstream<'_>>) -> String {
        let mut file = String::from("# Written anew at each start.\n");
        let mut set = |key: &str, value: &str| {
            writeln!(file, "{key} = '{}'", value.replace('\'', "''")).expect("a string takes every line");
        };
        set("cluster_name", name);
        set("listen_addresses", "127.0.0.1");
        set("port", &port.to_string());
        set("unix_socket_directories", "");
        set("log_line_prefix", "%m [%p] %q%u@%d %a ");

        // Lag is visible within a second, and a replica is back soon after its primary is.
        set("wal_receiver_status_interval", "1s");
        set("wal_retrieve_retry_interval", "100ms");

        if !self.durable {
            // The operating system may lose power, but not these servers' processes: a killed server's
            // data is safe in the page cache. `synchronous_commit` is left on, its effect is tested.
            set("fsync", "off");
            set("full_page_writes", "off");
        }
        if self.temporary {
            // The default, POSIX shared memory, outlives a server that is killed and never started
            // again. Files in the data folder go with the folder.
            set("dynamic_shared_memory_type", "mmap");
        }
        if let Some(Upstream { port, slot, passfile }) = upstream {
            let passfile = passfile
                .display()
                .to_string()
                .replace('\\', r"\\")
                .replace('\'', r"\'");
            set(
                "primary_conninfo",
                &format!(
                    "host=127.0.0.1 port={port} user=postgres passfile='{passfile}' \
                     application_name={name} sslmode=disable gssencmode=disable"
                ),
            );
            set("primary_slot_name", slot);
        }
        for (key, value) in &self.chosen {
            set(key, value);
        }
        file
    }
}

/// Makes a new data folder read [`FILE`].
pub(crate) fn include(data: &Path) -> io::Result<()> {
    let mut main = OpenOptions::new()
        .append(true)
        .open(data.join("postgresql.conf"))?;
    writeln!(main, "\ninclude_if_exists = '{FILE}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(durable: bool, chosen: &[(&str, &str)]) -> Settings {
        let chosen = chosen
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        Settings {
            durable,
            temporary: true,
            chosen,
        }
    }

    #[test]
    fn what_the_caller_chose_comes_last_and_is_quoted() {
        let file = settings(true, &[("application_name", "it's")]).render("primary", 5432, None);
        assert!(file.ends_with("application_name = 'it''s'\n"), "{file}");
    }

    #[test]
    fn only_clusters_that_need_not_be_durable_skip_the_disk() {
        assert!(
            settings(false, &[])
                .render("primary", 1, None)
                .contains("fsync = 'off'")
        );
        assert!(!settings(true, &[]).render("primary", 1, None).contains("fsync"));
    }

    #[test]
    fn a_replica_names_its_primary_and_never_the_password() {
        let upstream = Upstream {
            port: 7,
            slot: "replica_1",
            passfile: Path::new("/tmp/it's/pgpass"),
        };
        let file = settings(false, &[]).render("replica-1", 8, Some(upstream));
        assert!(file.contains("host=127.0.0.1 port=7 "), "{file}");
        assert!(file.contains(r"passfile=''/tmp/it\''s/pgpass''"), "{file}");
        assert!(!file.contains("password"), "{file}");
    }
}
