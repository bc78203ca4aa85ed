//! What is held of a profile before anything is verified by it, past what its types say: above all that it
//! does not accept what nobody signed.

use super::{
    Auth, Confidence, Declared, Handshake, HandshakeAuth, Integrity, Parser, Part, Place,
    SchemeKind, TimestampSource,
};

/// Why the profile must not be used, if so
pub(super) fn check(declared: &Declared) -> Result<(), String> {
    if declared.auth.is_empty() {
        return Err("`auth` is empty: everything would be accepted".to_owned());
    }
    if (declared.confidence == Confidence::Unconfirmed) == declared.check.is_empty() {
        return Err("`check` goes with `confidence = \"unconfirmed\"`".to_owned());
    }
    if declared
        .batch
        .as_ref()
        .is_some_and(|batch| batch.at.is_empty())
    {
        return Err("a batch has a place `at` which its array stands".to_owned());
    }
    for auth in &declared.auth {
        alternative(declared, auth)?;
    }
    let covers = |integrity: Integrity| {
        (declared.auth.iter()).any(|auth| coverage(declared, auth) == integrity)
    };
    let least = if covers(Integrity::None) {
        Integrity::None
    } else if covers(Integrity::Partial) {
        Integrity::Partial
    } else {
        Integrity::Full
    };
    if declared.integrity != least {
        return Err(format!(
            "`integrity` is `{}` by what is signed",
            least.as_str()
        ));
    }
    for handshake in &declared.handshake {
        answer(handshake)?;
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

/// How much of a delivery one alternative covers: with the groups that must hold beside it
fn coverage(declared: &Declared, auth: &Auth) -> Integrity {
    let all = (declared.auth.iter()).filter(|other| other.group != auth.group);
    let mut best = own_coverage(auth);
    for other in all {
        if own_coverage(other) == Integrity::Full {
            best = Integrity::Full;
        }
    }
    best
}

fn own_coverage(auth: &Auth) -> Integrity {
    let hashed = auth
        .jwt
        .as_ref()
        .is_some_and(|rules| rules.body_hash.is_some());
    let whole = auth.content.iter().any(Part::is_whole);
    if whole || hashed || auth.body_sha256.is_some() {
        Integrity::Full
    } else if auth.content.iter().any(Part::is_of_body) {
        Integrity::Partial
    } else {
        Integrity::None
    }
}

fn alternative(declared: &Declared, auth: &Auth) -> Result<(), String> {
    let fault = |why: &str| Err(why.to_owned());
    let has = |part: &Part| auth.content.contains(part);
    let places = [auth.header.is_some(), auth.from.is_some()];
    if places.iter().filter(|there| **there).count() != 1 {
        return fault("a signature stands in a `header`, or `from` another place");
    }
    if auth.from.is_some() && (auth.header_param.is_some() || !auth.more_headers.is_empty()) {
        return fault("`header-param` and `more-headers` go with `header`");
    }
    if auth.each.is_some() && !matches!(auth.from, Some(Place::Json(_))) {
        return fault("`each` goes with a place in the body");
    }
    if auth.each.is_some() && auth.scheme.is_mac() && own_coverage(auth) == Integrity::Full {
        return fault("`each` goes with parts of the body");
    }
    if auth.certificate.is_some() && !auth.scheme.is_public() {
        return fault("`certificate` goes with a public key");
    }
    if let Some(rule) = &auth.fetch {
        if !auth.is_public() {
            return fault("only public keys are fetched");
        }
        if auth.scheme == SchemeKind::Ed25519 {
            return fault("no key of Ed25519 is fetched");
        }
        if auth.certificate.is_some() || rule.url.is_empty() {
            return fault("`fetch` has a `url`, and goes without `certificate`");
        }
        // A claim is no claim before the key is known
        if rule.is_by_id() && auth.key_id.is_none() && auth.jwt.is_none() {
            return fault("`{kid}` is the delivery's `key-id`, or a token's");
        }
    }
    let is_jwt = auth.scheme == SchemeKind::Jwt;
    if is_jwt != auth.jwt.is_some() {
        return fault("`jwt` goes with the scheme `jwt`");
    }
    if let Some(rules) = &auth.jwt {
        let public = rules
            .algorithms
            .iter()
            .filter(|alg| alg.is_public())
            .count();
        if public != 0 && public != rules.algorithms.len() || rules.algorithms.is_empty() {
            return fault("`algorithms` are of secrets, or of public keys, and some");
        }
    }
    let bare = auth.scheme.is_token() || is_jwt;
    if bare != auth.content.is_empty() {
        return fault("`content` goes with every scheme but tokens");
    }
    if bare == auth.encoding.is_some() {
        return fault("`encoding` goes with every scheme but tokens");
    }
    // A signature over nothing of the delivery could be put before any other
    if !bare && !auth.content.iter().any(Part::is_of_request) && auth.body_sha256.is_none() {
        return fault("the content holds nothing of the delivery");
    }
    if has(&Part::Id) != auth.id_header.is_some() {
        return fault("`id-header` goes with `{id}` in the content");
    }
    let lists = [Part::HeaderNames, Part::HeaderValues, Part::HeaderPairs];
    if lists.iter().any(has) != auth.signed_headers.is_some() {
        return fault("`signed-headers` goes with a list of headers in the content");
    }
    if let Some(rule) = &auth.signed_headers
        && rule.header.is_some() == rule.pair.is_some()
    {
        return fault("`signed-headers` stand in a `header` or in a `pair`");
    }
    let formed = [
        Part::FormSorted,
        Part::Canonical(super::Canonical::PhpSerialize),
    ];
    if formed.iter().any(has) && declared.form.is_none() {
        return fault("fields of a form need a `form`");
    }
    match &auth.timestamp {
        None if has(&Part::Timestamp) => fault("`{timestamp}` needs a `timestamp`"),
        Some(rule) => {
            let signed = match &rule.from {
                TimestampSource::Json(at) => {
                    own_coverage(auth) == Integrity::Full || auth.signs_text(at)
                }
                TimestampSource::Header(name) => {
                    let listed = auth.signed_headers.as_ref().is_some_and(|rule| {
                        let mut required = rule.required.iter();
                        required.any(|known| known.eq_ignore_ascii_case(name))
                    });
                    has(&Part::Timestamp) || has(&Part::Header(name.clone())) || listed
                }
                _ => has(&Part::Timestamp),
            };
            if !signed {
                return fault("a timestamp that is not signed proves nothing");
            }
            if rule.past_seconds == 0 || rule.future_seconds == 0 {
                return fault("a tolerance of 0 accepts nothing");
            }
            if (rule.from == TimestampSource::Pair) != auth.parser.has_timestamp() {
                return fault("`pair` goes with a parser that has a timestamp");
            }
            Ok(())
        }
        None => match auth.parser {
            Parser::Sets { .. } | Parser::Positional { .. } => {
                fault("the parser has a timestamp, and there is no `timestamp`")
            }
            _ => Ok(()),
        },
    }
}

fn answer(handshake: &Handshake) -> Result<(), String> {
    let fault = |why: &str| Err(why.to_owned());
    let told = [
        handshake.at.is_some(),
        handshake.header.is_some(),
        handshake.query.is_some(),
    ];
    let told = told.iter().filter(|there| **there).count();
    if told > 1 || (told == 0 && handshake.method == "POST") {
        return fault("a handshake is told by one of `at`, `header` and `query`");
    }
    if handshake.method != "POST" && handshake.verify == HandshakeAuth::Signed {
        return fault("what is signed is posted");
    }
    if !["POST", "GET", "HEAD", "OPTIONS"].contains(&handshake.method.as_str()) {
        return fault("a handshake comes by POST, GET, HEAD or OPTIONS");
    }
    if handshake.empty && (handshake.at.is_none() || handshake.equals.is_some()) {
        return fault("`empty` goes with `at`, and without `equals`");
    }
    if (handshake.verify == HandshakeAuth::Token) != handshake.token.is_some() {
        return fault("`token` goes with `verify = \"token\"`");
    }
    if handshake.learn.is_some() && handshake.verify != HandshakeAuth::Setup {
        return fault("a secret is learned in setup alone");
    }
    if handshake.visit.is_some() && handshake.verify != HandshakeAuth::Signed {
        return fault("only what is signed has an address visited");
    }
    if !matches!(
        handshake.equals,
        None | Some(toml::Value::String(_) | toml::Value::Integer(_))
    ) {
        return fault("`equals` is a text or a whole number");
    }
    let reply = &handshake.reply;
    if (reply.echo.is_some() || !reply.text.is_empty()) && reply.content_type.is_some() {
        return fault("what is echoed is plain text");
    }
    let bodies = [
        reply.body.is_some(),
        reply.echo.is_some(),
        !reply.text.is_empty(),
        !reply.json.is_empty(),
    ];
    if bodies.iter().filter(|there| **there).count() > 1 {
        return fault("a reply has one of `body`, `echo`, `text` and `json`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::profile::Profile;

    const GOOD: &str = r#"
title = "T"
docs = "https://example.com"
confidence = "sdk"
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
