//! `GET /openapi.json` and `/docs`: the API's own description.
//!
//! Operations describe what is their own; what all of them share (credentials, request ids, the problems that any request can
//! run into) is added here, so that no operation can forget it.

use axum::{Router, body::Bytes, http::header::CONTENT_TYPE, response::IntoResponse, routing::get};
use utoipa::{
    OpenApi, PartialSchema,
    openapi::{
        Components, Content, Header, HeaderBuilder, OpenApi as Document, Ref, RefOr, Response,
        ResponseBuilder, Schema, Type,
        path::{Operation, Parameter, ParameterBuilder, ParameterIn},
        schema::ObjectBuilder,
        security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
    },
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_swagger_ui::SwaggerUi;

use super::{
    AppState, control,
    problem::{self, FieldError, ProblemBody},
};

/// Where the description is.
const PATH: &str = "/openapi.json";
/// Names of the security schemes.
const OPERATOR: &str = "operator_token";
const API_KEY: &str = "api_key";
const SESSION: &str = "session";
const JWT: &str = "jwt";
/// What anybody may call below `/v1`: the ways in.
const WAYS_IN: [(&str, &str); 2] = [("post", "/v1/session"), ("post", "/v1/invitations/accept")];
/// What is about a person's own session, whatever tenants that is good for.
const OWN_SESSION: [&str; 2] = ["/v1/session", "/v1/session/password"];

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tenantry",
        description = "A service with a PostgreSQL database per tenant. The control plane below `/control/v1` is for operators; \
            the API below `/v1` is for tenants.\n\nErrors are problems (RFC 9457); each type is documented under `/problems`."
    ),
    tags(
        (name = "tenants", description = "Tenants and their lives (operators)"),
        (name = "api-keys", description = "Keys to the tenants' API (operators)"),
        (name = "operators", description = "Operators' tokens, and the audit trail (operators)"),
        (name = "people", description = "Sessions, and the users, invitations and API keys of a tenant"),
        (name = "operations", description = "Control-plane work that survives its worker (operators)"),
        (name = "clusters", description = "Where databases live (operators)"),
        (name = "instances", description = "Running instances of the service (operators)"),
        (name = "machines", description = "For load balancers, monitoring and documentation"),
    )
)]
struct Base;

/// A router to which operations are added.
pub(crate) fn base() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(Base::openapi())
}

/// The routes of the description and of the pages that show it.
pub(crate) fn router(mut document: Document) -> Router<AppState> {
    complete(&mut document);
    let json = Bytes::from(
        serde_json::to_vec(&document).expect("the description has only values that JSON can express"),
    );
    // Nothing of the pages asks another host: not for scripts, and not for a verdict on the description.
    let config = utoipa_swagger_ui::Config::from(PATH).validator_url("none");
    Router::new()
        .route(
            PATH,
            get(move || async move { ([(CONTENT_TYPE, "application/json")], json).into_response() }),
        )
        .merge(SwaggerUi::new("/docs").config(config))
}

/// Who may call the operations below a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    Operators,
    Tenants,
    Persons,
    Everybody,
}

impl Audience {
    fn of(method: &str, path: &str) -> Self {
        if path.starts_with(control::PREFIX) {
            Self::Operators
        } else if WAYS_IN.contains(&(method, path)) {
            Self::Everybody
        } else if OWN_SESSION.contains(&path) {
            Self::Persons
        } else if path.starts_with("/v1/") {
            Self::Tenants
        } else {
            Self::Everybody
        }
    }

    fn security(self) -> Vec<SecurityRequirement> {
        let requirement = |scheme| SecurityRequirement::new(scheme, Vec::<String>::new());
        match self {
            Self::Operators => vec![requirement(OPERATOR)],
            Self::Tenants => vec![
                requirement(API_KEY),
                requirement(JWT),
                requirement(SESSION),
                requirement(OPERATOR),
            ],
            Self::Persons => vec![requirement(SESSION)],
            Self::Everybody => Vec::new(),
        }
    }

