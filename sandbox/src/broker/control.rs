//! Orders and questions to a running broker, in Erlang.
//!
//! `erl_call` connects to the node as another node would, and has it evaluate an expression with the
//! functions that `rabbitmqctl` calls too. The answer comes back as JSON.

use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::Broker;
use crate::error::{Doing, SandboxError};

/// How long an answer may take: a frozen broker gives none.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// A client's connection, as the broker sees it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct BrokerConnection {
    /// Both ends: `127.0.0.1:40000 -> 127.0.0.1:5672`.
    pub name: String,
    /// The name the client gave itself, by the client property `connection_name`.
    pub client: Option<String>,
    /// `running`; under a memory alarm `blocking`, and `blocked` once it has published.
    pub state: String,
    /// Whether it came by TLS.
    pub tls: bool,
}

/// A queue, as the broker sees it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct BrokerQueue {
    /// Its name.
    pub name: String,
    /// It survives a restart.
    pub durable: bool,
    /// It belongs to one connection, and ends with it.
    pub exclusive: bool,
    /// It ends with its last consumer.
    pub auto_delete: bool,
    /// How many messages are in it, delivered ones that are not acknowledged included.
    pub messages: u64,
    /// How many consumers it has.
    pub consumers: u64,
}

/// What comes back: a failure, or what was asked for.
#[derive(Deserialize)]
enum Answer<T> {
    #[serde(rename = "failed")]
    Failed(String),
    #[serde(rename = "value")]
    Value(T),
}

impl Broker {
    /// The clients' connections.
    ///
    /// # Errors
    ///
    /// When the broker does not run, or does not answer within 15 seconds.
    pub async fn connections(&self) -> Result<Vec<BrokerConnection>, SandboxError> {
        let question = r#"
            [begin
                Properties = proplists:get_value(client_properties, Info, []),
                Client = case lists:keyfind(<<"connection_name">>, 1, Properties) of
                    {_, _, Name} -> Name;
                    false -> null
                end,
                #{name => proplists:get_value(name, Info), client => Client,
                  state => proplists:get_value(state, Info), tls => proplists:get_value(ssl, Info)}
             end || Info <- rabbit_networking:connection_info_all([name, state, ssl, client_properties]),
                    Info =/= []]"#;
        self.ask("list the connections", question).await
    }

    /// The queues of the virtual host `/`.
    ///
    /// # Errors
    ///
    /// When the broker does not run, or does not answer within 15 seconds.
    pub async fn queues(&self) -> Result<Vec<BrokerQueue>, SandboxError> {
        let question = r#"
            [begin
                {_, _, _, Name} = proplists:get_value(name, Info),
                maps:put(name, Name, maps:from_list(proplists:delete(name, Info)))
             end || Info <- rabbit_amqqueue:info_all(<<"/">>,
                        [name, durable, exclusive, auto_delete, messages, consumers])]"#;
        self.ask("list the queues", question).await
    }

    /// Has the broker evaluate one Erlang expression, whose value must be good for JSON.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        doing: &'static str,
        expression: &str,
    ) -> Result<T, SandboxError> {
        let failed = |reason: String| SandboxError::Broker {
            broker: self.name().to_owned(),
            doing,
            reason,
        };
        if !self.is_running() {
            return Err(failed("it does not run".to_owned()));
        }
        let program = format!(
            "io:put_chars(rabbit_json:encode(try #{{value => {expression}}} catch Class:Reason -> \
             #{{failed => iolist_to_binary(io_lib:format(\"~0p\", [{{Class, Reason}}]))}} end)).\n"
        );
        let Ok(output) = timeout(ANSWER_LIMIT, self.evaluate(&program)).await else {
            return Err(self.timed_out("an answer of", ANSWER_LIMIT));
        };
        let output = output?;
        match serde_json::from_str(&output) {
            Ok(Answer::Value(value)) => Ok(value),
            Ok(Answer::Failed(reason)) => Err(failed(reason)),
            Err(error) => Err(failed(format!("{error} in: {output}"))),
        }
    }

    /// Everything that `erl_call` wrote.
    async fn evaluate(&self, program: &str) -> Result<String, SandboxError> {
        let mut command = self.erlang_command(&self.programs.erl_call);
        self.family().adopt(&mut command);
        command
            .arg("-address")
            .arg(format!("127.0.0.1:{}", self.ports.erlang.number()))
            .args(["-e", "-fetch_stdout", "-no_result_term"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let run = async {
            let mut tool = tokio::process::Command::from(command)
                .kill_on_drop(true)
                .spawn()?;
            if let Some(mut input) = tool.stdin.take() {
                // A tool that cannot connect does not read this; what it says is more telling.
                let _ = input.write_all(program.as_bytes()).await;
            }
            tool.wait_with_output().await
        };
        let output = run.await.doing(|| "run erl_call".to_owned())?;
        let both = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&both).into_owned())
    }
}
