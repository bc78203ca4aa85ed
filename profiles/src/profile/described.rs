//! What a profile covers and does not, in words: for the catalogue's page and for reviewers, made from the
//! same data that deliveries are verified by.

use std::collections::BTreeSet;

use super::{Auth, HandshakeAuth, Part, Profile, SchemeKind, TimestampSource};
use crate::source::Source;

impl Profile {
    /// How it is authenticated: a method a way
    pub fn methods(&self) -> Vec<&'static str> {
        let mut known = BTreeSet::new();
        let methods = self.declared.auth.iter().map(method);
        methods.filter(|method| known.insert(*method)).collect()
    }

    /// What the authentication covers, of any of its ways
    pub fn covered(&self) -> Vec<String> {
        let mut covered = BTreeSet::new();
        for auth in &self.declared.auth {
            covered.extend(auth.content.iter().filter_map(part));
            if auth.body_sha256.is_some() {
                covered.insert("the body".to_owned());
            }
            if let Some(rule) = &auth.timestamp {
                covered.insert(match &rule.from {
                    TimestampSource::Json(at) => format!("the timestamp `{at}`"),
                    _ => "the timestamp".to_owned(),
                });
            }
            if let Some(rules) = &auth.jwt {
                covered.extend(rules.covered().into_iter().map(str::to_owned));
            }
        }
        covered.into_iter().collect()
    }

    /// What it reads and does not cover: whoever passes a delivery on can change that
    pub fn uncovered(&self) -> Vec<String> {
        let mut uncovered = Vec::new();
        match self.integrity() {
            super::Integrity::Full => {}
            super::Integrity::Partial => uncovered.push("the rest of the body".to_owned()),
            super::Integrity::None => uncovered.push("the body".to_owned()),
        }
        let mut add = |source: &Source, what: &str| {
            if let Source::Header(name) | Source::Query(name) = source
                && !self.signs(source)
            {
                let text = format!("`{name}`, {what}");
                if !uncovered.contains(&text) {
                    uncovered.push(text);
                }
            }
        };
        (self.declared.event.sources()).for_each(|source| add(source, "the event's name"));
        let delivery = self.declared.delivery.iter();
        (delivery.flat_map(|d| d.sources())).for_each(|source| add(source, "the delivery's id"));
        let mut tokens = self.declared.auth.iter().filter_map(|a| a.jwt.as_ref());
        let dated = tokens.any(|rules| rules.max_age_seconds.is_some());
        if self.tolerance().is_none() && !dated {
            uncovered.push("the time of sending".to_owned());
        }
        uncovered
    }

    /// Where the items of a delivery stand that carries several
    pub fn batch_places(&self) -> Vec<String> {
        let batch = self.declared.batch.iter();
        batch
            .flat_map(|batch| batch.at.iter().map(ToString::to_string))
            .collect()
    }

    /// Handshakes: what tells each, and what it must prove
    pub fn handshakes(&self) -> Vec<String> {
        let told = self.declared.handshake.iter().map(|handshake| {
            let place = match (&handshake.at, &handshake.header, &handshake.query) {
                (Some(at), _, _) => format!("`{at}`"),
                (None, Some(name), _) => format!("the header `{name}`"),
                (None, None, Some(name)) => format!("the query's `{name}`"),
                (None, None, None) => "the method".to_owned(),
            };
            let proof = match handshake.verify {
                HandshakeAuth::Signed => "signed",
                HandshakeAuth::Setup => "unsigned, in setup alone",
                HandshakeAuth::Token => "with the parameter `verify_token`",
                HandshakeAuth::None => "unsigned",
            };
            format!("{} by {place}, {proof}", handshake.method)
        });
        told.collect()
    }
}

fn method(auth: &Auth) -> &'static str {
    match auth.scheme {
        SchemeKind::HmacSha1 => "HMAC-SHA1",
        SchemeKind::HmacSha256 => "HMAC-SHA256",
        SchemeKind::HmacSha512 => "HMAC-SHA512",
        SchemeKind::Sha256Prefixed => "SHA-256 of secret and content",
        SchemeKind::Ed25519 => "Ed25519",
        SchemeKind::EcdsaP256Sha256 => "ECDSA P-256",
        SchemeKind::RsaSha1 => "RSA with SHA-1",
        SchemeKind::RsaSha256 => "RSA with SHA-256",
        SchemeKind::Jwt => "JSON Web Token",
        SchemeKind::Token => "token",
        SchemeKind::Basic => "HTTP Basic",
    }
}

/// A part of the signed content; nothing where it is none of the delivery
fn part(part: &Part) -> Option<String> {
    Some(match part {
        part if part.is_whole() => "the body".to_owned(),
        Part::Timestamp => "the timestamp".to_owned(),
        Part::Id => "the delivery's id".to_owned(),
        Part::Method => "the method".to_owned(),
        part if part.is_of_url() => "the URL".to_owned(),
        Part::Header(name) => format!("`{name}`"),
        Part::HeaderNames | Part::HeaderValues | Part::HeaderPairs => "listed headers".to_owned(),
        Part::Json(at) | Part::OptionalJson(at) | Part::Line(at) | Part::OptionalLine(at) => {
            format!("`{at}`")
        }
        Part::Crc32 => "a CRC-32 of the body".to_owned(),
        _ => return None,
    })
}
