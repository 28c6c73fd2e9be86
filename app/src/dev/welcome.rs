//! What `tenantry dev` says once everything is ready: commands that work as they stand.

use std::collections::BTreeMap;

use url::Url;

/// Everything that is needed to try things out.
pub(super) struct Welcome<'w> {
    pub(super) api: &'w Url,
    pub(super) operator_token: &'w str,
    pub(super) keys: &'w BTreeMap<String, String>,
    pub(super) config: &'w str,
    pub(super) ready_file: &'w str,
    pub(super) servers: &'w str,
}

impl Welcome<'_> {
    /// The text.
    pub(super) fn text(&self) -> String {
        let Self {
            operator_token,
            config,
            ready_file,
            servers,
            ..
        } = self;
        let api = self.api.as_str().trim_end_matches('/');
        let acme = self.keys.get("acme").map_or("", String::as_str);
        format!(
            "
Tenantry is ready at {api}  ({servers}).

Ask as the tenant acme who you are, make an invoice, list invoices:
  curl -s {api}/v1/whoami -H 'Authorization: Bearer {acme}'
  curl -s {api}/v1/invoices -H 'Authorization: Bearer {acme}' \\
       -H 'Content-Type: application/json' -d '{{\"customer\":\"Initech\",\"amount_cents\":129900,\"currency\":\"EUR\"}}'
  curl -s {api}/v1/invoices -H 'Authorization: Bearer {acme}'

Make another tenant, with a database of its own:
  curl -s {api}/control/v1/tenants -H 'Authorization: Bearer {operator_token}' \\
       -H 'Content-Type: application/json' -d '{{\"id\":\"initech\"}}'

The same from the command line:
  export TENANTRY_URL={api} TENANTRY_OPERATOR_TOKEN={operator_token}
  tenantry tenants create initech
  tenantry api-keys create initech --name laptop
  tenantry tenants list

Add an instance on the same data:
  TENANTRY__HTTP__LISTEN=127.0.0.1:9001 tenantry serve --config {config}

Documentation of the API: {api}/docs     For scripts: {ready_file}
Stop with Ctrl-C.
"
        )
    }
}
