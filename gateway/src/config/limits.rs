//! What a connection, a request and the whole server may cost at most.

use std::net::{Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Period;

/// The listener
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// The address of `/hooks/…`, `/healthz`, `/readyz` and `/metrics`
    pub listen: SocketAddr,
    /// The most bytes of a body; more is answered 413
    pub max_body_bytes: usize,
    /// The most bytes of all bodies in memory at once, never less than twice `max_body_bytes`. The bodies of
    /// one source may take no more than they leave free, so at most half of it; more is answered 503
    pub max_memory_bytes: usize,
    /// The most bytes of a request's line and headers; more is answered 431
    pub max_header_bytes: usize,
    /// The most connections at once; more wait in the system's queue
    pub max_connections: usize,
    /// How long a request's line and headers may take to arrive
    pub header_timeout: Period,
    /// How long a body may take to arrive
    pub body_timeout: Period,
    /// How long a sender may take nothing of its answer
    pub write_timeout: Period,
    /// How long a stop waits for what is under way
    pub drain: Period,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            // GitHub, the largest sender of the catalogue, caps payloads at 25 MB
            max_body_bytes: 25 << 20,
            max_memory_bytes: 512 << 20,
            max_header_bytes: 64 << 10,
            max_connections: 10_000,
            header_timeout: Period::from_secs(10),
            body_timeout: Period::from_secs(30),
            write_timeout: Period::from_secs(10),
            drain: Period::from_secs(20),
        }
    }
}
