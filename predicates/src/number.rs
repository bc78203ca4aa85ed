//! Exact decimal numbers, compared by sign, magnitude and digits, never expanded and never through a
//! binary float. The one use of binary64 is to ask whether it carries a value.

use std::cmp::Ordering;

/// The largest integer that binary64 and RFC 8785 carry in both directions: 2^53 − 1
const SAFE: u64 = (1 << 53) - 1;
/// Where exponents stop being small
const BIG: u64 = 1_000_000_000_000_000_000;

/// A JSON number: `0.<digits> * 10^magnitude`, digits without outer zeros; zero has none
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    negative: bool,
    digits: Box<[u8]>,
    magnitude: Exponent,
}

/// An exponent of any size. Past the range of `i64` only sign and decimal digits are kept; the carry of a
/// document's own digits (fewer than 2^33) is added exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exponent {
    Small(i64),
    /// Digits without leading zeros, of a value of at least 10^18 in size
    Huge {
        negative: bool,
        digits: Box<[u8]>,
    },
}

impl Ord for Exponent {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Small(a), Self::Small(b)) => a.cmp(b),
            (Self::Small(_), Self::Huge { negative, .. }) => sign_order(*negative).reverse(),
            (Self::Huge { negative, .. }, Self::Small(_)) => sign_order(*negative),
            (
                Self::Huge {
                    negative: a,
                    digits: x,
                },
                Self::Huge {
                    negative: b,
                    digits: y,
                },
            ) => match (a, b) {
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) => long(x, y),
                (true, true) => long(y, x),
            },
        }
    }
}
impl PartialOrd for Exponent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Exponent {
    /// One form a value: small below 10^18, so that equal exponents are equal here too
    fn of(value: i128) -> Self {
        match i64::try_from(value) {
            Ok(small) if small.unsigned_abs() < BIG => Self::Small(small),
            _ => Self::Huge {
                negative: value < 0,
                digits: value.unsigned_abs().to_string().into_bytes().into(),
            },
        }
    }

    /// `text` is `[+-]?[0-9]+`
    fn read(text: &[u8], shift: i64) -> Self {
        let (negative, digits) = match text.split_first() {
            Some((b'-', rest)) => (true, rest),
            Some((b'+', rest)) => (false, rest),
            _ => (false, text),
        };
        let zeros = digits.iter().take_while(|d| **d == b'0').count();
        let digits = digits.get(zeros..).unwrap_or_default();
        if digits.len() <= 30 {
            let value = digits
                .iter()
                .fold(0_i128, |sum, d| sum * 10 + i128::from(d - b'0'));
            return Self::of(if negative { -value } else { value } + i128::from(shift));
        }
        let mut digits = digits.to_vec();
        // A shift away from zero makes the digits larger, one towards zero smaller
        add(&mut digits, if negative { -shift } else { shift });
        Self::Huge {
            negative,
            digits: digits.into(),
        }
    }
}

