//! How the tenant presents itself.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{EmailAddress, Line};

/// What a profile is made from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileDraft {
    /// Name for people: one line of at most 200 characters.
    #[schema(value_type = String, min_length = 1, max_length = 200, examples("Acme Corporation"))]
    pub display_name: Line,
    /// Where notifications go; `null` when nowhere.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Email, max_length = 254, examples("billing@acme.example"))]
    pub notification_email: Option<EmailAddress>,
}

/// The tenant's profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Profile {
    /// Name for people.
    #[schema(value_type = String, examples("Acme Corporation"))]
    pub display_name: Line,
    /// Where notifications go, if anywhere.
    #[schema(value_type = Option<String>, examples("billing@acme.example"))]
    pub notification_email: Option<EmailAddress>,
    /// Last change; `null` when nobody has written a profile yet.
    pub updated_at: Option<DateTime<Utc>>,
}
