//! People: their accounts, the tenants they belong to, invitations, sessions and attempts to log in.
//!
//! Each command changes the catalog and waits a bounded time until no instance believes the contrary any more. Refuses to know
//! passwords and ids of sessions (only their hashes come here), cookies, and who may do what: the caller has decided that.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    believed::Believed,
    catalog::{Catalog, CatalogError, invitations::NewInvitation, login_attempts::Allowance, users::Account},
    control::{Actor, Changed, Page, Role},
    email::EmailAddress,
    error::ControlError,
    ids::{Revision, TenantUuid, UserId},
    spreading::Spreading,
};

/// A person in a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub user: UserId,
    /// How they log in, in lower case.
    pub email: EmailAddress,
    /// What they may do.
    pub role: Role,
    /// Since when.
    pub since: DateTime<Utc>,
}

/// An invitation without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// Public part: names the invitation in the catalog.
    pub id: String,
    /// Into which tenant.
    pub tenant: TenantUuid,
    /// Whom, in lower case.
    pub email: EmailAddress,
    /// What they may do.
    pub role: Role,
    /// SHA-256 of the secret part.
    pub secret_sha256: [u8; 32],
    /// By whom.
    pub invited_by: String,
    /// Birth.
    pub created_at: DateTime<Utc>,
    /// From then on it is refused.
    pub expires_at: DateTime<Utc>,
}

/// A session that is to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Whose.
    pub user: UserId,
    /// The only tenant that it is good for; `None`: all of the person's.
    pub tenant: Option<TenantUuid>,
    /// It ends after so long without use.
    pub idle_timeout: Duration,
    /// It ends then in any case.
    pub ends_at: DateTime<Utc>,
}

/// A session, and what its person may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonSession {
    /// Whose.
    pub user: UserId,
    /// How they log in.
    pub email: EmailAddress,
    /// The only tenant that the session is good for; `None`: all of the person's.
    pub tenant: Option<TenantUuid>,
    /// All tenants that the person belongs to, and what they may do there.
    pub memberships: Vec<(TenantUuid, Role)>,
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// It ends then unless it is used.
    pub idle_until: DateTime<Utc>,
    /// It ends then in any case.
    pub ends_at: DateTime<Utc>,
}

impl PersonSession {
    /// The tenants that the session is good for.
    pub fn tenants(&self) -> impl Iterator<Item = (TenantUuid, Role)> + '_ {
        let good = |tenant| self.tenant.is_none_or(|only| only == tenant);
        self.memberships
            .iter()
            .copied()
            .filter(move |(tenant, _)| good(*tenant))
    }
}

/// Commands and questions about people.
#[derive(Debug)]
pub struct People {
    catalog: Catalog,
    spreading: Spreading,
    sessions: Believed<[u8; 32], PersonSession>,
}

impl People {
    pub(crate) fn new(
        catalog: Catalog,
        spreading: Spreading,
        sessions: Believed<[u8; 32], PersonSession>,
    ) -> Self {
        Self {
            catalog,
            spreading,
            sessions,
        }
    }

    /// The account that logs in with this address, which is in lower case. Asked of the catalog itself each time.
    pub async fn account(&self, email: &EmailAddress) -> Result<Option<Account>, CatalogError> {
        self.catalog.account(email).await
    }

    /// The account of a person.
    pub async fn account_of(&self, user: UserId) -> Result<Option<Account>, CatalogError> {
        self.catalog.account_of(user).await
    }

    /// What a person may do in a tenant. Asked of the catalog itself each time.
    pub async fn role_in(&self, user: UserId, tenant: TenantUuid) -> Result<Option<Role>, CatalogError> {
        self.catalog.role_in(user, tenant).await
    }

    /// A page of a tenant's people in the order of their identities, beginning after `after`.
    pub async fn members(
        &self,
        tenant: TenantUuid,
        after: Option<UserId>,
        limit: u32,
    ) -> Result<Page<Member>, ControlError> {
        Ok(self.catalog.members(tenant, after, limit).await?)
    }

    /// Gives a member another role. `None`: the tenant has no such member.
    pub async fn change_member(
        &self,
        tenant: TenantUuid,
        user: UserId,
        role: Role,
        actor: &Actor,
    ) -> Result<Option<Changed<Member>>, ControlError> {
        let changed = self.catalog.change_member(tenant, user, role, actor).await?;
        self.spread(changed).await
    }

    /// Takes a person out of a tenant. `None`: the tenant has no such member.
    pub async fn remove_member(
        &self,
        tenant: TenantUuid,
        user: UserId,
        actor: &Actor,
    ) -> Result<Option<Changed<Member>>, ControlError> {
        let removed = self.catalog.remove_member(tenant, user, actor).await?;
        self.spread(removed).await
    }

    /// Invites a person into a tenant. An earlier invitation of the same person is good for nothing any more.
    pub async fn invite(
        &self,
        tenant: TenantUuid,
        invitation: &NewInvitation,
        actor: &Actor,
    ) -> Result<Changed<Invitation>, ControlError> {
        let (invitation, revision) = self.catalog.invite(tenant, invitation, actor).await?;
        self.spreading.spread(invitation, revision).await
    }

