//! Timestamps as providers write them, each in the one unit and spelling of its profile. Nothing is guessed.

use postern_contract::Timestamp;

use crate::profile::Unit;

/// Digits alone, at most 13 of them, or the one RFC 3339 spelling: seconds and milliseconds are never
/// guessed from the size
pub(crate) fn instant(unit: Unit, text: &[u8]) -> Option<Timestamp> {
    let number = || -> Option<i64> {
        let digits = (1..=13).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(text)
            .ok()?
            .parse()
            .ok()
            .filter(|_| digits)
    };
    match unit {
        Unit::Seconds => Timestamp::from_unix(number()?).ok(),
        Unit::Milliseconds => Timestamp::from_unix_ms(number()?).ok(),
        Unit::Rfc3339 => {
            let text = std::str::from_utf8(text)
                .ok()
                .filter(|_| is_rfc3339(text))?;
            text.parse().ok()
        }
    }
}

/// `2025-06-15T15:06:40.123Z` or with `+01:00`: of what RFC 3339 leaves open (blanks for `T`, small letters)
/// and parsers add to it, nothing
fn is_rfc3339(text: &[u8]) -> bool {
    let shaped = |text: &[u8], shape: &[u8]| {
        text.len() == shape.len()
            && (text.iter().zip(shape)).all(|(b, s)| match s {
                b'0' => b.is_ascii_digit(),
                _ => b == s,
            })
    };
    let Some((clock, rest)) = text.split_at_checked(19) else {
        return false;
    };
    let rest = match rest.strip_prefix(b".") {
        None => rest,
        Some(rest) => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            if !(1..=9).contains(&digits) {
                return false;
            }
            rest.get(digits..).unwrap_or_default()
        }
    };
    let zone = rest == b"Z" || shaped(rest, b"+00:00") || shaped(rest, b"-00:00");
    shaped(clock, b"0000-00-00T00:00:00") && zone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(unit: Unit, text: &str) -> Option<i64> {
        instant(unit, text.as_bytes()).map(|at| at.unix_ms())
    }

    #[test]
    fn report_a26_the_unit_is_the_profiles() {
        assert_eq!(ms(Unit::Seconds, "1700000000"), Some(1_700_000_000_000));
        assert_eq!(
            ms(Unit::Milliseconds, "1700000000000"),
            Some(1_700_000_000_000)
        );
        assert_eq!(ms(Unit::Milliseconds, "1700000000"), Some(1_700_000_000));
        for bad in [
            "",
            "+1",
            "-1",
            " 1",
            "1 ",
            "1.0",
            "1e9",
            "0x10",
            "1_000",
            "\u{661}",
            "17000000000000",
        ] {
            assert_eq!(ms(Unit::Seconds, bad), None, "{bad}");
            assert_eq!(ms(Unit::Milliseconds, bad), None, "{bad}");
            assert_eq!(ms(Unit::Rfc3339, bad), None, "{bad}");
        }
    }

    #[test]
    fn dates_have_one_spelling() {
        // 2025-06-15T15:06:40Z is 1750000000 (date -u -d @1750000000)
        for (text, at) in [
            ("2025-06-15T15:06:40Z", 1_750_000_000_000),
            ("2025-06-15T15:06:40.123456789Z", 1_750_000_000_123),
            ("2025-06-15T08:06:40-07:00", 1_750_000_000_000),
            ("2025-06-15T16:06:40.5+01:00", 1_750_000_000_500),
        ] {
            assert_eq!(ms(Unit::Rfc3339, text), Some(at), "{text}");
        }
        for bad in [
            "2025-06-15",
            "2025-06-15T15:06:40",
            "2025-06-15 15:06:40Z",
            "2025-06-15t15:06:40z",
            "2025-06-15T15:06Z",
            "2025-06-15T15:06:40.Z",
            "2025-06-15T15:06:40.1234567890Z",
            "2025-06-15T15:06:40,5Z",
            "2025-06-15T15:06:40+0100",
            "2025-06-15T15:06:40Z[UTC]",
            "2025-02-30T15:06:40Z",
            "2025-06-15T25:06:40Z",
        ] {
            assert_eq!(ms(Unit::Rfc3339, bad), None, "{bad}");
        }
    }
}