    /// Statuses of the problems that any request of this audience can run into.
    fn problems(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Operators => OPERATORS,
            Self::Tenants => TENANTS,
            Self::Persons => PERSONS,
            Self::Everybody => &[],
        }
    }
}

const OPERATORS: &[(&str, &str)] = &[
    ("401", "The request has no operator's token."),
    ("403", "The operator's role is not enough."),
    (
        "503",
        "Something that the request needs cannot be reached at the moment.",
    ),
];
const TENANTS: &[(&str, &str)] = &[
    (
        "400",
        "The request, its query or its body is malformed, or an operator names no tenant.",
    ),
    ("401", "The request has no valid credential."),
    (
        "403",
        "The credential is for another tenant, its role is not enough, or the tenant is suspended.",
    ),
    (
        "404",
        "What the path names does not exist, or an operator names an unknown tenant.",
    ),
    ("429", "The tenant has sent more requests than it may."),
    (
        "503",
        "Something that the request needs cannot be reached at the moment.",
    ),
];
const PERSONS: &[(&str, &str)] = &[
    ("401", "The request has no session, or its session has ended."),
    ("403", "A page of another site sends the request."),
    (
        "503",
        "Something that the request needs cannot be reached at the moment.",
    ),
];
const WAY_IN: &[(&str, &str)] = &[
    (
        "401",
        "E-mail address and password do not fit, or the person does not belong to the tenant.",
    ),
    ("403", "A page of another site sends the request."),
    ("404", "There is no such invitation."),
    ("429", "There were too many attempts."),
    (
        "503",
        "Something that the request needs cannot be reached at the moment.",
    ),
];
const WITH_PARAMETERS: &[(&str, &str)] = &[
    ("400", "The request, its query or its body is malformed."),
    ("404", "What the path names does not exist."),
];
const WITH_BODY: &[(&str, &str)] = &[
    ("400", "The body or a header is malformed."),
    ("408", "The body did not arrive in time."),
    (
        "409",
        "What is there contradicts the request, or its twin is still at work.",
    ),
    ("413", "The body is larger than 1 MiB."),
    ("415", "The body is not sent as JSON."),
    (
        "422",
        "The body is not what the operation takes, or its `Idempotency-Key` belongs to another.",
    ),
];
/// What answers of the tenant API say about where they come from and what the caller's next reads have to see.
const POSITION_HEADERS: &[(&str, &str)] = &[
    (
        "Tenantry-Position",
        "To be sent back in the next request's header of the same name. Absent when there is nothing to wait for.",
    ),
    (
        "Tenantry-Served-By",
        "`primary`, or the replica's name; both, separated by a comma, when both have served.",
    ),
    (
        "Tenantry-Staleness-Ms",
        "How old what a replica has answered can be at most, in milliseconds.",
    ),
    (
        "RateLimit-Policy",
        "How many requests the tenant may send: `q` of them within `w` seconds. Absent without a limit.",
    ),
    (
        "RateLimit",
        "How many requests are left (`r`), and in how many seconds none will be missing (`t`).",
    ),
    ("Set-Cookie", "`tenantry_position`: the position, for browsers."),
];
const ANY: (&str, &str) = (
    "default",
    "Any other problem: the head is too large, the request took too long, or the service failed.",
);

