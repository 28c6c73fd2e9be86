//! The measurements, one module each.
//!
//! A part has a `measure`, which makes raw data that can be written and read again, and a `section`, which makes text of
//! raw data and of nothing else.

pub mod authentication;
pub mod connections;
pub mod convergence;
pub mod isolation_race;
pub mod provisioning;
pub mod routed_read;
pub mod routing_decision;

use clap::ValueEnum;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    platform::{Begun, Circumstances},
    raw::{self, Raw},
    report::Section,
};

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Look-ups, changes and memory of the routing table.
    RoutingDecision,
    /// Time until a tenant has been created.
    Provisioning,
    /// Time until every instance serves a new tenant.
    Convergence,
    /// Whether anybody is answered from somebody else's database while the table changes.
    IsolationRace,
    /// Many tenants over few connections.
    Connections,
    /// What a read from a replica with a position costs.
    RoutedRead,
    /// What it costs to know who asks.
    Authentication,
}

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Enough for figures to be kept.
    Full,
    /// Enough to see that it works.
    Quick,
}

impl Extent {
    /// One of two numbers.
    pub fn of<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

impl Part {
    /// All, in the order of the report.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// The name on the command line and of the raw file.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoutingDecision => "routing-decision",
            Self::Provisioning => "provisioning",
            Self::Convergence => "convergence",
            Self::IsolationRace => "isolation-race",
            Self::Connections => "connections",
            Self::RoutedRead => "routed-read",
            Self::Authentication => "authentication",
        }
    }

    /// Measures, and keeps the raw data if the extent is full. Answers what a report would say.
    ///
    /// # Errors
    ///
    /// When something could not be measured; nothing is kept then.
    pub async fn run(self, extent: Extent) -> anyhow::Result<(Circumstances, Section)> {
        let begun = Begun::now();
        match self {
            Self::RoutingDecision => {
                let data = routing_decision::measure(extent)?;
                self.keep(extent, begun, data, routing_decision::section)
            }
            Self::Provisioning => {
                let data = provisioning::measure(extent).await?;
                self.keep(extent, begun, data, provisioning::section)
            }
            Self::Convergence => {
                let data = convergence::measure(extent).await?;
                self.keep(extent, begun, data, convergence::section)
            }
            Self::IsolationRace => {
                let data = isolation_race::measure(extent).await?;
                self.keep(extent, begun, data, isolation_race::section)
            }
            Self::Connections => {
                let data = connections::measure(extent).await?;
                self.keep(extent, begun, data, connections::section)
            }
            Self::RoutedRead => {
                let data = routed_read::measure(extent).await?;
                self.keep(extent, begun, data, routed_read::section)
            }
            Self::Authentication => {
                let data = authentication::measure(extent).await?;
                self.keep(extent, begun, data, authentication::section)
            }
        }
    }

    fn keep<T: Serialize>(
        self,
        extent: Extent,
        begun: Begun,
        data: T,
        section: fn(&T) -> Section,
    ) -> anyhow::Result<(Circumstances, Section)> {
        let raw = Raw {
            circumstances: begun.ended(),
            data,
        };
        if extent == Extent::Full {
            raw::write(self.name(), &raw)?;
        }
        let section = section(&raw.data);
        Ok((raw.circumstances, section))
    }

    /// What the report says about this part, from its raw file. `None`: there is none.
    ///
    /// # Errors
    ///
    /// When the raw file cannot be read.
    pub fn section(self) -> anyhow::Result<Option<(Circumstances, Section)>> {
        match self {
            Self::RoutingDecision => self.read(routing_decision::section),
            Self::Provisioning => self.read(provisioning::section),
            Self::Convergence => self.read(convergence::section),
            Self::IsolationRace => self.read(isolation_race::section),
            Self::Connections => self.read(connections::section),
            Self::RoutedRead => self.read(routed_read::section),
            Self::Authentication => self.read(authentication::section),
        }
    }

    fn read<T: DeserializeOwned>(
        self,
        section: fn(&T) -> Section,
    ) -> anyhow::Result<Option<(Circumstances, Section)>> {
        let raw: Option<Raw<T>> = raw::read(self.name())?;
        Ok(raw.map(|raw| (raw.circumstances, section(&raw.data))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_one_name() {
        for part in Part::all() {
            let value = part.to_possible_value().unwrap();
            assert_eq!(value.get_name(), part.name());
        }
    }
}
