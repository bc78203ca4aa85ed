//! The private halves, for playing a provider: key pairs are made, and content is signed with them. Nothing
//! here takes part in verifying.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, KeyPair as _, RSA_PKCS1_SHA256,
};
use postern_contract::Secret;
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;

use super::public::Signature;
use crate::encoding::Encoding;

/// A private key, and the public one as an operator binds it
pub(crate) struct KeyPair {
    pub(crate) private: Secret,
    pub(crate) public: String,
}

/// Signs with a private key in PEM (PKCS #8). There is no library that signs RSA with SHA-1 and can be
/// trusted with a private key.
pub(crate) fn sign(kind: Signature, private: &Secret, content: &[&[u8]]) -> Option<Vec<u8>> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(private.expose()).ok()?;
    let der = der.secret_pkcs8_der();
    let content = content.concat();
    let random = SystemRandom::new();
    let ecdsa = |algorithm: &'static EcdsaSigningAlgorithm| {
        let key = EcdsaKeyPair::from_pkcs8(algorithm, der).ok()?;
        Some(key.sign(&random, &content).ok()?.as_ref().to_vec())
    };
    match kind {
        Signature::EcdsaDer => ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING),
        Signature::EcdsaFixed => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
        Signature::RsaSha256 => {
            let key = RsaKeyPair::from_pkcs8(der).ok()?;
            let mut signature = vec![0; key.public_modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &random, &content, &mut signature)
                .ok()?;
            Some(signature)
        }
        Signature::RsaSha1 => None,
    }
}

/// Makes a key pair of the signature's family
pub(crate) fn generate(kind: Signature) -> Option<KeyPair> {
    match kind {
        Signature::EcdsaDer | Signature::EcdsaFixed => {
            let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).ok()?;
            let private = key.to_pkcs8v1().ok()?;
            let public: PublicKeyX509Der<'_> = key.public_key().as_der().ok()?;
            Some(pair(private.as_ref(), public.as_ref()))
        }
        Signature::RsaSha1 | Signature::RsaSha256 => {
            let key = RsaKeyPair::generate(KeySize::Rsa2048).ok()?;
            let private: Pkcs8V1Der<'_> = key.as_der().ok()?;
            let public: PublicKeyX509Der<'_> = key.public_key().as_der().ok()?;
            Some(pair(private.as_ref(), public.as_ref()))
        }
    }
}

fn pair(private: &[u8], public: &[u8]) -> KeyPair {
    KeyPair {
        private: Secret::new(pem("PRIVATE KEY", private).into_bytes()),
        public: pem("PUBLIC KEY", public),
    }
}

/// RFC 7468, section 3
fn pem(label: &str, der: &[u8]) -> String {
    let text = Encoding::Base64.encode(der);
    let mut lines = format!("-----BEGIN {label}-----\n");
    for (n, c) in text.chars().enumerate() {
        if n > 0 && n % 64 == 0 {
            lines.push('\n');
        }
        lines.push(c);
    }
    lines.push_str(&format!("\n-----END {label}-----\n"));
    lines
}
