//! Instances on one catalog, and what each of them says about a tenant.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use read_your_writes::Consistency;
use sandbox::Broker;
use sqlx::Executor;
use tenant_management::{Actor, BrokerSettings, Session, Tenancy, TenantId, TenantState, TenantUuid};

use super::{Cell, Way};
use crate::world::{Wishes, World, create_tenant};

/// Where the instances' catalog is.
const CATALOG: &str = "catalog";
/// Spares in stock before each creation, so that copying a database is not what is measured.
const SPARES: u32 = 2;
/// How long preparations may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Instances that hear of each other.
pub(super) struct Fleet {
    way: Way,
    present: u32,
    world: World,
    instances: Vec<Tenancy>,
    _broker: Option<Broker>,
}

impl Fleet {
    pub(super) async fn set_up(way: Way, instances: usize, present: u32) -> anyhow::Result<Self> {
        let world = World::start(true).await?;
        let broker = match way {
            Way::Notify => None,
            Way::Broker => Some(Broker::builder().start().await?),
        };
        let wishes = Wishes {
            spares: SPARES,
            max_connections: 12,
            catalog_max_connections: 6,
            broker: match &broker {
                Some(broker) => Some(BrokerSettings::new(&broker.url().into(), "benchmark")?),
                None => None,
            },
            ..Wishes::new(CATALOG)
        };
        // The first brings the catalog's schema.
        let mut fleet = vec![world.instance(&wishes).await?];
        populate(&world, present).await?;
        while fleet.len() < instances {
            fleet.push(world.instance(&wishes).await?);
        }
        let fleet = Self {
            way,
            present,
            world,
            instances: fleet,
            _broker: broker,
        };
        fleet.wait_until_all_hear().await?;
        Ok(fleet)
    }

    async fn wait_until_all_hear(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + LIMIT;
        for instance in &self.instances {
            while instance
                .readiness()
                .await
                .iter()
                .any(|part| part.problem.is_some())
                || instance.table().len() < usize::try_from(self.present)?
            {
                ensure!(Instant::now() < deadline, "an instance does not hear of changes");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(())
    }

    async fn wait_for_stock(&self) -> anyhow::Result<()> {
        let mut catalog = self.world.admin(CATALOG).await?;
        let deadline = Instant::now() + LIMIT;
        loop {
            let ready: i64 = sqlx::query_scalar("select count(*) from spare_databases where state = 'READY'")
                .fetch_one(&mut catalog)
                .await?;
            if ready == i64::from(SPARES) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the stock is not filled");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(super) async fn measure(self, rounds: usize) -> anyhow::Result<Cell> {
        let mut cell = Cell {
            way: self.way,
            instances: self.instances.len(),
            present: self.present,
            created_ms: Vec::new(),
            suspended_ms: Vec::new(),
            asked: 0,
            unknown: 0,
            wrong: 0,
            not_suspended: 0,
            pending: 0,
        };
        // The first of each opens connections.
        for instance in &self.instances {
            self.wait_for_stock().await?;
            create_tenant(instance).await?;
        }
        for round in 0..rounds {
            self.wait_for_stock().await?;
            self.round(&self.instances[round % self.instances.len()], &mut cell)
                .await?;
        }
        for instance in self.instances {
            instance.shut_down(Duration::from_secs(5)).await;
        }
        Ok(cell)
    }

    async fn round(&self, asked: &Tenancy, cell: &mut Cell) -> anyhow::Result<()> {
        let begun = Instant::now();
        let tenant = create_tenant(asked).await?;
        cell.created_ms.push(milliseconds(begun));
        for instance in &self.instances {
            cell.asked += 1;
            match whose(instance, &tenant.id).await? {
                None => cell.unknown += 1,
                Some(found) if found != tenant.uuid => cell.wrong += 1,
                Some(_) => {}
            }
        }
        let actor = Actor::named("operator:benchmark");
        let begun = Instant::now();
        let suspended = asked.control().suspend_tenant(&tenant.id, &actor).await?;
        cell.suspended_ms.push(milliseconds(begun));
        cell.pending += u64::from(!suspended.propagation.pending.is_empty());
        for instance in &self.instances {
            let route = instance.resolve(&tenant.id).await?;
            cell.not_suspended += u64::from(route.state != TenantState::Suspended);
        }
        Ok(())
    }
}

/// The tenant whose database an instance answers from. `None`: it does not know the tenant.
async fn whose(instance: &Tenancy, tenant: &TenantId) -> anyhow::Result<Option<TenantUuid>> {
    let Ok(route) = instance.resolve(tenant).await else {
        return Ok(None);
    };
    let db = instance.db(route, Session::default())?;
    let found = db.read(Consistency::Strict, async |mut connection| {
        let marked = sqlx::query_scalar("select current_setting('tenantry.tenant')");
        anyhow::Ok(marked.fetch_one(&mut connection).await?)
    });
    let found: String = found.await?;
    Ok(Some(TenantUuid(
        found.parse().context("the database's mark is no UUID")?,
    )))
}

/// Rows of tenants that nobody asks for.
async fn populate(world: &World, tenants: u32) -> anyhow::Result<()> {
    let mut catalog = world.admin(CATALOG).await?;
    let rows = format!(
        "insert into tenants (uuid, slug, display_name, state, cluster, schema_version, password_sealed, request, revision)
        select gen_random_uuid(), 'present-' || n, 'Present', 'CREATED', 'main', 1, '\\x00', '{{}}',
            n + (select revision from catalog_revision)
        from generate_series(1, {tenants}) n;
        update catalog_revision set revision = revision + {tenants}"
    );
    catalog.execute(sqlx::AssertSqlSafe(rows)).await?;
    Ok(())
}

fn milliseconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e5).round() / 100.0
}
