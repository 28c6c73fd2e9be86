//! `/control/v1/tenants`

mod create;
mod domain;
mod list;
mod show;
mod suspend;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::http::AppState;

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create::create, list::list))
        .routes(routes!(show::show))
        .routes(routes!(suspend::suspend))
        .routes(routes!(suspend::resume))
}
