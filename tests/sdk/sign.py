"""Direction (a): SDKs sign, our verifier judges. Prints vector lines for `postern profile check`, as sign.mjs does."""

import base64
import json
import sys
import time
import traceback
from datetime import datetime, timezone
from importlib.metadata import version

from slack_sdk.signature import SignatureVerifier
from standardwebhooks.webhooks import Webhook

NOW = int(time.time())
# Not ASCII, and spaces that no serializer would write: what is signed is bytes
BODY = '{ "id":"evt_1", "type":"thing.done",  "note":"honest žluťoučký ✓" }'
FORM = "command=%2Fdeploy&text=honest+%E2%9C%93&user_id=U1"
WHSEC = "whsec_" + base64.b64encode(b"not a secret: a test of postern!").decode()


def slack(body, content_type):
    made = SignatureVerifier("not-a-secret").generate_signature(timestamp=str(NOW), body=body)
    headers = {"content-type": content_type, "x-slack-request-timestamp": str(NOW), "x-slack-signature": made}
    return "not-a-secret", headers, body


def standard_webhooks():
    made = Webhook(WHSEC).sign("msg_1", datetime.fromtimestamp(NOW, timezone.utc), BODY)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(NOW), "webhook-signature": made}
    return WHSEC, headers, BODY


CASES = [
    ("slack", "slack_sdk", "SignatureVerifier.generate_signature", lambda: slack(BODY, "application/json")),
    (
        "slack",
        "slack_sdk",
        "SignatureVerifier.generate_signature (form)",
        lambda: slack(FORM, "application/x-www-form-urlencoded"),
    ),
    ("standard_webhooks", "standardwebhooks", "Webhook.sign", standard_webhooks),
]


def show(line):
    print(json.dumps(line, ensure_ascii=False))


for scheme, package, function, make in CASES:
    line = {"scheme": scheme, "kind": "delivery", "sdk": f"PyPI {package} {version(package)}", "function": function, "now": NOW}
    name = f"{scheme}: {package} {function}"
    request = {"method": "POST", "url": f"https://hooks.example.com/in/{scheme}"}
    try:
        secret, headers, body = make()
        assert body.count("honest") == 1
        request |= {"headers": headers, "body": body}
        changed = request | {"body": body.replace("honest", "honesT")}
        line["secret"] = secret
        show(line | {"id": f"{name}, as signed", "request": request, "expect": "accept", "why": "signed by the SDK"})
        show(line | {"id": f"{name}, one byte changed", "request": changed, "expect": "reject", "why": "one byte changed"})
    except Exception as fault:
        # An unsigned request that should pass: the check fails where the SDK did
        request |= {"headers": {}, "body": BODY}
        why = f"the SDK failed: {fault}"
        show(line | {"id": f"{name}, as signed", "secret": "none", "request": request, "expect": "accept", "why": why})
        traceback.print_exc(file=sys.stderr)
