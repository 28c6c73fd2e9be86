//! A digest of a whole table: two tables that differ in any row have different ones.
//!
//! Each row is put into words, hashed, and the hashes are combined in a way that the order of rows does not matter to. The
//! catalog does the same in SQL ([`crate::catalog::digest`]); a test compares the two.

use std::fmt::Display;

use sha2::{Digest as _, Sha256};

use crate::{control::ApiKey, ids::TenantUuid, route::Route};

/// Rows of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) rows: i64,
    /// The exclusive or of the first eight bytes of each row's SHA-256.
    pub(crate) hash: i64,
}

/// All that a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) tenants: Part,
    pub(crate) domains: Part,
    pub(crate) api_keys: Part,
}

impl Digest {
    pub(crate) fn add_tenant(&mut self, route: &Route) {
        let (tenant, state) = (route.tenant.as_str(), route.state);
        let row = words(&[
            &route.uuid,
            &tenant,
            &state,
            &route.cluster,
            &route.generation.0,
            &route.revision.0,
            &"",
        ]);
        self.tenants.add(&row, route.password.as_bytes());
    }

    pub(crate) fn add_domain(&mut self, domain: &str, tenant: TenantUuid) {
        self.domains.add(&words(&[&domain, &tenant]), &[]);
    }

    pub(crate) fn add_api_key(&mut self, key: &ApiKey) {
        let expires = key.expires_at.map_or(0, |at| at.timestamp_micros());
        // As PostgreSQL writes a truth value that it puts into a text.
        let revoked = if key.revoked_at.is_some() { "t" } else { "f" };
        let row = words(&[
            &key.id,
            &key.tenant,
            &key.role.as_str(),
            &revoked,
            &expires,
            &key.revision.0,
            &"",
        ]);
        self.api_keys.add(&row, &key.secret_sha256);
    }
}

impl Part {
    fn add(&mut self, row: &str, secret: &[u8]) {
        let hash = Sha256::new_with_prefix(row).chain_update(secret).finalize();
        let first: [u8; 8] = hash[..8].try_into().expect("a hash has 32 bytes");
        self.rows += 1;
        self.hash ^= i64::from_be_bytes(first);
    }
}

fn words(parts: &[&dyn Display]) -> String {
    let words: Vec<_> = parts.iter().map(ToString::to_string).collect();
    words.join("|")
}
