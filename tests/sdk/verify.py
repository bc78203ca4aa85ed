"""Direction (b): we sign, SDKs judge. `postern send` posts to a sink on loopback, as verify.mjs has it."""

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import version

from box_sdk_gen.managers.webhooks import WebhooksManager
from elevenlabs.client import ElevenLabs
from square.utils.webhooks_helper import verify_signature as square_verify

SECRET = "not-a-secret"
JSON_TYPE = {"content-type": "application/json"}
BODY = '{ "id":"evt_1", "type":"thing.done",  "note":"honest žluťoučký ✓" }'
BOX = {**JSON_TYPE, "box-signature-version": "1", "box-signature-algorithm": "HmacSHA256", "box-delivery-id": "d1"}

# profile, package, the SDK's function, the headers beside the signature, and the SDK's word on what arrived
CASES = [
    (
        "box",
        "box-sdk-gen",
        "WebhooksManager.validate_message",
        BOX,
        lambda url, headers, body: WebhooksManager.validate_message(body, headers, SECRET),
    ),
    (
        "square",
        "squareup",
        "webhooks_helper.verify_signature",
        JSON_TYPE,
        lambda url, headers, body: square_verify(
            request_body=body,
            signature_header=headers["x-square-hmacsha256-signature"],
            signature_key=SECRET,
            notification_url=url,
        ),
    ),
    (
        "elevenlabs",
        "elevenlabs",
        "webhooks.construct_event",
        JSON_TYPE,
        lambda url, headers, body: ElevenLabs(api_key="none").webhooks.construct_event(
            body, headers["elevenlabs-signature"], SECRET
        ),
    ),
]

arrived = []


class Sink(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        arrived.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Sink)
threading.Thread(target=server.serve_forever, daemon=True).start()
ORIGIN = f"http://127.0.0.1:{server.server_port}"


def sent(profile, headers):
    """What arrives when `postern send` signs and posts it"""
    fixture = {"method": "POST", "url": "https://hooks.example.com/", "headers": headers, "body": BODY}
    command = [os.environ["POSTERN"], "send", "-", "--to", f"{ORIGIN}/in/{profile}", "--profile", profile]
    arrived.clear()
    ran = subprocess.run(
        [*command, "--secret-env", "SDK_SECRET"],
        input=json.dumps(fixture).encode(),
        env={**os.environ, "SDK_SECRET": SECRET},
        capture_output=True,
    )
    if ran.returncode != 0 or not arrived:
        raise RuntimeError(f"postern send ended with {ran.returncode}: {ran.stderr.decode()}")
    path, headers, body = arrived[0]
    return ORIGIN + path, headers, body


def accepts(verify, *request):
    """SDKs refuse by `False` or by raising; some return the event, some nothing"""
    try:
        return verify(*request) is not False, "False"
    except Exception as refusal:
        return False, repr(refusal)


for profile, package, function, headers, verify in CASES:
    line = {"scheme": profile, "sdk": f"PyPI {package} {version(package)}", "function": function}
    try:
        url, headers, body = sent(profile, headers)
        assert body.count("honest") == 1
        plain, why = accepts(verify, url, headers, body)
        changed, _ = accepts(verify, url, headers, body.replace("honest", "honesT"))
        if not plain:
            line["why"] = f"the SDK refuses what we signed: {why}"
        elif changed:
            line["why"] = "the SDK accepts a changed byte"
    except Exception as fault:
        line["why"] = repr(fault)
    print(json.dumps(line, ensure_ascii=False))
server.shutdown()
