//! `RESULTS.md`: what was claimed and what was measured, from raw files only.
//!
//! Owns the form of a report. Refuses to know what the parts measure.

use std::fmt::Write as _;

use crate::{
    parts::Part,
    platform::Circumstances,
    raw,
    stats::{Summary, summarise},
};

const OPENING: &str = "# Results

Made from the files in `raw/` by `cargo run --release -p benchmark -- report`; nothing here is typed by hand. How to measure again:
see [README.md](README.md).

Unless said otherwise a figure is a median, the bracket behind it holds the true median with at least 95 % confidence (from
the ranks of the samples, so without assumptions about their distribution), and *n* is the number of runs.
";

/// What one part has to say.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// How it was measured.
    pub method: String,
    /// What came out.
    pub tables: Vec<Table>,
    /// Figures that have a target.
    pub claims: Vec<Claim>,
}

/// A figure with a target.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What it is about.
    pub what: String,
    /// What it should be.
    pub target: String,
    /// What it is.
    pub measured: String,
    /// Whether that is enough.
    pub met: bool,
}

/// A table with a heading of its own.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The columns' names.
    pub columns: Vec<&'static str>,
    /// The rows, as long as the columns.
    pub rows: Vec<Vec<String>>,
}

/// The whole report.
///
/// # Errors
///
/// When a raw file cannot be read.
pub fn render() -> anyhow::Result<String> {
    let mut claims = String::from("\n## Claims\n\n| claim | target | measured | met |\n|---|---|---|---|\n");
    let mut sections = String::new();
    for part in Part::all() {
        let Some((circumstances, section)) = part.section()? else {
            write!(sections, "\n## {}\n\nNot measured yet.\n", part.name())?;
            continue;
        };
        for claim in &section.claims {
            let met = if claim.met { "yes" } else { "**no**" };
            writeln!(
                claims,
                "| {} | {} | {} | {met} |",
                claim.what, claim.target, claim.measured
            )?;
        }
        write_section(&mut sections, part, &circumstances, &section)?;
    }
    Ok(format!("{OPENING}{claims}{sections}"))
}

/// Writes the report next to the raw files.
///
/// # Errors
///
/// When a raw file cannot be read or the report cannot be written.
pub fn write() -> anyhow::Result<()> {
    Ok(std::fs::write(raw::home().join("RESULTS.md"), render()?)?)
}

/// A section on its own, for whoever does not want to keep it.
///
/// # Errors
///
/// Never; writing to a text cannot fail.
pub fn render_section(
    part: Part,
    circumstances: &Circumstances,
    section: &Section,
) -> anyhow::Result<String> {
    let mut text = String::new();
    write_section(&mut text, part, circumstances, section)?;
    for claim in &section.claims {
        writeln!(
            text,
            "{}: target {}, measured {}",
            claim.what, claim.target, claim.measured
        )?;
    }
    Ok(text)
}

fn write_section(
    text: &mut String,
    part: Part,
    circumstances: &Circumstances,
    section: &Section,
) -> anyhow::Result<()> {
    write!(
        text,
        "\n## {} (`{}`)\n\n{}\n",
        section.title,
        part.name(),
        section.method
    )?;
    for table in &section.tables {
        write!(text, "\n{}\n\n| {} |\n", table.caption, table.columns.join(" | "))?;
        writeln!(text, "|{}", "---|".repeat(table.columns.len()))?;
        for row in &table.rows {
            writeln!(text, "| {} |", row.join(" | "))?;
        }
    }
    write!(text, "\n{}\n", describe(circumstances))?;
    Ok(())
}

fn describe(circumstances: &Circumstances) -> String {
    let Circumstances { platform, .. } = circumstances;
    let commit = match (&circumstances.commit, circumstances.uncommitted_changes) {
        (None, _) => "no commit yet".to_owned(),
        (Some(commit), false) => format!("commit {commit}"),
        (Some(commit), true) => format!("commit {commit} with uncommitted changes"),
    };
    let build = if circumstances.optimised {
        ""
    } else {
        " · **build without optimisation**"
    };
    format!(
        "Measured {} in {:.0} s · {commit}{build} · {}, {} cores, {:.0} GiB · {} · PostgreSQL {} · load of the machine (processes \
         that want to run) {:.1} before, {:.1} after, nice value {}",
        circumstances.started.format("%Y-%m-%d %H:%M UTC"),
        circumstances.seconds,
        platform.cpu,
        platform.cores,
        platform.memory_gib,
        platform.kernel,
        platform.postgresql,
        circumstances.load_before,
        circumstances.load_after,
        circumstances.niceness,
    )
}

/// `12.3 [11.9, 12.8] ms, n = 40`: a median with its interval, in a unit.
pub fn median_of(samples: &[f64], unit: &str) -> String {
    summarise(samples).map_or_else(|| "–".to_owned(), |summary| show(&summary, unit))
}

/// The same of a summary.
pub fn show(summary: &Summary, unit: &str) -> String {
    let Summary {
        runs,
        median,
        low,
        high,
        ..
    } = *summary;
    let digits = digits(median);
    format!("{median:.digits$} [{low:.digits$}, {high:.digits$}] {unit}, n = {runs}").replace(" ,", ",")
}

/// A number with as many digits as say something.
pub fn number(value: f64) -> String {
    let digits = digits(value);
    format!("{value:.digits$}")
}

fn digits(value: f64) -> usize {
    match value.abs() {
        1000.0.. => 0,
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    }
}

/// `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are ASCII"))
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(number(0.5), "0.50");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(1234.5), "1234");
        assert_eq!(median_of(&[1.0, 2.0, 3.0], "ms"), "2.00 [1.00, 3.00] ms, n = 3");
    }
}