/// A huge exponent beside any small one
fn sign_order(negative: bool) -> Ordering {
    if negative {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

fn long(a: &[u8], b: &[u8]) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Adds `shift`, below 2^33 in size, to more than 30 decimal digits
fn add(digits: &mut Vec<u8>, shift: i64) {
    let mut carry = shift;
    for digit in digits.iter_mut().rev() {
        if carry == 0 {
            return;
        }
        let sum = i64::from(*digit - b'0') + carry;
        *digit = b'0' + u8::try_from(sum.rem_euclid(10)).unwrap_or(0);
        carry = sum.div_euclid(10);
    }
    while carry > 0 {
        digits.insert(0, b'0' + u8::try_from(carry % 10).unwrap_or(0));
        carry /= 10;
    }
    let zeros = digits.iter().take_while(|d| **d == b'0').count();
    digits.drain(..zeros);
}

impl Number {
    /// Reads the text of a JSON number, as [`postern_contract::Value::number_text`] gives it
    pub fn read(text: &str) -> Self {
        let bytes = text.as_bytes();
        let (negative, bytes) = match bytes.split_first() {
            Some((b'-', rest)) => (true, rest),
            _ => (false, bytes),
        };
        let e = bytes.iter().position(|b| matches!(b, b'e' | b'E'));
        let (mantissa, exponent) = match e {
            Some(e) => (
                bytes.get(..e).unwrap_or_default(),
                bytes.get(e + 1..).unwrap_or_default(),
            ),
            None => (bytes, &b"0"[..]),
        };
        let dot = mantissa.iter().position(|b| *b == b'.');
        let whole = dot.unwrap_or(mantissa.len());
        let digits: Vec<u8> = mantissa
            .iter()
            .copied()
            .filter(u8::is_ascii_digit)
            .collect();
        let start = digits.iter().take_while(|d| **d == b'0').count();
        let end = digits.len() - digits.iter().rev().take_while(|d| **d == b'0').count();
        let Some(kept) = digits.get(start..end).filter(|kept| !kept.is_empty()) else {
            return Self {
                negative: false,
                digits: [].into(),
                magnitude: Exponent::Small(0),
            };
        };
        // A body is below 4 GiB: these fit
        let shift = whole as i64 - start as i64;
        Self {
            negative,
            digits: kept.into(),
            magnitude: Exponent::read(exponent, shift),
        }
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether the value has no fraction
    pub fn is_integer(&self) -> bool {
        match &self.magnitude {
            Exponent::Small(magnitude) => *magnitude >= self.digits.len() as i64 || self.is_zero(),
            Exponent::Huge { negative, .. } => !negative,
        }
    }

    /// The integer, where it lies within ±(2^53 − 1)
    pub fn safe_integer(&self) -> Option<i64> {
        if self.is_zero() {
            return Some(0);
        }
        let Exponent::Small(magnitude @ 1..=16) = self.magnitude else {
            return None;
        };
        let count = self.digits.len() as i64;
        if count > magnitude {
            return None;
        }
        let mut value = self
            .digits
            .iter()
            .fold(0_u64, |sum, d| sum * 10 + u64::from(d - b'0'));
        for _ in count..magnitude {
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
        let Exponent::Small(magnitude) = self.magnitude else {
            return None;
        };
        // The shortest spelling of a binary64 has at most 17 digits
        if self.digits.len() > 17 {
            return None;
        }
        let digits = std::str::from_utf8(&self.digits).ok()?;
        let sign = if self.negative { "-" } else { "" };
        let near: f64 = format!("{sign}0.{digits}e{magnitude}").parse().ok()?;
        // `{:e}` is the shortest spelling that reads back as the same binary64
        (near.is_finite() && Self::read(&format!("{near:e}")) == *self).then_some(near)
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
        let Exponent::Small(magnitude) = self.magnitude else {
            return None;
        };
        let count = self.digits.len() as i64;
        let sign = i64::from(self.negative);
        let length = if magnitude >= count {
            sign.checked_add(magnitude)?
        } else if magnitude > 0 {
            sign + count + 1
        } else {
            magnitude.checked_neg()?.checked_add(sign + 2 + count)?
        };
        if length > limit as i64 {
            return None;
        }
        let digits = std::str::from_utf8(&self.digits).ok()?;
        let mut text = String::with_capacity(length as usize);
        if self.negative {
            text.push('-');
        }
        if magnitude <= 0 {
            text.push_str("0.");
            text.extend(std::iter::repeat_n('0', (-magnitude) as usize));
            text.push_str(digits);
        } else if let Some((whole, fraction)) = digits.split_at_checked(magnitude as usize)
            && !fraction.is_empty()
        {
            text.push_str(whole);
            text.push('.');
            text.push_str(fraction);
        } else {
            text.push_str(digits);
            text.extend(std::iter::repeat_n('0', (magnitude - count) as usize));
        }
        Some(text)
    }
}

/// The exact order
impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |n: &Self| match (n.is_zero(), n.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        match sign(self).cmp(&sign(other)) {
            Ordering::Equal => {}
            order => return order,
        }
        let size = self
            .magnitude
            .cmp(&other.magnitude)
            .then_with(|| self.digits.cmp(&other.digits));
        if self.negative { size.reverse() } else { size }
    }
}
impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn n(text: &str) -> Number {
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
            "1e-99999999999999999999",
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
            let (x, y) = (n(&format!("{a}e{e}")), n(&format!("{b}e{e}")));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(n(&a.to_string()).plain(100), Some(a.to_string()));
        }

        #[test]
        fn every_finite_binary64_is_carried(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite() && value.fract() != 0.0);
            prop_assert_eq!(n(&format!("{value:e}")).exact_binary64(), Some(value));
        }
    }
}
