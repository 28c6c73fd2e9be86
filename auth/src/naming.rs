//! Which tenants a request names: by the header `X-Tenant-ID`, and by its host.
//!
//! Pure: refuses to know which tenants exist and what the caller may do. `X-Forwarded-Host` counts only in a request that a trusted
//! proxy has passed on, since anybody can send it. There it counts in addition to `Host`, and both must agree.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{GetAll, HOST},
    request::Parts,
};
use tenant_management::{InvalidTenantId, TenantId};

use crate::{error::AuthError, proxies::ThroughProxy};

/// The header by which a request may name its tenant.
pub const TENANT_HEADER: HeaderName = HeaderName::from_static("x-tenant-id");

/// The header in which a proxy says what host it was asked for.
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// One way in which a request names a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// By its id.
    Tenant(TenantId),
    /// By a host name outside the base domain, in lower case. It may be registered for a tenant, or be nobody's.
    Domain(String),
    /// By something that can be no tenant.
    Malformed,
}

/// Everything by which a request names tenants; empty when it names none.
pub(crate) fn named(parts: &Parts, base_domain: &str) -> Result<Vec<Named>, AuthError> {
    let mut named = Vec::new();
    if let Some(value) = only(&parts.headers, &TENANT_HEADER)? {
        named.push(value.to_str().map_or(Named::Malformed, |text| {
            reference(text).unwrap_or(Named::Malformed)
        }));
    }
    // A request target in absolute form (and HTTP/2's `:authority`) has a host of its own, and a proxy may have left another
    // one in the header. Both count.
    if let Some(host) = parts.uri.host() {
        named.extend(of_host(host, base_domain));
    }
    if let Some(value) = only(&parts.headers, &HOST)? {
        match value.to_str() {
            Ok(authority) => named.extend(of_host(without_port(authority), base_domain)),
            Err(_) => named.push(Named::Malformed),
        }
    }
    if parts.extensions.get::<ThroughProxy>().is_some()
        && let Some(value) = only(&parts.headers, &FORWARDED_HOST)?
    {
        match value.to_str() {
            // What each of several proxies was asked for is more than one name.
            Ok(hosts) if hosts.contains(',') => return Err(AuthError::AmbiguousTenant),
            Ok(authority) => named.extend(of_host(without_port(authority.trim()), base_domain)),
            Err(_) => named.push(Named::Malformed),
        }
    }
    Ok(named)
}

/// The value of a header that may be there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, AuthError> {
    let values: GetAll<'h, HeaderValue> = headers.get_all(name);
    let mut values = values.iter();
    let first = values.next();
    if values.next().is_some() {
        Err(AuthError::AmbiguousTenant)
    } else {
        Ok(first)
    }
}

fn reference(text: &str) -> Result<Named, InvalidTenantId> {
    TenantId::parse_reference(text).map(Named::Tenant)
}

/// The host of an authority such as `acme.localhost:8080` or `[::1]:8080`.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.ends_with(':') => host,
        _ => authority,
    }
}

/// What a host names. The base domain itself, its reserved sub-domains, addresses and bare host names are the service's own and
/// name nobody.
fn of_host(host: &str, base_domain: &str) -> Option<Named> {
    let host = host.to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    if host == base_domain || is_address(host) {
        return None;
    }
    if let Some(label) = host
        .strip_suffix(base_domain)
        .and_then(|rest| rest.strip_suffix('.'))
    {
        return match reference(label) {
            Ok(named) => Some(named),
            Err(InvalidTenantId::Reserved) => None,
            Err(_) => Some(Named::Malformed),
        };
    }
    if !host.contains('.') {
        return None;
    }
    let well_formed = host
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    Some(if well_formed {
        Named::Domain(host.to_owned())
    } else {
        Named::Malformed
    })
}

