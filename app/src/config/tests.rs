//! Given a file and an environment, what the settings are, or what is said about them.

use std::fmt::Write as _;

use secrecy::ExposeSecret;
use tenant_management::Mode;

use super::*;

const KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
const MINIMAL: &str = r#"
[catalog]
url = "postgres://tenantry:catalog-password@127.0.0.1:5432/tenantry?sslmode=disable"
[security]
master_key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
operator_token = "a-long-operator-token"
"#;

fn with(text: &str, environment: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    Config::parse(
        text,
        environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    )
}

fn problems(text: &str, environment: &[(&str, &str)]) -> String {
    with(text, environment).unwrap_err().join("\n")
}

#[test]
fn the_documented_example_is_understood() {
    let text = r#"
        [http]
        listen = "127.0.0.1:8080"
        control_listen = "127.0.0.1:8081"
        base_domain = "localhost"
        [catalog]
        url = "postgres://tenantry@127.0.0.1:5432/tenantry"
        [broker]
        url = "amqp://guest:guest@127.0.0.1:5672/%2f"
        [security]
        master_key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
        operator_token = "..."
        [[clusters]]
        name = "main"
        region = "eu"
        primary = "postgres://admin@10.0.0.1:5432/postgres"
        replicas = ["postgres://admin@10.0.0.2:5432/postgres"]
        max_connections = 80
        [reads]
        mode = "lsn"
        probe_interval = "250ms"
        max_staleness = "2s"
        catch_up_wait = "10ms"
        [pools]
        max_connections_per_tenant = 10
        idle_timeout = "10s"
        acquire_timeout = "3s"
        statement_timeout = "30s"
        [provisioning]
        spares = 4
        wait_for_instances = "2s"
    "#;
    let config = with(text, &[]).unwrap();
    assert_eq!(
        config.http.control_listen,
        Some("127.0.0.1:8081".parse().unwrap())
    );
    assert_eq!(config.clusters.len(), 1);
    assert_eq!(config.clusters[0].replicas.len(), 1);
    assert!(config.broker.is_some());
}

#[test]
fn what_is_left_out_has_its_documented_default() {
    let config = with(MINIMAL, &[]).unwrap();
    assert_eq!(config.http.listen, "127.0.0.1:8080".parse().unwrap());
    assert_eq!(config.http.control_listen, None);
    assert_eq!(config.http.base_domain, "localhost");
    assert!(config.broker.is_none() && config.clusters.is_empty());
    assert_eq!(
        (config.reads.settings.mode, config.reads.settings.probe_interval),
        (Mode::Lsn, Duration::from_millis(250))
    );
    assert_eq!(
        (
            config.reads.settings.max_staleness,
            config.reads.settings.catch_up_wait
        ),
        (Duration::from_secs(2), Duration::from_millis(10))
    );
    assert_eq!(config.pools.max_connections_per_tenant, 10);
    assert_eq!(
        (config.pools.idle_timeout, config.pools.acquire_timeout),
        (Duration::from_secs(10), Duration::from_secs(3))
    );
    assert_eq!(config.pools.statement_timeout, Duration::from_secs(30));
    assert_eq!(
        (config.provisioning.spares, config.provisioning.wait_for_instances),
        (4, Duration::from_secs(2))
    );
}

