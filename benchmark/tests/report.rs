//! The report says what the raw data say, and nothing else.

use benchmark::{raw, report};

#[test]
fn the_report_is_what_the_raw_data_make() {
    let committed = std::fs::read_to_string(raw::home().join("RESULTS.md")).expect("the report is committed");
    let rendered = report::render().expect("the raw data can be read");
    assert!(
        committed == rendered,
        "RESULTS.md differs from the raw data; run `cargo run --release -p benchmark -- report`"
    );
}
