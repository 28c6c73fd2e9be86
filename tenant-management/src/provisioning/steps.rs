//! The steps that make a tenant's database, each of which can be repeated.
//!
//! Refuses to know how a step is carried out and where progress is recorded.

use std::str::FromStr;

/// One step. Whoever takes over an operation begins again at the first; what is already there is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// The role, with a password and no attribute but LOGIN, member of the group role that owns the grants.
    CreateRole,
    /// The database, a copy of the cluster's template.
    CreateDatabase,
    /// Nobody but the role may connect, and the tenant's UUID is a setting of the database: the proof of whose it is. If the
    /// tenant has a name, that is set as well.
    Assign,
    /// A connection as the role reaches the right database and can do no more than it should.
    Verify,
    /// The tenant's public name as a comment, for people who look at the server: what is left to do for a spare.
    Label,
    /// The catalog learns of it.
    Record,
}

impl Step {
    /// In order.
    pub(crate) const ALL: [Self; 6] = [
        Self::CreateRole,
        Self::CreateDatabase,
        Self::Assign,
        Self::Verify,
        Self::Label,
        Self::Record,
    ];
    /// Those that touch the cluster.
    pub(crate) const ON_SERVER: [Self; 5] = [
        Self::CreateRole,
        Self::CreateDatabase,
        Self::Assign,
        Self::Verify,
        Self::Label,
    ];
    /// Those of them that need role and database.
    pub(crate) const AFTER_CREATION: [Self; 3] = [Self::Assign, Self::Verify, Self::Label];
    /// How many there are.
    pub(crate) const COUNT: u32 = 6;
    /// Where every attempt begins.
    pub(crate) const FIRST: Self = Self::CreateRole;

    /// The step as operations show it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::CreateRole => "create-role",
            Self::CreateDatabase => "create-database",
            Self::Assign => "assign",
            Self::Verify => "verify",
            Self::Label => "label",
            Self::Record => "record",
        }
    }

    /// How many steps come before it.
    pub(crate) fn number(self) -> i32 {
        self as i32
    }
}

impl FromStr for Step {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|step| step.as_str() == text).ok_or(())
    }
}

/// Ends the process at once when the crash point of this name is armed; only in builds with the feature `failpoints`.
pub(crate) fn crash_point(name: &str) {
    #[cfg(feature = "failpoints")]
    if fail::eval(name, |_| ()).is_some() {
        tracing::warn!(crash.point = name, "The process ends at a crash point.");
        std::process::abort();
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = name;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_in_order() {
        for (index, step) in Step::ALL.into_iter().enumerate() {
            assert_eq!(usize::try_from(step.number()), Ok(index));
            assert_eq!(step.as_str().parse(), Ok(step));
        }
        assert_eq!(u32::try_from(Step::ALL.len()), Ok(Step::COUNT));
        assert_eq!(
            Step::ALL.split_last(),
            Some((&Step::Record, Step::ON_SERVER.as_slice()))
        );
        assert!(Step::ON_SERVER.ends_with(&Step::AFTER_CREATION));
    }
}
