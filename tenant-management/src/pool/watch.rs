//! What has happened on a connection since it was handed out, and so whether it may be handed out again.
//!
//! Owns the book-keeping of one lease. Refuses to know the socket and the pool.

use read_your_writes::Fault;
use sqlx::{
    error::DatabaseError,
    postgres::{PgDatabaseError, PgSeverity},
};

use super::{
    schedule::CloseReason,
    statement::{TransactionControl, inspect},
};

/// The statement was not sent, because it does not fit where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatementRefused {
    /// A read runs queries only: no transaction control, no settings, no commands.
    #[error("a read runs queries only; this statement belongs in a write or in a migration")]
    InRead,
    /// The layer opens and ends the transaction of a write.
    #[error("a write's transaction is opened and ended by the layer; use savepoints inside of it")]
    EndsWrite,
}

impl From<StatementRefused> for sqlx::Error {
    fn from(refusal: StatementRefused) -> Self {
        Self::Configuration(refusal.into())
    }
}

/// Which statements may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// All.
    Anything,
    /// Those that can neither leave anything in the session nor turn a read into a write.
    Read,
    /// All but those that open or end the transaction.
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    /// A statement has failed in it: the server would answer a `commit` with a rollback, and not call it an error.
    Failed,
}

/// How an error of the server or network leaves a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    None,
    /// The connection is of no more use.
    Broken,
    /// So is perhaps every other connection to this server that was open at that moment.
    Lost,
}

/// The book-keeping of one lease.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) policy: Policy,
    statements: u64,
    answered: u64,
    /// A statement has been sent and its end has not been seen.
    busy: bool,
    tainted: bool,
    transaction: Transaction,
    damage: Damage,
    wrote_in_read: bool,
    fault: Option<Fault>,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            policy: Policy::Anything,
            statements: 0,
            answered: 0,
            busy: false,
            tainted: false,
            transaction: Transaction::None,
            damage: Damage::None,
            wrote_in_read: false,
            fault: None,
        }
    }

    /// Statements that were sent.
    pub(crate) fn statements(&self) -> u64 {
        self.statements
    }

    /// Whether the connection broke before the server had answered anything.
    pub(crate) fn is_lost_unanswered(&self) -> bool {
        self.damage != Damage::None && self.answered == 0
    }

    /// Whether the connection to the server, rather than this connection alone, is in doubt.
    pub(super) fn is_lost(&self) -> bool {
        self.damage == Damage::Lost
    }

    /// Whether a statement of the open transaction has failed, so that it can only be rolled back.
    pub(crate) fn has_failed_transaction(&self) -> bool {
        self.transaction == Transaction::Failed
    }

    /// Whether the server refused a write because the transaction is read-only (`25006`).
    pub(crate) fn wrote_in_read(&self) -> bool {
        self.wrote_in_read
    }

    /// What the first statement that failed says about what is to be done.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Why the connection has to be closed instead of being kept, if it has to.
    pub(super) fn must_close(&self) -> Option<CloseReason> {
        if self.damage != Damage::None {
            Some(CloseReason::Broken)
        } else if self.busy || self.transaction != Transaction::None {
            Some(CloseReason::Abandoned)
        } else if self.tainted {
            Some(CloseReason::Tainted)
        } else {
            None
        }
    }

    /// Before a statement is sent: notes what it will do, or refuses it.
    pub(super) fn admit(&mut self, sql: &str) -> Result<Pending, StatementRefused> {
        let effects = inspect(sql);
        match self.policy {
            Policy::Read if effects.beyond_rows || effects.configures => {
                return Err(StatementRefused::InRead);
            }
            Policy::Write if effects.transaction.is_some() => return Err(StatementRefused::EndsWrite),
            Policy::Anything | Policy::Read | Policy::Write => {}
        }
        Ok(Pending {
            taints: effects.taints,
            transaction: effects.transaction,
            returns_to_savepoint: effects.returns_to_savepoint,
        })
    }

    /// A statement is being sent.
    pub(super) fn started(&mut self, pending: Pending) {
        self.statements += 1;
        self.busy = true;
        self.tainted |= pending.taints;
        if pending.transaction == Some(TransactionControl::Opens) {
            self.transaction = Transaction::Open;
        }
    }

    /// A statement has been answered to its end.
    pub(super) fn succeeded(&mut self, pending: Pending) {
        self.answered += 1;
        self.busy = false;
        match pending.transaction {
            Some(TransactionControl::Ends) => self.transaction = Transaction::None,
            Some(TransactionControl::Opens) => self.transaction = Transaction::Open,
            None if pending.returns_to_savepoint => self.transaction = Transaction::Open,
            None => {}
        }
    }

    /// A statement has ended in an error.
    pub(super) fn failed(&mut self, pending: Pending, error: &sqlx::Error) {
        self.fault.get_or_insert(Fault::of_error(error));
        match error {
            sqlx::Error::Database(_) => match damage_of(error) {
                Damage::None => {
                    self.answered += 1;
                    self.busy = false;
                    self.wrote_in_read |= sqlstate(error).as_deref() == Some("25006");
                    match pending.transaction {
                        // A commit that fails has rolled back.
                        Some(TransactionControl::Ends) => self.transaction = Transaction::None,
                        _ if self.transaction == Transaction::Open => self.transaction = Transaction::Failed,
                        _ => {}
                    }
                }
                damage => self.damage = damage,
            },
            // Nothing has been sent.
            sqlx::Error::Encode(_) | sqlx::Error::Configuration(_) | sqlx::Error::InvalidArgument(_) => {
                self.busy = false;
            }
            // In a transaction that was idle for too long it is this session that the server has ended, and no other.
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) if self.transaction == Transaction::None => {
                self.damage = Damage::Lost;
            }
            // The protocol's state is unknown.
            _ => self.damage = Damage::Broken,
        }
    }
}

/// What a statement does once it has run, from its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    taints: bool,
    transaction: Option<TransactionControl>,
    returns_to_savepoint: bool,
}

impl Pending {
    /// The same statement when it is prepared only.
    pub(super) fn without_effect(self) -> Self {
        Self {
            transaction: None,
            returns_to_savepoint: false,
            ..self
        }
    }
}

fn sqlstate(error: &sqlx::Error) -> Option<std::borrow::Cow<'_, str>> {
    error.as_database_error().and_then(DatabaseError::code)
}

fn damage_of(error: &sqlx::Error) -> Damage {
    let severity = error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
        .map(PgDatabaseError::severity);
    let ends_session = matches!(severity, Some(PgSeverity::Fatal | PgSeverity::Panic));
    match (ends_session, sqlstate(error).as_deref()) {
        (false, _) => Damage::None,
        // The server stops, or somebody has ended the session from outside.
        (true, Some("57P01" | "57P02" | "57P03" | "57P04")) => Damage::Lost,
        (true, _) => Damage::Broken,
    }
}
