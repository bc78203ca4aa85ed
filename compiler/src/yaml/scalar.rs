//! Plain scalars to JSON, by the YAML 1.2 core schema without what would lose its spelling. Never through a
//! number type: digits stay as they were written.

pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

pub(super) fn is_text(text: &str) -> bool {
    scalar(text, true).starts_with('"')
}

/// The YAML 1.2 core schema, without what would lose its spelling: numbers with leading zeros, in hex or
/// octal, infinities and `yes` or `no` are strings
pub(super) fn scalar(text: &str, plain: bool) -> String {
    if plain {
        if is_null(text) {
            return "null".to_owned();
        }
        match text {
            "true" | "True" | "TRUE" => return "true".to_owned(),
            "false" | "False" | "FALSE" => return "false".to_owned(),
            _ => {}
        }
        if is_json_number(text) {
            return text.to_owned();
        }
    }
    quote(text)
}

fn is_json_number(text: &str) -> bool {
    let number = text.strip_prefix('-').unwrap_or(text);
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (number, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let exponent = exponent.map(|e| e.strip_prefix(['+', '-']).unwrap_or(e));
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}
