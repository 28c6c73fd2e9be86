//! What can go wrong with a broker that is up: alarms, lost messages, closed connections.

use std::time::Duration;

use super::Broker;
use super::files::MEMORY_SHARE;
use crate::error::SandboxError;
use crate::wait;

/// How long an alarm may take to be heard or to end.
const ALARM_LIMIT: Duration = Duration::from_secs(10);

impl Broker {
    /// Raises or clears the memory alarm. While it is on, the broker reads nothing from connections that
    /// have published, and tells them so (`connection.blocked`); consumers are served. It ends with a
    /// restart, too.
    ///
    /// # Errors
    ///
    /// When the broker does not run, or does not answer.
    pub async fn memory_alarm(&self, on: bool) -> Result<(), SandboxError> {
        let share = if on { "0.0" } else { MEMORY_SHARE };
        let order = format!("vm_memory_monitor:set_vm_memory_high_watermark({share}), true");
        let doing = "change the memory alarm";
        self.ask::<bool>(doing, &format!("begin {order} end")).await?;
        let question = "lists:any(fun({{resource_limit, memory, _}, _}) -> true; (_) -> false end, \
                        rabbit_alarm:get_alarms())";
        let changed = wait::until_async(ALARM_LIMIT, async || {
            let alarmed: bool = self.ask(doing, question).await?;
            Ok((alarmed == on).then_some(()))
        });
        changed
            .await?
            .ok_or_else(|| self.timed_out("the change of the memory alarm of", ALARM_LIMIT))
    }

    /// Makes the broker lose messages although it is up and confirms them: the queues that exist now are
    /// unbound from their exchanges, exclusive ones too, and nobody is told. `false` binds them again,
    /// those that still exist. What was published meanwhile stays lost; a queue that is bound after
    /// `discard(true)` gets its messages, and who publishes with the flag `mandatory` gets them back.
    /// Returns how many bindings there were.
    ///
    /// # Errors
    ///
    /// When the broker does not run, or does not answer.
    pub async fn discard(&self, on: bool) -> Result<usize, SandboxError> {
        // Remembered in a file, so that a restart in between changes nothing. Every queue is bound to the
        // exchange without a name, which cannot be undone.
        let order = if on {
            r#"Found = [Binding || Binding <- rabbit_binding:list(<<"/">>),
                        element(4, element(2, Binding)) =/= <<>>],
               ok = file:write_file(File, term_to_binary(lists:usort(Found ++ Kept))),
               [rabbit_binding:remove(Binding, <<"sandbox">>) || Binding <- Found],
               length(Found)"#
        } else {
            r#"[rabbit_binding:add(Binding, <<"sandbox">>) || Binding <- Kept],
               file:delete(File),
               length(Kept)"#
        };
        let order = format!(
            r#"begin
               File = filename:join(os:getenv("HOME"), "discarded"),
               Kept = case file:read_file(File) of {{ok, Terms}} -> binary_to_term(Terms); _ -> [] end,
               {order}
               end"#
        );
        self.ask("change the bindings", &order).await
    }

    /// Removes all messages that wait in queues of the virtual host `/`, and returns how many they were.
    ///
    /// # Errors
    ///
    /// When the broker does not run, or does not answer.
    pub async fn purge(&self) -> Result<usize, SandboxError> {
        let order = r#"
            lists:sum([begin {ok, Count} = rabbit_amqqueue:purge(Queue), Count end
                       || Queue <- rabbit_amqqueue:list(<<"/">>)])"#;
        self.ask("purge the queues", order).await
    }

    /// Closes all connections, as an operator does, and returns how many they were. Clients are told
    /// (`connection.close` with 320, `CONNECTION_FORCED`), and may come back at once.
    ///
    /// # Errors
    ///
    /// When the broker does not run, or does not answer.
    pub async fn close_connections(&self) -> Result<usize, SandboxError> {
        let order = r#"
            length([rabbit_networking:close_connection(Connection, "closed by the sandbox")
                    || Connection <- rabbit_networking:connections()])"#;
        self.ask("close the connections", order).await
    }
}
