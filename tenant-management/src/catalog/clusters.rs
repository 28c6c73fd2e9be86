//! Clusters and their nodes.

use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use sqlx::{PgConnection, postgres::PgConnectOptions};

use super::{Catalog, CatalogError, revision, tenants::cluster_name};
use crate::ids::{ClusterName, Revision, TenantUuid};

/// A cluster as somebody registers it.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// Its name, for ever.
    pub name: ClusterName,
    /// Where it is; tenants can ask for a region.
    pub region: String,
    /// Administrator's URL of the primary, with the maintenance database in it.
    pub primary: SecretString,
    /// Administrator's URLs of the streaming replicas.
    pub replicas: Vec<SecretString>,
    /// Connections that one instance may open to each node, all purposes together.
    pub max_connections: u32,
}

/// A cluster as the catalog knows it.
#[derive(Clone, Debug)]
pub(crate) struct ClusterRecord {
    pub(crate) name: ClusterName,
    pub(crate) region: String,
    pub(crate) max_connections: u32,
    pub(crate) accepts_tenants: bool,
    pub(crate) revision: Revision,
    pub(crate) nodes: Vec<NodeRecord>,
}

/// A node as the catalog knows it.
#[derive(Clone, Debug)]
pub(crate) struct NodeRecord {
    pub(crate) name: String,
    pub(crate) is_primary: bool,
    pub(crate) options: PgConnectOptions,
    /// SHA-256 of its URL: tells whether anything about how to reach it has changed.
    pub(crate) fingerprint: [u8; 32],
}

impl NodeRecord {
    /// Host and port.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.options.get_host(), self.options.get_port())
    }
}

/// How full a cluster is.
pub(crate) struct Occupancy {
    pub(crate) tenants: i64,
    pub(crate) spares: i64,
}

/// What the catalog expects to find on a cluster.
pub(crate) struct ExpectedDatabase {
    pub(crate) uuid: TenantUuid,
    /// Whether its making has been completed and nothing has begun to remove it.
    pub(crate) complete: bool,
}

fn node_owner(cluster: &str, node: &str) -> Vec<u8> {
    format!("node:{cluster}/{node}").into_bytes()
}

impl Catalog {
    /// Registers a cluster that is not known yet. A known one keeps what the catalog says, unless `overwrite`.
    pub(crate) async fn register_cluster(
        &self,
        settings: &ClusterSettings,
        overwrite: bool,
    ) -> Result<(), CatalogError> {
        let mut transaction = self.begin().await?;
        let max_connections = i32::try_from(settings.max_connections).unwrap_or(i32::MAX);
        let inserted = sqlx::query!(
            r#"
            insert into clusters (name, region, max_connections, revision)
            values ($1, $2, $3, 0)
            on conflict (name) do update
            set region = excluded.region, max_connections = excluded.max_connections
            where $4
            "#,
            settings.name.as_str(),
            settings.region,
            max_connections,
            overwrite,
        )
        .execute(&mut *transaction)
        .await?;
        if inserted.rows_affected() == 0 {
            return Ok(());
        }
        sqlx::query!("delete from nodes where cluster = $1", settings.name.as_str())
            .execute(&mut *transaction)
            .await?;
        self.add_node(
            &mut transaction,
            &settings.name,
            "primary",
            "primary",
            &settings.primary,
        )
        .await?;
        for (index, replica) in settings.replicas.iter().enumerate() {
            let name = format!("replica-{}", index + 1);
            self.add_node(&mut transaction, &settings.name, &name, "replica", replica)
                .await?;
        }
        let revision = revision::next(&mut transaction).await?;
        sqlx::query!(
            "update clusters set revision = $2 where name = $1",
            settings.name.as_str(),
            revision.0
        )
        .execute(&mut *transaction)
        .await?;
        sqlx::query!(
            "update nodes set revision = $2 where cluster = $1",
            settings.name.as_str(),
            revision.0
        )
        .execute(&mut *transaction)
        .await?;
        self.commit_change(transaction, revision).await?;
        Ok(())
    }

    async fn add_node(
        &self,
        transaction: &mut PgConnection,
        cluster: &ClusterName,
        name: &str,
        role: &str,
        url: &SecretString,
    ) -> Result<(), CatalogError> {
        let sealed = self.keys.seal(
            &node_owner(cluster.as_str(), name),
            url.expose_secret().as_bytes(),
        );
        sqlx::query!(
            r#"
            insert into nodes (cluster, name, role, url_sealed, revision)
            values ($1, $2, $3, $4, 0)
            "#,
            cluster.as_str(),
            name,
            role,
            sealed.as_bytes(),
        )
        .execute(transaction)
        .await?;
        Ok(())
    }

