//! `GET /problems` and `GET /problems/{slug}`: what each kind of problem means and what to do about it.

use axum::{
    extract::Path,
    response::{Html, IntoResponse, Response},
};
use http::{HeaderMap, header};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Problem, ProblemKind};
use crate::http::{AppState, json::Json};

/// A kind of problem.
#[derive(Serialize, ToSchema)]
pub(crate) struct ProblemType {
    /// The path of this page; the `type` of such a problem.
    r#type: &'static str,
    /// In words.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What happened, and what to do.
    explanation: String,
}

/// The pages' routes.
pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

/// Every kind of problem
#[utoipa::path(get, path = "/problems", tag = "machines", operation_id = "list_problems", responses(
    (status = OK, description = "All kinds", body = Vec<ProblemType>),
))]
pub(crate) async fn list() -> Json<Vec<ProblemType>> {
    Json(ProblemKind::ALL.iter().copied().map(describe).collect())
}

/// One kind of problem
///
/// As JSON, or as a page for people when that is what the request accepts.
#[utoipa::path(get, path = "/problems/{slug}", tag = "machines", operation_id = "show_problem",
    params(("slug" = String, Path, description = "The last part of a problem's `type`")),
    responses(
        (status = OK, description = "The kind", content((ProblemType = "application/json"), (String = "text/html"))),
        (status = NOT_FOUND, description = "No such kind", body = super::ProblemBody, content_type = super::CONTENT_TYPE),
    )
)]
pub(crate) async fn show(Path(slug): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    let kind = ProblemKind::from_slug(&slug).ok_or_else(|| {
        Problem::new(
            ProblemKind::NotFound,
            "there is no such kind of problem; `/problems` lists all",
        )
    })?;
    let page = describe(kind);
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if accept.contains("text/html") {
        return Ok(Html(html(&page)).into_response());
    }
    Ok(Json(page).into_response())
}

fn describe(kind: ProblemKind) -> ProblemType {
    let explanation = kind
        .explanation()
        .iter()
        .map(|line| line.trim())
        .collect::<Vec<_>>()
        .join(" ");
    ProblemType {
        r#type: kind.type_path(),
        title: kind.title(),
        status: kind.status().as_u16(),
        explanation,
    }
}

/// The catalogue is written by us and holds nothing that needs escaping in HTML; a test says so.
fn html(page: &ProblemType) -> String {
    let ProblemType {
        r#type,
        title,
        status,
        explanation,
    } = page;
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<h1>{title}</h1>\n\
         <p>{explanation}</p>\n<p>Status {status}, type <code>{type}</code>.</p>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_needs_no_escaping() {
        for page in ProblemKind::ALL.iter().copied().map(describe) {
            let text = format!("{}{}{}", page.r#type, page.title, page.explanation);
            assert!(!text.contains(['<', '>', '&', '"']), "{text}");
        }
    }
}
