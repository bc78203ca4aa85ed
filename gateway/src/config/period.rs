//! Lengths of time as people write them: `30s`, `5m`, `12h`, `7d`.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time of at least a millisecond and at most ten years
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(Duration);

/// A text that is no length of time
#[derive(Debug, thiserror::Error)]
#[error(
    "not a length of time: `{0}`: want a number and a unit up to ten years, such as `30s`, `5m`, `12h` or `7d`"
)]
pub struct NotAPeriod(String);

const TEN_YEARS: Duration = Duration::from_secs(3653 * 24 * 3600);

impl Period {
    /// Whole seconds
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
    /// As the standard library has it
    pub fn duration(self) -> Duration {
        self.0
    }
    /// Milliseconds
    pub fn millis(self) -> i64 {
        i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX)
    }
}

impl std::str::FromStr for Period {
    type Err = NotAPeriod;
    fn from_str(text: &str) -> Result<Self, NotAPeriod> {
        let fail = || NotAPeriod(text.chars().take(40).collect());
        let span: jiff::Span = text.parse().map_err(|_| fail())?;
        let length = span
            .to_duration(jiff::SpanRelativeTo::days_are_24_hours())
            .map_err(|_| fail())?;
        let length = Duration::try_from(length).map_err(|_| fail())?;
        if length < Duration::from_millis(1) || length > TEN_YEARS {
            return Err(fail());
        }
        Ok(Self(length))
    }
}

impl std::fmt::Display for Period {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = self.0.as_millis();
        for (unit, name) in [
            (86_400_000, "d"),
            (3_600_000, "h"),
            (60_000, "m"),
            (1_000, "s"),
        ] {
            if ms.is_multiple_of(unit) {
                return write!(f, "{}{name}", ms / unit);
            }
        }
        write!(f, "{ms}ms")
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
impl schemars::JsonSchema for Period {
    fn schema_name() -> Cow<'static, str> {
        "Period".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["30s", "5m", "12h", "7d"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_read_and_written_alike() {
        for (text, seconds) in [("30s", 30), ("5m", 300), ("12h", 43_200), ("7d", 604_800)] {
            let period: Period = text.parse().unwrap();
            assert_eq!(period, Period::from_secs(seconds));
            assert_eq!(period.to_string(), text);
        }
        assert_eq!("1500ms".parse::<Period>().unwrap().millis(), 1500);
    }

    #[test]
    fn zero_negative_unbounded_and_bare_numbers_are_refused() {
        for bad in [
            "",
            "0s",
            "-5m",
            "30",
            "1month",
            "20y",
            "soon",
            "999999999999999h",
        ] {
            assert!(bad.parse::<Period>().is_err(), "{bad}");
        }
    }
}
