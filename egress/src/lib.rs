//! The only outbound HTTP of postern. An address is vetted before a connection is made, the connection
//! goes to the vetted address alone, and no redirect is ever followed.

pub mod client;
pub mod guard;

pub use client::{Answer, Client, NotSent, Outbound};
pub use guard::{Allowed, Forbidden, Vetted};