#[test]
fn the_environment_overrides_the_file() {
    let config = with(
        &format!("{MINIMAL}\n[http]\nlisten = \"127.0.0.1:1\"\n[[clusters]]\nname = \"main\"\nregion = \"eu\"\nprimary = \"postgres://a@b/c\"\n"),
        &[
            ("TENANTRY__HTTP__LISTEN", "127.0.0.1:9001"),
            ("TENANTRY__HTTP__REQUEST_TIMEOUT", "5s"),
            ("TENANTRY__PROVISIONING__SPARES", "0"),
            ("TENANTRY__SECURITY__EARLIER_MASTER_KEYS", KEY),
            ("TENANTRY__CLUSTERS__0__PRIMARY", "postgres://other@db/c"),
            ("TENANTRY__CLUSTERS__0__REPLICAS", r#"["postgres://one@db/c", "postgres://two@db/c"]"#),
            ("TENANTRY__CLUSTERS__0__MAX_CONNECTIONS", "12"),
            ("TENANTRY_URL", "http://not-ours"),
            ("PATH", "/bin"),
        ],
    )
    .unwrap();
    assert_eq!(config.http.listen, "127.0.0.1:9001".parse().unwrap());
    assert_eq!(config.http.request_timeout, Duration::from_secs(5));
    assert_eq!(config.provisioning.spares, 0);
    assert_eq!(
        config.clusters[0].primary.expose_secret(),
        "postgres://other@db/c"
    );
    assert_eq!(
        (
            config.clusters[0].replicas.len(),
            config.clusters[0].max_connections
        ),
        (2, 12)
    );
}

#[test]
fn text_from_the_environment_stays_text() {
    for token in ["0001234567890123456", "true", "1e10", "[x]"] {
        let config = with(MINIMAL, &[("TENANTRY__SECURITY__OPERATOR_TOKEN", token)]).unwrap();
        assert!(config.security.operators.identify(token).is_some(), "{token}");
        assert!(
            config
                .security
                .operators
                .identify("a-long-operator-token")
                .is_none()
        );
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let text = r#"
        [http]
        listen = "8080"
        base_domain = "127.0.0.1"
        request_timeout = "soon"
        listn = "127.0.0.1:1"
        [catalog]
        url = "mysql://root:hunter2@db/x"
        max_connections = "many"
        [security]
        master_key = "c2hvcnQ="
        [[clusters]]
        name = "Main"
        region = "eu"
        primary = "hunter2"
        replica = []
        [nonsense]
        [reads]
        mode = "fast"
    "#;
    let said = problems(
        text,
        &[
            ("TENANTRY__POOLS__IDLE_TIMEOUT", "10"),
            ("TENANTRY__HTTP__PORT", "1"),
        ],
    );
    for part in [
        "http.listen: must be an address and a port",
        "http.base_domain: must be a domain",
        "http.request_timeout: must be a period",
        "http.listn: unknown key; [http] has advertised_address, base_domain, ",
        "catalog.url: must be a URL that begins with postgres://",
        "catalog.max_connections: must be a whole number",
        "security.master_key: a master key is 32 random bytes in base64; make one with",
        "security.operator_token: is required: without it",
        "clusters[0].name: a cluster's name has",
        "clusters[0].primary: must be a URL",
        "clusters[0].replica: unknown key; [clusters[0]] has",
        "nonsense: unknown key; there is no such section",
        "reads.mode: must be \"lsn\" or \"window\"",
        "pools.idle_timeout (from TENANTRY__POOLS__IDLE_TIMEOUT): must be a period",
        "http.port (from TENANTRY__HTTP__PORT): unknown key",
    ] {
        assert!(said.contains(part), "{part}\n--- not in\n{said}");
    }
    assert_eq!(said.lines().count(), 15, "{said}");
    assert!(
        !said.contains("hunter2"),
        "a value that may be secret is not repeated"
    );
}

#[test]
fn nothing_is_ever_open() {
    let blank = MINIMAL.replace("a-long-operator-token", "");
    assert!(problems(&blank, &[]).contains("security.operator_token: must be visible ASCII"));
    let none: String = MINIMAL
        .lines()
        .filter(|line| !line.contains("operator_token"))
        .fold(String::new(), |mut all, line| {
            writeln!(all, "{line}").unwrap();
            all
        });
    assert!(problems(&none, &[]).contains("security.operator_token: is required"));
}

#[test]
fn a_file_that_is_no_toml_is_refused_without_repeating_it() {
    let said = problems("[security]\n# comment\noperator_token = \"hunter2\n", &[]);
    assert!(said.starts_with("line 3 is not TOML: "), "{said}");
    assert!(!said.contains("hunter2"));
}

#[test]
fn secrets_can_come_from_mounted_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let token = file("token", "from-a-mounted-file\n");
    let url = file("url", "postgres://tenantry:hunter2@db/tenantry\n");
    let earlier = file("earlier", &format!("{KEY}\n{KEY}\n"));
    let text = format!(
        "[catalog]\nurl_file = \"{url}\"\n[security]\nmaster_key = \"{KEY}\"\noperator_token_file = \"{token}\"\nearlier_master_keys_file = \"{earlier}\"\n"
    );
    let config = with(&text, &[]).unwrap();
    assert!(
        config
            .security
            .operators
            .identify("from-a-mounted-file")
            .is_some()
    );
    assert_eq!(
        config.catalog.url.expose_secret(),
        "postgres://tenantry:hunter2@db/tenantry"
    );
    assert!(!config.effective().contains("hunter2"));

    let both = format!("{text}operator_token = \"directly\"\n");
    assert!(
        problems(&both, &[]).contains("operator_token: is set, and security.operator_token_file is set too")
    );
    let overridden = with(MINIMAL, &[("TENANTRY__SECURITY__OPERATOR_TOKEN_FILE", &token)]).unwrap();
    assert!(
        overridden
            .security
            .operators
            .identify("from-a-mounted-file")
            .is_some()
    );
    let back = with(
        &text,
        &[("TENANTRY__SECURITY__OPERATOR_TOKEN", "from-the-environment")],
    )
    .unwrap();
    assert!(back.security.operators.identify("from-the-environment").is_some());
    let missing = with(
        MINIMAL,
        &[("TENANTRY__SECURITY__MASTER_KEY_FILE", "/nowhere/key")],
    )
    .unwrap_err();
    assert!(
        missing.join("\n").contains("cannot read /nowhere/key"),
        "{missing:?}"
    );
}

#[test]
fn the_effective_configuration_hides_secrets_and_can_be_read_again() {
    let text = format!(
        "{MINIMAL}\n[broker]\nurl = \"amqp://guest:hunter2@127.0.0.1:5672/%2f\"\n[[clusters]]\nname = \"main\"\nregion = \"eu\"\nprimary = \"postgres://admin@10.0.0.1/postgres?password=hunter2\"\nreplicas = [\"postgres://admin:hunter2@10.0.0.2/postgres\"]\n"
    );
    let config = with(&text, &[("TENANTRY__HTTP__LISTEN", "127.0.0.1:9001")]).unwrap();
    let effective = config.effective();
    for secret in ["hunter2", "catalog-password", "a-long-operator-token", KEY] {
        assert!(!effective.contains(secret), "{effective}");
        assert!(!format!("{config:?}").contains(secret), "{config:?}");
    }
    for line in [
        "listen = \"127.0.0.1:9001\"  # from TENANTRY__HTTP__LISTEN",
        "request_timeout = \"60s\"  # default",
        "# control_listen is not set",
        "url = \"postgres://tenantry:hidden@127.0.0.1:5432/tenantry?sslmode=disable\"",
        "[[clusters]]",
        "operator_token = \"<hidden>\"",
    ] {
        assert!(effective.contains(line), "{line}\n--- not in\n{effective}");
    }
    let again = with(
        effective,
        &[
            ("TENANTRY__SECURITY__MASTER_KEY", KEY),
            ("TENANTRY__SECURITY__OPERATOR_TOKEN", "token"),
        ],
    );
    assert_eq!(again.unwrap().clusters.len(), 1);
}

#[test]
fn a_variable_that_names_no_key_is_an_error() {
    for name in [
        "TENANTRY__",
        "TENANTRY__HTTP",
        "TENANTRY__HTTP____LISTEN",
        "TENANTRY__HTTP__LISTEN__EXTRA",
        "TENANTRY__CLUSTERS__7__NAME",
    ] {
        let said = problems(MINIMAL, &[(name, "x")]);
        assert!(said.contains(name), "{name}: {said}");
    }
}

#[test]
fn two_clusters_cannot_share_a_name() {
    let cluster = "[[clusters]]\nname = \"main\"\nregion = \"eu\"\nprimary = \"postgres://a@b/c\"\n";
    let said = problems(&format!("{MINIMAL}\n{cluster}{cluster}"), &[]);
    assert_eq!(said, "clusters[1].name: another cluster has this name");
}

#[test]
fn a_file_that_is_missing_is_named() {
    let error = Config::load_with(Path::new("/nowhere/tenantry.toml"), []).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("/nowhere/tenantry.toml cannot be read")
    );
}

