//! The race's section of the report.

use super::{
    Data, Race,
    race::{Access, READERS, TENANTS},
    tables::{Configuration, Replacement},
};
use crate::{
    report::{Claim, Section, Table, count},
    stats::rule_of_three,
};

/// What the report says.
pub fn section(data: &Data) -> Section {
    Section {
        title: "Isolation while the routing table changes",
        method: format!(
            "{READERS} readers ask for {TENANTS} tenants in turn, each with a database of its own; one thread replaces the rows of \
             all tenants as fast as it can. Each request looks its tenant up, runs one statement, and compares what the database \
             says of itself (`current_database()` and the setting `tenantry.tenant`, which belongs to the database) with the \
             tenant that was asked for. Either way to the data: a handle made from the route, or a repository that finds the \
             tenant in the request's context. The tables that are rebuilt in place, and the fallback to the first tenant's route, \
             are what not to do, and exist in this measurement only. Every request of every race ran its statement, except those \
             that found no route. When nothing wrong was seen in *N* answers, the rate of wrong answers is below 3/*N* with 95 % \
             confidence, as long as the answers can be taken as independent."
        ),
        tables: vec![
            table("Few requests", &data.brief),
            table("Many requests", &data.long),
        ],
        claims: claims(data),
    }
}

fn table(caption: &str, races: &[Race]) -> Table {
    let rows = races.iter().map(|race| {
        let Race {
            configuration,
            access,
            tally,
        } = race;
        let bound = if tally.wrong == 0 && tally.right > 0 {
            format!("< {:.1e}", rule_of_three(tally.right))
        } else {
            "–".to_owned()
        };
        vec![
            replacement(configuration.replacement).to_owned(),
            if configuration.fallback {
                "first tenant"
            } else {
                "none"
            }
            .to_owned(),
            match access {
                Access::Handle => "handle",
                Access::Routed => "context",
            }
            .to_owned(),
            count(tally.requests()),
            count(tally.right),
            count(tally.wrong),
            bound,
            count(tally.missing),
            count(tally.failed),
            count(tally.replacements),
            format!("{:.1}", tally.seconds),
        ]
    });
    Table {
        caption: format!("{caption} for each table and each way."),
        columns: vec![
            "table",
            "fallback",
            "access",
            "requests",
            "right",
            "wrong database",
            "rate (95 %)",
            "no route",
            "other errors",
            "replacements",
            "seconds",
        ],
        rows: rows.collect(),
    }
}

fn replacement(replacement: Replacement) -> &'static str {
    match replacement {
        Replacement::Atomic => "replaced whole (ours)",
        Replacement::InPlace => "rebuilt in place",
    }
}

fn claims(data: &Data) -> Vec<Claim> {
    let of = |configuration: Configuration| {
        data.brief
            .iter()
            .chain(&data.long)
            .filter(move |race| race.configuration == configuration)
    };
    let ours = of(Configuration::OURS);
    let (mut right, mut other) = (0, 0);
    for race in ours {
        right += race.tally.right;
        other += race.tally.requests() - race.tally.right;
    }
    let broken = Configuration {
        replacement: Replacement::InPlace,
        fallback: true,
    };
    let seen: u64 = of(broken).map(|race| race.tally.wrong).sum();
    vec![
        Claim {
            what: "Answers from another tenant's database, or none at all, while rows change".to_owned(),
            target: "0".to_owned(),
            measured: format!(
                "{} of {} (rate < {:.1e})",
                count(other),
                count(right + other),
                rule_of_three(right)
            ),
            met: other == 0 && right > 0,
        },
        Claim {
            what: "The same measurement notices a table that is rebuilt in place behind a fallback"
                .to_owned(),
            target: "> 0 wrong".to_owned(),
            measured: format!("{} wrong", count(seen)),
            met: seen > 0,
        },
    ]
}
