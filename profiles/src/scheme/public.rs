//! ECDSA on P-256 and RSA (PKCS #1 v1.5), by aws-lc. A key is of one family, and is parsed once for every
//! signature that it may hold, so that no delivery chooses what its key is used for.

use aws_lc_rs::digest;
use aws_lc_rs::rsa::PublicEncryptingKey;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_FIXED, ParsedPublicKey,
    RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA256,
    RsaPublicKeyComponents,
};

/// A signature by a public key
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signature {
    /// ECDSA with SHA-256, in DER
    EcdsaDer,
    /// The same as two numbers of 32 bytes (RFC 7518, section 3.4)
    EcdsaFixed,
    RsaSha1,
    RsaSha256,
}

/// A public key of one family
#[derive(Debug)]
pub(crate) enum PublicKey {
    P256 {
        der: ParsedPublicKey,
        fixed: ParsedPublicKey,
    },
    Rsa {
        sha1: ParsedPublicKey,
        sha256: ParsedPublicKey,
    },
}

impl PublicKey {
    /// From a SubjectPublicKeyInfo in DER
    pub(crate) fn from_spki(der: &[u8]) -> Option<Self> {
        Self::p256(der).or_else(|| {
            // Parsing alone takes any length, and then nothing would ever verify
            PublicEncryptingKey::from_der(der).ok()?;
            Some(Self::Rsa {
                sha1: ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, der)
                    .ok()?,
                sha256: ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, der).ok()?,
            })
        })
    }

    /// An RSA key from a SubjectPublicKeyInfo in DER, of 1,024 bits or more
    pub(crate) fn short_rsa(der: &[u8]) -> Option<Self> {
        Some(Self::Rsa {
            sha1: ParsedPublicKey::new(&RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, der).ok()?,
            sha256: ParsedPublicKey::new(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, der)
                .ok()?,
        })
    }

    /// From a point, or a SubjectPublicKeyInfo with one
    pub(crate) fn p256(point: &[u8]) -> Option<Self> {
        Some(Self::P256 {
            der: ParsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point).ok()?,
            fixed: ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).ok()?,
        })
    }

    /// From modulus and exponent
    pub(crate) fn rsa(n: &[u8], e: &[u8]) -> Option<Self> {
        // 2,048 bits, and no zero before them (RFC 7518, section 6.3.1.1)
        if n.len() < 256 || n.first().is_none_or(|byte| *byte < 0x80) && n.len() == 256 {
            return None;
        }
        let key = RsaPublicKeyComponents { n, e };
        Some(Self::Rsa {
            sha1: key
                .to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY)
                .ok()?,
            sha256: key.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256).ok()?,
        })
    }

    /// Whether keys of this family hold such signatures
    pub(crate) fn fits(&self, signature: Signature) -> bool {
        let ecdsa = matches!(signature, Signature::EcdsaDer | Signature::EcdsaFixed);
        ecdsa == matches!(self, Self::P256 { .. })
    }

    /// Whether `signature` is right for `content`
    pub(crate) fn verify(&self, kind: Signature, content: &[&[u8]], signature: &[u8]) -> bool {
        let (key, hash) = match (self, kind) {
            (Self::P256 { der, .. }, Signature::EcdsaDer) => (der, &digest::SHA256),
            (Self::P256 { fixed, .. }, Signature::EcdsaFixed) => (fixed, &digest::SHA256),
            (Self::Rsa { sha1, .. }, Signature::RsaSha1) => {
                (sha1, &digest::SHA1_FOR_LEGACY_USE_ONLY)
            }
            (Self::Rsa { sha256, .. }, Signature::RsaSha256) => (sha256, &digest::SHA256),
            _ => return false,
        };
        let mut hash = digest::Context::new(hash);
        content.iter().for_each(|part| hash.update(part));
        key.verify_digest_sig(&hash.finish(), signature).is_ok()
    }
}
