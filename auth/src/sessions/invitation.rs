//! Taking up an invitation: its secret says who was invited, and a password that it is them.

use secrecy::{ExposeSecret, SecretString};
use tenant_management::{ControlError, Member, TenantUuid, control::Changed};

use super::login::LoginError;
use crate::{
    anyone::Anyone,
    error::CredentialFault,
    key::{KeyKind, PresentedKey},
    passwords::{NewPassword, UnfitPassword},
    state::AuthState,
};

/// Somebody belongs to a tenant now.
#[derive(Debug)]
pub struct AcceptedInvitation {
    /// Which tenant.
    pub tenant: TenantUuid,
    /// Who, and how far the change has got.
    pub member: Changed<Member>,
}

/// Why an invitation was not taken up.
#[derive(Debug, thiserror::Error)]
pub enum InvitationError {
    /// There is no such invitation, or not any more.
    #[error("there is no such invitation")]
    Unknown,
    /// The password for the new account may not be one.
    #[error(transparent)]
    Unfit(#[from] UnfitPassword),
    /// The catalog did not do what it was asked for.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The person has not proved who they are.
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl AuthState {
    /// Makes a user of whom was invited, once: who has an account proves it by its password, and who has none gets one.
    pub async fn accept_invitation(
        &self,
        caller: &Anyone,
        secret: &SecretString,
        password: SecretString,
    ) -> Result<AcceptedInvitation, InvitationError> {
        caller.not_foreign()?;
        self.count_attempt_from(caller).await?;
        let presented = PresentedKey::parse(KeyKind::Invitation, secret.expose_secret())
            .map_err(|_| InvitationError::Unknown)?;
        let people = self.tenancy.people();
        let invitation = people
            .invitation(presented.id().as_str())
            .await
            .map_err(LoginError::from)?
            .filter(|invitation| presented.matches(&invitation.secret_sha256));
        let Some(invitation) = invitation else {
            self.note_login(caller, "unknown", "invitation.unknown", None, None);
            return Err(InvitationError::Unknown);
        };
        self.count_attempt_at(caller, &invitation.email).await?;
        let account = people
            .account(&invitation.email)
            .await
            .map_err(LoginError::from)?;
        let new_hash = match account {
            Some(account) => {
                let verified = self.passwords.verify(password, Some(account.password_hash));
                if !verified.await.map_err(LoginError::from)? {
                    let action = CredentialFault::WrongPassword.action();
                    self.note_login(caller, "unknown", action, None, Some(&invitation.email));
                    return Err(LoginError::Refused.into());
                }
                None
            }
            None => {
                let hashed = self.passwords.hash(NewPassword::parse(password)?);
                Some(hashed.await.map_err(LoginError::from)?)
            }
        };
        let actor = caller.source.unknown_actor();
        let accepted = people
            .accept_invitation(&invitation, new_hash.as_deref(), &actor)
            .await?;
        Ok(AcceptedInvitation {
            tenant: invitation.tenant,
            member: accepted.ok_or(InvitationError::Unknown)?,
        })
    }
}
