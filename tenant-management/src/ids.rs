//! Identities other than a tenant's public name, each a type of its own so that none is taken for another.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A tenant's immutable identity, and the source of every physical name it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
#[sqlx(transparent)]
#[serde(transparent)]
pub struct TenantUuid(pub Uuid);

impl TenantUuid {
    /// A new identity (UUIDv7, so that identities sort by their time of birth).
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// The name of the tenant's database and of its role: `t_` and 32 hexadecimal digits, which needs no quoting and is
    /// well below PostgreSQL's limit of 63 bytes.
    pub fn physical_name(self) -> String {
        format!("t_{}", self.0.simple())
    }

    /// The identity behind a physical name, if it has the form that [`Self::physical_name`] makes.
    pub fn from_physical_name(name: &str) -> Option<Self> {
        let digits = name.strip_prefix("t_").filter(|digits| digits.len() == 32)?;
        let uuid = Uuid::try_parse(digits).ok().map(Self)?;
        (uuid.physical_name() == name).then_some(uuid)
    }
}

impl fmt::Display for TenantUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! uuid_identity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type)]
        #[sqlx(transparent)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new identity (UUIDv7).
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

uuid_identity! {
    /// One running process of the service.
    InstanceId
}
uuid_identity! {
    /// One piece of control-plane work that survives its worker.
    OperationId
}
uuid_identity! {
    /// One person, in whichever tenants.
    UserId
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type,
        )]
        #[sqlx(transparent)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// A number that grows by one with each change to the catalog.
    Revision
}
counter! {
    /// A number that grows when a tenant's placement or credentials change, or when a piece of work changes hands.
    Generation
}

/// The name of a cluster in the catalog: 1 to 40 bytes of `a-z`, `0-9`, `-`, starting with a letter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ClusterName(std::sync::Arc<str>);

/// The text is not the name of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cluster's name has 1 to 40 characters of a-z, 0-9 and hyphens, and starts with a letter")]
pub struct InvalidClusterName;

impl ClusterName {
    /// Parses a cluster's name.
    pub fn parse(text: &str) -> Result<Self, InvalidClusterName> {
        let well_formed = (1..=40).contains(&text.len())
            && text.as_bytes()[0].is_ascii_lowercase()
            && text
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if well_formed {
            Ok(Self(text.into()))
        } else {
            Err(InvalidClusterName)
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ClusterName {
    type Error = InvalidClusterName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_physical_name_leads_back_to_its_tenant() {
        let uuid = TenantUuid::generate();
        let name = uuid.physical_name();
        assert_eq!(name.len(), 34);
        assert_eq!(TenantUuid::from_physical_name(&name), Some(uuid));
        for other in [
            "t_",
            "postgres",
            &name.to_uppercase(),
            &format!("{name}0"),
            &name.replace("t_", "u_"),
        ] {
            assert_eq!(TenantUuid::from_physical_name(other), None, "{other}");
        }
    }
}
