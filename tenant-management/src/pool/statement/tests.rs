//! Which texts leave something behind, and which do not.

use proptest::prelude::*;

use super::*;

#[test]
fn rows_are_read_and_written_without_a_trace() {
    for sql in [
        "select 1",
        "  SELECT set_, template, temperature, listener, prepared_at from temps",
        "with x as (select 1) select * from x",
        "(select 1) union all (values (2))",
        "insert into invoices (id) values ($1) returning id",
        "update invoices set status = $1 where id = $2",
        "delete from invoices",
        "merge into a using b on true when matched then delete",
        "-- set x\nselect 1 /* listen /* nested */ set_config */",
        "select pg_advisory_xact_lock(1)",
        "select 'it''s; begin' , E'\\'; begin; ', $$; begin$$, $a$; $b$ begin $a$",
        "select $1, $2; ",
        "",
        " ; ; ",
    ] {
        assert_eq!(inspect(sql), Effects::default(), "{sql}");
    }
}

#[test]
fn whatever_else_may_stay_taints() {
    for sql in [
        "set search_path = x",
        "SET ROLE other",
        "reset all",
        "listen x",
        "select set_config('a.b', 'c', false)",
        "select \"set_config\"('a.b', 'c', false)",
        "select query_to_xml('select set_config(''a'',''b'',false)', true, true, '')",
        "select pg_advisory_lock(1)",
        "SELECT PG_TRY_ADVISORY_LOCK(1)",
        "prepare x as select 1",
        "prepare transaction 'x'",
        "create temp table t (x int)",
        "select 1 as x into temporary t",
        "declare c cursor with hold for select 1",
        "do $$ begin perform 1; end $$",
        "call f()",
        "load 'x'",
        "discard all",
        "select 1; set x.y = 1",
        "select '\\'; set x.y = 1",
        "explain select 1",
    ] {
        assert!(inspect(sql).taints, "{sql}");
    }
}

#[test]
fn transactions_are_followed() {
    use TransactionControl::{Ends, Opens};
    for (sql, control) in [
        ("begin read write", Some(Opens)),
        ("start transaction", Some(Opens)),
        ("commit", Some(Ends)),
        ("END", Some(Ends)),
        ("rollback", Some(Ends)),
        ("abort", Some(Ends)),
        ("commit and chain", Some(Opens)),
        ("select 1; commit", Some(Ends)),
        ("begin; select 1; commit", Some(Ends)),
        ("commit; begin", Some(Opens)),
        ("rollback to a", None),
        ("rollback work to savepoint a", None),
        ("savepoint a", None),
        ("release a", None),
        ("set local lock_timeout = 1", None),
    ] {
        let effects = inspect(sql);
        assert_eq!(effects.transaction, control, "{sql}");
        assert!(effects.beyond_rows && !effects.taints, "{sql}");
    }
    assert!(inspect("rollback to a").returns_to_savepoint);
    assert!(inspect("set transaction read write").configures);
}

proptest! {
    #[test]
    fn any_text_is_read_to_its_end(sql in "[ -~$'\"/*;äE\\\\\n-]{0,40}") {
        inspect(&sql);
    }

    /// What stands in a literal never counts as a statement.
    #[test]
    fn a_literal_hides_statements(text in "[a-z;' \n]{0,20}") {
        let sql = format!("select '{}', $q${text}$q$ from \"{}\"", text.replace('\'', "''"), text.replace('"', "\"\""));
        let effects = inspect(&sql);
        prop_assert!(!effects.beyond_rows, "{}", sql);
    }
}