/// Adds what operations share.
fn complete(document: &mut Document) {
    let components = document.components.get_or_insert_with(Components::new);
    components
        .schemas
        .insert("Problem".to_owned(), ProblemBody::schema());
    components
        .schemas
        .insert("FieldError".to_owned(), FieldError::schema());
    let bearer = |description: &str| {
        let mut scheme = Http::new(HttpAuthScheme::Bearer);
        scheme.description = Some(description.to_owned());
        RefOr::T(SecurityScheme::Http(scheme))
    };
    components
        .security_schemes
        .insert(OPERATOR.to_owned(), bearer("An operator's token."));
    components
        .security_schemes
        .insert(API_KEY.to_owned(), bearer("A tenant's API key: `tnt_…`."));
    components.security_schemes.insert(
        JWT.to_owned(),
        bearer("A JSON Web Token of an issuer that the service is configured to trust."),
    );
    let cookie = ApiKeyValue::with_description(
        auth::sessions::COOKIE,
        "The session of a person who has logged in by `POST /v1/session`. A request that changes something also needs the \
         header `Origin` of the service's own address.",
    );
    components.security_schemes.insert(
        SESSION.to_owned(),
        RefOr::T(SecurityScheme::ApiKey(ApiKey::Cookie(cookie))),
    );
    for (path, item) in &mut document.paths.paths {
        let operations = [
            ("get", &mut item.get),
            ("put", &mut item.put),
            ("post", &mut item.post),
            ("delete", &mut item.delete),
            ("patch", &mut item.patch),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            let is_way_in = WAYS_IN.contains(&(method, path.as_str()));
            complete_operation(
                operation,
                Audience::of(method, path),
                path.contains('{'),
                is_way_in,
            );
        }
    }
}

fn complete_operation(operation: &mut Operation, audience: Audience, names_something: bool, is_way_in: bool) {
    operation.security = Some(audience.security());
    let parameters = operation.parameters.get_or_insert_with(Vec::new);
    let has_query = parameters.iter().any(
        |parameter| matches!(parameter, RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query),
    );
    parameters.push(
        header_parameter(
            "X-Request-Id",
            "Names this request in logs and answers; made up when absent.",
        )
        .into(),
    );
    if audience == Audience::Tenants {
        let description = "The tenant. It must agree with the credential; operators, and people who belong to several tenants, choose by it.";
        parameters.push(header_parameter("X-Tenant-ID", description).into());
        let description = "What an earlier answer said in this header: reads see at least that. Browsers have it in a cookie.";
        parameters.push(header_parameter("Tenantry-Position", description).into());
    }
    let repeatable = parameters
        .iter()
        .any(|parameter| matches!(parameter, RefOr::T(it) if it.name == "Idempotency-Key"));
    let mut problems = audience.problems().to_vec();
    if names_something || has_query {
        problems.extend(
            WITH_PARAMETERS
                .iter()
                .filter(|(status, _)| names_something || *status == "400"),
        );
    }
    if operation.request_body.is_some() {
        problems.extend(WITH_BODY);
    }
    if is_way_in {
        problems.extend(WAY_IN);
    }
    problems.push(ANY);
    for (status, description) in problems {
        operation
            .responses
            .responses
            .entry(status.to_owned())
            .or_insert_with(|| problem(status, description).into());
    }
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        response.headers.insert(
            "X-Request-Id".to_owned(),
            text_header("The id of the request.").into(),
        );
        if audience == Audience::Tenants {
            let headers = POSITION_HEADERS.iter();
            response.headers.extend(
                headers.map(|(name, description)| ((*name).to_owned(), text_header(description).into())),
            );
        }
        if repeatable && audience == Audience::Operators && status.starts_with('2') {
            let replayed =
                text_header("`true`: the kept answer of the first request with this `Idempotency-Key`.");
            response
                .headers
                .insert("Idempotency-Replayed".to_owned(), replayed.into());
        }
    }
}

fn header_parameter(name: &str, description: &str) -> Parameter {
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header);
    parameter
        .description(Some(description))
        .schema(Some(text()))
        .build()
}

fn text() -> Schema {
    ObjectBuilder::new().schema_type(Type::String).build().into()
}

fn text_header(description: &str) -> Header {
    HeaderBuilder::new()
        .schema(Some(text()))
        .description(Some(description))
        .build()
}

/// A response with a problem in it.
fn problem(status: &str, description: &str) -> Response {
    let body = Content::new(Some(Ref::from_schema_name("Problem")));
    let mut response = ResponseBuilder::new()
        .description(description)
        .content(problem::CONTENT_TYPE, body);
    if status == "503" || status == "429" || status == "default" {
        response = response.header(
            "Retry-After",
            text_header("Seconds to wait (of `503` and `429`)."),
        );
    }
    if status == "401" {
        response = response.header("WWW-Authenticate", text_header("How to authenticate."));
    }
    response.build()
}
