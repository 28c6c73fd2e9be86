//! Positions as they travel with a client: signed, bounded text for a cookie or a header.
//!
//! A token holds nothing secret. The signature keeps a client from sending its reads where it wants: a position that nobody
//! has reached would send them to the primary.
//!
//! Layout, before the Base64 (URL alphabet, no padding): version, session (8 bytes), number of clusters, for each cluster the
//! length of its name, its name, timeline (4), LSN (8) and time of the write (8), then 16 bytes of HMAC-SHA-256. Numbers are
//! big-endian.

use std::{fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{Lsn, Position, Positions, Timeline};

const VERSION: u8 = 1;
const SIGNATURE: usize = 16;
const HEAD: usize = 1 + 8 + 1;
const ENTRY: usize = 1 + 4 + 8 + 8;

/// Characters of a token at most. Longer ones are refused before anything else is done with them.
pub const LONGEST_TOKEN: usize =
    (HEAD + Positions::MOST_CLUSTERS * (ENTRY + Positions::LONGEST_NAME) + SIGNATURE).div_ceil(3) * 4;

/// A session: what one client does, as far as its token goes with it from one request to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(pub(crate) u64);

impl SessionId {
    /// A new one.
    pub(crate) fn generate() -> Self {
        Self(rand::random())
    }
}

/// Why a token is not used. Never an error for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFault {
    /// Longer than [`LONGEST_TOKEN`].
    Oversized,
    /// Not the text of a token.
    Malformed,
    /// Signed with no key that is known here, or changed.
    Forged,
}

impl TokenFault {
    /// The fault as it appears in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oversized => "oversized",
            Self::Malformed => "malformed",
            Self::Forged => "forged",
        }
    }
}

/// Keys that tokens are signed with. Every instance of a service has the same.
#[derive(Clone)]
pub struct TokenKeys {
    current: [u8; 32],
    previous: Vec<[u8; 32]>,
}

impl TokenKeys {
    /// New tokens are signed with `current`; those signed with one of `previous` are good too, as long as a key is being
    /// changed.
    pub fn new(current: [u8; 32], previous: impl IntoIterator<Item = [u8; 32]>) -> Self {
        Self {
            current,
            previous: previous.into_iter().collect(),
        }
    }

    /// Writes a token.
    pub fn write(&self, session: SessionId, positions: &Positions) -> String {
        let mut bytes = Vec::with_capacity(HEAD + positions.len() * (ENTRY + 16) + SIGNATURE);
        bytes.push(VERSION);
        bytes.extend(session.0.to_be_bytes());
        bytes.push(small(positions.len()));
        for (cluster, position) in positions.iter() {
            bytes.push(small(cluster.len()));
            bytes.extend(cluster.as_bytes());
            bytes.extend(position.timeline.0.to_be_bytes());
            bytes.extend(position.lsn.as_bytes().to_be_bytes());
            bytes.extend(position.written_at.to_be_bytes());
        }
        let signature = mac(&self.current, &bytes).finalize().into_bytes();
        bytes.extend(&signature[..SIGNATURE]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a token.
    pub fn read(&self, token: &str) -> Result<(SessionId, Positions), TokenFault> {
        if token.len() > LONGEST_TOKEN {
            return Err(TokenFault::Oversized);
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| TokenFault::Malformed)?;
        let signed = bytes.len().checked_sub(SIGNATURE).ok_or(TokenFault::Malformed)?;
        let (content, signature) = bytes.split_at(signed);
        let good = |key: &[u8; 32]| mac(key, content).verify_truncated_left(signature).is_ok();
        if !good(&self.current) && !self.previous.iter().any(good) {
            return Err(TokenFault::Forged);
        }
        Content(content).read().ok_or(TokenFault::Malformed)
    }
}

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKeys")
            .field("previous", &self.previous.len())
            .finish_non_exhaustive()
    }
}

fn mac(key: &[u8; 32], content: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(content);
    mac
}

fn small(length: usize) -> u8 {
    u8::try_from(length).expect("names and numbers of clusters are bounded")
}

/// What is left to read.
struct Content<'b>(&'b [u8]);

