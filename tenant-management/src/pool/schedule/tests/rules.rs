//! The rules one by one.

use super::*;

#[test]
fn places_are_shared_evenly_and_then_stay_where_they_are() {
    // Given: one tenant that has taken all places and has callers waiting.
    let mut world = World::new(9, 8);
    for _ in 0..50 {
        world.ask(key(1, 0));
    }
    // When: a second one with as many callers comes, and connections come back in turn.
    for _ in 0..50 {
        world.ask(key(2, 0));
    }
    let mut closed = 0;
    for round in 0..40 {
        while let Some((&id, _)) = world.opening.first_key_value() {
            world.open_succeeds(id);
        }
        let lent: Vec<_> = world.lent.keys().copied().collect();
        world.give_back(lent[round % lent.len()], None);
        closed += world.closing.len();
        while let Some((&id, _)) = world.closing.first_key_value() {
            world.vanish(id);
        }
    }
    // Then: four or five each, and only as many were closed as it took to get there.
    let held = world
        .lent
        .values()
        .chain(world.opening.values())
        .filter(|lane| **lane == key(2, 0))
        .count();
    assert!((4..=5).contains(&held), "{held}");
    assert!(closed <= 5, "{closed} connections were closed");
}

#[test]
fn a_new_connection_serves_its_own_lane_for_a_turn() {
    // Given: one place, two callers of one tenant, and a caller of another.
    let mut world = World::new(1, 1);
    let waiters: Vec<_> = [1, 1, 2]
        .map(|tenant| world.ask(key(tenant, 0)))
        .into_iter()
        .flatten()
        .collect();
    let id = *world.opening.keys().next().unwrap();
    world.open_succeeds(id);
    // When: it comes back sooner than a turn lasts.
    world.now -= TURN;
    world.give_back(id, None);
    // Then: it serves the second caller, and makes room when it comes back after that.
    assert_eq!(world.served, waiters[..2]);
    world.give_back(id, None);
    assert_eq!(world.closing.len(), 1);
}

#[test]
fn the_longest_idle_connection_makes_room() {
    let mut world = World::new(2, 2);
    for tenant in [1, 2] {
        world.ask(key(tenant, 0));
        let id = *world.opening.keys().next().unwrap();
        world.open_succeeds(id);
        world.give_back(id, None);
    }
    world.ask(key(1, 0));
    let id = *world.lent.keys().next().unwrap();
    world.give_back(id, None);
    world.ask(key(3, 0));
    assert_eq!(world.closing.values().copied().collect::<Vec<_>>(), [key(2, 0)]);
}

#[test]
fn another_generation_never_gets_a_connection_and_makes_room_for_the_new_one() {
    // Given: a tenant at its ceiling with an idle connection of its old generation.
    let mut world = World::new(5, 1);
    world.ask(key(1, 1));
    let old = *world.opening.keys().next().unwrap();
    world.open_succeeds(old);
    world.give_back(old, None);
    // When: the new generation asks.
    world.ask(key(1, 2));
    // Then: the old connection is closed, and only after it is gone another is opened.
    assert_eq!(world.closing.keys().copied().collect::<Vec<_>>(), [old]);
    assert!(world.opening.is_empty());
    world.vanish(old);
    assert_eq!(world.opening.values().copied().collect::<Vec<_>>(), [key(1, 2)]);
}

#[test]
fn a_retired_generation_is_closed_idle_at_once_and_in_use_when_it_returns() {
    let mut world = World::new(5, 5);
    for _ in 0..2 {
        world.ask(key(1, 1));
    }
    for id in world.opening.keys().copied().collect::<Vec<_>>() {
        world.open_succeeds(id);
    }
    let (idle, in_use) = (
        *world.lent.keys().next().unwrap(),
        *world.lent.keys().last().unwrap(),
    );
    world.give_back(idle, None);
    world.schedule.retire(key(1, 1).tenant, Generation(2));
    world.settle();
    assert_eq!(world.closing.keys().copied().collect::<Vec<_>>(), [idle]);
    world.give_back(in_use, None);
    assert_eq!(world.closing.len(), 2);
}
