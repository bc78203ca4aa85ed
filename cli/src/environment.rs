//! The one place that reads the environment and the machine's clock. Secrets come from here alone: by the
//! name of a variable, never from an argument, which other users of the machine could read.

use postern_contract::{Secret, Timestamp};
use postern_gateway::clock::{Clock as _, SystemClock};

use crate::failure::Failure;

/// A variable's text; `None` where it is unset, empty or no UTF-8
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the environment"
)]
pub fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The secret in the variable `name`
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the environment"
)]
pub fn secret(name: &str) -> Result<Secret, Failure> {
    match std::env::var_os(name) {
        Some(value) if !value.is_empty() => Ok(Secret::new(value.into_encoded_bytes())),
        Some(_) => Err(Failure::call(
            "secret-empty",
            format!("the variable `{name}` is empty"),
        )),
        None => Err(Failure::call(
            "secret-not-set",
            format!("the variable `{name}` is not set"),
        )
        .hint("`--secret-env` takes the name of an environment variable that holds the secret")),
    }
}

/// The current time
pub fn now() -> Timestamp {
    SystemClock.now()
}

/// A variable's bytes, as they are
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the environment"
)]
pub fn bytes(name: &str) -> Option<Vec<u8>> {
    std::env::var_os(name).map(std::ffi::OsString::into_encoded_bytes)
}
