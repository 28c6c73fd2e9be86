//! The alert rules and the dashboard name metrics that exist.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "common/mod.rs"]
mod common;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use common::TestApp;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

const ALERTS: &str = include_str!("../../monitoring/alerts.yaml");
const DASHBOARD: &str = include_str!("../../monitoring/dashboard.json");

/// Notes the names of metrics that the service describes when it starts.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<BTreeSet<String>>>);

impl Names {
    fn note(&self, name: &KeyName) {
        self.0.lock().unwrap().insert(name.as_str().to_owned());
    }
}

impl Recorder for Names {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.note(&name);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.note(&name);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.note(&name);
        // As Prometheus gets it.
        self.note(&format!("{}_bucket", name.as_str()).into());
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// The metrics of the service that a text speaks of.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| word.starts_with("tenantry_"))
        .map(ToOwned::to_owned)
        .collect()
}

fn rules() -> Vec<Yaml> {
    let documents = YamlLoader::load_from_str(ALERTS).expect("the rules are YAML");
    let groups = documents[0]["groups"].as_vec().expect("there are groups");
    groups
        .iter()
        .flat_map(|group| group["rules"].as_vec().expect("a group has rules"))
        .cloned()
        .collect()
}

fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    targets
        .map(|target| {
            target["expr"]
                .as_str()
                .expect("a target has an expression")
                .to_owned()
        })
        .collect()
}

#[test]
fn each_rule_says_when_how_bad_and_what_to_do() {
    let rules = rules();
    assert!(rules.len() > 10);
    for rule in &rules {
        let name = rule["alert"].as_str().expect("a rule has a name");
        assert!(
            rule["expr"].as_str().is_some_and(|text| !text.is_empty()),
            "{name}"
        );
        assert!(
            matches!(rule["labels"]["severity"].as_str(), Some("warning" | "critical")),
            "{name}"
        );
        assert!(rule["annotations"]["summary"].as_str().is_some(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_that_is_named_exists() {
    let names = Names::default();
    metrics::set_global_recorder(names.clone()).unwrap_or_else(|_| panic!("nobody else records"));
    let app = TestApp::start().await;
    app.service.stop().await;
    let exist = names.0.lock().unwrap().clone();
    let (rules, expressions) = (rules(), expressions());
    let in_rules = rules.iter().map(|rule| rule["expr"].as_str().unwrap());
    let mut checked = 0;
    for expression in in_rules.chain(expressions.iter().map(String::as_str)) {
        for name in named(expression) {
            assert!(
                exist.contains(&name),
                "{name} does not exist; there are {exist:?}"
            );
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked}");
}
