//! What is known, and how it is shown: to choices, in metrics and in the log.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use super::{
    Ineligible, Shared,
    state::{ClusterState, Picture},
};
use crate::{Mode, metrics};

impl<N> Shared<N> {
    /// Changes what is known, and shows it to the choices to come.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut ClusterState, Instant) -> T) -> T {
        let mut state = self.state.lock();
        let now = Instant::now();
        let answer = change(&mut state, now);
        let picture = Arc::new(state.picture(now));
        let before = self.picture.swap(Arc::clone(&picture));
        drop(state);
        self.show(&before, &picture, now);
        answer
    }

    /// In mode `window` nothing but the window protects a caller, so it has to be much longer than any lag.
    fn compare_with_window(&self, node: &str, staleness: f64) {
        let window = self.settings.window.as_secs_f64();
        if self.settings.mode == Mode::Window
            && staleness * 2.0 > window
            && !self.narrow_window.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                db.node = node,
                db.staleness_s = staleness,
                reads.window_s = window,
                "The window is less than twice the worst lag seen; callers may miss their own writes."
            );
        }
    }

    /// Metrics, and a log line where something has changed.
    fn show(&self, before: &Picture, picture: &Picture, now: Instant) {
        if before.primary != picture.primary {
            tracing::warn!(
                db.cluster = &*self.name,
                db.node = &*self.nodes[picture.primary].name,
                db.timeline = picture.timeline.map(|timeline| timeline.0),
                "Another node is the primary now."
            );
            ::metrics::counter!(metrics::FAILOVERS, "cluster" => Arc::clone(&self.name)).increment(1);
            self.primary.send_replace(picture.primary);
        }
        for (node, (was, is)) in self.nodes.iter().zip(before.nodes.iter().zip(&picture.nodes)) {
            let label = [("node", Arc::clone(&node.label))];
            let eligible = if is.verdict.is_ok() { 1.0 } else { 0.0 };
            ::metrics::gauge!(metrics::ELIGIBLE, &label[..]).set(eligible);
            if let Some(includes) = is.includes {
                let staleness = now.saturating_duration_since(includes).as_secs_f64();
                ::metrics::gauge!(metrics::STALENESS, &label[..]).set(staleness);
                self.compare_with_window(&node.label, staleness);
            }
            if let (Some(primary), Some(replayed)) = (picture.primary_lsn, is.replayed) {
                #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
                let behind = primary.bytes_since(replayed) as f64;
                ::metrics::gauge!(metrics::LAG, &label[..]).set(behind);
            }
            match (was.verdict, is.verdict) {
                (Ok(()), Err(Ineligible::Primary)) => {}
                (Ok(()), Err(reason)) => tracing::warn!(
                    db.node = &*node.label,
                    reason = reason.as_str(),
                    "A replica serves no more reads."
                ),
                (Err(_), Ok(())) => tracing::info!(db.node = &*node.label, "A replica serves reads."),
                _ => {}
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
        let in_use = self.budget.in_use() as f64;
        ::metrics::gauge!(metrics::FALLBACK_IN_USE, "cluster" => Arc::clone(&self.name)).set(in_use);
    }
}