impl Content<'_> {
    fn read(mut self) -> Option<(SessionId, Positions)> {
        if self.take()? != [VERSION] {
            return None;
        }
        let session = SessionId(u64::from_be_bytes(self.take()?));
        let [clusters] = self.take()?;
        if usize::from(clusters) > Positions::MOST_CLUSTERS {
            return None;
        }
        let mut positions = Positions::default();
        for _ in 0..clusters {
            let [length] = self.take()?;
            let cluster: Arc<str> = self.text(usize::from(length))?.into();
            let position = Position {
                timeline: Timeline(u32::from_be_bytes(self.take()?)),
                lsn: Lsn::from_bytes(u64::from_be_bytes(self.take()?)),
                written_at: u64::from_be_bytes(self.take()?),
            };
            positions.raise(&cluster, position);
        }
        self.0.is_empty().then_some((session, positions))
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn text(&mut self, length: usize) -> Option<&str> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(taken).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> TokenKeys {
        TokenKeys::new([7; 32], [])
    }

    fn positions(clusters: usize, name_length: usize) -> Positions {
        let mut positions = Positions::default();
        for index in 0..clusters {
            let name = format!("{index}{}", "n".repeat(name_length - 1));
            let position = Position {
                timeline: Timeline(u32::MAX),
                lsn: Lsn::from_bytes(u64::MAX),
                written_at: u64::MAX,
            };
            positions.raise(&name.into(), position);
        }
        positions
    }

    #[test]
    fn the_longest_token_fits_in_a_cookie() {
        let token = keys().write(
            SessionId(1),
            &positions(Positions::MOST_CLUSTERS, Positions::LONGEST_NAME),
        );
        assert!(
            token.len() <= LONGEST_TOKEN && LONGEST_TOKEN < 1024,
            "{}",
            token.len()
        );
        assert_eq!(keys().read(&token).unwrap().1.len(), Positions::MOST_CLUSTERS);
    }

    #[test]
    fn a_key_can_be_changed() {
        let old = keys().write(SessionId(1), &positions(1, 4));
        let next = TokenKeys::new([8; 32], [[7; 32]]);
        assert!(next.read(&old).is_ok());
        assert_eq!(
            keys().read(&next.write(SessionId(1), &positions(1, 4))),
            Err(TokenFault::Forged)
        );
    }

    #[test]
    fn every_cut_and_every_changed_bit_is_noticed() {
        let token = keys().write(SessionId(1), &positions(2, 4));
        for end in 0..token.len() {
            assert!(keys().read(&token[..end]).is_err(), "cut at {end}");
        }
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let fault = keys().read(&URL_SAFE_NO_PAD.encode(changed)).unwrap_err();
            assert_eq!(fault, TokenFault::Forged, "bit {bit}");
        }
        assert_eq!(keys().read(&"A".repeat(8 << 10)), Err(TokenFault::Oversized));
    }

    proptest! {
        #[test]
        fn anything_can_be_read_without_harm(text in "\\PC{0,1200}") {
            prop_assert!(keys().read(&text).is_err());
        }

        #[test]
        fn any_signed_content_can_be_read_without_harm(mut content in prop::collection::vec(any::<u8>(), 0..700)) {
            if let Some(version) = content.first_mut() {
                *version = VERSION;
            }
            let signature = mac(&[7; 32], &content).finalize().into_bytes();
            content.extend(&signature[..SIGNATURE]);
            let _ = keys().read(&URL_SAFE_NO_PAD.encode(content));
        }

        #[test]
        fn what_is_written_is_read(
            session: u64,
            entries in prop::collection::btree_map("[a-z0-9-]{1,63}", any::<(u32, u64, u64)>(), 0..8),
        ) {
            let mut positions = Positions::default();
            for (cluster, (timeline, lsn, written_at)) in entries {
                let position = Position { timeline: Timeline(timeline), lsn: Lsn::from_bytes(lsn), written_at };
                positions.raise(&cluster.into(), position);
            }
            let token = keys().write(SessionId(session), &positions);
            prop_assert_eq!(keys().read(&token), Ok((SessionId(session), positions)));
        }
    }
}
