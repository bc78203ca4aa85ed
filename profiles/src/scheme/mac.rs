//! HMAC with SHA-1 or SHA-2. The keyed state is made once a secret and cloned a delivery.

use hmac::{Hmac, KeyInit, Mac};
use postern_contract::Secret;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use subtle::{Choice, ConstantTimeEq};

/// The hash of an HMAC
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

#[derive(Clone)]
pub(crate) enum Keyed {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha384(Box<Hmac<Sha384>>),
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
    pub(crate) fn new(hash: Hash, key: &Secret) -> Option<Self> {
        let key = key.expose();
        match hash {
            Hash::Sha1 => Hmac::new_from_slice(key).ok().map(Self::Sha1),
            Hash::Sha256 => Hmac::new_from_slice(key).ok().map(Self::Sha256),
            Hash::Sha384 => (Hmac::new_from_slice(key).ok()).map(|m| Self::Sha384(Box::new(m))),
            Hash::Sha512 => (Hmac::new_from_slice(key).ok()).map(|m| Self::Sha512(Box::new(m))),
        }
    }

    pub(crate) fn sign(&self, content: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Sha1(mac) => finish(mac.clone(), content),
            Self::Sha256(mac) => finish(mac.clone(), content),
            Self::Sha384(mac) => finish((**mac).clone(), content),
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
