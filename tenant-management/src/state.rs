//! A tenant's state and its legal changes, as pure functions. Refuses to know how a state is stored.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Where a tenant is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TenantState {
    /// Its name is taken and its database is being made. Not visible to routing.
    InProgress,
    /// In service.
    Created,
    /// Provisioning failed. The name stays taken; provisioning can be tried again. Not visible to routing.
    Failed,
    /// Kept, but answers nobody until it is resumed.
    Suspended,
    /// On its way to another cluster.
    Moving,
    /// Soft-deleted: can be restored until it is purged.
    Deleted,
    /// Its database is gone and its name is free. A tombstone, so that others learn of the removal.
    Purged,
}

/// What can happen to a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TenantEvent {
    /// Its database was made and verified.
    Provisioned,
    /// Its database could not be made for now.
    ProvisioningFailed,
    /// Somebody tries again to make its database.
    ProvisioningRetried,
    /// An operator suspends it.
    Suspended,
    /// An operator resumes it.
    Resumed,
    /// An operator deletes it, with a grace period.
    Deleted,
    /// An operator takes the deletion back.
    Restored,
    /// Its database and role are gone.
    Purged,
}

/// The event cannot happen to a tenant in this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tenant that is {state} cannot be {event}")]
pub struct IllegalTransition {
    /// The state the tenant is in.
    pub state: TenantState,
    /// What was asked for.
    pub event: TenantEvent,
}

impl TenantState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::InProgress,
        Self::Created,
        Self::Failed,
        Self::Suspended,
        Self::Moving,
        Self::Deleted,
        Self::Purged,
    ];

    /// The state after `event`. An event that has already happened changes nothing and is no error.
    pub fn after(self, event: TenantEvent) -> Result<Self, IllegalTransition> {
        use TenantEvent as E;
        use TenantState as S;
        match (self, event) {
            (S::InProgress | S::Created, E::Provisioned) => Ok(S::Created),
            (S::InProgress | S::Failed, E::ProvisioningFailed) => Ok(S::Failed),
            (S::InProgress | S::Failed, E::ProvisioningRetried) => Ok(S::InProgress),
            (S::Created | S::Suspended, E::Suspended) => Ok(S::Suspended),
            (S::Created | S::Suspended, E::Resumed) => Ok(S::Created),
            (S::Created | S::Suspended | S::Failed | S::Deleted, E::Deleted) => Ok(S::Deleted),
            (S::Deleted | S::Created, E::Restored) => Ok(S::Created),
            (S::Deleted | S::Purged, E::Purged) => Ok(S::Purged),
            (state, event) => Err(IllegalTransition { state, event }),
        }
    }

    /// Whether the routing table knows tenants in this state. Tenants that are known and not [`Self::Created`] are refused
    /// with a reason instead of being unknown.
    pub const fn is_routed(self) -> bool {
        matches!(
            self,
            Self::Created | Self::Suspended | Self::Moving | Self::Deleted
        )
    }

    /// The state as the catalog and the API write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "IN_PROGRESS",
            Self::Created => "CREATED",
            Self::Failed => "FAILED",
            Self::Suspended => "SUSPENDED",
            Self::Moving => "MOVING",
            Self::Deleted => "DELETED",
            Self::Purged => "PURGED",
        }
    }
}

/// The text names no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tenant's state is one of IN_PROGRESS, CREATED, FAILED, SUSPENDED, MOVING, DELETED, PURGED")]
pub struct UnknownState;

impl FromStr for TenantState {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or(UnknownState)
    }
}

impl fmt::Display for TenantState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for TenantEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Provisioned => "put into service",
            Self::ProvisioningFailed => "marked as failed",
            Self::ProvisioningRetried => "provisioned again",
            Self::Suspended => "suspended",
            Self::Resumed => "resumed",
            Self::Deleted => "deleted",
            Self::Restored => "restored",
            Self::Purged => "purged",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [TenantEvent; 8] = [
        TenantEvent::Provisioned,
        TenantEvent::ProvisioningFailed,
        TenantEvent::ProvisioningRetried,
        TenantEvent::Suspended,
        TenantEvent::Resumed,
        TenantEvent::Deleted,
        TenantEvent::Restored,
        TenantEvent::Purged,
    ];

    #[test]
    fn repeating_an_event_is_no_error() {
        for state in TenantState::ALL {
            for event in EVENTS {
                if let Ok(next) = state.after(event) {
                    assert_eq!(next.after(event), Ok(next), "{state} {event:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_leaves_the_tombstone() {
        for event in EVENTS {
            match TenantState::Purged.after(event) {
                Ok(next) => assert_eq!(next, TenantState::Purged),
                Err(refusal) => assert_eq!(refusal.state, TenantState::Purged),
            }
        }
    }

    #[test]
    fn only_a_verified_database_puts_a_new_tenant_into_service() {
        for state in [TenantState::InProgress, TenantState::Failed] {
            for event in EVENTS {
                let enters_service = state.after(event) == Ok(TenantState::Created);
                assert_eq!(
                    enters_service,
                    state == TenantState::InProgress && event == TenantEvent::Provisioned
                );
            }
            assert!(!state.is_routed());
        }
    }

    #[test]
    fn texts_go_both_ways() {
        for state in TenantState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert_eq!("created".parse::<TenantState>(), Err(UnknownState));
    }
}
