//! The closed catalogue of problem types. Each has a page of its own under `/problems/`.

use http::StatusCode;

/// Declares the catalogue: one entry per type, with everything about it in one place.
macro_rules! catalogue {
    ($($(#[doc = $doc:literal])+ $kind:ident = $status:ident, $slug:literal, $title:literal;)+) => {
        /// What kind of problem an answer reports. The documentation of each kind is what its page says.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ProblemKind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl ProblemKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];

            /// The stable name: the last part of the type's path.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$kind => $slug,)+ }
            }

            /// A short summary that is the same for every problem of the kind.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$kind => $title,)+ }
            }

            /// The status of the answer.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$kind => StatusCode::$status,)+ }
            }

            /// What happened and what to do about it, in lines of text.
            pub const fn explanation(self) -> &'static [&'static str] {
                match self { $(Self::$kind => &[$($doc),+],)+ }
            }

            /// The `type` member: the path of the kind's page.
            pub const fn type_path(self) -> &'static str {
                match self { $(Self::$kind => concat!("/problems/", $slug),)+ }
            }
        }
    };
}

catalogue! {
    /// The request is not one that the service understands. The detail says which part.
    BadRequest = BAD_REQUEST, "bad-request", "Bad request";
    /// The body is not JSON: it is empty, cut, nested too deeply, or has a syntax error at the place that the detail names.
    /// Correct the body and send the request again.
    MalformedBody = BAD_REQUEST, "malformed-body", "Malformed body";
    /// A query parameter is unknown, appears twice or has a value that it cannot have. The detail names it.
    InvalidQuery = BAD_REQUEST, "invalid-query", "Invalid query";
    /// The cursor was not made by this list, or was cut. Use the `next_cursor` of a page as it is, with the same path, or
    /// leave the cursor out to start from the beginning.
    InvalidCursor = BAD_REQUEST, "invalid-cursor", "Invalid cursor";
    /// The `Idempotency-Key` is not 1 to 255 visible ASCII characters, or was sent more than once.
    /// A random UUID is a good key.
    InvalidIdempotencyKey = BAD_REQUEST, "invalid-idempotency-key", "Invalid idempotency key";
    /// The credential is good for any tenant and the request names none. Name one in the header `X-Tenant-ID` or by the
    /// host.
    TenantRequired = BAD_REQUEST, "tenant-required", "Tenant required";
    /// `X-Tenant-ID`, `Host` or, by a trusted proxy, `X-Forwarded-Host` was sent more than once. Send each at most once.
    AmbiguousTenant = BAD_REQUEST, "ambiguous-tenant", "Ambiguous tenant";
    /// The request has no valid credential: none at all, a mistyped, unknown, revoked or expired one. Send
    /// `Authorization: Bearer` with a tenant's API key or JWT (for `/v1`) or an operator's token (for `/control`), or log in by
    /// `POST /v1/session` and send the cookie. At a login: e-mail address and password do not fit.
    Unauthenticated = UNAUTHORIZED, "unauthenticated", "Credential required";
    /// The credential is valid and its role is not enough for this. The detail names the role that is.
    Forbidden = FORBIDDEN, "forbidden", "Forbidden";
    /// The header `X-Tenant-ID` or the host names another tenant than the credential's. The answer is the same whether or
    /// not that tenant exists. Use the credential of the tenant that you mean.
    WrongTenant = FORBIDDEN, "wrong-tenant", "Wrong tenant";
    /// A browser sends this request, which changes something by a session's cookie, for a page of another site; or it does not
    /// say for which page. Send the header `Origin` of the service's own address, or use another credential than the cookie.
    ForeignOrigin = FORBIDDEN, "foreign-origin", "Foreign origin";
    /// An operator has suspended the tenant. Its data is kept, and it answers again once it is resumed.
    TenantSuspended = FORBIDDEN, "tenant-suspended", "Tenant suspended";
    /// There is nothing at this path. `/openapi.json` lists every path.
    UnknownPath = NOT_FOUND, "unknown-path", "Unknown path";
    /// What the path names does not exist, or not for this credential.
    NotFound = NOT_FOUND, "not-found", "Not found";
    /// No tenant has this id.
    UnknownTenant = NOT_FOUND, "unknown-tenant", "Unknown tenant";
    /// The path exists and does not have this method. The header `Allow` lists the methods that it has.
    MethodNotAllowed = METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed";
    /// The body did not arrive in time. Send the request again over a better connection.
    BodyTimeout = REQUEST_TIMEOUT, "body-timeout", "Body too slow";
    /// What is there already contradicts the request. The detail says what.
    Conflict = CONFLICT, "conflict", "Conflict";
    /// A tenant with this id exists and was asked for differently. Ids are unique, and stay taken until a deleted tenant is
    /// purged. Choose another id, or repeat the first request exactly.
    TenantExists = CONFLICT, "tenant-exists", "Tenant exists";
    /// One of the domains belongs to another tenant.
    DomainTaken = CONFLICT, "domain-taken", "Domain taken";
    /// No cluster satisfies the request: the region or cluster does not exist, or has no room. `GET /control/v1/clusters`
    /// lists what there is.
    NoCluster = CONFLICT, "no-cluster", "No suitable cluster";
    /// The tenant is in a state that does not allow this. The detail names the state.
    WrongState = CONFLICT, "wrong-state", "Wrong state";
    /// The first request with this `Idempotency-Key` is still at work. Wait, then send the same request again.
    IdempotencyInProgress = CONFLICT, "idempotency-in-progress", "Request in progress";
    /// The body is larger than 1 MiB.
    BodyTooLarge = PAYLOAD_TOO_LARGE, "body-too-large", "Body too large";
    /// The path and query are longer than the service reads.
    UriTooLong = URI_TOO_LONG, "uri-too-long", "URI too long";
    /// The body must be JSON and say so: `Content-Type: application/json`.
    UnsupportedMediaType = UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "Unsupported media type";
    /// The body is JSON and not what this operation takes. `errors` lists each field that is wrong and why.
    InvalidBody = UNPROCESSABLE_ENTITY, "invalid-body", "Invalid body";
    /// The `Idempotency-Key` was used before with another body. Use a new key for a new request.
    IdempotencyKeyReused = UNPROCESSABLE_ENTITY, "idempotency-key-reused", "Idempotency key reused";
    /// The headers are larger than the service reads.
    HeadersTooLarge = REQUEST_HEADER_FIELDS_TOO_LARGE, "headers-too-large", "Headers too large";
    /// The tenant has sent more requests than it may, in a second or at the same time. Wait for the time in `Retry-After`;
    /// `RateLimit` says how much is left.
    TooManyRequests = TOO_MANY_REQUESTS, "too-many-requests", "Too many requests";
    /// There were too many attempts to log in, with this e-mail address or from this address. Wait for the time in `Retry-After`.
    TooManyAttempts = TOO_MANY_REQUESTS, "too-many-attempts", "Too many attempts";
    /// The service failed. The failure is in its log under the request id that `instance` shows; tell the operator.
    Internal = INTERNAL_SERVER_ERROR, "internal", "Internal error";
    /// The connection to the database broke while the change was being committed: it was made, or it was not. Look before you
    /// repeat it, or repeat it with the same `Idempotency-Key`.
    OutcomeUnknown = INTERNAL_SERVER_ERROR, "outcome-unknown", "Outcome unknown";
    /// A part that the request needs cannot be reached at the moment. Try again after the time in `Retry-After`.
    Unavailable = SERVICE_UNAVAILABLE, "unavailable", "Unavailable";
    /// All connections that the request could use are taken. Try again after the time in `Retry-After`.
    Overloaded = SERVICE_UNAVAILABLE, "overloaded", "Overloaded";
    /// The change is not possible at the moment and will be retried. Post the same request again after the time in
    /// `Retry-After`, or follow the operation that `operation` names.
    NotPossibleNow = SERVICE_UNAVAILABLE, "not-possible-now", "Not possible now";
    /// The request took longer than the service allows. A change may have been made: look before you repeat it, or repeat
    /// it with the same `Idempotency-Key`.
    Timeout = GATEWAY_TIMEOUT, "timeout", "Timeout";
}

