//! Public keys as text: JSON Web Keys and sets of them (RFC 7517), SubjectPublicKeyInfo, and certificates.

use postern_contract::{Document, Value};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};

use crate::encoding::Encoding;
use crate::jwt::Alg;
use crate::scheme::PublicKey;

/// The most keys of a set, and the most bytes of its text
const MAX_KEYS: usize = 64;
/// The most bytes of a set's text
pub(crate) const MAX_BYTES: usize = 128 << 10;

/// Public keys of tokens, by id
#[derive(Debug)]
pub(crate) struct JwkSet(Vec<Jwk>);

/// One of them
#[derive(Debug)]
pub(crate) struct Jwk {
    pub(crate) kid: Option<String>,
    /// The one algorithm that it is for, where it says so
    pub(crate) alg: Option<Alg>,
    pub(crate) key: PublicKey,
    /// When its issuer took it back, in Unix seconds
    pub(crate) expired_at: Option<i64>,
}

impl JwkSet {
    /// A set, or a single key. Keys of other kinds are passed over; a set without any is none.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let document = Document::parse(text.to_vec().into()).ok()?;
        if document.repeated_key().is_some() {
            return None;
        }
        let root = document.root();
        let keys: Vec<Jwk> = match root.member("keys") {
            Some(keys) if keys.len() > MAX_KEYS => return None,
            Some(keys) => keys.items()?.filter_map(Jwk::read).collect(),
            None => Jwk::read(root).into_iter().collect(),
        };
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// A set of one key without an id
    pub(crate) fn of(key: PublicKey) -> Self {
        Self(vec![Jwk {
            kid: None,
            alg: None,
            key,
            expired_at: None,
        }])
    }

    /// The keys that a token may mean: of its id, where token and key have one
    pub(crate) fn named<'k>(&'k self, kid: Option<&'k str>) -> impl Iterator<Item = &'k Jwk> {
        self.0
            .iter()
            .filter(move |jwk| jwk.kid.is_none() || jwk.kid.as_deref() == kid)
    }
}

impl Jwk {
    fn read(value: Value<'_>) -> Option<Self> {
        let text = |name: &str| value.member(name).and_then(Value::as_str);
        let bytes = |name: &str| Encoding::Base64urlUnpadded.decode(text(name)?.as_bytes());
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let alg = match text("alg") {
            Some(alg) => Some(Alg::named(alg)?),
            None => None,
        };
        let key = match text("kty")? {
            "EC" if text("crv") == Some("P-256") => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                if x.len() != 32 || y.len() != 32 {
                    return None;
                }
                PublicKey::p256(&[&[4][..], &x, &y].concat())?
            }
            "RSA" => PublicKey::rsa(&bytes("n")?, &bytes("e")?)?,
            _ => return None,
        };
        let expired_at = (value.member("expired_at").and_then(Value::number_text))
            .and_then(|digits| digits.parse().ok());
        Some(Self {
            kid: text("kid").map(str::to_owned),
            alg,
            key,
            expired_at,
        })
    }
}

/// One public key: PEM (of a key or a certificate), a JSON Web Key, or DER in Base64
pub(crate) fn public_key(text: &str) -> Option<PublicKey> {
    let text = text.trim();
    if text.starts_with("-----BEGIN CERTIFICATE-----") {
        let der = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
        let certificate = webpki::EndEntityCert::try_from(&der).ok()?;
        PublicKey::from_spki(&certificate.subject_public_key_info())
    } else if text.starts_with("-----BEGIN") {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes()).ok()?;
        PublicKey::from_spki(&der)
    } else if text.starts_with('{') {
        let mut keys = JwkSet::parse(text.as_bytes())?.0;
        let only = keys.pop()?;
        keys.is_empty().then_some(only.key)
    } else {
        PublicKey::from_spki(&Encoding::Base64.decode(text.as_bytes())?)
    }
}

/// An RSA key of 1,024 bits or more, in PEM or as DER in Base64
pub(crate) fn short_key(text: &str) -> Option<PublicKey> {
    let text = text.trim();
    let der = match text.starts_with("-----BEGIN") {
        true => SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes())
            .ok()?
            .to_vec(),
        false => Encoding::Base64.decode(text.as_bytes())?,
    };
    PublicKey::short_rsa(&der)
}

/// The public keys of tokens: a set, or one key in any spelling
pub(crate) fn token_keys(text: &str) -> Option<JwkSet> {
    if text.trim_start().starts_with('{') {
        JwkSet::parse(text.as_bytes())
    } else {
        public_key(text).map(JwkSet::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // openssl genrsa 1024, its public half
    const SHORT: &str = "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDQKI2DR9gPSFEr4h2sFW9ANy0SQkIpbIpb2bqh5KGzVYmFsm/q9GQCXyGZj2+EXGD5WJ2qw+EdmhTwNb9ftV/ZM+Kek650DQtyvEQl3WcILb3HrshUqDDqFk694aJQC7G53VsShPNOVskwPSJU8ipC5AydAhtnw9NkR3b1Z+xyhQIDAQAB";

    #[test]
    fn a_key_that_could_never_verify_is_no_key() {
        assert!(public_key(SHORT).is_none());
        assert!(short_key(SHORT).is_some());
        let n = "0CiNg0fYD0hRK-IdrBVvQDctEkJCKWyKW9m6oeShs1WJhbJv6vRkAl8hmY9vhFxg-Vidqs";
        let jwk = format!(r#"{{"kty":"RSA","n":"{n}","e":"AQAB"}}"#);
        assert!(public_key(&jwk).is_none());
    }
}