#[test]
fn yes_and_no_are_written_without_quotes_and_as_text_in_the_environment() {
    let file = |value: &str| format!("[http]\nsecure_cookies = {value}\n{MINIMAL}");
    assert!(with(MINIMAL, &[]).unwrap().http.secure_cookies);
    assert!(!with(&file("false"), &[]).unwrap().http.secure_cookies);
    let variable = |value| [("TENANTRY__HTTP__SECURE_COOKIES", value)];
    assert!(
        with(&file("false"), &variable("true"))
            .unwrap()
            .http
            .secure_cookies
    );
    for wrong in [
        problems(&file("\"false\""), &[]),
        problems(MINIMAL, &variable("no")),
    ] {
        assert!(
            wrong.contains("http.secure_cookies") && wrong.contains("must be true or false"),
            "{wrong}"
        );
    }
}

#[test]
fn a_broker_is_checked_and_its_password_stays_hidden() {
    let file = |broker: &str| format!("{MINIMAL}[broker]\n{broker}\n");
    let config = with(
        &file("url = \"amqps://tenantry:example-only@broker/%2f\"\nexchange = \"staging\""),
        &[],
    )
    .unwrap();
    assert!(config.broker.is_some());
    assert!(config.effective().contains("staging") && !config.effective().contains("example-only"));
    for (wrong, complaint) in [
        (
            "url = \"http://broker/\"",
            "must be a URL that begins with amqp://",
        ),
        (
            "url = \"amqp://broker/\"\nexchange = \"\"",
            "broker.exchange: must be 1 to 255 bytes long",
        ),
        (
            "url = \"amqp://broker/?heartbeat=often\"",
            "broker.url: must be like amqp://",
        ),
    ] {
        let problems = problems(&file(wrong), &[]);
        assert!(problems.contains(complaint), "{problems}");
    }
}

