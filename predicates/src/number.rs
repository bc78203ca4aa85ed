//! Exact decimal numbers, compared by sign, magnitude and digits, never expanded and never through a
//! binary float. The one use of binary64 is to ask whether it carries a value.
//!
//! A number is a view of its own text: reading and comparing allocate nothing, however long it is.

use std::cmp::Ordering;

/// The largest integer that binary64 and RFC 8785 carry in both directions: 2^53 − 1
const SAFE: u64 = (1 << 53) - 1;

/// A JSON number: `0.<digits> * 10^exponent`, digits without outer zeros; zero has none
#[derive(Clone, Copy, Debug)]
pub struct Number<'a> {
    negative: bool,
    /// The digits before the point
    whole: &'a [u8],
    /// The digits after it
    fraction: &'a [u8],
    exponent: Exponent<'a>,
}

/// An exponent of any size: the one that is written, and what the place of the point adds
#[derive(Clone, Copy, Debug)]
struct Exponent<'a> {
    negative: bool,
    /// Without leading zeros
    digits: &'a [u8],
    /// Below 2^32 in size, as texts are
    shift: i64,
}

/// Past this a difference of exponents is settled: no shift, and no digit to come, turns it
const SETTLED: i64 = 1 << 40;

impl Exponent<'_> {
    /// The value, where it is below 10^17 in size
    fn small(&self) -> Option<i64> {
        if self.digits.len() > 17 {
            return None;
        }
        let size = whole_number(self.digits);
        Some(self.shift + if self.negative { -size } else { size })
    }
}

impl Ord for Exponent<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.digits.len().max(other.digits.len());
        let mut difference = 0_i64;
        for place in (0..length).rev() {
            difference = difference * 10 + digit_at(self, place) - digit_at(other, place);
            if difference.abs() > SETTLED {
                return difference.cmp(&0);
            }
        }
        difference.cmp(&(other.shift - self.shift))
    }
}
impl PartialOrd for Exponent<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Exponent<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Exponent<'_> {}

/// The signed digit that stands before `place` others; zero past the first
fn digit_at(exponent: &Exponent<'_>, place: usize) -> i64 {
    let index = exponent.digits.len().checked_sub(place + 1);
    let digit = index
        .and_then(|index| exponent.digits.get(index))
        .map_or(0, |d| i64::from(d - b'0'));
    if exponent.negative { -digit } else { digit }
}

/// At most 17 digits
fn whole_number(digits: &[u8]) -> i64 {
    digits
        .iter()
        .fold(0, |sum, d| sum * 10 + i64::from(d - b'0'))
}

/// The digits that `text` begins with, and the rest
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|b| !b.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let start = digits.iter().position(|d| *d != b'0');
    digits.split_at(start.unwrap_or(digits.len())).1
}

