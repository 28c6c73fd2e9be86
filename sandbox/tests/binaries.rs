//! Finding PostgreSQL, and saying what to do when it is not there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sandbox::{Binaries, SandboxError};

fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("the folder can be written to");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the program is ours");
}

/// A folder of programs that call themselves this version.
fn programs(version: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("the folder is ours");
    for name in ["initdb", "pg_basebackup", "pg_resetwal"] {
        program(folder.path(), name, "exit 0");
    }
    program(folder.path(), "postgres", &format!("echo '{version}'"));
    folder
}

#[test]
fn the_installed_server_is_found() {
    let binaries = Binaries::find().unwrap();
    assert!(binaries.version().major >= 15);
    assert!(
        binaries
            .version()
            .text
            .starts_with(&binaries.version().major.to_string())
    );
    assert!(binaries.program("postgres").is_file());
    assert_eq!(
        Binaries::in_dir(binaries.dir()).unwrap().version(),
        binaries.version()
    );
}

#[test]
fn a_folder_without_programs_says_which_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let error = Binaries::in_dir(folder.path()).unwrap_err();
    assert!(matches!(error, SandboxError::BinariesUnusable { .. }));
    assert!(error.to_string().contains("`postgres` is missing"), "{error}");

    let folder = programs("postgres (PostgreSQL) 17.1");
    fs::remove_file(folder.path().join("pg_basebackup")).unwrap();
    let error = Binaries::in_dir(folder.path()).unwrap_err();
    assert!(
        error.to_string().contains("`pg_basebackup` is missing"),
        "{error}"
    );
}

#[test]
fn versions_that_are_too_old_or_make_no_sense_are_refused() {
    let folder = programs("postgres (PostgreSQL) 17.1");
    assert_eq!(Binaries::in_dir(folder.path()).unwrap().version().minor, 1);
    let folder = programs("postgres (PostgreSQL) 9.6.24");
    assert!(
        Binaries::in_dir(folder.path())
            .unwrap_err()
            .to_string()
            .contains("too old")
    );
    let folder = programs("Bonjour");
    assert!(
        Binaries::in_dir(folder.path())
            .unwrap_err()
            .to_string()
            .contains("answered `Bonjour")
    );
}

#[test]
fn programs_that_the_servers_user_cannot_run_are_refused() {
    let folder = programs("postgres (PostgreSQL) 17.1");
    fs::set_permissions(folder.path().join("postgres"), fs::Permissions::from_mode(0o600)).unwrap();
    let error = Binaries::in_dir(folder.path()).unwrap_err();
    assert!(
        error.to_string().contains("must be readable and executable"),
        "{error}"
    );
}
