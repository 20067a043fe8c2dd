//! The client over whichever provider: the same behaviour over `vm:`, and over `tcp:` where our own acceptor or a real ActiveMQ
//! listens.
//!
//! Each behaviour is a function of its peer, and [`over_each_peer`] makes a test of it for each. Where a peer does otherwise, the
//! behaviour says so in words of [`Peer`], and asserts what is there instead.

#![allow(clippy::unwrap_used, reason = "helpers outside of test functions; a failed one fails its test")]

/// Makes a test of each function, for each peer.
macro_rules! over_each_peer {
    ($($name:ident,)*) => {
        mod vm {
            $(#[tokio::test]
            async fn $name() {
                let peer = crate::peer::Peer::vm();
                super::$name(&peer).await;
            })*
        }

        mod corriere {
            $(#[tokio::test]
            async fn $name() {
                let peer = crate::peer::Peer::corriere().await;
                super::$name(&peer).await;
            })*
        }

        mod activemq {
            $(#[tokio::test]
            async fn $name() {
                let peer = crate::peer::Peer::activemq();
                super::$name(&peer).await;
            })*
        }
    };
}

mod acknowledging;
mod bodies;
mod browsing;
mod cable;
mod closing;
mod coming_and_going;
mod coming_back;
mod connecting;
mod crowd;
mod cut;
mod dead_letters;
mod durable;
mod hearing;
mod histories;
mod losing;
mod peer;
mod properties;
mod pulling;
mod receiving;
mod redelivery;
mod redelivery_policy;
mod resizing;
mod seam;
mod temporary;
mod transactions;
mod wrong_types;
