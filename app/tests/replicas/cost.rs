//! What reading one's own writes costs: nothing on the wire.

use sandbox::{Cluster, Node};

use crate::{
    client::{Carry, served_by},
    common::eventually,
    world::World,
};

/// Statements of the tenant's sessions that a server has logged.
fn statements(node: &Node) -> usize {
    let log = std::fs::read_to_string(node.log_path()).unwrap();
    log.lines()
        .filter(|line| {
            line.contains("tenantry/acme") && (line.contains("execute ") || line.contains("statement: "))
        })
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_with_a_known_position_is_one_statement() {
    const READS: usize = 50;
    let world = World::with(Cluster::builder().replicas(1).setting("log_statement", "all")).await;
    let instance = world.instance().await;
    let key = instance.tenant("acme").await;
    instance.eligible(&["replica-1"], true).await;
    let mut client = instance.client(&key, Carry::Cookie);
    let id = client.invoice("Initech").await;
    let position = client.token.clone();
    let path = format!("/invoices/{id}");
    eventually("the replica serves", || {
        let mut client = client.clone();
        let path = path.clone();
        async move { served_by(&client.get(&path).await) == "replica-1" }
    })
    .await;
    let servers = [world.cluster.primary(), world.replica(0)];
    let before = servers.map(statements);
    for _ in 0..READS {
        client.token.clone_from(&position);
        let answer = client.get(&path).await;
        answer.expect(200);
        assert_eq!(served_by(&answer), "replica-1");
    }
    let after = servers.map(statements);
    assert_eq!(after[0] - before[0], 0, "statements on the primary");
    assert_eq!(after[1] - before[1], READS, "statements on the replica");
}
