//! From what the web config says of TLS to what rustls does.

use super::web_config::{Clients, Tls, Version};
use anyhow::{Context, Result, anyhow};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{NoClientAuth, ServerConfig, WebPkiClientVerifier};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{RootCertStore, SupportedProtocolVersion};

/// Reads the files.
///
/// # Errors
/// One of them cannot be read or is none of its kind; its name is in the words.
pub(crate) fn configure(tls: &Tls) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(ring::default_provider());
    let versions: Vec<&'static SupportedProtocolVersion> = [(Version::Tls12, &TLS12), (Version::Tls13, &TLS13)]
        .into_iter()
        .filter(|(version, _)| (tls.oldest..=tls.newest).contains(version))
        .map(|(_, spoken)| spoken)
        .collect();
    let clients = clients(tls.clients.as_ref(), &provider)?;
    let chain = certificates(&tls.cert_file)?;
    let key = key(&tls.key_file)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .context("failed to set up TLS")?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(|error| anyhow!(error).context(mismatch(tls)))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn mismatch(tls: &Tls) -> String {
    let (cert, key) = (tls.cert_file.display(), tls.key_file.display());
    format!(
        "failed to use the certificate {cert} with the key {key}\nhint: openssl x509 -noout -pubkey -in {cert} and \
         openssl pkey -pubout -in {key} print the same for files that belong together"
    )
}

fn clients(clients: Option<&Clients>, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>> {
    let Some(Clients { ca_file, required }) = clients else {
        return Ok(Arc::new(NoClientAuth));
    };
    let said = || format!("failed to use the CA for clients in {}", ca_file.display());
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca_file)? {
        roots.add(certificate).with_context(said)?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let verifier = if *required {
        verifier
    } else {
        verifier.allow_unauthenticated()
    };
    verifier.build().with_context(said)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let pem = read(path, "certificate")?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| anyhow!("{}: {error}{PEM}", path.display()))?;
    if found.is_empty() {
        return Err(anyhow!("{}: there is no certificate in it{PEM}", path.display()));
    }
    Ok(found)
}

const PEM: &str = "\nhint: a certificate is PEM text between BEGIN CERTIFICATE and END CERTIFICATE";

fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let pem = read(path, "private key")?;
    // what was read is not shown
    PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
        anyhow!(
            "{}: there is no private key in it that can be used\nhint: a key is PEM text between BEGIN PRIVATE KEY and \
             END PRIVATE KEY, without a passphrase",
            path.display()
        )
    })
}

fn read(path: &Path, kind: &str) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| super::unreadable::unreadable(path, kind, error))
}