fn without_trailing_zeros(digits: &[u8]) -> &[u8] {
    let end = digits.iter().rposition(|d| *d != b'0').map_or(0, |n| n + 1);
    digits.split_at(end).0
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

impl<'a> Number<'a> {
    /// Reads the text of a JSON number, as [`postern_contract::Value::number_text`] gives it. What
    /// follows a number is not looked at.
    pub fn read(text: &'a str) -> Self {
        let (negative, rest) = sign(text.as_bytes());
        let (before, rest) = digits(rest);
        let (after, rest) = match rest.split_first() {
            Some((b'.', rest)) => digits(rest),
            _ => (&[][..], rest),
        };
        let (below, written) = match rest.split_first() {
            Some((b'e' | b'E', rest)) => {
                let (negative, rest) = sign(rest);
                (negative, without_leading_zeros(digits(rest).0))
            }
            _ => (false, &[][..]),
        };
        let mut whole = without_leading_zeros(before);
        let mut shift = whole.len() as i64;
        let mut fraction = after;
        if whole.is_empty() {
            fraction = without_leading_zeros(after);
            shift = fraction.len() as i64 - after.len() as i64;
        }
        fraction = without_trailing_zeros(fraction);
        if fraction.is_empty() {
            whole = without_trailing_zeros(whole);
        }
        Self {
            negative,
            whole,
            fraction,
            exponent: Exponent {
                negative: below,
                digits: written,
                shift,
            },
        }
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).copied()
    }

    fn count(&self) -> i64 {
        (self.whole.len() + self.fraction.len()) as i64
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// Whether the value has no fraction
    pub fn is_integer(&self) -> bool {
        match self.exponent.small() {
            Some(exponent) => exponent >= self.count() || self.is_zero(),
            // No text has so many digits
            None => self.is_zero() || !self.exponent.negative,
        }
    }

    /// The integer, where it lies within ±(2^53 − 1)
    pub fn safe_integer(&self) -> Option<i64> {
        if self.is_zero() {
            return Some(0);
        }
        let exponent @ 1..=16 = self.exponent.small()? else {
            return None;
        };
        let count = self.count();
        if count > exponent {
            return None;
        }
        let mut value = self
            .digits()
            .fold(0_u64, |sum, d| sum * 10 + u64::from(d - b'0'));
        for _ in count..exponent {
            value *= 10;
        }
        if value > SAFE {
            return None;
        }
        let value = value as i64;
        Some(if self.negative { -value } else { value })
    }

    /// The nearest binary64, where its shortest spelling is this very value
    pub fn exact_binary64(&self) -> Option<f64> {
        if self.is_zero() {
            return Some(0.0);
        }
        let exponent = self.exponent.small()?;
        // The shortest spelling of a binary64 has at most 17 digits
        if self.count() > 17 {
            return None;
        }
        let mut text = String::from(if self.negative { "-0." } else { "0." });
        text.extend(self.digits().map(char::from));
        let near: f64 = format!("{text}e{exponent}").parse().ok()?;
        // `{:e}` is the shortest spelling that reads back as the same binary64
        let carried = near.is_finite() && Number::read(&format!("{near:e}")) == *self;
        carried.then_some(near)
    }

    /// Whether a declaration may hold this literal: a safe integer, or a fraction that binary64 carries
    pub fn is_literal(&self) -> bool {
        if self.is_integer() {
            self.safe_integer().is_some()
        } else {
            self.exact_binary64().is_some()
        }
    }

    /// Plain decimal text of at most `limit` characters; the length is found before anything is written
    pub fn plain(&self, limit: usize) -> Option<String> {
        if self.is_zero() {
            return Some("0".to_owned());
        }
        let exponent = self.exponent.small()?;
        let count = self.count();
        let sign = i64::from(self.negative);
        let length = if exponent >= count {
            sign + exponent
        } else if exponent > 0 {
            sign + count + 1
        } else {
            sign + 2 + count - exponent
        };
        if length > limit as i64 {
            return None;
        }
        let mut text = String::with_capacity(length as usize);
        if self.negative {
            text.push('-');
        }
        if exponent <= 0 {
            text.push_str("0.");
            text.extend(std::iter::repeat_n('0', (-exponent) as usize));
        }
        for (n, digit) in self.digits().enumerate() {
            if n > 0 && n as i64 == exponent {
                text.push('.');
            }
            text.push(char::from(digit));
        }
        text.extend(std::iter::repeat_n('0', (exponent - count).max(0) as usize));
        Some(text)
    }
}

/// The exact order
impl Ord for Number<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |n: &Self| match (n.is_zero(), n.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        match (sign(self), sign(other)) {
            (0, 0) => return Ordering::Equal,
            (a, b) if a != b => return a.cmp(&b),
            _ => {}
        }
        let size =
            (self.exponent.cmp(&other.exponent)).then_with(|| self.digits().cmp(other.digits()));
        if self.negative { size.reverse() } else { size }
    }
}
impl PartialOrd for Number<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Number<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Number<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn n(text: &str) -> Number<'_> {
        Number::read(text)
    }

    #[test]
    fn values_are_equal_whatever_their_spelling() {
        for same in [
            &["1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "1e00"][..],
            &["0", "-0", "0.0", "0e999999999999999999999999", "-0.000"],
            &[
                "1e99999999999999999999",
                "10e99999999999999999998",
                "0.1e100000000000000000000",
            ],
            &["1e-99999999999999999999", "10e-100000000000000000000"],
            &[
                "1e1000000000000000000",
                "10e999999999999999999",
                "100e999999999999999998",
            ],
            &["1e-1000000000000000000", "0.1e-999999999999999999"],
            &["1e-18", "10e-19", "0.001e-15"],
            &[
                "1e100000000000000000",
                "10e99999999999999999",
                "0.1e100000000000000001",
            ],
            &["1e0000000000000000000000000000000000000000000001", "10"],
            &[
                "1e1000000000000000000000000000000000000",
                "10e999999999999999999999999999999999999",
            ],
        ] {
            for other in same {
                assert_eq!(n(same[0]), n(other), "{other}");
                assert_eq!(n(same[0]).cmp(&n(other)), Ordering::Equal, "{other}");
            }
        }
        // report F16
        assert_ne!(n("9007199254740993"), n("9007199254740992"));
    }

    #[test]
    fn a_list_in_order_compares_in_order() {
        let sorted = [
            "-1e99999999999999999999",
            "-1e400",
            "-2",
            "-1.5",
            "-1e-400",
            "-1e-99999999999999999999",
            "0",
            "1e-1000000000000000000000000000000000000000000000",
            "1e-100000000000000000000",
            "1e-99999999999999999999",
            "1.5e-99999999999999999999",
            "1e-99999999999999999998",
            "1e-400",
            "0.99",
            "1",
            "1.01",
            "9007199254740992",
            "9007199254740993",
            "1e400",
            "1e99999999999999999998",
            "1e99999999999999999999",
            "999e99999999999999999999",
            "1e100000000000000000002",
            "1e1000000000000000000000000000000000000000000000",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(n(a).cmp(&n(b)), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn literals_are_judged_by_value() {
        for yes in [
            "9007199254740991",
            "-9007199254740991",
            "90071992547409910e-1",
            "0.1",
            "1.5",
            "5e-324",
        ] {
            assert!(n(yes).is_literal(), "{yes}");
        }
        for no in [
            "9007199254740992",
            "1E400",
            "1e-400",
            "0.1000000000000000055511151231257827",
            "1e16",
            "2e-324",
        ] {
            assert!(!n(no).is_literal(), "{no}");
        }
    }

    #[test]
    fn plain_text_is_bounded_before_it_is_written() {
        assert_eq!(n("1.50e2").plain(10).as_deref(), Some("150"));
        assert_eq!(n("-1.5e-2").plain(10).as_deref(), Some("-0.015"));
        assert_eq!(n("123.456").plain(7).as_deref(), Some("123.456"));
        assert_eq!(n("123.456").plain(6), None);
        assert_eq!(n("1e3").plain(4).as_deref(), Some("1000"));
        assert_eq!(n("1e3").plain(3), None);
        for far in [
            "1e999999999999999999",
            "1e-999999999999999999",
            "1e99999999999999999999",
        ] {
            assert_eq!(n(far).plain(4096), None, "{far}");
        }
    }

    proptest! {
        #[test]
        fn orders_as_integers_do(a in any::<i64>(), b in any::<i64>(), e in 0..30_i32) {
            let (x, y) = (format!("{a}e{e}"), format!("{b}e{e}"));
            let (x, y) = (n(&x), n(&y));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(n(&a.to_string()).plain(100), Some(a.to_string()));
        }

        #[test]
        fn every_finite_binary64_is_carried(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite() && value.fract() != 0.0);
            prop_assert_eq!(n(&format!("{value:e}")).exact_binary64(), Some(value));
        }

        /// Digits moved across the point and zeros at either end change nothing; one unit more does
        #[test]
        fn a_spelling_changes_nothing(value in 1..i64::MAX, e in any::<i64>(), by in 0..40_i64, zeros in 0..5_usize) {
            let far = i128::from(e) * 1_000_000_007;
            let text = format!("{value}e{far}");
            let zeros = "0".repeat(zeros);
            let longer = format!("{value}{}.{zeros}e{}", "0".repeat(by as usize), far - i128::from(by));
            let small = format!("0.{}{value}{zeros}e{}", "0".repeat(by as usize), far + i128::from(by) + value.to_string().len() as i128);
            prop_assert_eq!(n(&text), n(&longer));
            prop_assert_eq!(n(&text), n(&small));
            let next = format!("{value}e{}", far + 1);
            prop_assert!(n(&small) < n(&next));
            let next = format!("{}e{far}", i128::from(value) + 1);
            prop_assert!(n(&longer) < n(&next));
        }

        #[test]
        fn never_panics(text in "\\PC{0,40}", bent in "[0-9eE.+-]{0,60}") {
            for text in [&text, &bent] {
                let (a, b) = (n(text), n("1"));
                let _ = (a.cmp(&b), b.cmp(&a), a == a, a.is_integer(), a.safe_integer());
                let _ = (a.exact_binary64(), a.is_literal(), a.plain(50));
            }
        }
    }
}