impl ProblemKind {
    /// The kind with this slug.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.slug() == slug)
    }

    /// The kind that says as much as a bare status does.
    pub(crate) fn from_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthenticated,
            StatusCode::FORBIDDEN => Self::Forbidden,
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::REQUEST_TIMEOUT => Self::BodyTimeout,
            StatusCode::CONFLICT => Self::Conflict,
            StatusCode::PAYLOAD_TOO_LARGE => Self::BodyTooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::UnsupportedMediaType,
            StatusCode::UNPROCESSABLE_ENTITY => Self::InvalidBody,
            StatusCode::TOO_MANY_REQUESTS => Self::TooManyRequests,
            StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable,
            StatusCode::GATEWAY_TIMEOUT => Self::Timeout,
            status if status.is_client_error() => Self::BadRequest,
            _ => Self::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_is_an_error_with_a_slug_and_an_explanation_of_its_own() {
        let slugs: BTreeSet<_> = ProblemKind::ALL.iter().map(|kind| kind.slug()).collect();
        assert_eq!(slugs.len(), ProblemKind::ALL.len());
        for kind in ProblemKind::ALL {
            assert!(kind.status().is_client_error() || kind.status().is_server_error());
            assert!(
                kind.slug()
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            );
            assert!(!kind.explanation().concat().is_empty());
            assert_eq!(ProblemKind::from_slug(kind.slug()), Some(*kind));
        }
    }
}