    /// An invitation that has not expired.
    pub async fn invitation(&self, id: &str) -> Result<Option<Invitation>, CatalogError> {
        self.catalog.invitation(id).await
    }

    /// A page of a tenant's invitations in the order of their ids, beginning after `after`.
    pub async fn invitations(
        &self,
        tenant: TenantUuid,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<Invitation>, ControlError> {
        Ok(self.catalog.invitations(tenant, after, limit).await?)
    }

    /// Withdraws an invitation. `None`: the tenant has no such invitation.
    pub async fn withdraw_invitation(
        &self,
        tenant: TenantUuid,
        id: &str,
        actor: &Actor,
    ) -> Result<Option<Changed<Invitation>>, ControlError> {
        let withdrawn = self.catalog.withdraw_invitation(tenant, id, actor).await?;
        self.spread(withdrawn).await
    }

    /// Makes a member of whom was invited, once; a person who has no account yet gets one with `new_password_hash`. `None`: the
    /// invitation is gone, or the person has got an account in the meantime.
    pub async fn accept_invitation(
        &self,
        invitation: &Invitation,
        new_password_hash: Option<&str>,
        actor: &Actor,
    ) -> Result<Option<Changed<Member>>, ControlError> {
        let accepted = self
            .catalog
            .accept_invitation(invitation, new_password_hash, actor)
            .await?;
        self.spread(accepted).await
    }

    /// Replaces a person's password and ends their sessions, apart from the one whose id has the hash `kept`. `None`: there is
    /// no such person.
    pub async fn change_password(
        &self,
        user: UserId,
        password_hash: &str,
        kept: &[u8; 32],
        actor: &Actor,
    ) -> Result<Option<Changed<()>>, ControlError> {
        let changed = self
            .catalog
            .change_password(user, password_hash, kept, actor)
            .await?;
        self.spread(changed.map(|revision| ((), revision))).await
    }

    /// Begins a session. `false`: there is one whose id has the same hash.
    pub async fn begin_session(
        &self,
        id_sha256: &[u8; 32],
        session: &NewSession,
    ) -> Result<bool, CatalogError> {
        self.catalog.begin_session(id_sha256, session).await
    }

    /// A session that has not ended, by the hash of its id. What was read a moment ago is believed, until a change about
    /// anybody's identity is heard of.
    pub async fn session(
        &self,
        id_sha256: &[u8; 32],
        idle_timeout: Duration,
        now: DateTime<Utc>,
    ) -> Result<Option<Arc<PersonSession>>, CatalogError> {
        let read = self.catalog.session(id_sha256, idle_timeout);
        // Reading it keeps it from becoming idle, so it is read again before it would.
        let half = TimeDelta::from_std(idle_timeout / 2).unwrap_or(TimeDelta::MAX);
        let in_use = |session: &PersonSession| {
            session.idle_until >= session.ends_at || session.idle_until - now > half
        };
        let session = self.sessions.get(*id_sha256, in_use, read).await?;
        Ok(session.filter(|session| now < session.idle_until && now < session.ends_at))
    }

    /// Ends a session. One that has ended already is no error.
    pub async fn end_session(&self, id_sha256: &[u8; 32]) -> Result<Changed<()>, ControlError> {
        let revision = self.catalog.end_session(id_sha256).await?;
        self.spreading.spread((), revision).await
    }

    /// Ends all sessions of a person, and says how many there were.
    pub async fn end_sessions(&self, user: UserId, actor: &Actor) -> Result<Changed<u64>, ControlError> {
        let (ended, revision) = self.catalog.end_sessions(user, actor).await?;
        self.spreading.spread(ended, revision).await
    }

    /// Counts an attempt under a key, for all instances together. `Some`: it is one too many, and how long to wait.
    pub async fn count_attempt(
        &self,
        key_sha256: &[u8; 32],
        allowance: Allowance,
    ) -> Result<Option<Duration>, CatalogError> {
        self.catalog.count_attempt(key_sha256, allowance).await
    }

    /// Forgets the attempts under a key.
    pub async fn forget_attempts(&self, key_sha256: &[u8; 32]) -> Result<(), CatalogError> {
        self.catalog.forget_attempts(key_sha256).await
    }

    async fn spread<T>(&self, changed: Option<(T, Revision)>) -> Result<Option<Changed<T>>, ControlError> {
        match changed {
            Some((value, revision)) => Ok(Some(self.spreading.spread(value, revision).await?)),
            None => Ok(None),
        }
    }

    /// Removes what is over: sessions and counted attempts. Bounded; answers how many rows it removed.
    pub(crate) async fn sweep(&self) -> Result<u64, CatalogError> {
        /// Most rows of each kind in one round.
        const ROWS: u32 = 10_000;
        let sessions = self.catalog.remove_ended_sessions(Utc::now(), ROWS).await?;
        Ok(sessions + self.catalog.remove_forgiven_attempts(ROWS).await?)
    }
}
