//! Whether a browser sends a request for a page of the service itself: its `Origin` is the request's own host, or one that the
//! configuration allows.
//!
//! The check that RFC 6454 makes possible and OWASP's cross-site request forgery cheat sheet recommends: no token that a page
//! would have to carry. Refuses to know what the request is for.

use http::{
    HeaderMap, Method,
    header::{HOST, ORIGIN},
    request::Parts,
};

use crate::state::AuthState;

/// Whether a method changes nothing (RFC 9110, section 9.2.1).
pub(crate) fn is_safe(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE
    )
}

/// The configured origins, for comparing.
pub(crate) fn allowed_origins(origins: impl IntoIterator<Item = String>) -> Box<[String]> {
    origins
        .into_iter()
        .map(|origin| origin.to_ascii_lowercase())
        .collect()
}

/// Whether the request's `Origin` is the service's own, or allowed. `None`: it has none, so it is no browser's, or an old one's.
pub(crate) fn is_own(auth: &AuthState, parts: &Parts) -> Option<bool> {
    own(
        &parts.headers,
        parts.uri.authority().map(http::uri::Authority::as_str),
        auth.sessions.secure,
        &auth.allowed_origins,
    )
}

fn own(headers: &HeaderMap, authority: Option<&str>, secure: bool, allowed: &[String]) -> Option<bool> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let origin = origins.next()?;
    if origins.next().is_some() {
        return Some(false);
    }
    let Ok(origin) = origin.to_str() else {
        return Some(false);
    };
    let origin = origin.to_ascii_lowercase();
    if allowed.contains(&origin) {
        return Some(true);
    }
    let Some((scheme, from)) = origin.split_once("://") else {
        return Some(false);
    };
    // A page that came without TLS may have been changed on the way.
    let scheme_ok = scheme == "https" || (scheme == "http" && !secure);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let same = authority.or(host).is_some_and(|host| {
        without_default_port(&host.to_ascii_lowercase(), scheme) == without_default_port(from, scheme)
    });
    Some(scheme_ok && same)
}

fn without_default_port<'h>(host: &'h str, scheme: &str) -> &'h str {
    let port = if scheme == "https" { ":443" } else { ":80" };
    host.strip_suffix(port).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn verdict(host: &str, origins: &[&str], secure: bool) -> Option<bool> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        for origin in origins {
            headers.append(ORIGIN, HeaderValue::from_bytes(origin.as_bytes()).unwrap());
        }
        own(&headers, None, secure, &["https://app.example.com".to_owned()])
    }

    #[test]
    fn the_requests_own_host_is_its_own_origin() {
        for (host, origin, secure) in [
            ("acme.example.com", "https://acme.example.com", true),
            ("ACME.example.com:443", "https://acme.EXAMPLE.com", true),
            ("acme.localhost:8080", "http://acme.localhost:8080", false),
            ("acme.localhost", "http://acme.localhost:80", false),
            ("acme.example.com", "https://app.example.com", true),
        ] {
            assert_eq!(verdict(host, &[origin], secure), Some(true), "{origin}");
        }
    }

    #[test]
    fn every_other_origin_is_foreign() {
        for (origins, secure) in [
            (&["https://globex.example.com"][..], true),
            (&["https://acme.example.com.evil.test"], true),
            (&["https://acme.example.com:8443"], true),
            (&["http://acme.example.com"], true),
            (&["null"], true),
            (&[""], true),
            (&["acme.example.com"], true),
            (&["https://"], true),
            (&["ftp://acme.example.com"], false),
            (&["https://acme.example.com", "https://acme.example.com"], true),
            (&["https://acme.example.com/"], true),
            (&["https://äcme.example.com"], true),
        ] {
            assert_eq!(
                verdict("acme.example.com", origins, secure),
                Some(false),
                "{origins:?}"
            );
        }
        assert_eq!(verdict("acme.example.com", &[], true), None);
    }

    #[test]
    fn methods_that_change_nothing_are_safe() {
        assert!(is_safe(&Method::GET) && is_safe(&Method::HEAD));
        assert!(
            ![Method::POST, Method::PUT, Method::PATCH, Method::DELETE]
                .iter()
                .any(is_safe)
        );
    }
}
