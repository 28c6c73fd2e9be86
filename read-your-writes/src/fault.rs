//! What an error of a server says about what is to be done.

/// What an SQLSTATE says about what is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The node went away, is starting or stopping, or has no room: another node can answer.
    Node,
    /// The database is gone; the node is fine.
    DatabaseGone,
    /// The role is refused.
    Role,
    /// Another transaction, or the replay of the write-ahead log on a replica, got in the way.
    Conflict,
    /// A time limit has ended the statement, or a person has.
    Cancelled,
    /// A write where only reads are allowed: a mistake in the program.
    ReadOnly,
    /// The transaction had failed before.
    FailedTransaction,
    /// A table, column or function is not there: a mistake, or on a replica a migration that it has not replayed yet.
    Schema,
    /// The statement itself.
    Statement,
}

impl Fault {
    /// Reads the five characters of an SQLSTATE (PostgreSQL's documentation, appendix A).
    pub fn of(sqlstate: &str) -> Self {
        match sqlstate {
            "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => Self::Node,
            // Connections, and resources that have run out.
            code if code.starts_with("08") || code.starts_with("53") => Self::Node,
            "57P04" | "3D000" => Self::DatabaseGone,
            "28000" | "28P01" => Self::Role,
            "40001" | "40P01" | "55P03" => Self::Conflict,
            "57014" => Self::Cancelled,
            "25006" => Self::ReadOnly,
            "25P02" => Self::FailedTransaction,
            "42P01" | "42703" | "42883" | "3F000" => Self::Schema,
            _ => Self::Statement,
        }
    }

    /// What an error of the driver says.
    pub fn of_error(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(database) => {
                database.code().map_or(Self::Statement, |code| Self::of(&code))
            }
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) => Self::Node,
            _ => Self::Statement,
        }
    }

    /// Whether a read that a replica has answered with this can be answered by the primary: the replica cancelled it because
    /// it was in the way of replay, the replica failed, or it has not replayed yet that the database, its role or a table exists.
    pub const fn is_the_replicas(self) -> bool {
        match self {
            Self::Node | Self::DatabaseGone | Self::Role | Self::Conflict | Self::Schema => true,
            Self::Cancelled | Self::ReadOnly | Self::FailedTransaction | Self::Statement => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sqlstate_says_what_is_to_be_done() {
        for (fault, codes) in [
            (
                Fault::Node,
                [
                    "57P01", "57P02", "57P03", "08006", "08001", "53300", "53100", "25P03",
                ]
                .as_slice(),
            ),
            (Fault::DatabaseGone, &["57P04", "3D000"]),
            (Fault::Role, &["28000", "28P01"]),
            (Fault::Conflict, &["40001", "40P01", "55P03"]),
            (Fault::Cancelled, &["57014"]),
            (Fault::ReadOnly, &["25006"]),
            (Fault::FailedTransaction, &["25P02"]),
            (Fault::Schema, &["42P01", "42703"]),
            (Fault::Statement, &["23505", "22012", "42501", "XX000", ""]),
        ] {
            for code in codes {
                assert_eq!(Fault::of(code), fault, "{code}");
            }
        }
    }

    #[test]
    fn an_error_of_the_network_is_the_nodes() {
        let cut = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert_eq!(Fault::of_error(&cut), Fault::Node);
        assert_eq!(Fault::of_error(&sqlx::Error::RowNotFound), Fault::Statement);
    }
}
