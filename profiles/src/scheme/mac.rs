//! HMAC with SHA-1, SHA-256 or SHA-512. The keyed state is made once a secret and cloned a delivery.

use hmac::{Hmac, KeyInit, Mac};
use postern_contract::Secret;
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use subtle::{Choice, ConstantTimeEq};

use crate::profile::SchemeKind;

#[derive(Clone)]
pub(crate) enum Keyed {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha512(Box<Hmac<Sha512>>),
}

impl std::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyed(…)")
    }
}

fn finish<M: Mac>(mut mac: M, content: &[&[u8]]) -> Vec<u8> {
    content.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

impl Keyed {
    pub(crate) fn new(scheme: SchemeKind, key: &Secret) -> Option<Self> {
        let key = key.expose();
        match scheme {
            SchemeKind::HmacSha1 => Hmac::new_from_slice(key).ok().map(Self::Sha1),
            SchemeKind::HmacSha256 => Hmac::new_from_slice(key).ok().map(Self::Sha256),
            SchemeKind::HmacSha512 => {
                (Hmac::new_from_slice(key).ok()).map(|mac| Self::Sha512(Box::new(mac)))
            }
            SchemeKind::Ed25519 | SchemeKind::Token => None,
        }
    }

    pub(crate) fn sign(&self, content: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Sha1(mac) => finish(mac.clone(), content),
            Self::Sha256(mac) => finish(mac.clone(), content),
            Self::Sha512(mac) => finish((**mac).clone(), content),
        }
    }

    /// The content is hashed once, and every candidate compared in constant time
    pub(crate) fn any<'c>(
        &self,
        content: &[&[u8]],
        candidates: impl Iterator<Item = &'c [u8]>,
    ) -> Choice {
        let right = self.sign(content);
        candidates.fold(Choice::from(0), |held, candidate| {
            held | right.ct_eq(candidate)
        })
    }
}
