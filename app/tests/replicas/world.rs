//! A cluster with replicas for one test, and instances of the service on it. The catalog is on a server of its own, so that
//! it outlives whatever happens to the cluster.

use std::time::{Duration, Instant};

use app::{
    config::Config,
    serve::{self, Service},
};
use reqwest::Method;
use sandbox::{Cluster, Node};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use crate::{
    client::{Carry, Client},
    common::{self, Answer, OPERATOR_TOKEN, Responses, eventually},
};

pub(crate) const MASTER_KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// A cluster with replicas and an empty catalog.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    catalog: String,
    urls: Vec<String>,
    settings: Vec<(String, String)>,
}

/// One instance of the service.
pub(crate) struct Instance {
    pub(crate) service: Service,
    http: reqwest::Client,
}

impl World {
    /// Two replicas.
    pub(crate) async fn start() -> Self {
        Self::with(Cluster::builder().replicas(2)).await
    }

    pub(crate) async fn with(builder: sandbox::ClusterBuilder) -> Self {
        let cluster = builder
            .setting("max_connections", "300")
            .start()
            .await
            .expect("a cluster starts");
        let urls = cluster.nodes().iter().map(|node| node.url("postgres")).collect();
        Self {
            cluster,
            catalog: common::new_catalog().await,
            urls,
            settings: vec![],
        }
    }

    /// A setting of the instances to come.
    pub(crate) fn set(mut self, key: &str, value: &str) -> Self {
        let variable = format!("TENANTRY__{}", key.to_uppercase().replace('.', "__"));
        self.settings.push((variable, value.to_owned()));
        self
    }

    pub(crate) async fn instance(&self) -> Instance {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), self.configuration()).unwrap();
        let config =
            Config::load_with(file.path(), self.settings.clone()).unwrap_or_else(|error| panic!("{error}"));
        Instance {
            service: serve::start(config).await.expect("the service starts"),
            http: reqwest::Client::builder().build().unwrap(),
        }
    }

    fn configuration(&self) -> String {
        let (primary, replicas) = self.urls.split_first().expect("there is a primary");
        format!(
            r#"
            [http]
            listen = "127.0.0.1:0"
            shutdown_delay = "0s"
            shutdown_grace = "5s"
            secure_cookies = false
            [catalog]
            url = "{}"
            [security]
            master_key = "{MASTER_KEY}"
            operator_token = "{OPERATOR_TOKEN}"
            [[clusters]]
            name = "main"
            region = "eu"
            primary = "{primary}"
            replicas = {replicas:?}
            max_connections = 80
            [reads]
            # What is tested is not whether a machine that runs all tests at once answers within a fifth of a second.
            probe_timeout = "1s"
            [pools]
            max_connections_per_tenant = 30
            [limits]
            # Storms are about other things.
            requests_per_second = 0
            concurrent_requests = 0
            [provisioning]
            spares = 0
            "#,
            common::cluster().primary().url(&self.catalog),
        )
    }

    pub(crate) fn replica(&self, index: usize) -> &Node {
        self.cluster.replica(index)
    }

    /// A connection to the catalog.
    pub(crate) async fn catalog(&self) -> PgConnection {
        let options = common::cluster().primary().connect_options(&self.catalog);
        PgConnection::connect_with(&options).await.unwrap()
    }

    pub(crate) async fn pause(&self) {
        for replica in self.cluster.replicas() {
            replica.pause_replay().await.unwrap();
        }
    }

    pub(crate) async fn resume(&self) {
        for replica in self.cluster.replicas() {
            replica.resume_replay().await.unwrap();
        }
    }
}

impl Instance {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.service.address())
    }

    pub(crate) async fn control(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let request = self.http.request(method, self.url(&format!("/control/v1{path}")));
        let request = request.bearer_auth(OPERATOR_TOKEN);
        match body {
            Some(body) => request.json(&body).answer().await,
            None => request.answer().await,
        }
    }

    /// A key of a new tenant.
    pub(crate) async fn tenant(&self, id: &str) -> String {
        self.control(Method::POST, "/tenants", Some(json!({ "id": id })))
            .await
            .expect(201);
        let key = json!({ "name": "test", "role": "admin" });
        let path = format!("/tenants/{id}/api-keys");
        let key = self.control(Method::POST, &path, Some(key)).await.expect(201);
        key["secret"].as_str().unwrap().to_owned()
    }

    /// A client of this instance.
    pub(crate) fn client(&self, key: &str, carry: Carry) -> Client {
        Client::new(self.http.clone(), key, carry).at(self)
    }

    /// The cluster's nodes as this instance sees them.
    pub(crate) async fn nodes(&self) -> Vec<Value> {
        let cluster = self
            .control(Method::GET, "/clusters/main", None)
            .await
            .expect(200);
        cluster["nodes"].as_array().unwrap().clone()
    }

    pub(crate) async fn is_eligible(&self, node: &str) -> bool {
        let nodes = self.nodes().await;
        let node = nodes.iter().find(|seen| seen["name"] == node).unwrap();
        node["eligible"].as_bool().unwrap()
    }

    /// Waits until all replicas, or none, may serve.
    pub(crate) async fn eligible(&self, nodes: &[&str], wanted: bool) {
        eventually(&format!("{nodes:?} eligible: {wanted}"), || async {
            for node in nodes {
                if self.is_eligible(node).await != wanted {
                    return false;
                }
            }
            true
        })
        .await;
    }

    pub(crate) async fn replicas_serve(&self) {
        self.eligible(&["replica-1", "replica-2"], true).await;
    }

    /// The sum of a counter's values that have all these labels.
    pub(crate) async fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let text = self
            .http
            .get(self.url("/metrics"))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        text.lines()
            .filter(|line| line.starts_with(name) && labels.iter().all(|label| line.contains(label)))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }
}

/// How long something takes to come true.
pub(crate) async fn time_until<F: Future<Output = bool>>(what: &str, ask: impl FnMut() -> F) -> Duration {
    let started = Instant::now();
    eventually(what, ask).await;
    started.elapsed()
}