#[test]
fn a_cluster_has_room_for_a_tenant() {
    let cluster = |connections: u32| {
        format!(
            "{MINIMAL}[[clusters]]\nname = \"main\"\nregion = \"eu\"\nprimary = \"postgres://10.0.0.1/postgres\"\n\
             max_connections = {connections}\n"
        )
    };
    let least = tenant_management::LEAST_CONNECTIONS;
    assert!(with(&cluster(least), &[]).is_ok());
    let wrong = problems(&cluster(least - 1), &[]);
    assert!(
        wrong.contains("clusters[0].max_connections: must be a whole number"),
        "{wrong}"
    );
}

#[test]
fn who_gets_in_has_safe_defaults() {
    let config = with(MINIMAL, &[]).unwrap();
    assert_eq!(config.sessions.idle_timeout, Duration::from_secs(30 * 60));
    assert_eq!(config.sessions.lifetime, Duration::from_secs(12 * 60 * 60));
    assert_eq!(config.security.credentials_believed_for, Duration::from_secs(300));
    assert!(config.http.cors_origins.is_empty() && config.jwt_issuers.is_empty());
    let limits = [config.limits.per_second, config.limits.concurrent].map(|limit| limit.map(u32::from));
    assert_eq!(
        (limits, u32::from(config.limits.burst)),
        ([Some(1000), Some(256)], 2000)
    );
    let off = [
        ("TENANTRY__LIMITS__REQUESTS_PER_SECOND", "0"),
        ("TENANTRY__LIMITS__CONCURRENT_REQUESTS", "0"),
    ];
    let limits = with(MINIMAL, &off).unwrap().limits;
    assert_eq!((limits.per_second, limits.concurrent), (None, None));
}

