//! A deployment: one instance after the other is replaced under load.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::RwLock;
use reqwest::Method;

use crate::{
    instance::{Instance, answer},
    world::{Way, World},
};

/// Sends requests one after the other to instances that say that they are ready, as a load balancer does, and counts those that
/// fail.
struct Load {
    instances: Arc<RwLock<Vec<Option<Arc<Instance>>>>>,
    key: String,
    stopped: AtomicBool,
    sent: AtomicU64,
    failed: AtomicU64,
}

impl Load {
    async fn run(&self, first: usize) {
        let mut turn = first;
        while !self.stopped.load(Ordering::Relaxed) {
            turn += 1;
            let instance = {
                let instances = self.instances.read();
                instances[turn % instances.len()].clone()
            };
            let Some(instance) = instance else { continue };
            let answered = answer(instance.request(Method::GET, "/v1/whoami").bearer_auth(&self.key)).await;
            self.sent.fetch_add(1, Ordering::Relaxed);
            if !matches!(&answered, Ok(answer) if answer.status == 200) {
                self.failed.fetch_add(1, Ordering::Relaxed);
                println!("{answered:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_fails_no_request() {
    let world = World::new(Way::Catalog).await;
    let instances = world.instances(3).await;
    assert_eq!(instances[0].create("acme").await.status, 201);
    let load = Arc::new(Load {
        key: instances[0].key("acme").await,
        instances: Arc::new(RwLock::new(
            instances.into_iter().map(|one| Some(Arc::new(one))).collect(),
        )),
        stopped: AtomicBool::new(false),
        sent: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    });
    let senders: Vec<_> = (0..4)
        .map(|first| {
            let load = Arc::clone(&load);
            tokio::spawn(async move { load.run(first).await })
        })
        .collect();
    for index in 0..3 {
        let leaving = load.instances.read()[index].clone().unwrap();
        leaving.signal("TERM");
        // The balancer looks every so often.
        crate::world::eventually("it says that it is not ready", async || {
            leaving.part("listener").await["ready"] == false
        })
        .await;
        load.instances.write()[index] = None;
        crate::world::eventually("nobody uses it any more", async || {
            Arc::strong_count(&leaving) == 1
        })
        .await;
        let mut leaving = Arc::into_inner(leaving).unwrap();
        assert!(leaving.ended().await.success(), "{}", leaving.log());
        let next = world.instance().await;
        load.instances.write()[index] = Some(Arc::new(next));
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    load.stopped.store(true, Ordering::Relaxed);
    for sender in senders {
        sender.await.unwrap();
    }
    let (sent, failed) = (
        load.sent.load(Ordering::Relaxed),
        load.failed.load(Ordering::Relaxed),
    );
    println!("{failed} of {sent} requests failed");
    assert!(sent > 100 && failed == 0, "{failed} of {sent}");
    assert_eq!(
        world.count("select count(*) from instances").await,
        3,
        "those that left have signed off"
    );
}
