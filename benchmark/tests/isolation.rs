//! Invariants I1 and I2, judged by the tenants' own databases: while the routing table changes, nobody is answered from
//! another tenant's database, and nobody is refused. The same harness sees a table that is rebuilt in place fail.

use std::time::Duration;

use benchmark::parts::isolation_race::{
    race::{Access, Course},
    tables::{Configuration, Replacement},
};

/// Requests for each way to the data.
const REQUESTS: u64 = 100_000;

/// Between two replacements: thousands in each second, and the readers have the processor to themselves meanwhile.
const REST: Duration = Duration::from_micros(100);

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_comes_from_the_tenants_own_database_while_the_table_changes() {
    let course = Course::set_up().await.unwrap();
    for access in [Access::Handle, Access::Routed] {
        let tally = course.race(Configuration::OURS, access, REQUESTS, REST).await;

        assert_eq!(tally.first_failure, None, "{access:?}");
        assert_eq!(
            (tally.right, tally.wrong, tally.missing),
            (REQUESTS, 0, 0),
            "{access:?}"
        );
        assert!(
            tally.replacements > 1_000,
            "the table did change, {} times",
            tally.replacements
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_rebuilt_in_place_behind_a_fallback_gives_wrong_answers() {
    let course = Course::set_up().await.unwrap();
    let broken = Configuration {
        replacement: Replacement::InPlace,
        fallback: true,
    };
    let tally = course.race(broken, Access::Handle, 4_000, Duration::ZERO).await;

    assert!(tally.wrong > 0, "the harness does not notice: {tally:?}");
    assert_eq!(tally.missing, 0, "the fallback hides what is missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_rebuilt_in_place_without_a_fallback_refuses_but_is_never_wrong() {
    let course = Course::set_up().await.unwrap();
    let broken = Configuration {
        replacement: Replacement::InPlace,
        fallback: false,
    };
    let tally = course.race(broken, Access::Routed, 4_000, Duration::ZERO).await;

    assert_eq!(tally.wrong, 0);
    assert!(tally.missing > 0, "the harness does not notice: {tally:?}");
}
