//! The credential in a request's `Authorization: Bearer` header (RFC 6750). Refuses to know whose it is.

use http::{HeaderMap, header::AUTHORIZATION};

use crate::error::CredentialFault;

/// The bearer token of a request that has exactly one. A credential in the query string is never looked for: it would end up
/// in the logs of everybody on the way.
pub(crate) fn token(headers: &HeaderMap) -> Result<&str, CredentialFault> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(CredentialFault::Missing)?;
    if values.next().is_some() {
        return Err(CredentialFault::Malformed);
    }
    let value = value.to_str().map_err(|_| CredentialFault::Malformed)?;
    let (scheme, token) = value.split_once(' ').ok_or(CredentialFault::Malformed)?;
    let token = token.trim_matches(' ');
    if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() {
        Ok(token)
    } else {
        Err(CredentialFault::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(values: &[&str]) -> Result<String, CredentialFault> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        token(&headers).map(str::to_owned)
    }

    #[test]
    fn exactly_one_bearer_token_is_a_credential() {
        assert_eq!(of(&["Bearer abc"]).as_deref(), Ok("abc"));
        assert_eq!(of(&["bEARER  abc "]).as_deref(), Ok("abc"));
        assert_eq!(of(&[]), Err(CredentialFault::Missing));
        for values in [
            &[""][..],
            &["Bearer"],
            &["Bearer "],
            &["Basic abc"],
            &["abc"],
            &["Bearer ä"],
            &["Bearer a", "Bearer a"],
        ] {
            assert_eq!(of(values), Err(CredentialFault::Malformed), "{values:?}");
        }
    }
}
