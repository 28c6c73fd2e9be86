//! A person's change of their own password.

use secrecy::SecretString;
use tenant_management::{ControlError, control::Changed};

use super::{access::SessionAccess, login::LoginError};
use crate::{
    passwords::{NewPassword, UnfitPassword},
    state::AuthState,
};

/// Why a password was not changed.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The new one may not be a password.
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
    /// Replaces the password of a session's person, who proves with the current one that it is them, and ends their other
    /// sessions. `None`: the person is gone.
    pub async fn change_password(
        &self,
        access: &SessionAccess,
        current: SecretString,
        new: SecretString,
    ) -> Result<Option<Changed<()>>, PasswordError> {
        let new = NewPassword::parse(new)?;
        let user = access.session.user;
        // Whoever has found an open browser must not find the password out.
        self.count_attempt_with(&access.session.email).await?;
        let people = self.tenancy.people();
        let account = people.account_of(user).await.map_err(LoginError::from)?;
        let Some(account) = account else {
            return Ok(None);
        };
        let verified = self.passwords.verify(current, Some(account.password_hash));
        if !verified.await.map_err(LoginError::from)? {
            return Err(LoginError::Refused.into());
        }
        let hash = self.passwords.hash(new).await.map_err(LoginError::from)?;
        let changed = people
            .change_password(user, &hash, &access.id_sha256(), &access.actor())
            .await?;
        self.forgive(&access.session.email)
            .await
            .map_err(LoginError::from)?;
        Ok(changed)
    }
}
