//! A shared token, compared whole. It says who sent the delivery, and nothing of what is in it.

use postern_contract::Secret;
use subtle::Choice;

use crate::encoding::Encoding;

pub(crate) fn any<'c>(token: &Secret, candidates: impl Iterator<Item = &'c [u8]>) -> Choice {
    candidates.fold(Choice::from(0), |held, candidate| {
        held | token.equals(candidate)
    })
}

/// The user and password of an `Authorization: Basic` header (RFC 7617: the scheme in any case)
pub(crate) fn basic(header: &[u8]) -> Option<Vec<u8>> {
    let (scheme, rest) = header.split_at_checked(6)?;
    let plain = scheme.eq_ignore_ascii_case(b"basic ");
    let pair = Encoding::Base64.decode(rest.trim_ascii())?;
    (plain && pair.contains(&b':')).then_some(pair)
}
