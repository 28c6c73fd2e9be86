//! The safety net: a digest finds any difference between a table and the catalog, and reading everything mends it.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::{sync::Arc, time::Duration};

use sqlx::{Connection, PgConnection};
use support::{World, eventually, fresh_name, operator, request};
use tenant_management::{
    Generation, NewApiKey, Revision, Role, Route, Tenancy, TenantId, TenantState, TenantUuid,
    routing::table::{RouteUpdate, TableUpdate},
};

/// Damages the table of an instance.
type Damage<'t> = Box<dyn Fn() + 't>;

/// Compares often, and hears of nothing otherwise.
async fn instance(world: &World) -> Tenancy {
    let mut wishes = world.wishes().told_nothing();
    wishes.follow.compare = Duration::from_millis(100);
    world.instance(wishes).await
}

async fn tenant(instance: &Tenancy, domain: Option<&str>) -> Arc<Route> {
    let mut wish = request(&fresh_name());
    wish.domains = domain.into_iter().map(str::to_owned).collect();
    let created = instance
        .control()
        .create_tenant(&wish, &operator())
        .await
        .unwrap();
    instance.table().get(&created.value.id).unwrap()
}

fn damage(instance: &Tenancy, route: Route, domains: &[&str]) {
    instance.table().apply(TableUpdate {
        routes: vec![RouteUpdate {
            route: Arc::new(route),
            domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
        }],
        ..TableUpdate::default()
    });
}

fn key(id: &str) -> NewApiKey {
    NewApiKey {
        id: id.to_owned(),
        name: "a key".to_owned(),
        role: Role::Member,
        secret_sha256: [7; 32],
        expires_at: Some("2031-02-03T04:05:06.789Z".parse().unwrap()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_damage_is_found_and_mended() {
    let world = World::start().await;
    let instance = instance(&world).await;
    let (acme, globex) = (
        tenant(&instance, Some("acme.example")).await,
        tenant(&instance, None).await,
    );
    let control = instance.control();
    control
        .create_api_key(acme.uuid, &key("one"), &operator())
        .await
        .unwrap();
    let revoked = control
        .create_api_key(acme.uuid, &key("two"), &operator())
        .await
        .unwrap()
        .value;
    control
        .revoke_api_key(acme.uuid, &revoked.id, &operator())
        .await
        .unwrap();
    control.suspend_tenant(&globex.tenant, &operator()).await.unwrap();
    let table = instance.table();
    let right = || {
        table.get(&acme.tenant).as_deref() == Some(&*acme)
            && table.get_by_domain("acme.example").as_deref() == Some(&*acme)
            && table
                .get(&globex.tenant)
                .is_some_and(|route| route.state == TenantState::Suspended)
            && table.api_key("one").is_some_and(|key| key.revoked_at.is_none())
            && table.api_key("two").is_some_and(|key| key.revoked_at.is_some())
            && table.len() == 2
    };
    assert!(right());
    // The same digest as the catalog's: nothing is repaired that is not broken, or the damage below would not be seen.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(
        Arc::ptr_eq(&table.get(&acme.tenant).unwrap(), &acme),
        "the table has been read anew without need"
    );

    let stranger = TenantId::parse_new("stranger").unwrap();
    let damages: [(&str, Damage); 6] = [
        (
            "a password of another generation",
            Box::new(|| {
                damage(
                    &instance,
                    Route {
                        password: vec![1, 2, 3].into(),
                        ..Route::clone(&acme)
                    },
                    &["acme.example"],
                );
            }),
        ),
        (
            "a tenant too many",
            Box::new(|| {
                let uuid = TenantUuid::generate();
                damage(
                    &instance,
                    Route {
                        tenant: stranger,
                        uuid,
                        ..Route::clone(&acme)
                    },
                    &[],
                );
            }),
        ),
        (
            "a tenant that is gone",
            Box::new(|| {
                damage(
                    &instance,
                    Route {
                        state: TenantState::Purged,
                        ..Route::clone(&acme)
                    },
                    &[],
                );
            }),
        ),
        (
            "a domain that leads to another tenant",
            Box::new(|| {
                let route = table.get(&globex.tenant).unwrap();
                damage(&instance, Route::clone(&route), &["acme.example"]);
            }),
        ),
        (
            "a row that is newer than the catalog",
            Box::new(|| {
                let revision = Revision(acme.revision.0 + 1000);
                damage(
                    &instance,
                    Route {
                        revision,
                        generation: Generation(9),
                        ..Route::clone(&acme)
                    },
                    &["acme.example"],
                );
            }),
        ),
        (
            "a key that is revoked and is not",
            Box::new(|| {
                let mut key = table.api_key("two").unwrap().as_ref().clone();
                key.revoked_at = None;
                table.apply(TableUpdate {
                    api_keys: vec![key],
                    ..TableUpdate::default()
                });
            }),
        ),
    ];
    for (what, damage) in damages {
        damage();
        assert!(!right(), "{what}");
        eventually(what, async || right()).await;
    }
    instance.shut_down(Duration::from_secs(5)).await;
}

/// The catalog is put back to an older state, as a backup is: its revisions come a second time, with other changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_that_was_restored_is_followed_back() {
    let world = World::start().await;
    let instance = instance(&world).await;
    let acme = tenant(&instance, None).await;
    let lost = tenant(&instance, None).await;
    let mut catalog = PgConnection::connect_with(&world.catalog).await.unwrap();
    let mut restore = catalog.begin().await.unwrap();
    sqlx::query("delete from operations where tenant = $1")
        .bind(lost.uuid.0)
        .execute(&mut *restore)
        .await
        .unwrap();
    sqlx::query("delete from tenants where uuid = $1")
        .bind(lost.uuid.0)
        .execute(&mut *restore)
        .await
        .unwrap();
    sqlx::query("update catalog_revision set revision = $1")
        .bind(acme.revision.0)
        .execute(&mut *restore)
        .await
        .unwrap();
    restore.commit().await.unwrap();
    eventually("the tenant that is not in the backup is gone", async || {
        instance.table().get(&lost.tenant).is_none()
    })
    .await;
    assert_eq!(instance.table().get(&acme.tenant).as_deref(), Some(&*acme));
    assert_eq!(instance.table().revision(), acme.revision);
    let next = tenant(&instance, None).await;
    assert!(instance.table().get(&next.tenant).is_some());
    instance.shut_down(Duration::from_secs(5)).await;
}
