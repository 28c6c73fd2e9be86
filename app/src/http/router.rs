//! All routes, and the layers around them.

use auth::{AuthState, limits::LimitLayer};
use axum::{
    Router,
    extract::FromRef,
    middleware::{from_fn, from_fn_with_state},
};
use tower::util::option_layer;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;

use super::{
    AppState, access_log, client_address, control, cors, health, limits, metrics, openapi, people, problem,
    request_id, security_headers,
};
use crate::sample;

/// The routes of one instance.
#[derive(Debug)]
pub struct Routes {
    /// For the main listener.
    pub main: Router,
    /// For the control plane's own listener, when it has one. [`Self::main`] has no `/control` then.
    pub control: Option<Router>,
}

/// Puts all routes together. The description lists every operation, wherever it is served.
pub fn routes(state: &AppState, control_apart: bool) -> Routes {
    let (control, control_api) = openapi::base()
        .nest(control::PREFIX, control::router())
        .split_for_parts();
    let auth = AuthState::from_ref(state);
    let limits = auth.limit_headers();
    let of_tenants = sample::router(state)
        .merge(people::router(&auth))
        .layer(LimitLayer::new(limits));
    let (main, mut api) = openapi::base()
        .nest("/v1", of_tenants)
        .merge(for_machines())
        .split_for_parts();
    api.merge(control_api);
    let main = main.merge(openapi::router(api));
    if !control_apart {
        return Routes {
            main: layered(main.merge(control), state),
            control: None,
        };
    }
    let (machines, _) = for_machines().split_for_parts();
    Routes {
        main: layered(main, state),
        control: Some(layered(control.merge(machines), state)),
    }
}

fn for_machines() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .merge(health::router())
        .merge(metrics::router())
        .merge(problem::pages::router())
}

/// The layers around every route, the innermost first. The request id is outermost: it completes every answer, whichever layer
/// made it. The log is next, so that it sees every answer as the client does. Positions are carried outside of the time limit:
/// what was written before a request ran out of time is written.
fn layered(router: Router<AppState>, state: &AppState) -> Router {
    router
        .fallback(limits::unknown_path)
        .method_not_allowed_fallback(limits::method_not_allowed)
        .layer(from_fn_with_state(state.clone(), limits::time))
        .layer(CatchPanicLayer::custom(limits::panicked))
        .layer(state.positions())
        .layer(option_layer(cors::layer(state.allowed_origins())))
        .layer(from_fn(limits::head))
        .layer(from_fn_with_state(state.only_tls(), security_headers::layer))
        .layer(from_fn(access_log::layer))
        .layer(from_fn_with_state(state.proxies(), client_address::layer))
        .layer(from_fn(request_id::layer))
        .with_state(state.clone())
}
