//! People and what they may do, as JSON. Shapes only.

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use tenant_management::{EmailAddress, Invitation, Member, Role, TenantId, UserId};
use utoipa::ToSchema;

use crate::http::control::model::schema;

/// A person in a tenant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub(super) struct MemberBody {
    /// Names the person, in every tenant.
    #[schema(value_type = uuid::Uuid)]
    id: UserId,
    /// How they log in.
    #[schema(value_type = String, examples("ann@acme.example"))]
    email: EmailAddress,
    /// What they may do in this tenant.
    #[schema(value_type = schema::Role)]
    role: Role,
    /// Since when they belong to the tenant.
    since: DateTime<Utc>,
}

impl From<Member> for MemberBody {
    fn from(member: Member) -> Self {
        Self {
            id: member.user,
            email: member.email,
            role: member.role,
            since: member.since,
        }
    }
}

/// What a user should be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeMember {
    /// What they may do in this tenant.
    #[schema(value_type = schema::Role)]
    pub(super) role: Role,
}

/// Whom to invite.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateInvitation {
    /// Their e-mail address, with which they will log in. Case makes no difference.
    #[schema(value_type = String, format = Email, max_length = 254, examples("ann@acme.example"))]
    pub(super) email: EmailAddress,
    /// What they may do in this tenant.
    #[schema(value_type = schema::Role)]
    pub(super) role: Role,
}

/// An invitation, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Invitation)]
pub(super) struct InvitationBody {
    /// Public part: names the invitation.
    #[schema(examples("k3q9x0v7m2w5z8a1"))]
    id: String,
    /// Whom.
    #[schema(value_type = String, examples("ann@acme.example"))]
    email: EmailAddress,
    /// What they may do in this tenant.
    #[schema(value_type = schema::Role)]
    role: Role,
    /// By whom.
    #[schema(examples("user:0199a3c1-d2e3-7f4a-8b9c-0d1e2f3a4b5c"))]
    invited_by: String,
    /// Birth.
    created_at: DateTime<Utc>,
    /// From then on it is refused.
    expires_at: DateTime<Utc>,
}

impl From<Invitation> for InvitationBody {
    fn from(invitation: Invitation) -> Self {
        Self {
            id: invitation.id,
            email: invitation.email,
            role: invitation.role,
            invited_by: invitation.invited_by,
            created_at: invitation.created_at,
            expires_at: invitation.expires_at,
        }
    }
}

/// A new invitation, with its secret. The secret is shown here and never again.
#[derive(Serialize, ToSchema)]
#[schema(as = NewInvitation)]
pub(super) struct NewInvitationBody {
    #[serde(flatten)]
    pub(super) invitation: InvitationBody,
    /// What proves that somebody was invited: bring it to them, and to nobody else.
    #[schema(examples("tni_k3q9x0v7m2w5z8a1_…_1a2b3c4d"))]
    pub(super) secret: String,
}

/// How somebody takes an invitation up.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AcceptInvitation {
    /// The invitation's secret.
    #[schema(value_type = String, examples("tni_k3q9x0v7m2w5z8a1_…_1a2b3c4d"))]
    pub(super) secret: SecretString,
    /// The password of the invited person's account; of a person who has none yet, the one that it will have: 12 to 256
    /// characters.
    #[schema(value_type = String, format = Password, examples("an example, not a password"))]
    pub(super) password: SecretString,
}

/// A person in the tenant that they were invited to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Accepted {
    /// The tenant.
    #[schema(value_type = String, examples("acme"))]
    pub(super) tenant: TenantId,
    /// The person.
    pub(super) user: MemberBody,
}

/// Who logs in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Login {
    /// The e-mail address of the person's account. Case makes no difference.
    #[schema(value_type = String, format = Email, max_length = 254, examples("ann@acme.example"))]
    pub(super) email: EmailAddress,
    /// Their password.
    #[schema(value_type = String, format = Password, examples("an example, not a password"))]
    pub(super) password: SecretString,
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct SessionBody {
    /// Whose.
    #[schema(value_type = uuid::Uuid)]
    pub(super) user: UserId,
    /// How they log in.
    #[schema(value_type = String, examples("ann@acme.example"))]
    pub(super) email: EmailAddress,
    /// The only tenant that the session is good for, because the login named it; null when it is good for all of the person's.
    #[schema(value_type = Option<String>, examples("acme"))]
    pub(super) tenant: Option<TenantId>,
    /// The tenants that the session is good for.
    pub(super) tenants: Vec<TenantRole>,
    /// It ends then unless it is used.
    pub(super) idle_until: DateTime<Utc>,
    /// It ends then in any case.
    pub(super) ends_at: DateTime<Utc>,
}

/// A tenant, and what the person may do in it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TenantRole {
    /// The tenant.
    #[schema(value_type = String, examples("acme"))]
    pub(super) id: TenantId,
    /// What the person may do.
    #[schema(value_type = schema::Role)]
    pub(super) role: Role,
}

/// Sessions that have ended.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ended {
    /// How many.
    pub(super) sessions: u64,
}

/// A new password.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangePassword {
    /// The password that the account has.
    #[schema(value_type = String, format = Password)]
    pub(super) current_password: SecretString,
    /// The password that it should have: 12 to 256 characters.
    #[schema(value_type = String, format = Password)]
    pub(super) new_password: SecretString,
}

/// A password was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PasswordChanged {
    /// Whose.
    #[schema(value_type = uuid::Uuid)]
    pub(super) user: UserId,
}
