//! Every way to name a tenant, with every kind of credential, and every relation between the two.

use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::{
    browser::{fresh_address, join, session},
    common::{OPERATOR_TOKEN, Responses, TestApp},
    issuer::Issuer,
};

/// How a request names a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Nothing,
    Header,
    SubDomain,
    Domain,
    HeaderAndSubDomain,
}

/// How what is named relates to the credential, which is for acme (and, when it is good for several, for globex).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Own,
    OwnInUpperCase,
    Second,
    Foreign,
    Unknown,
    Malformed,
}

/// A kind of credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ApiKey,
    Jwt,
    JwtOfTwo,
    Session,
    SessionOfTwo,
    SessionBoundToAcme,
    Operator,
}

impl Named {
    fn id(self) -> &'static str {
        match self {
            Self::Own => "acme",
            Self::OwnInUpperCase => "ACME",
            Self::Second => "globex",
            Self::Foreign => "initech",
            Self::Unknown => "nosuch",
            Self::Malformed => "a--b",
        }
    }
}

impl Way {
    /// The request with the name in it. `None`: this cannot be named in this way.
    fn name(self, request: RequestBuilder, named: Named) -> Option<RequestBuilder> {
        let id = named.id();
        Some(match self {
            Self::Nothing => request,
            Self::Header => request.header("x-tenant-id", id),
            Self::SubDomain => request.header("host", format!("{id}.localhost:8080")),
            Self::HeaderAndSubDomain => request
                .header("x-tenant-id", id)
                .header("host", format!("{id}.localhost")),
            // A domain that nobody has registered names nobody, and one with a fault is malformed.
            Self::Domain => match named {
                Named::Unknown => return None,
                Named::Malformed => request.header("host", "portal.a\u{e4}.test"),
                _ => request.header("host", format!("portal.{id}.test")),
            },
        })
    }
}

/// What the interface promises.
fn expected(kind: Kind, way: Way, named: Named) -> Result<&'static str, (u16, &'static str)> {
    let wrong = Err((403, "wrong-tenant"));
    if way == Way::Nothing {
        return match kind {
            Kind::ApiKey | Kind::Jwt | Kind::Session | Kind::SessionBoundToAcme => Ok("acme"),
            Kind::JwtOfTwo | Kind::SessionOfTwo | Kind::Operator => Err((400, "tenant-required")),
        };
    }
    match (kind, named) {
        (_, Named::Own | Named::OwnInUpperCase) => Ok("acme"),
        (Kind::Operator, Named::Second) => Ok("globex"),
        (Kind::Operator, Named::Foreign) => Ok("initech"),
        (Kind::Operator, Named::Unknown | Named::Malformed) => Err((404, "unknown-tenant")),
        (Kind::JwtOfTwo | Kind::SessionOfTwo, Named::Second) => Ok("globex"),
        (_, Named::Second | Named::Foreign | Named::Unknown | Named::Malformed) => wrong,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_and_a_name_agree_or_the_request_is_refused() {
    let issuer = Issuer::start().await;
    let app = TestApp::builder()
        .set("http.secure_cookies", "false")
        .more(&issuer.settings())
        .start()
        .await;
    for id in ["acme", "globex", "initech"] {
        let tenant = json!({"id": id, "domains": [format!("portal.{id}.test")]});
        app.create(&tenant).await.expect(201);
    }
    let (one, two) = (fresh_address(), fresh_address());
    join(&app, &one, "acme", "viewer").await;
    join(&app, &two, "acme", "viewer").await;
    join(&app, &two, "globex", "viewer").await;
    let bearer = |token: String| ("authorization", format!("Bearer {token}"));
    let cookie = |session: String| ("cookie", session);
    let credentials = [
        (Kind::ApiKey, bearer(app.key("acme", "viewer").await)),
        (Kind::Jwt, bearer(issuer.token("ed", json!({})))),
        (
            Kind::JwtOfTwo,
            bearer(issuer.token("es", json!({"tenant_id": ["acme", "globex"]}))),
        ),
        (Kind::Session, cookie(session(&app, &one, None).await)),
        (Kind::SessionOfTwo, cookie(session(&app, &two, None).await)),
        (
            Kind::SessionBoundToAcme,
            cookie(session(&app, &two, Some("acme")).await),
        ),
        (Kind::Operator, bearer(OPERATOR_TOKEN.to_owned())),
    ];
    let ways = [
        Way::Nothing,
        Way::Header,
        Way::SubDomain,
        Way::Domain,
        Way::HeaderAndSubDomain,
    ];
    let names = [
        Named::Own,
        Named::OwnInUpperCase,
        Named::Second,
        Named::Foreign,
        Named::Unknown,
        Named::Malformed,
    ];
    let mut cells = 0;
    for (kind, (header, credential)) in &credentials {
        for way in ways {
            for named in names {
                let request = app.request(Method::GET, "/v1/whoami").header(*header, credential);
                let Some(request) = way.name(request, named) else {
                    continue;
                };
                let answer = request.answer().await;
                let cell = format!("{kind:?} {way:?} {named:?}: {answer:?}");
                match expected(*kind, way, named) {
                    Ok(tenant) => {
                        assert_eq!(answer.status, 200, "{cell}");
                        let who = answer.json();
                        assert_eq!(who["tenant"], tenant, "{cell}");
                        assert_eq!(who["database_tenant"], who["uuid"], "{cell}");
                    }
                    Err((status, problem)) => {
                        assert_eq!(answer.status.as_u16(), status, "{cell}");
                        assert_eq!(answer.json()["type"], format!("/problems/{problem}"), "{cell}");
                    }
                }
                cells += 1;
            }
        }
        // Two names that disagree, of which one is the credential's own.
        for (header_names, host) in [("acme", "globex"), ("globex", "acme"), ("acme", "nosuch")] {
            let request = app.request(Method::GET, "/v1/whoami").header(*header, credential);
            let request = request
                .header("x-tenant-id", header_names)
                .header("host", format!("{host}.localhost"));
            let answer = request.answer().await;
            let refused = if *kind == Kind::Operator && host == "nosuch" {
                404
            } else {
                403
            };
            assert_eq!(
                answer.status.as_u16(),
                refused,
                "{kind:?} {header_names} {host}: {answer:?}"
            );
            cells += 1;
        }
    }
    assert_eq!(cells, 7 * (5 * 6 - 1 + 3));
}
