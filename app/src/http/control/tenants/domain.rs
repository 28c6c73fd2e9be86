//! Host names that tenants bring along. Refuses to know whether somebody has one already.

use std::net::Ipv4Addr;

/// The canonical form of a host name that may be registered for a tenant: labels of `a-z`, `0-9` and hyphens, at least two of
/// them, at most 253 bytes, in lower case. Names below the base domain belong to the service.
pub(super) fn canonical(text: &str, base_domain: &str) -> Result<String, &'static str> {
    let domain = text.to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let well_formed = domain.len() <= 253 && domain.contains('.') && domain.split('.').all(label);
    if !well_formed || domain.parse::<Ipv4Addr>().is_ok() {
        return Err(
            "must be a host name with at least one dot, such as `portal.example.org`, without a port",
        );
    }
    let below = domain
        .strip_suffix(base_domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if below {
        Err("must not be the service's own domain or below it")
    } else {
        Ok(domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_a_host_name_of_somebody_else() {
        assert_eq!(
            canonical("Portal.Acme.test", "example.com").as_deref(),
            Ok("portal.acme.test")
        );
        assert_eq!(
            canonical("notexample.com", "example.com").as_deref(),
            Ok("notexample.com")
        );
        for text in [
            "",
            "acme",
            "a..b",
            ".acme.test",
            "acme.test.",
            "-a.test",
            "a-.test",
            "a_b.test",
            "acme.test:80",
            "127.0.0.1",
            "äcme.test",
            "a b.test",
            "a.test/x",
            "*.acme.test",
            "example.com",
            "globex.example.com",
            "GLOBEX.Example.com",
            "a'; drop database x; --.test",
            "a\0.test",
            &format!("{}.test", "a".repeat(64)),
            &"a.".repeat(127),
        ] {
            assert!(canonical(text, "example.com").is_err(), "{text:?}");
        }
    }
}
