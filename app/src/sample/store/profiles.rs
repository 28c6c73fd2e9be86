//! The tenant's profile.

use auth::Principal;
use read_your_writes::Consistency;
use tenant_management::data::{DataError, TenantDb};

use super::audit;
use crate::sample::domain::{AuditEvent, EmailAddress, Line, Profile, ProfileDraft};

/// One tenant's profile.
#[derive(Clone, Copy, Debug)]
pub struct Profiles<'t> {
    db: &'t TenantDb,
}

impl<'t> Profiles<'t> {
    /// The profile of the tenant whose database this is.
    pub fn new(db: &'t TenantDb) -> Self {
        Self { db }
    }

    /// The profile, if somebody has written one.
    pub async fn find(&self) -> Result<Option<Profile>, DataError> {
        self.db
            .read(Consistency::Recent, async |mut conn| {
                let profile = sqlx::query_as!(
                    Profile,
                    r#"
                    select
                        display_name as "display_name: Line", notification_email as "notification_email: EmailAddress",
                        updated_at as "updated_at?"
                    from profile
                    "#,
                )
                .fetch_optional(&mut conn)
                .await?;
                Ok(profile)
            })
            .await
    }

    /// Writes the profile, in place of an earlier one if there is one.
    pub async fn put(&self, draft: &ProfileDraft, by: &Principal) -> Result<Profile, DataError> {
        self.db
            .write(async |mut tx| {
                let profile = sqlx::query_as!(
                    Profile,
                    r#"
                    insert into profile (display_name, notification_email)
                    values ($1, $2)
                    on conflict (only_row) do update
                    set
                        display_name = excluded.display_name, notification_email = excluded.notification_email,
                        updated_at = now()
                    returning
                        display_name as "display_name: Line", notification_email as "notification_email: EmailAddress",
                        updated_at as "updated_at?"
                    "#,
                    draft.display_name.as_str(),
                    draft.notification_email.as_ref().map(EmailAddress::as_str),
                )
                .fetch_one(&mut tx)
                .await?;
                audit::note(&mut tx, by, AuditEvent::ProfileChanged, None).await?;
                Ok(profile)
            })
            .await
    }
}