#[test]
fn an_issuer_is_understood() {
    let text = format!(
        "{MINIMAL}
        [[jwt_issuers]]
        issuer = \"https://login.example.com\"
        audiences = [\"tenantry\"]
        jwks_url = \"https://login.example.com/jwks.json\"
        [[jwt_issuers]]
        issuer = \"https://other.example.com\"
        audiences = [\"a\", \"b\"]
        jwks_file = \"/etc/tenantry/jwks.json\"
        algorithms = [\"ES256\"]
        leeway = \"1m\"
        tenant_claim = \"org\"
        default_role = \"none\""
    );
    let issuers = with(&text, &[]).unwrap().jwt_issuers;
    let [plain, special] = issuers.as_slice() else {
        panic!("{issuers:?}")
    };
    assert_eq!(plain.algorithms.len(), 3);
    assert_eq!(
        (plain.tenant_claim.as_str(), plain.default_role),
        ("tenant_id", Some(auth::Role::Viewer))
    );
    assert_eq!(
        (special.tenant_claim.as_str(), special.default_role),
        ("org", None)
    );
    assert_eq!(
        (special.leeway, special.audiences.len()),
        (Duration::from_secs(60), 2)
    );
}

#[test]
fn what_is_wrong_with_who_gets_in_is_said() {
    let issuer = |lines: &str| format!("{MINIMAL}[[jwt_issuers]]\n{lines}");
    let complete = "issuer = \"https://login.example.com\"\naudiences = [\"tenantry\"]\n";
    let url = "jwks_url = \"https://login.example.com/jwks.json\"\n";
    for (lines, says) in [
        (String::new(), "jwt_issuers[0].issuer: is required"),
        (String::new(), "jwt_issuers[0].audiences: is required"),
        (
            complete.to_owned(),
            "jwt_issuers[0].jwks_url: is required, or jwks_file",
        ),
        (
            format!("{complete}{url}jwks_file = \"x\""),
            "must not be there together with jwks_file",
        ),
        (
            format!("{complete}jwks_url = \"http://login.example.com/\""),
            "http:// only on this machine itself",
        ),
        (
            format!("{complete}{url}algorithms = [\"HS256\"]"),
            "must be \"RS256\", \"ES256\" or \"EdDSA\"",
        ),
        (
            format!("{complete}{url}algorithms = []"),
            "must name at least one",
        ),
        (format!("{complete}{url}leeway = \"1h\""), "must be at most 300s"),
        (format!("{complete}{url}default_role = \"owner\""), "or \"none\""),
        (format!("{complete}{url}secret = \"x\""), "unknown key"),
        (
            format!("{complete}{url}[[jwt_issuers]]\n{complete}{url}"),
            "another issuer has this name",
        ),
    ] {
        let said = problems(&issuer(&lines), &[]);
        assert!(said.contains(says), "{says:?} in {said}");
    }
    for (variable, value, says) in [
        ("HTTP__CORS_ORIGINS", "*", "must be an origin"),
        (
            "HTTP__CORS_ORIGINS",
            "https://app.example.com/",
            "must be an origin",
        ),
        ("HTTP__CORS_ORIGINS", "app.example.com", "must be an origin"),
        ("HTTP__TRUSTED_PROXIES", "10.0.0.0/33", "must be an address"),
        (
            "SESSIONS__IDLE_TIMEOUT",
            "13h",
            "must not be longer than sessions.lifetime",
        ),
        ("SESSIONS__LIFETIME", "3years", "must be at most 1 year"),
        ("SESSIONS__LIFETIME", "1ms", "must be at least"),
        ("LIMITS__BURST", "0", "limits.burst"),
    ] {
        let said = problems(MINIMAL, &[(&format!("TENANTRY__{variable}"), value)]);
        assert!(said.contains(says), "{says:?} in {said}");
    }
    let several = [(
        "TENANTRY__HTTP__CORS_ORIGINS",
        "[\"https://a.example\", \"https://b.example:8443\"]",
    )];
    assert_eq!(with(MINIMAL, &several).unwrap().http.cors_origins.len(), 2);
}
