//! `/v1/profile`

use auth::{Member, TenantAccess, Viewer};

use crate::{
    http::{json::Json, problem::Problem},
    sample::{
        domain::{Line, Profile, ProfileDraft},
        store::Profiles,
    },
};

/// Show the profile
///
/// Before somebody has written one, the tenant's id stands for its name.
#[utoipa::path(get, path = "/profile", tag = "profile", operation_id = "show_profile",
    responses((status = OK, description = "The profile", body = Profile))
)]
pub(super) async fn show(access: TenantAccess<Viewer>) -> Result<Json<Profile>, Problem> {
    let profile = Profiles::new(&access.db).find().await?;
    Ok(Json(profile.unwrap_or_else(|| Profile {
        display_name:
            Line::parse(access.route.tenant.as_str()).expect("a tenant id is a short line of ASCII"),
        notification_email: None,
        updated_at: None,
    })))
}

/// Write the profile
#[utoipa::path(put, path = "/profile", tag = "profile", operation_id = "put_profile", request_body = ProfileDraft,
    responses((status = OK, description = "The profile as it is now", body = Profile))
)]
pub(super) async fn put(
    access: TenantAccess<Member>,
    Json(draft): Json<ProfileDraft>,
) -> Result<Json<Profile>, Problem> {
    Ok(Json(
        Profiles::new(&access.db).put(&draft, &access.principal).await?,
    ))
}
