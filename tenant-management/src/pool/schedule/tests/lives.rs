//! Random lives: whatever happens, everybody is served in the end and nothing is left.

use std::{collections::HashSet, time::Duration};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Ask { tenant: u128, generation: i64 },
    Leave(usize),
    OpenSucceeds(usize),
    OpenFails(usize, bool),
    GiveBack(usize),
    GiveBackBroken(usize),
    Vanish(usize),
    Expire,
    Retire { tenant: u128, below: i64 },
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => (0_u128..6, 0_i64..2).prop_map(|(tenant, generation)| Step::Ask { tenant, generation }),
        3 => any::<usize>().prop_map(Step::Leave),
        6 => any::<usize>().prop_map(Step::OpenSucceeds),
        2 => any::<(usize, bool)>().prop_map(|(which, lingers)| Step::OpenFails(which, lingers)),
        6 => any::<usize>().prop_map(Step::GiveBack),
        2 => any::<usize>().prop_map(Step::GiveBackBroken),
        5 => any::<usize>().prop_map(Step::Vanish),
        1 => Just(Step::Expire),
        1 => (0_u128..6, 0_i64..3).prop_map(|(tenant, below)| Step::Retire { tenant, below }),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 0..120)
}

fn live(world: &mut World, step: &Step) {
    world.now += Duration::from_millis(1);
    match *step {
        Step::Ask { tenant, generation } => {
            world.ask(key(tenant, generation));
        }
        Step::Leave(which) => {
            if let Some(waiter) = pick(&world.waiting, which) {
                world.leave(waiter);
            }
        }
        Step::OpenSucceeds(which) => {
            if let Some(id) = pick(&world.opening, which) {
                world.open_succeeds(id);
            }
        }
        Step::OpenFails(which, lingers) => {
            if let Some(id) = pick(&world.opening, which) {
                world.open_fails(id, lingers);
            }
        }
        Step::GiveBack(which) => {
            if let Some(id) = pick(&world.lent, which) {
                world.give_back(id, None);
            }
        }
        Step::GiveBackBroken(which) => {
            if let Some(id) = pick(&world.lent, which) {
                world.give_back(id, Some(CloseReason::Broken));
            }
        }
        Step::Vanish(which) => {
            if let Some(id) = pick(&world.closing, which) {
                world.vanish(id);
            }
        }
        Step::Expire => world.schedule.expire(world.now - Duration::from_millis(10)),
        Step::Retire { tenant, below } => world.schedule.retire(key(tenant, 0).tenant, Generation(below)),
        Step::Clear => world.schedule.close_idle(CloseReason::Suspect),
    }
    world.settle();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// After any life all who still wait are served, and when all is idle and expired nothing is left: no place leaks, no
    /// wake-up gets lost.
    #[test]
    fn every_life_ends_well(budget in 1_usize..6, ceiling in 1_usize..4, steps in steps()) {
        let mut world = World::new(budget, ceiling);
        for step in &steps {
            live(&mut world, step);
        }
        world.quiesce();
        prop_assert!(world.waiting.is_empty(), "all who wait are served");
        world.schedule.close_idle(CloseReason::Cleared);
        world.settle();
        world.quiesce();
        prop_assert_eq!(world.schedule.counts(), Counts::default());
        prop_assert!(world.schedule.connections.is_empty());
        prop_assert!(world.schedule.lanes.is_empty() && world.schedule.tenants.is_empty());
        prop_assert!(world.schedule.needy.is_empty() && world.schedule.idle.is_empty());
        prop_assert_eq!((world.schedule.unmet, world.schedule.starving), (0, 0));
    }

    /// A tenant that holds nothing waits for as many returns as there are such tenants before it, and its own: not for the
    /// queue of a tenant that holds something.
    #[test]
    fn a_single_waiter_waits_one_turn(
        budget in 1_usize..8,
        ceiling in 1_usize..8,
        greedy in 1_u128..4,
        queue in 20_usize..60,
        others in 1_u128..6,
        which in any::<usize>(),
    ) {
        let mut world = World::new(budget, ceiling);
        // Given: few tenants with many callers, who have taken all they can.
        for round in 0..queue {
            world.ask(key(round as u128 % greedy, 0));
        }
        while let Some(id) = pick(&world.opening, which) {
            world.open_succeeds(id);
        }
        // When: others ask for one connection each, and connections come back one after the other.
        let holders = world.lent.values().map(|key| key.tenant).collect::<HashSet<_>>().len();
        let hungry = usize::try_from(greedy).unwrap() - holders;
        let late: Vec<WaiterId> = (0..others).filter_map(|n| world.ask(key(100 + n, 0))).collect();
        let mut returns = 0;
        while late.iter().any(|waiter| world.waiting.contains_key(waiter)) {
            prop_assert!(returns <= hungry + late.len(), "the others wait for the greedy ones' queue");
            if let Some(id) = pick(&world.closing, which) {
                world.vanish(id);
            } else if let Some(id) = pick(&world.opening, which) {
                world.open_succeeds(id);
            } else {
                let id = pick(&world.lent, which).unwrap();
                returns += 1;
                world.give_back(id, None);
            }
        }
    }
}
