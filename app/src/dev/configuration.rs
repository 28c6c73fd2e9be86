//! The configuration file that `tenantry dev` runs with. Another instance can be started with it.

use sandbox::Cluster;
use serde::Serialize;
use url::Url;

use super::{folder::Memory, servers::CATALOG};

/// The name of the private cluster in the catalog.
const CLUSTER: &str = "main";
/// Its region.
const REGION: &str = "eu";
/// Connections that one instance may open to each server: two instances and the catalog fit easily.
const MAX_CONNECTIONS: u32 = 80;

#[derive(Serialize)]
struct Configuration<'c> {
    http: Http<'c>,
    catalog: Catalog,
    security: Security<'c>,
    log: Log,
    clusters: [ClusterEntry; 1],
}

#[derive(Serialize)]
struct Http<'c> {
    listen: &'c str,
    base_domain: &'static str,
    shutdown_delay: &'static str,
    secure_cookies: bool,
}

#[derive(Serialize)]
struct Catalog {
    url: String,
}

#[derive(Serialize)]
struct Security<'c> {
    master_key: &'c str,
    operator_token: &'c str,
}

#[derive(Serialize)]
struct Log {
    filter: &'static str,
}

#[derive(Serialize)]
struct ClusterEntry {
    name: &'static str,
    region: &'static str,
    primary: String,
    replicas: Vec<String>,
    max_connections: u32,
}

/// The file's content. It holds secrets.
pub(super) fn render(cluster: &Cluster, memory: &Memory, listen: &str) -> String {
    let configuration = Configuration {
        // No load balancer has to notice first that the service is about to stop.
        http: Http {
            listen,
            base_domain: "localhost",
            shutdown_delay: "0s",
            // Plain HTTP on this machine.
            secure_cookies: false,
        },
        catalog: Catalog {
            url: catalog_url(cluster, memory).into(),
        },
        security: Security {
            master_key: &memory.master_key,
            operator_token: &memory.operator_token,
        },
        // Without what servers say about statements that change nothing.
        log: Log {
            filter: "info,sqlx=warn",
        },
        clusters: [ClusterEntry {
            name: CLUSTER,
            region: REGION,
            primary: cluster.primary().url("postgres"),
            replicas: cluster
                .replicas()
                .iter()
                .map(|replica| replica.url("postgres"))
                .collect(),
            max_connections: MAX_CONNECTIONS,
        }],
    };
    let content = toml::to_string(&configuration).expect("texts and numbers can be written as TOML");
    format!("# Written anew by `tenantry dev` at each start. It holds secrets.\n\n{content}")
}

/// Where the catalog is, with its password.
pub(super) fn catalog_url(cluster: &Cluster, memory: &Memory) -> Url {
    let Memory { catalog_password, .. } = memory;
    let address = format!(
        "postgres://{CATALOG}:{catalog_password}@127.0.0.1:{}/{CATALOG}",
        cluster.primary().port()
    );
    address
        .parse()
        .expect("a password of letters and digits means itself in a URL")
}
