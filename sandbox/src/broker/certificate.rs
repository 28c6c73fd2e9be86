//! Certificates for the TLS port: an authority for one broker alone, and what it signed.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use secrecy::SecretString;

use crate::error::SandboxError;

/// Everything in PEM.
#[derive(Debug)]
pub(super) struct Certificates {
    pub(super) authority: String,
    pub(super) server: String,
    pub(super) server_key: SecretString,
}

impl Certificates {
    /// Makes new ones. The authority's own key is forgotten: nobody can sign anything else with it.
    pub(super) fn make() -> Result<Self, SandboxError> {
        Self::try_make().map_err(SandboxError::Certificate)
    }

    fn try_make() -> Result<Self, rcgen::Error> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        named(&mut authority, "Sandbox authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority_certificate = authority.self_signed(&authority_key)?;

        let server_key = KeyPair::generate()?;
        let names = ["127.0.0.1", "localhost"].map(ToOwned::to_owned);
        let mut server = CertificateParams::new(names)?;
        named(&mut server, "Sandbox broker");
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let signed = server.signed_by(&server_key, &Issuer::new(authority, authority_key))?;
        Ok(Self {
            authority: authority_certificate.pem(),
            server: signed.pem(),
            server_key: server_key.serialize_pem().into(),
        })
    }
}

fn named(certificate: &mut CertificateParams, name: &str) {
    certificate.distinguished_name.push(DnType::CommonName, name);
}
