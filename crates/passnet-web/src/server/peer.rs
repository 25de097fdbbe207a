//! Who asks.

use std::net::IpAddr;

/// Whose connection it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer(pub IpAddr);
