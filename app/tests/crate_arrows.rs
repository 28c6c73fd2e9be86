//! Which crates may know which: the arrows of the architecture never run backwards.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Each crate of the workspace and those that it may name. Tests may also name `sandbox`.
const ARROWS: &[(&str, &[&str])] = &[
    ("read-your-writes", &[]),
    ("sandbox", &[]),
    ("tenant-management", &["read-your-writes"]),
    ("auth", &["tenant-management", "read-your-writes"]),
    (
        "app",
        &["auth", "tenant-management", "read-your-writes", "sandbox"],
    ),
    (
        "benchmark",
        &["app", "auth", "tenant-management", "read-your-writes", "sandbox"],
    ),
];

#[test]
fn arrows_never_run_backwards() {
    let metadata = MetadataCommand::new()
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .unwrap();
    let allowed: BTreeMap<&str, BTreeSet<&str>> = ARROWS
        .iter()
        .map(|(from, to)| (*from, to.iter().copied().collect()))
        .collect();
    let members: BTreeSet<String> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    assert_eq!(
        members.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        allowed.keys().copied().collect(),
        "every crate has its place"
    );
    for package in &metadata.packages {
        let from = package.name.to_string();
        for dependency in &package.dependencies {
            let to = dependency.name.as_str();
            let for_tests = dependency.kind == DependencyKind::Development && to == "sandbox";
            if members.contains(to) && !for_tests {
                assert!(allowed[from.as_str()].contains(to), "{from} must not know {to}");
            }
        }
    }
}