    /// Records that another node of a cluster is the primary now. Says whether that was new; an unknown node changes nothing.
    pub(crate) async fn register_primary(
        &self,
        cluster: &ClusterName,
        node: &str,
    ) -> Result<bool, CatalogError> {
        let mut transaction = self.begin().await?;
        // One after the other: there is no moment with two primaries, nor one that anybody sees with none.
        let demoted = sqlx::query!(
            r#"
            update nodes
            set role = 'replica'
            where cluster = $1 and role = 'primary' and name <> $2
                and exists (select from nodes where cluster = $1 and name = $2)
            "#,
            cluster.as_str(),
            node,
        )
        .execute(&mut *transaction)
        .await?;
        if demoted.rows_affected() == 0 {
            return Ok(false);
        }
        sqlx::query!(
            "update nodes set role = 'primary' where cluster = $1 and name = $2",
            cluster.as_str(),
            node
        )
        .execute(&mut *transaction)
        .await?;
        let revision = revision::next(&mut transaction).await?;
        sqlx::query!(
            r#"
            with changed as (update nodes set revision = $2 where cluster = $1)
            update clusters set revision = $2 where name = $1
            "#,
            cluster.as_str(),
            revision.0
        )
        .execute(&mut *transaction)
        .await?;
        self.commit_change(transaction, revision).await?;
        Ok(true)
    }

    /// All clusters with their nodes, the primary first.
    pub(crate) async fn clusters(&self) -> Result<Vec<ClusterRecord>, CatalogError> {
        let mut connection = self.connection().await?;
        let clusters = sqlx::query!(
            r#"
            select name, region, max_connections, accepts_tenants, revision as "revision: Revision"
            from clusters
            order by name
            "#
        )
        .fetch_all(&mut *connection)
        .await?;
        let nodes = sqlx::query!(
            r#"
            select cluster, name, role, url_sealed
            from nodes
            order by cluster, role, name
            "#
        )
        .fetch_all(&mut *connection)
        .await?;
        let mut records = Vec::with_capacity(clusters.len());
        for cluster in clusters {
            let mut of_cluster = Vec::new();
            for node in nodes.iter().filter(|node| node.cluster == cluster.name) {
                let owner = node_owner(&node.cluster, &node.name);
                let url = self.keys.open_text(&owner, &node.url_sealed.clone().into())?;
                of_cluster.push(NodeRecord {
                    name: node.name.clone(),
                    is_primary: node.role == "primary",
                    fingerprint: Sha256::digest(url.expose_secret()).into(),
                    options: PgConnectOptions::from_str(url.expose_secret())
                        .map_err(|_| CatalogError::NotUnderstood("a node's URL"))?,
                });
            }
            records.push(ClusterRecord {
                name: cluster_name(&cluster.name)?,
                region: cluster.region,
                max_connections: cluster.max_connections.unsigned_abs(),
                accepts_tenants: cluster.accepts_tenants,
                revision: cluster.revision,
                nodes: of_cluster,
            });
        }
        Ok(records)
    }

    /// How many tenants and ready spares a cluster has.
    pub(crate) async fn occupancy(&self, cluster: &ClusterName) -> Result<Occupancy, CatalogError> {
        let mut connection = self.connection().await?;
        let occupancy = sqlx::query_as!(
            Occupancy,
            r#"
            select
                (select count(*) from tenants where cluster = $1 and state <> 'PURGED') as "tenants!",
                (select count(*) from spare_databases where cluster = $1 and state = 'READY') as "spares!"
            "#,
            cluster.as_str(),
        )
        .fetch_one(&mut *connection)
        .await?;
        Ok(occupancy)
    }

    /// The databases that a cluster should hold, according to the catalog.
    pub(crate) async fn expected_databases(
        &self,
        cluster: &ClusterName,
    ) -> Result<Vec<ExpectedDatabase>, CatalogError> {
        let mut connection = self.connection().await?;
        let expected = sqlx::query_as!(
            ExpectedDatabase,
            r#"
            select uuid as "uuid!: TenantUuid", state in ('CREATED', 'SUSPENDED') as "complete!"
            from tenants
            where cluster = $1 and state <> 'PURGED'
            union all
            select uuid, state = 'READY'
            from spare_databases
            where cluster = $1
            "#,
            cluster.as_str(),
        )
        .fetch_all(&mut *connection)
        .await?;
        Ok(expected)
    }
}
