//! Invariant I9: a tenant's role reaches its own database only, and can change neither schema nor roles there.

mod support;

use sqlx::{Connection, Executor, PgConnection, postgres::PgConnectOptions};
use support::{World, operator, request};

const PASSWORD: &str = "chosen-by-this-test";

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_role_is_kept_in_its_own_database() {
    for spares in [0, 1] {
        let world = World::start().await;
        let mut wishes = world.wishes();
        wishes.spares = spares;
        let tenancy = world.instance(wishes).await;
        let acme = tenancy
            .control()
            .create_tenant(&request("acme"), &operator())
            .await
            .unwrap()
            .value;
        let globex = tenancy
            .control()
            .create_tenant(&request("globex"), &operator())
            .await
            .unwrap()
            .value;
        let role = acme.uuid.physical_name();
        let mut admin = world.admin("postgres").await;
        let password = format!("alter role {role} password '{PASSWORD}'");
        admin.execute(sqlx::AssertSqlSafe(password)).await.unwrap();
        let as_acme = world
            .cluster
            .primary()
            .connect_options(&role)
            .username(&role)
            .password(PASSWORD);

        let template: String = sqlx::query_scalar(
            "select datname::text from pg_database where datname like 'tenantry_template_v%'",
        )
        .fetch_one(&mut admin)
        .await
        .unwrap();
        for database in [
            "postgres",
            "template1",
            "tenantry_catalog",
            &template,
            &globex.uuid.physical_name(),
        ] {
            let refused = PgConnection::connect_with(&as_acme.clone().database(database))
                .await
                .unwrap_err();
            let code = refused
                .as_database_error()
                .expect("the server refuses")
                .code()
                .unwrap()
                .into_owned();
            // 42501: no right to connect; 55000: the database takes no connections at all.
            assert!(
                ["42501", "55000"].contains(&code.as_str()),
                "{database}: {refused}"
            );
        }

        let mut own = connect(&as_acme).await;
        own.execute("insert into notes (text) values ('mine')")
            .await
            .expect("its rows are its own");
        let refused = [
            "create table more (id int)",
            "create temporary table more (id int)",
            "create schema more",
            "alter table notes add column more int",
            "drop table notes",
            "truncate notes",
            "create index on notes (text)",
            "create role more",
            "create database more",
            "alter role postgres password 'x'",
            "alter role current_user createdb",
            "alter database postgres set work_mem = '1MB'",
            "grant pg_read_all_data to current_user",
            "set role postgres",
            "set session authorization postgres",
            "copy notes to program 'true'",
            "copy notes from '/etc/passwd'",
            "select pg_read_file('/etc/passwd')",
            "select * from tenantry.schema_history",
            "create extension dblink",
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'postgres'",
            "select rolpassword from pg_authid",
        ];
        for statement in refused {
            let error = own.execute(statement).await.expect_err(statement);
            let code = error
                .as_database_error()
                .unwrap_or_else(|| panic!("{statement}: {error}"))
                .code();
            assert_eq!(code.as_deref(), Some("42501"), "{statement}: {error}");
        }
    }
}

/// The test above sees what it is about: with PUBLIC's right to connect given back, the role gets in.
#[tokio::test(flavor = "multi_thread")]
async fn without_closed_doors_the_role_would_get_in() {
    let world = World::start().await;
    let tenancy = world.instance(world.wishes()).await;
    let acme = tenancy
        .control()
        .create_tenant(&request("acme"), &operator())
        .await
        .unwrap()
        .value;
    let role = acme.uuid.physical_name();
    let mut admin = world.admin("postgres").await;
    let password = format!("alter role {role} password '{PASSWORD}'");
    admin.execute(sqlx::AssertSqlSafe(password)).await.unwrap();
    admin
        .execute("grant connect on database postgres to public")
        .await
        .unwrap();

    connect(
        &world
            .cluster
            .primary()
            .connect_options("postgres")
            .username(&role)
            .password(PASSWORD),
    )
    .await;
}

async fn connect(options: &PgConnectOptions) -> PgConnection {
    PgConnection::connect_with(options)
        .await
        .expect("the role can connect")
}
