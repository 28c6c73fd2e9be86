//! Invariant I10: after a full run, no secret that it used stands in a log, an error, a metric or an answer, except the one
//! answer that hands a new key over.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::{
    fs::File,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use sandbox::Cluster;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sqlx::{Connection, Executor, PgConnection};
use tenant_management::{KeyRing, Route, TenantUuid};

const OPERATOR_TOKEN: &str = "operator-token-of-this-test-only";
const MASTER_KEY: &str = "bm90LWEtcmVhbC1rZXktb25seS1mb3ItdGhpcy10ZXM=";

struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What was seen, and where.
#[derive(Default)]
struct Seen(Vec<(String, String)>);

impl Seen {
    fn add(&mut self, place: &str, text: impl Into<String>) {
        self.0.push((place.to_owned(), text.into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_a_full_run_is_seen_anywhere() {
    let cluster = Cluster::builder()
        .setting("log_statement", "all")
        .setting("log_min_error_statement", "debug5")
        .start()
        .await
        .unwrap();
    let mut admin = PgConnection::connect_with(&cluster.primary().connect_options("postgres"))
        .await
        .unwrap();
    admin.execute("create database tenantry").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let config = folder.path().join("tenantry.toml");
    let admin_url = cluster.primary().url("postgres");
    let text = format!(
        r#"
        [http]
        listen = "127.0.0.1:{port}"
        [catalog]
        url = "{}"
        [security]
        master_key = "{MASTER_KEY}"
        operator_token = "{OPERATOR_TOKEN}"
        [provisioning]
        spares = 1
        [log]
        filter = "trace"
        [[clusters]]
        name = "main"
        region = "eu"
        primary = "{admin_url}"
        max_connections = 20
        "#,
        cluster.primary().url("tenantry"),
    );
    std::fs::write(&config, &text).unwrap();
    let log = folder.path().join("service.log");
    let service = Stopped(
        Command::new(env!("CARGO_BIN_EXE_tenantry"))
            .args(["serve", "--config"])
            .arg(&config)
            .stdout(File::create(&log).unwrap())
            .stderr(File::options().append(true).open(&log).unwrap())
            .stdin(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let url = format!("http://127.0.0.1:{port}");
    let client = reqwest::Client::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while client.get(format!("{url}/readyz")).send().await.is_err() {
        assert!(
            Instant::now() < deadline,
            "{}",
            std::fs::read_to_string(&log).unwrap()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let mut seen = Seen::default();
    let mut keys = Vec::new();
    for tenant in ["acme", "globex", "initech"] {
        let body = json!({ "id": tenant });
        let created = client
            .post(format!("{url}/control/v1/tenants"))
            .bearer_auth(OPERATOR_TOKEN)
            .json(&body);
        let created = created.send().await.unwrap();
        assert_eq!(created.status(), 201);
        seen.add("the new tenant", created.text().await.unwrap());
        let key = client
            .post(format!("{url}/control/v1/tenants/{tenant}/api-keys"))
            .bearer_auth(OPERATOR_TOKEN);
        let key = key
            .json(&json!({ "name": "test", "role": "member" }))
            .send()
            .await
            .unwrap();
        assert_eq!(key.status(), 201);
        let key: Value = key.json().await.unwrap();
        keys.push(key["secret"].as_str().unwrap().to_owned());
    }
    let (mut of_people, session) = a_persons_life(&client, &url, &mut seen).await;
    let ok = client
        .get(format!("{url}/v1/whoami"))
        .bearer_auth(&keys[0])
        .send()
        .await
        .unwrap();
    assert_eq!(ok.status(), 200);
    seen.add("whoami", ok.text().await.unwrap());
    let invoice = json!({ "customer": "Hooli", "amount_cents": 1200, "currency": "EUR" });
    let requests = [
        client
            .post(format!("{url}/v1/invoices"))
            .bearer_auth(&keys[0])
            .json(&invoice),
        client
            .post(format!("{url}/v1/invoices"))
            .bearer_auth(&keys[0])
            .body(format!("{{\"{}", keys[1])),
        client
            .get(format!("{url}/v1/whoami"))
            .bearer_auth(&keys[0][..keys[0].len() - 1]),
        client
            .get(format!("{url}/v1/whoami"))
            .bearer_auth(&keys[0])
            .header("X-Tenant-ID", "globex"),
        client.get(format!("{url}/v1/whoami?api_key={}", keys[1])),
        client
            .get(format!("{url}/v1/invoices?cursor={}", keys[1]))
            .bearer_auth(&keys[0]),
        client
            .get(format!("{url}/v1/whoami"))
            .header("Cookie", format!("key={}", keys[1])),
        client.get(format!("{url}/v1/whoami")).header("Cookie", &session),
        client
            .get(format!("{url}/v1/whoami"))
            .header("Cookie", format!("{session}x")),
        client
            .get(format!("{url}/control/v1/audit-events"))
            .bearer_auth(OPERATOR_TOKEN),
        client
            .get(format!("{url}/control/v1/operator-tokens"))
            .bearer_auth(OPERATOR_TOKEN),
        client.get(format!("{url}/{}", keys[2])).bearer_auth(&keys[0]),
        client
            .get(format!("{url}/control/v1/tenants"))
            .bearer_auth(&keys[0]),
        client
            .get(format!("{url}/control/v1/tenants"))
            .bearer_auth(OPERATOR_TOKEN),
        client
            .get(format!("{url}/control/v1/tenants/acme/api-keys"))
            .bearer_auth(OPERATOR_TOKEN),
        client
            .get(format!("{url}/control/v1/clusters"))
            .bearer_auth(OPERATOR_TOKEN),
        client.get(format!("{url}/metrics")),
        client.get(format!("{url}/readyz")),
        client.get(format!("{url}/openapi.json")),
    ];
    for request in requests {
        let response = request.send().await.unwrap();
        let place = format!(
            "{} {}",
            response.status(),
            response.url().path().replace(&keys[2], "…")
        );
        seen.add(&place, format!("{:?}", response.headers()));
        seen.add(&place, response.text().await.unwrap());
    }
    // Failures of the servers behind it: no such role any more, then nothing at all.
    let passwords = tenant_passwords(&cluster).await;
    assert!(passwords.len() >= 3);
    let server_log = cluster.primary().log_path();
    admin
        .execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
        .await
        .unwrap();
    cluster.primary().stop().await.unwrap();
    for (path, token) in [
        ("/v1/whoami", keys[2].as_str()),
        ("/control/v1/tenants", OPERATOR_TOKEN),
    ] {
        let response = client
            .get(format!("{url}{path}"))
            .bearer_auth(token)
            .send()
            .await
            .unwrap();
        assert!(response.status().is_server_error());
        seen.add("an answer without servers", response.text().await.unwrap());
    }
    for arguments in [vec!["config", "check", "--config"], vec!["serve", "--config"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_tenantry"))
            .args(&arguments)
            .arg(&config)
            .env("TENANTRY__HTTP__LISTEN", "127.0.0.1:0")
            .output()
            .unwrap();
        let all = [output.stdout, output.stderr].concat();
        seen.add(&arguments.join(" "), String::from_utf8_lossy(&all));
    }
    drop(service);
    seen.add("the service's log", std::fs::read_to_string(&log).unwrap());
    seen.add("the server's log", std::fs::read_to_string(server_log).unwrap());

    let superuser = admin_url
        .split(':')
        .nth(2)
        .and_then(|rest| rest.split('@').next())
        .unwrap()
        .to_owned();
    let mut secrets = vec![OPERATOR_TOKEN.to_owned(), MASTER_KEY.to_owned(), superuser];
    secrets.extend(keys.iter().cloned());
    // The part that opens, without the part that names the key.
    secrets.extend(keys.iter().map(|key| key.rsplit('_').nth(1).unwrap().to_owned()));
    secrets.extend(passwords);
    of_people.push(session.split_once('=').unwrap().1.to_owned());
    secrets.extend(of_people);
    assert!(
        secrets.iter().all(|secret| secret.len() >= 16),
        "long enough not to be found by chance"
    );
    for (place, text) in &seen.0 {
        assert!(!text.is_empty(), "{place} was captured");
        for (index, secret) in secrets.iter().enumerate() {
            if let Some(at) = text.find(secret.as_str()) {
                let before = &text[text[..at]
                    .char_indices()
                    .rev()
                    .nth(200)
                    .map_or(0, |(index, _)| index)..at];
                panic!("secret {index} stands in {place}, after:\n{before}");
            }
        }
    }
}

/// Another operator's token, and a person who is invited, accepts, mistypes their password and logs in. Answers all secrets that
/// this took, and the session's cookie.
async fn a_persons_life(client: &reqwest::Client, url: &str, seen: &mut Seen) -> (Vec<String>, String) {
    const PASSWORD: &str = "a password of this test only";
    const MISTYPED: &str = "a mistyped password of this test";
    let post = |path: &str, body: Value| client.post(format!("{url}{path}")).json(&body);
    let token = post(
        "/control/v1/operator-tokens",
        json!({"name": "ann", "role": "write"}),
    );
    let token = token.bearer_auth(OPERATOR_TOKEN).send().await.unwrap();
    let token: Value = token.json().await.unwrap();
    let token = token["secret"].as_str().unwrap().to_owned();
    let invited = post(
        "/v1/invitations",
        json!({"email": "ann@acme.example", "role": "admin"}),
    );
    let invited = invited.bearer_auth(&token).header("x-tenant-id", "acme");
    let invited: Value = invited.send().await.unwrap().json().await.unwrap();
    let invitation = invited["secret"].as_str().unwrap().to_owned();
    for (path, body) in [
        (
            "/v1/invitations/accept",
            json!({"secret": invitation, "password": PASSWORD}),
        ),
        (
            "/v1/invitations/accept",
            json!({"secret": invitation, "password": PASSWORD}),
        ),
        (
            "/v1/session",
            json!({"email": "ann@acme.example", "password": MISTYPED}),
        ),
        (
            "/v1/session",
            json!({"email": "ann@acme.example", "password": [PASSWORD]}),
        ),
    ] {
        let answer = post(path, body).send().await.unwrap();
        seen.add(path, answer.text().await.unwrap());
    }
    let login = json!({"email": "ann@acme.example", "password": PASSWORD});
    let login = post("/v1/session", login).send().await.unwrap();
    assert_eq!(login.status(), 201);
    let cookies = login.headers().get_all("set-cookie").iter();
    let session = cookies
        .map(|cookie| cookie.to_str().unwrap())
        .find(|cookie| cookie.starts_with("tenantry_session="))
        .unwrap();
    let session = session.split(';').next().unwrap().to_owned();
    seen.add("the login", login.text().await.unwrap());
    let opening = |key: &str| key.rsplit('_').nth(1).unwrap().to_owned();
    let secrets = vec![
        opening(&token),
        opening(&invitation),
        PASSWORD.to_owned(),
        MISTYPED.to_owned(),
    ];
    (secrets, session)
}

/// The passwords of all tenants and spares, opened with the master key.
async fn tenant_passwords(cluster: &Cluster) -> Vec<String> {
    let keys = KeyRing::new(&MASTER_KEY.to_owned().into(), []).unwrap();
    let mut catalog = PgConnection::connect_with(&cluster.primary().connect_options("tenantry"))
        .await
        .unwrap();
    let rows: Vec<(TenantUuid, Vec<u8>)> = sqlx::query_as(
        "select uuid, password_sealed from tenants union all select uuid, password_sealed from spare_databases",
    )
    .fetch_all(&mut catalog)
    .await
    .unwrap();
    rows.into_iter()
        .map(|(uuid, sealed)| {
            let password = keys
                .open_text(&Route::secret_owner(uuid), &sealed.into())
                .unwrap();
            password.expose_secret().to_owned()
        })
        .collect()
}
