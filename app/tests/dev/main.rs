//! `tenantry dev` as a person has it: the program, a folder, signals. And the command line against it.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod command_line;
mod harness;
mod life;
