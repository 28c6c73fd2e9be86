"""Makes one credential of each kind for scripts/contract: an operator who may only read, a person's session, and a token of an
issuer, with the configuration of an instance that trusts it. Everything goes into a folder that only its owner can read.

    contract_credentials.py PATH/TO/dev.json FOLDER
"""

import json
import socket
import sys
import time
import urllib.request
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ISSUER = "https://login.example.com"
EMAIL = "contract@example.com"
PASSWORD = "an example, not a password"

dev = json.loads(Path(sys.argv[1]).read_text())
folder = Path(sys.argv[2])


def post(path, body, headers=None):
    request = urllib.request.Request(
        dev["api_url"] + path,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **(headers or {})},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response), response.headers


as_operator = {"Authorization": "Bearer " + dev["operator_token"]}
reader, _ = post("/control/v1/operator-tokens", {"name": "contract", "role": "read"}, as_operator)
invited, _ = post(
    "/v1/invitations", {"email": EMAIL, "role": "admin"}, {**as_operator, "X-Tenant-ID": "acme"}
)
post("/v1/invitations/accept", {"secret": invited["secret"], "password": PASSWORD})
_, headers = post("/v1/session", {"email": EMAIL, "password": PASSWORD})
cookies = [cookie.split(";")[0] for cookie in headers.get_all("Set-Cookie")]
session = next(cookie for cookie in cookies if cookie.startswith("tenantry_session="))

secret = Ed25519PrivateKey.generate()
public = json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(secret.public_key()))
(folder / "jwks.json").write_text(json.dumps({"keys": [{**public, "kid": "contract", "use": "sig"}]}))
claims = {
    "iss": ISSUER,
    "aud": "tenantry",
    "sub": "contract",
    "exp": int(time.time()) + 3600,
    "tenant_id": "acme",
    "role": "member",
}
token = jwt.encode(claims, secret, algorithm="EdDSA", headers={"kid": "contract"})
(folder / "tenantry.toml").write_text(
    Path(dev["config"]).read_text()
    + f'\n[[jwt_issuers]]\nissuer = "{ISSUER}"\naudiences = ["tenantry"]\njwks_file = "{folder}/jwks.json"\n'
)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
(folder / "credentials").write_text(
    f"reader={reader['secret']}\nsession='{session}'\njwt={token}\nport={port}\n"
)
