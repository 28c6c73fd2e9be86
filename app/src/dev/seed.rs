//! The tenants that are there to try things out with, each with an API key. Made through the API, like anybody's.

use std::{collections::BTreeMap, time::Duration};

use secrecy::SecretString;
use serde_json::{Value, json};
use url::Url;

use crate::cli::{ApiClient, Failure};

/// The tenants: id and name for people.
const TENANTS: [(&str, &str); 2] = [("acme", "Acme Corporation"), ("globex", "Globex Corporation")];
/// How often something that is not possible at the moment is tried again.
const ATTEMPTS: usize = 5;

/// Makes sure that the tenants are there, and answers a working key for each that is in service. Keys that still work are
/// kept.
pub(super) async fn seed(
    api: &Url,
    operator: &ApiClient,
    remembered: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut keys = BTreeMap::new();
    for (tenant, display_name) in TENANTS {
        let found = operator.find(&["control", "v1", "tenants", tenant]).await?;
        match found.as_ref().and_then(|tenant| tenant["state"].as_str()) {
            Some("CREATED") => {}
            None | Some("IN_PROGRESS" | "FAILED") => {
                let body = json!({ "id": tenant, "display_name": display_name });
                post(operator, &["control", "v1", "tenants"], &body).await?;
            }
            Some(state) => {
                // Somebody has tried that out, and wants to find it again.
                eprintln!("The tenant {tenant} is {state} and is left like that.");
                continue;
            }
        }
        let key = match remembered.get(tenant) {
            Some(key) if works(api, key).await? => key.clone(),
            _ => create_key(operator, tenant).await?,
        };
        keys.insert(tenant.to_owned(), key);
    }
    Ok(keys)
}

async fn works(api: &Url, key: &str) -> Result<bool, Failure> {
    let client = ApiClient::new(api.clone(), SecretString::from(key.to_owned()))?;
    client.accepts_credential(&["v1", "whoami"]).await
}

async fn create_key(operator: &ApiClient, tenant: &str) -> Result<String, Failure> {
    let body = json!({ "name": "made by tenantry dev", "role": "admin" });
    let key = post(operator, &["control", "v1", "tenants", tenant, "api-keys"], &body).await?;
    let secret = key["secret"].as_str().map(str::to_owned);
    secret.ok_or_else(|| Failure::operation("the service has made an API key and does not show it"))
}

/// Posts, and again when it did not work out: the servers have only just started.
async fn post(operator: &ApiClient, path: &[&str], body: &Value) -> Result<Value, Failure> {
    for _ in 1..ATTEMPTS {
        if let Ok(answer) = operator.post(path, body).await {
            return Ok(answer);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    operator.post(path, body).await
}
