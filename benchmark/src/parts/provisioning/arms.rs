//! What is compared, on one server: each arm begins so many creations at the same moment and answers how long each took.

use std::time::{Duration, Instant};

use anyhow::ensure;
use sqlx::{AssertSqlSafe, Executor, PgConnection};
use tenant_management::Tenancy;

use crate::world::{Wishes, World, create_tenant};

/// How long the stock may take to be filled.
const STOCK_LIMIT: Duration = Duration::from_secs(60);

/// Two instances with catalogs of their own, so that neither waits for the other, and administrators' connections.
pub(super) struct Arms {
    world: World,
    spares: u32,
    with_spares: Tenancy,
    without_spares: Tenancy,
    /// One for each bare creation.
    admins: Vec<PgConnection>,
    /// To the catalog of the instance with spares.
    stock: PgConnection,
    template: String,
    next: u32,
}

impl Arms {
    pub(super) async fn set_up(at_once: usize) -> anyhow::Result<Self> {
        let world = World::start(true).await?;
        let spares = u32::try_from(at_once)?;
        let with_spares = world
            .instance(&Wishes {
                spares,
                ..Wishes::new("catalog_with_spares")
            })
            .await?;
        let without_spares = world.instance(&Wishes::new("catalog_without_spares")).await?;
        let mut admins = Vec::new();
        for _ in 0..at_once {
            admins.push(world.admin("postgres").await?);
        }
        let stock = world.admin("catalog_with_spares").await?;
        admins[0]
            .execute("create table commits (at timestamptz not null)")
            .await?;
        let mut arms = Self {
            world,
            spares,
            with_spares,
            without_spares,
            admins,
            stock,
            template: String::new(),
            next: 0,
        };
        arms.stock_is_full().await?;
        arms.template = sqlx::query_scalar(
            "select datname::text from pg_database where datistemplate and datname like 'tenantry%'",
        )
        .fetch_one(&mut arms.admins[0])
        .await?;
        Ok(arms)
    }

    /// Creations with a spare ready for each.
    pub(super) async fn with_spare(&mut self) -> anyhow::Result<Vec<f64>> {
        let tenancy = self.with_spares.clone();
        self.create(&tenancy).await
    }

    /// Creations on the spot.
    pub(super) async fn without_spare(&mut self) -> anyhow::Result<Vec<f64>> {
        let tenancy = self.without_spares.clone();
        self.create(&tenancy).await
    }

    async fn create(&mut self, tenancy: &Tenancy) -> anyhow::Result<Vec<f64>> {
        let creations = (0..self.spares).map(|_| {
            let tenancy = tenancy.clone();
            tokio::spawn(async move {
                let started = Instant::now();
                create_tenant(&tenancy).await?;
                anyhow::Ok(milliseconds(started))
            })
        });
        let mut times = Vec::new();
        for creation in futures::future::join_all(creations).await {
            times.push(creation??);
        }
        Ok(sorted(times))
    }

    /// Copies of the template, and nothing else.
    pub(super) async fn bare(&mut self) -> anyhow::Result<Vec<f64>> {
        let copies = self.admins.drain(..).map(|mut admin| {
            self.next += 1;
            let statement = format!("create database bare_{} template {}", self.next, self.template);
            tokio::spawn(async move {
                let started = Instant::now();
                let outcome = admin.execute(AssertSqlSafe(statement)).await;
                (milliseconds(started), outcome, admin)
            })
        });
        let mut times = Vec::new();
        let copies: Vec<_> = copies.collect();
        for copy in futures::future::join_all(copies).await {
            let (time, outcome, admin) = copy?;
            outcome?;
            times.push(time);
            self.admins.push(admin);
        }
        Ok(sorted(times))
    }

    /// A transaction that inserts one row.
    pub(super) async fn commit(&mut self) -> anyhow::Result<f64> {
        let started = Instant::now();
        self.admins[0]
            .execute("insert into commits values (now())")
            .await?;
        Ok(milliseconds(started))
    }

    /// Waits until all spares are ready.
    pub(super) async fn stock_is_full(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + STOCK_LIMIT;
        loop {
            let ready: i64 = sqlx::query_scalar("select count(*) from spare_databases where state = 'READY'")
                .fetch_one(&mut self.stock)
                .await?;
            if ready == i64::from(self.spares) {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "the stock has {ready} of {} spares after a minute",
                self.spares
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(super) async fn shut_down(self) {
        for tenancy in [self.with_spares, self.without_spares] {
            tenancy.shut_down(Duration::from_secs(5)).await;
        }
        drop(self.world);
    }
}

fn milliseconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e5).round() / 100.0
}

/// The quickest first: pairs of two arms are then the quickest of either, the second quickest of either, and so on.
fn sorted(mut times: Vec<f64>) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    times
}
