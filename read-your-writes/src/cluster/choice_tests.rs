use super::{super::state::Ineligible, *};
use crate::{LogGeometry, Timeline};

fn lsn(bytes: u64) -> Lsn {
    Lsn::from_bytes(bytes)
}

fn position(timeline: u32, bytes: u64) -> Position {
    Position::now(Timeline(timeline), lsn(bytes))
}

fn written_ago(bytes: u64, ago: Duration) -> Position {
    let mut position = position(1, bytes);
    position.written_at -= u64::try_from(ago.as_millis()).unwrap();
    position
}

fn replica(replayed: u64, includes: Instant) -> NodeView {
    NodeView {
        verdict: Ok(()),
        timeline: Some(Timeline(1)),
        replayed: Some(lsn(replayed)),
        includes: Some(includes),
    }
}

/// A primary at 100 on timeline 1, and replicas.
fn picture(replicas: impl IntoIterator<Item = NodeView>) -> Picture {
    let primary = NodeView {
        verdict: Err(Ineligible::Primary),
        timeline: Some(Timeline(1)),
        replayed: None,
        includes: None,
    };
    Picture {
        primary: 0,
        timeline: Some(Timeline(1)),
        primary_lsn: Some(lsn(100)),
        primary_asked: None,
        settled: Some(lsn(10)),
        log: LogGeometry::default(),
        nodes: std::iter::once(primary).chain(replicas).collect(),
    }
}

fn first(nodes: &mut dyn Iterator<Item = usize>, _: usize) -> Option<usize> {
    nodes.next()
}

fn choose(
    picture: &Picture,
    level: impl Into<ReadLevel>,
    position: Option<Position>,
    now: Instant,
) -> Decision {
    decide(
        picture,
        &ReadSettings::default(),
        level.into(),
        position,
        now,
        first,
    )
}

#[test]
fn strict_reads_go_to_the_primary_whatever_the_replicas_have() {
    let now = Instant::now();
    let decision = choose(&picture([replica(100, now)]), Consistency::Strict, None, now);
    assert_eq!(decision, Decision::Primary(Reason::Strict));
}

#[test]
fn a_recent_read_goes_to_a_replica_that_has_the_callers_write() {
    let now = Instant::now();
    let picture = picture([replica(80, now), replica(90, now)]);
    let served_by = |position| choose(&picture, Consistency::Recent, position, now);
    assert!(matches!(
        served_by(None),
        Decision::Replica {
            node: 1,
            reason: Reason::Fresh,
            ..
        }
    ));
    assert!(matches!(
        served_by(Some(position(1, 80))),
        Decision::Replica {
            node: 1,
            reason: Reason::CaughtUp,
            ..
        }
    ));
    assert!(matches!(
        served_by(Some(position(1, 81))),
        Decision::Replica { node: 2, .. }
    ));
    assert_eq!(served_by(Some(position(1, 91))), Decision::CatchUp { node: 2 });
    // Newer than the last look at the primary.
    assert_eq!(served_by(Some(position(1, 500))), Decision::CatchUp { node: 2 });
}

#[test]
fn an_eventual_read_counts_the_callers_writes_only_if_it_says_so() {
    let now = Instant::now();
    let picture = picture([replica(80, now)]);
    let written = Some(position(1, 90));
    assert!(matches!(
        choose(&picture, Consistency::Eventual, written, now),
        Decision::Replica { node: 1, .. }
    ));
    assert_eq!(
        choose(&picture, Consistency::Eventual.and_own_writes(), written, now),
        Decision::CatchUp { node: 1 }
    );
}

#[test]
fn a_replica_that_has_become_stale_since_its_probe_is_not_chosen() {
    let now = Instant::now();
    let picture = picture([replica(100, now)]);
    let later = now + ReadSettings::default().max_staleness + Duration::from_millis(1);
    for level in [Consistency::Recent, Consistency::Eventual] {
        assert_eq!(
            choose(&picture, level, None, later),
            Decision::Primary(Reason::NoneEligible)
        );
    }
}

#[test]
fn without_waiting_the_primary_serves_at_once() {
    let now = Instant::now();
    let settings = ReadSettings {
        catch_up_wait: Duration::ZERO,
        ..ReadSettings::default()
    };
    let decision = decide(
        &picture([replica(80, now)]),
        &settings,
        Consistency::Recent.into(),
        Some(position(1, 90)),
        now,
        first,
    );
    assert_eq!(decision, Decision::Primary(Reason::NotCaughtUp));
}

#[test]
fn another_timeline_and_a_write_that_the_primary_does_not_have_are_looked_into() {
    let now = Instant::now();
    let picture = picture([replica(100, now)]);
    let served_by = |position| choose(&picture, Consistency::Recent, Some(position), now);
    for timeline in [0, 2] {
        assert_eq!(
            served_by(position(timeline, 50)),
            Decision::Doubtful(Reason::OtherTimeline)
        );
    }
    assert_eq!(
        served_by(written_ago(101, Duration::from_secs(5))),
        Decision::Doubtful(Reason::Lost)
    );
    assert!(matches!(
        served_by(written_ago(100, Duration::from_secs(5))),
        Decision::Replica { .. }
    ));
}

#[test]
fn a_position_behind_a_page_header_is_reached_at_the_page() {
    let now = Instant::now();
    let mut picture = picture([replica(8192, now)]);
    picture.primary_lsn = Some(lsn(8192));
    let decision = choose(&picture, Consistency::Recent, Some(position(1, 8192 + 24)), now);
    assert!(matches!(decision, Decision::Replica { node: 1, .. }));
}

#[test]
fn in_a_window_after_the_write_the_primary_serves() {
    let now = Instant::now();
    let settings = ReadSettings {
        mode: Mode::Window,
        ..ReadSettings::default()
    };
    let served_by = |position| {
        decide(
            &picture([replica(0, now)]),
            &settings,
            Consistency::Recent.into(),
            Some(position),
            now,
            first,
        )
    };
    assert_eq!(
        served_by(written_ago(0, Duration::from_secs(1))),
        Decision::Primary(Reason::Window)
    );
    assert!(matches!(
        served_by(written_ago(0, settings.window + Duration::from_secs(1))),
        Decision::Replica { .. }
    ));
}

#[test]
fn a_position_is_everywhere_once_all_replicas_have_it_or_none_without_it_can_be_fresh() {
    let now = Instant::now();
    let settings = ReadSettings::default();
    let everywhere = |picture: &Picture, bytes| is_everywhere(picture, &settings, position(1, bytes));
    let both = picture([replica(80, now), replica(90, now)]);
    assert!(everywhere(&both, 80));
    assert!(!everywhere(&both, 81));
    // A replica that is away may come back with anything that is not too stale.
    let mut away = both.clone();
    away.nodes[1].verdict = Err(Ineligible::Unreachable);
    assert!(!everywhere(&away, 81));
    assert!(everywhere(&away, 10));
    away.settled = Some(lsn(81));
    assert!(everywhere(&away, 81));
    assert!(!is_everywhere(&both, &settings, position(2, 5)));
}
