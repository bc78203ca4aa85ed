//! RFC 3339 instants to the nanosecond, as event-predicates/v1 section 3 reads them: lower-case `t` and
//! `z`, digits past the ninth cut, leap seconds by rule and never by table.

/// An instant, ordered; a leap second stands after second 59 and before the next
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    second: i64,
    leap: bool,
    nanos: u32,
}

const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Days since 0000-03-01 of the proleptic Gregorian calendar
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let (y, m) = if month <= 2 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let century = y.div_euclid(100);
    y * 365 + y.div_euclid(4) - century + century.div_euclid(4) + (m * 153 + 2) / 5 + day - 1
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (head, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        head.iter().try_fold(0, |sum, b| {
            b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0'))
        })
    }
    fn one_of(&mut self, allowed: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        allowed.contains(first).then_some(*first)
    }
}

impl Instant {
    /// Reads an instant; `None` where the text is not one
    pub fn read(text: &str) -> Option<Self> {
        let mut r = Reader(text.as_bytes());
        let year = r.number(4)?;
        r.one_of(b"-")?;
        let month = r.number(2)?;
        r.one_of(b"-")?;
        let day = r.number(2)?;
        r.one_of(b"Tt")?;
        let hour = r.number(2)?;
        r.one_of(b":")?;
        let minute = r.number(2)?;
        r.one_of(b":")?;
        let second = r.number(2)?;
        let nanos = fraction(&mut r)?;
        let offset = match r.one_of(b"Zz+-")? {
            sign @ (b'+' | b'-') => {
                let hours = r.number(2)?;
                r.one_of(b":")?;
                let minutes = r.number(2)?;
                if hours > 23 || minutes > 59 {
                    return None;
                }
                let offset = hours * 60 + minutes;
                if sign == b'-' { -offset } else { offset }
            }
            _ => 0,
        };
        if !r.0.is_empty() || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let leap_year = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let last = DAYS.get(usize::try_from(month - 1).ok()?)? + i64::from(month == 2 && leap_year);
        if !(1..=last).contains(&day) {
            return None;
        }
        let minutes = day_number(year, month, day) * 1440 + hour * 60 + minute - offset;
        let leap = second == 60;
        if leap {
            // The minute must be the last of June or of December in UTC
            let next = minutes + 1;
            let opens =
                |y: i64| next == day_number(y, 7, 1) * 1440 || next == day_number(y, 1, 1) * 1440;
            if !(year - 1..=year + 2).any(opens) {
                return None;
            }
        }
        Some(Self {
            second: minutes * 60 + if leap { 59 } else { second },
            leap,
            nanos,
        })
    }
}

/// `.` and at least one digit, of which nine count; nothing is zero
fn fraction(r: &mut Reader<'_>) -> Option<u32> {
    let Some((b'.', rest)) = r.0.split_first() else {
        return Some(0);
    };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let (text, rest) = rest.split_at_checked(digits)?;
    r.0 = rest;
    Some((0..9).fold(0, |sum, n| {
        sum * 10 + text.get(n).map_or(0, |b| u32::from(b - b'0'))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Instant {
        Instant::read(text).unwrap()
    }

    #[test]
    fn spellings_of_one_instant_are_equal() {
        let z = at("2024-02-29T12:00:00Z");
        for same in [
            "2024-02-29t12:00:00z",
            "2024-02-29T12:00:00.000Z",
            "2024-02-29T12:00:00.0000000009Z",
            "2024-02-29T14:30:00+02:30",
            "2024-02-29T12:00:00-00:00",
            "2024-03-01T11:59:00+23:59",
        ] {
            assert_eq!(at(same), z, "{same}");
        }
    }

    #[test]
    fn what_is_no_instant_is_none() {
        for bad in [
            "",
            "2024-02-30T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-02-29 12:00:00Z",
            "2024-02-29T24:00:00Z",
            "2024-02-29T12:00:00",
            "2024-02-29T12:00:00.Z",
            "2024-02-29T12:00:00+24:00",
            "2024-02-29T12:00:00+00:60",
            "2024-13-01T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-02-29T12:00:60Z",
            "2024-02-29T12:00:00ZZ",
            "２024-02-29T12:00:00Z",
            "+024-02-29T12:00:00Z",
        ] {
            assert_eq!(Instant::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_leap_second_stands_between_its_neighbours() {
        let leap = at("2016-12-31T23:59:60Z");
        assert!(at("2016-12-31T23:59:59.999999999Z") < leap);
        assert!(leap < at("2017-01-01T00:00:00Z"));
        assert_eq!(at("2017-01-01T01:59:60+02:00"), leap);
        assert!(Instant::read("2016-12-31T23:59:60+01:00").is_none());
        assert!(Instant::read("2016-06-30T23:59:60Z").is_some());
    }

    proptest! {
        #[test]
        fn agrees_with_jiff(seconds in -62_000_000_000_i64..250_000_000_000) {
            let other = jiff::Timestamp::from_second(seconds).unwrap();
            let next = jiff::Timestamp::from_second(seconds + 1).unwrap();
            let (a, b) = (at(&other.to_string()), at(&next.to_string()));
            prop_assert_eq!(b.second - a.second, 1);
        }
        #[test]
        fn never_panics(text in "\\PC{0,40}", bent in "[0-9TtZz:.+-]{0,40}") {
            let _ = (Instant::read(&text), Instant::read(&bent));
        }
    }
}
