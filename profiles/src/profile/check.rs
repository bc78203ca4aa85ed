//! What is held of a profile before anything is verified by it, past what its types say: above all that it
//! does not accept what nobody signed.

use super::{Declared, Handshake, Integrity, Parser, Part, SchemeKind, TimestampSource};

/// Why the profile must not be used, if so
pub(super) fn check(declared: &Declared) -> Result<(), String> {
    if declared.auth.is_empty() {
        return Err("`auth` is empty: everything would be accepted".to_owned());
    }
    for auth in &declared.auth {
        let has = |part: &Part| auth.content.contains(part);
        let token = auth.scheme == SchemeKind::Token;
        if token != auth.content.is_empty() {
            return Err("`content` goes with every scheme but `token`".to_owned());
        }
        if token == auth.encoding.is_some() {
            return Err("`encoding` goes with every scheme but `token`".to_owned());
        }
        let whole = has(&Part::Body) || has(&Part::Evidence);
        if (declared.integrity == Integrity::Full) != whole {
            return Err("`integrity` is `full` where the content holds the body".to_owned());
        }
        if has(&Part::Id) != auth.id_header.is_some() {
            return Err("`id-header` goes with `{id}` in the content".to_owned());
        }
        match &auth.timestamp {
            None if has(&Part::Timestamp) => {
                return Err("`{timestamp}` needs a `timestamp`".to_owned());
            }
            Some(rule) => {
                let from_body = matches!(rule.from, TimestampSource::Json(_));
                if !from_body && !has(&Part::Timestamp) {
                    return Err("a timestamp that is not signed proves nothing".to_owned());
                }
                if rule.past_seconds == 0 || rule.future_seconds == 0 {
                    return Err("a tolerance of 0 accepts nothing".to_owned());
                }
                let pairs = matches!(auth.parser, Parser::Pairs { .. });
                if (rule.from == TimestampSource::Pair) != pairs {
                    return Err("`pair` goes with the parser `pairs`".to_owned());
                }
            }
            None => {}
        }
    }
    for handshake in &declared.handshake {
        if handshake.at.is_some() == handshake.header.is_some() {
            return Err("a handshake is told by one of `at` and `header`".to_owned());
        }
        if !matches!(
            handshake.equals,
            None | Some(toml::Value::String(_) | toml::Value::Integer(_))
        ) {
            return Err("`equals` is a text or a whole number".to_owned());
        }
    }
    let typed = |h: &Handshake| h.reply.echo.is_some() && h.reply.content_type.is_some();
    if declared.handshake.iter().any(typed) {
        return Err("what is echoed is plain text".to_owned());
    }
    let replies = declared.handshake.iter().map(|h| h.reply.status);
    let accepted = declared.ack.accepted.iter().map(|r| r.status);
    if replies.chain(accepted).any(|s| !(200..300).contains(&s)) {
        return Err("an acceptance or handshake is answered with a 2xx".to_owned());
    }
    if let Some(refused) = &declared.ack.refused
        && !(400..500).contains(&refused.status)
    {
        return Err("a refusal is answered with a 4xx".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::profile::Profile;

    const GOOD: &str = r#"
title = "T"
docs = "https://example.com"
integrity = "full"
event = { first = [{ json = "/type" }] }
[[auth]]
scheme = "hmac-sha256"
header = "X-Sig"
encoding = "hex"
content = ["{body}"]
"#;

    #[test]
    fn a_profile_that_would_accept_too_much_does_not_load() {
        Profile::read("t", GOOD).unwrap();
        for (from, to) in [
            ("content = [\"{body}\"]", "content = [\"x\"]"),
            ("content = [\"{body}\"]", "content = []"),
            (
                "content = [\"{body}\"]",
                "content = [\"{timestamp}\", \"{body}\"]",
            ),
            ("content = [\"{body}\"]", "content = [\"{id}\", \"{body}\"]"),
            ("integrity = \"full\"", "integrity = \"none\""),
            ("encoding = \"hex\"\n", ""),
            ("scheme = \"hmac-sha256\"", "scheme = \"noop\""),
            ("header", "headers"),
            (
                "integrity = \"full\"",
                "integrity = \"full\"\nack = { refused = { status = 200 } }",
            ),
            (
                "encoding = \"hex\"",
                "encoding = \"hex\"\ntimestamp = { from = { header = \"X-T\" }, unit = \"seconds\", past-seconds = 300, future-seconds = 300 }",
            ),
        ] {
            let bad = GOOD.replace(from, to);
            assert_ne!(bad, GOOD);
            assert!(Profile::read("t", &bad).is_err(), "{bad}");
        }
    }
}
