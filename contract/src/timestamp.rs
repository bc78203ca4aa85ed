//! Instants: Unix time with nanoseconds, written as RFC 3339 in UTC. Reading a clock is the gateway's.

use std::fmt;
use std::str::FromStr;

/// An instant
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

/// A text or number that is no instant
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an instant: {0}")]
pub struct NotAnInstant(String);

impl Timestamp {
    /// 1970-01-01T00:00:00Z
    pub const EPOCH: Self = Self(jiff::Timestamp::UNIX_EPOCH);
    /// Whole seconds since the Unix epoch
    pub fn from_unix(seconds: i64) -> Result<Self, NotAnInstant> {
        jiff::Timestamp::from_second(seconds)
            .map(Self)
            .map_err(|e| NotAnInstant(e.to_string()))
    }
    /// Milliseconds since the Unix epoch
    pub fn from_unix_ms(ms: i64) -> Result<Self, NotAnInstant> {
        jiff::Timestamp::from_millisecond(ms)
            .map(Self)
            .map_err(|e| NotAnInstant(e.to_string()))
    }
    /// From the system's time, as a clock reads it
    pub fn from_system(time: std::time::SystemTime) -> Result<Self, NotAnInstant> {
        jiff::Timestamp::try_from(time)
            .map(Self)
            .map_err(|e| NotAnInstant(e.to_string()))
    }
    /// Whole seconds since the Unix epoch
    pub fn unix(&self) -> i64 {
        self.0.as_second()
    }
    /// Milliseconds since the Unix epoch
    pub fn unix_ms(&self) -> i64 {
        self.0.as_millisecond()
    }
    /// This instant and `ms` milliseconds, held at the ends of the calendar
    pub fn plus_ms(&self, ms: i64) -> Self {
        Self::from_unix_ms(self.unix_ms().saturating_add(ms)).unwrap_or(Self(if ms < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        }))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
impl FromStr for Timestamp {
    type Err = NotAnInstant;
    fn from_str(text: &str) -> Result<Self, NotAnInstant> {
        text.parse()
            .map(Self)
            .map_err(|e: jiff::Error| NotAnInstant(e.to_string()))
    }
}
impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}
