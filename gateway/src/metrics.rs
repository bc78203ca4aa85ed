//! What the gateway counts, for `/metrics`. Labels are names from the configuration and closed lists of
//! codes: never an id, a path or anything that a sender chose.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// One source and what became of a delivery
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OutcomeLabels {
    /// The source's name
    pub source: String,
    /// `accepted`, `replay`, … or the code of the step that failed
    pub outcome: &'static str,
}

/// One destination and what became of an attempt
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct AttemptLabels {
    /// The destination's name
    pub destination: String,
    /// `delivered`, `retry` or `dead`
    pub outcome: &'static str,
}

/// Why a connection was ended before its time
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A request's line and headers are too many bytes or too many (414, 431)
    HeadTooLarge,
    /// No HTTP that is taken (400)
    MalformedHead,
    /// No whole head in time; also a connection that was kept open and not used
    NoHead,
    /// The sender took nothing of an answer for too long
    WriteStalled,
    /// The connection broke, or its sender left
    Broken,
}

impl Cut {
    /// Its stable spelling
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HeadTooLarge => "head-too-large",
            Self::MalformedHead => "malformed-head",
            Self::NoHead => "no-head",
            Self::WriteStalled => "write-stalled",
            Self::Broken => "broken",
        }
    }
}

/// Why a connection was ended
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct CutLabels {
    /// A [`Cut`]
    pub reason: &'static str,
}

/// Every counter, registered once
pub struct Metrics {
    registry: Registry,
    /// Deliveries by source and outcome
    pub deliveries: Family<OutcomeLabels, Counter>,
    /// Events committed, by source
    pub events: Counter,
    /// Attempts by destination and outcome
    pub attempts: Family<AttemptLabels, Counter>,
    /// Connections that were ended before their time, by reason
    pub cuts: Family<CutLabels, Counter>,
    /// Lines that are not in the event log
    pub lines_lost: Counter,
    /// Requests under way
    pub in_flight: Gauge,
    /// From the commit's start to durable storage
    pub commit_seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("postern");
        let deliveries = Family::default();
        let events = Counter::default();
        let attempts = Family::default();
        let cuts = Family::default();
        let lines_lost = Counter::default();
        let in_flight = Gauge::default();
        // 100 µs to 3.3 s
        let commit_seconds = Histogram::new(exponential_buckets(0.0001, 2.0, 16));
        registry.register("deliveries", "Deliveries received", deliveries.clone());
        registry.register("events", "Events committed", events.clone());
        registry.register("attempts", "Attempts to dispatch", attempts.clone());
        registry.register(
            "connections_cut",
            "Connections ended before their time",
            cuts.clone(),
        );
        registry.register(
            "log_lines_lost",
            "Lines that are not in the event log",
            lines_lost.clone(),
        );
        registry.register("in_flight", "Requests under way", in_flight.clone());
        registry.register("commit_seconds", "Time of a commit", commit_seconds.clone());
        Self {
            registry,
            deliveries,
            events,
            attempts,
            cuts,
            lines_lost,
            in_flight,
            commit_seconds,
        }
    }
}

impl Metrics {
    /// Counts one delivery
    pub fn delivery(&self, source: &str, outcome: &'static str) {
        self.deliveries
            .get_or_create(&OutcomeLabels {
                source: source.to_owned(),
                outcome,
            })
            .inc();
    }
    /// Counts one attempt
    pub fn attempt(&self, destination: &str, outcome: &'static str) {
        self.attempts
            .get_or_create(&AttemptLabels {
                destination: destination.to_owned(),
                outcome,
            })
            .inc();
    }
    /// Counts one connection that was ended before its time
    pub fn cut(&self, why: Cut) {
        let reason = why.as_str();
        self.cuts.get_or_create(&CutLabels { reason }).inc();
    }
    /// Counts one commit
    pub fn commit(&self, took: Duration, events: usize) {
        self.commit_seconds.observe(took.as_secs_f64());
        self.events.inc_by(events as u64);
    }
    /// The text form of OpenMetrics
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_counted_under_its_source_and_outcome() {
        let metrics = Metrics::default();
        metrics.delivery("github", "accepted");
        metrics.delivery("github", "accepted");
        let text = metrics.text();
        assert!(
            text.contains("postern_deliveries_total{source=\"github\",outcome=\"accepted\"} 2"),
            "{text}"
        );
    }
}
