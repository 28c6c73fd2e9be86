//! The tenant in the context: there within a scope, restored after a nested one, and nowhere else.

mod pool_support;

use std::sync::Arc;

use pool_support::{LIMIT, World};
use tenant_management::{
    data::{Consistency, DataError, TenantDb, context},
    pool::{NodePool, PoolLimits},
};

fn pool(world: &World) -> NodePool {
    world.pool(
        4,
        PoolLimits {
            connect_timeout: LIMIT,
            acquire_timeout: LIMIT,
            ..PoolLimits::default()
        },
    )
}

/// A repository that is not told its tenant.
async fn whose_database() -> String {
    let db = context::current().expect("a tenant is in the context");
    db.read(Consistency::Strict, async |mut conn| {
        let mark = "select current_setting('tenantry.tenant')";
        Ok::<String, DataError>(sqlx::query_scalar(mark).fetch_one(&mut *conn).await?)
    })
    .await
    .expect("a read reads")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_names_the_tenant_and_a_nested_one_does_so_for_its_time() {
    let world = World::start().await;
    let pool = pool(&world);
    let [acme, globex] = [world.tenant("acme").await, world.tenant("globex").await];
    let [acme, globex] = [acme, globex].map(|route| TenantDb::new(route, pool.clone()));
    assert!(context::current().is_err(), "there is no default");
    context::scope(acme.clone(), async {
        assert_eq!(whose_database().await, acme.uuid().to_string());
        context::scope(globex.clone(), async {
            tokio::task::yield_now().await;
            assert_eq!(whose_database().await, globex.uuid().to_string());
        })
        .await;
        assert_eq!(whose_database().await, acme.uuid().to_string());
    })
    .await;
    assert!(context::current().is_err(), "nothing stays behind");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spawned_task_has_no_tenant_unless_it_carries_one() {
    let world = World::start().await;
    let db = TenantDb::new(world.tenant("acme").await, pool(&world));
    context::scope(db.clone(), async {
        let lost = tokio::spawn(async { context::current().is_err() })
            .await
            .expect("no panic");
        assert!(lost, "a task of its own has no tenant");
        let carried = context::current().expect("a tenant is in the context");
        let found = tokio::spawn(context::scope(carried, whose_database()))
            .await
            .expect("no panic");
        assert_eq!(found, db.uuid().to_string());
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_that_run_at_the_same_time_do_not_mix() {
    // Given: sixteen requests at once, of five tenants, over three connections.
    let world = World::start().await;
    let pool = pool(&world);
    let dbs: Vec<TenantDb> = world
        .tenants(5)
        .await
        .into_iter()
        .map(|route| TenantDb::new(route, pool.clone()))
        .collect();
    let dbs = Arc::new(dbs);
    let requests = (0..16).map(|number| {
        let dbs = Arc::clone(&dbs);
        tokio::spawn(async move {
            for round in 0..20 {
                let db = &dbs[(number + round) % dbs.len()];
                let found = context::scope(db.clone(), async {
                    tokio::task::yield_now().await;
                    whose_database().await
                })
                .await;
                assert_eq!(found, db.uuid().to_string());
            }
        })
    });
    for request in requests.collect::<Vec<_>>() {
        request.await.expect("no panic");
    }
    world.end().await;
}
