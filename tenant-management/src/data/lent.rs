//! A connection lent to a closure, which comes back when the closure is done with it.
//!
//! A closure gets its connection by value. Were it a `&mut`, the closure's future would be generic over the borrow's
//! lifetime, and the compiler could not prove it `Send` in a handler.

use std::ops::{Deref, DerefMut};

use tokio::sync::oneshot;

use super::{ReadConnection, WriteTransaction};
use crate::pool::execute_on_connection;

/// A [`ReadConnection`] or [`WriteTransaction`] in the hands of a closure. `&mut *conn`, and `&mut conn` too, is a sqlx
/// `Executor`; a function that helps the closure takes a `&mut ReadConnection` or `&mut WriteTransaction`.
#[derive(Debug)]
pub struct Lent<T> {
    /// Present until the drop.
    connection: Option<T>,
    home: Option<oneshot::Sender<T>>,
}

/// Lends a connection. It comes back through the second part.
pub(super) fn lend<T>(connection: T) -> (Lent<T>, oneshot::Receiver<T>) {
    let (home, back) = oneshot::channel();
    (
        Lent {
            connection: Some(connection),
            home: Some(home),
        },
        back,
    )
}

impl<T> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.connection.as_ref().expect("it goes home in the drop only")
    }
}

impl<T> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.connection.as_mut().expect("it goes home in the drop only")
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if let (Some(home), Some(connection)) = (self.home.take(), self.connection.take()) {
            // When nobody waits at home any more the connection is dropped here and so goes back to its pool.
            drop(home.send(connection));
        }
    }
}

execute_on_connection!(Lent<ReadConnection>);
execute_on_connection!(Lent<WriteTransaction>);