fn is_address(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(host).parse::<Ipv6Addr>().is_ok() || host.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use http::Request;
    use proptest::prelude::*;

    use super::*;

    fn tenant(id: &str) -> Named {
        Named::Tenant(TenantId::parse_new(id).unwrap())
    }

    fn of(uri: &str, headers: &[(&str, &str)]) -> Result<Vec<Named>, AuthError> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        named(&request.body(()).unwrap().into_parts().0, "example.com")
    }

    #[test]
    fn the_header_names_a_tenant_in_any_case() {
        assert_eq!(of("/", &[("x-tenant-id", "Acme")]), Ok(vec![tenant("acme")]));
        for text in [
            "",
            "a",
            "www",
            "acme,globex",
            "acme globex",
            "../acme",
            "acme'; drop database acme; --",
            "äcme",
        ] {
            assert_eq!(
                of("/", &[("x-tenant-id", text)]),
                Ok(vec![Named::Malformed]),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_forwarded_host_counts_only_from_a_trusted_proxy() {
        let of = |forwarded: &[&str], trusted: bool| {
            let mut request = Request::builder().header("host", "service.internal");
            for value in forwarded {
                request = request.header("x-forwarded-host", *value);
            }
            let mut parts = request.body(()).unwrap().into_parts().0;
            if trusted {
                parts.extensions.insert(ThroughProxy);
            }
            named(&parts, "example.com")
        };
        let inside = Named::Domain("service.internal".to_owned());
        assert_eq!(of(&["acme.example.com"], false), Ok(vec![inside.clone()]));
        let both = vec![inside.clone(), tenant("acme")];
        assert_eq!(of(&["acme.example.com:443"], true), Ok(both));
        assert_eq!(of(&["example.com"], true), Ok(vec![inside]));
        for several in [
            &["acme.example.com", "acme.example.com"][..],
            &["acme.example.com, globex.example.com"],
        ] {
            assert_eq!(of(several, true), Err(AuthError::AmbiguousTenant));
        }
    }

    #[test]
    fn a_header_sent_twice_is_refused() {
        for name in ["x-tenant-id", "host"] {
            let twice = [(name, "acme.example.com"), (name, "acme.example.com")];
            assert_eq!(of("/", &twice), Err(AuthError::AmbiguousTenant));
        }
    }

    #[test]
    fn a_sub_domain_names_a_tenant() {
        for host in [
            "acme.example.com",
            "ACME.Example.Com:8080",
            "acme.example.com.",
            "acme.example.com.:80",
        ] {
            assert_eq!(of("/", &[("host", host)]), Ok(vec![tenant("acme")]), "{host}");
        }
        for host in [
            "a.b.example.com",
            "a--b.example.com",
            ".example.com",
            "acme_.example.com",
            "acmé.example.com",
            "acme.example.com:x",
            "a@acme.example.com",
            "portal.acmé.test",
        ] {
            assert_eq!(of("/", &[("host", host)]), Ok(vec![Named::Malformed]), "{host}");
        }
    }

    #[test]
    fn the_services_own_hosts_name_nobody() {
        for host in [
            "example.com",
            "EXAMPLE.com:443",
            "www.example.com",
            "api.example.com",
            "localhost:8080",
            "127.0.0.1:80",
            "[::1]:80",
            "[::1]",
            "::1",
            "service",
        ] {
            assert_eq!(of("/", &[("host", host)]), Ok(vec![]), "{host}");
        }
        assert_eq!(of("/", &[]), Ok(vec![]));
    }

    #[test]
    fn another_domain_may_be_registered() {
        for host in ["Portal.Acme.test", "portal.acme.test:8443", "portal.acme.test."] {
            assert_eq!(
                of("/", &[("host", host)]),
                Ok(vec![Named::Domain("portal.acme.test".into())]),
                "{host}"
            );
        }
        assert_eq!(
            of("/", &[("host", "evilexample.com")]),
            Ok(vec![Named::Domain("evilexample.com".into())])
        );
    }

    #[test]
    fn every_way_counts() {
        let headers = [("x-tenant-id", "acme"), ("host", "globex.example.com")];
        let expected = vec![tenant("acme"), tenant("initech"), tenant("globex")];
        assert_eq!(of("http://initech.example.com/v1", &headers), Ok(expected));
        assert_eq!(of("/", &[("x-forwarded-host", "acme.example.com")]), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn no_host_makes_it_panic(host in "\\PC{0,80}") {
            let _ = of("/", &[("host", &host)]);
        }
    }
}
