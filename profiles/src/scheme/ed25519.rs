//! Ed25519 (RFC 8032): small-order keys and malleable signatures are refused, and nothing is copied of what
//! is not authentic yet.

use ed25519_dalek::ed25519::signature::MultipartVerifier;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use postern_contract::Secret;
use subtle::Choice;

pub(crate) fn key(bytes: &[u8]) -> Option<VerifyingKey> {
    VerifyingKey::from_bytes(bytes.try_into().ok()?)
        .ok()
        .filter(|key| !key.is_weak())
}

pub(crate) fn any<'c>(
    key: &VerifyingKey,
    content: &[&[u8]],
    candidates: impl Iterator<Item = &'c [u8]>,
) -> Choice {
    // The small-order keys are gone since the key was bound: what is left of a strict check is whether R has
    // a small order, which nobody but the holder of the private key can bring about
    candidates.fold(Choice::from(0), |held, candidate| {
        let right = Signature::from_slice(candidate)
            .and_then(|signature| key.multipart_verify(content, &signature))
            .is_ok();
        held | Choice::from(u8::from(right))
    })
}

/// Signs with a seed of 32 bytes
pub(crate) fn sign(seed: &Secret, content: &[&[u8]]) -> Option<Vec<u8>> {
    let key = SigningKey::from_bytes(seed.expose().try_into().ok()?);
    Some(key.sign(&content.concat()).to_bytes().to_vec())
}
