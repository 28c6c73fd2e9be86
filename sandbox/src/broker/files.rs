//! A broker's files: its configuration, its secrets, and where everything else goes.
//!
//! Owns the folder `broker` of the broker's root, by which the guardian knows what it guards.

use std::path::{Path, PathBuf};

use secrecy::ExposeSecret;

use super::BrokerRoute;
use super::certificate::Certificates;
use crate::account::Account;
use crate::error::{Doing, SandboxError};
use crate::secret;

/// How much memory, as a share of the machine's, a broker may use before it blocks publishers.
pub(super) const MEMORY_SHARE: &str = "0.4";

/// What the configuration file says.
pub(super) struct Configuration<'a> {
    pub(super) port: u16,
    pub(super) tls_port: Option<u16>,
    pub(super) route: &'a BrokerRoute,
    /// What the caller added.
    pub(super) chosen: &'a [(String, String)],
}

/// The paths of a broker's files.
#[derive(Debug)]
pub(super) struct Files {
    home: PathBuf,
    log: PathBuf,
    ca_certificate: Option<String>,
}

impl Files {
    /// Writes everything that a first start needs.
    pub(super) fn create(
        account: &Account,
        root: &Path,
        certificates: Option<Certificates>,
        configuration: &Configuration<'_>,
    ) -> Result<Self, SandboxError> {
        let mut files = Self {
            home: root.join("broker"),
            log: root.join("broker.log"),
            ca_certificate: None,
        };
        let folder = account.create_private_folder(&files.home);
        folder.doing(|| format!("create {}", files.home.display()))?;

        let write = |path: &Path, content: &str| {
            let written = account.write_private(path, content);
            written.doing(|| format!("write {}", path.display()))
        };
        // Erlang's nodes, and `erl_call`, look for the cookie in their home.
        write(
            &files.home.join(".erlang.cookie"),
            secret::password().expose_secret(),
        )?;
        write(&files.plugins(), "[].\n")?;
        write(&files.configuration(), &configuration.render(&files))?;
        if let Some(made) = certificates {
            write(&files.ca_certificate_path(), &made.authority)?;
            write(&files.certificate(), &made.server)?;
            write(&files.key(), made.server_key.expose_secret())?;
            files.ca_certificate = Some(made.authority);
        }
        Ok(files)
    }

    /// The broker's home: everything it writes is below.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    pub(super) fn configuration(&self) -> PathBuf {
        self.home.join("rabbitmq.conf")
    }

    pub(super) fn plugins(&self) -> PathBuf {
        self.home.join("enabled_plugins")
    }

    pub(super) fn ca_certificate(&self) -> Option<&str> {
        self.ca_certificate.as_deref()
    }

    pub(super) fn ca_certificate_path(&self) -> PathBuf {
        self.home.join("ca.pem")
    }

    fn certificate(&self) -> PathBuf {
        self.home.join("server.pem")
    }

    fn key(&self) -> PathBuf {
        self.home.join("server.key")
    }
}

impl Configuration<'_> {
    fn render(&self, files: &Files) -> String {
        let mut lines = vec![
            format!("listeners.tcp.default = 127.0.0.1:{}", self.port),
            format!("default_user = {}", self.route.user()),
            format!("default_pass = {}", self.route.password().expose_secret()),
            "log.file = false".to_owned(),
            "log.console = true".to_owned(),
            "log.console.level = info".to_owned(),
            format!("vm_memory_high_watermark.relative = {MEMORY_SHARE}"),
            // The temporary folder may be small, and what a test needs is less.
            "disk_free_limit.absolute = 1MB".to_owned(),
        ];
        if let Some(port) = self.tls_port {
            lines.extend([
                format!("listeners.ssl.default = 127.0.0.1:{port}"),
                format!(
                    "ssl_options.cacertfile = {}",
                    files.ca_certificate_path().display()
                ),
                format!("ssl_options.certfile = {}", files.certificate().display()),
                format!("ssl_options.keyfile = {}", files.key().display()),
                // Clients show a password, not a certificate.
                "ssl_options.verify = verify_none".to_owned(),
                "ssl_options.fail_if_no_peer_cert = false".to_owned(),
            ]);
        }
        // Of two lines with the same key the last one counts.
        lines.extend(self.chosen.iter().map(|(key, value)| format!("{key} = {value}")));
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_caller_chose_comes_last_and_tls_only_on_demand() {
        let files = Files {
            home: "/tmp/x/broker".into(),
            log: "/tmp/x/broker.log".into(),
            ca_certificate: None,
        };
        let mut configuration = Configuration {
            port: 7,
            tls_port: None,
            route: &BrokerRoute::new("sandbox", "pw".to_owned().into()),
            chosen: &[("heartbeat".to_owned(), "3".to_owned())],
        };
        let text = configuration.render(&files);
        assert!(text.ends_with("heartbeat = 3\n"), "{text}");
        assert!(!text.contains("ssl"), "{text}");
        configuration.tls_port = Some(8);
        assert!(
            configuration
                .render(&files)
                .contains("listeners.ssl.default = 127.0.0.1:8\n")
        );
    }
}
