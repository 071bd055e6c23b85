"""The API server's side of the recorder, and how an answer is handed on."""

import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
from kubernetes import config as kubernetes_config

from tests.flows.asked import Asked

PASSED_BACK = {b"content-type", b"retry-after", b"content-encoding"}


class Upstream:
    """The API server itself, with the credentials of the kubeconfig."""

    def __init__(self, kubeconfig: Path, context: str) -> None:
        self._client = kubernetes_config.new_client_from_config(str(kubeconfig), context=context)
        told = self._client.configuration
        trust = ssl.create_default_context(cafile=told.ssl_ca_cert)
        if not told.verify_ssl:
            trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        if told.cert_file:
            trust.load_cert_chain(told.cert_file, told.key_file)
        self._server = told.host.rstrip("/")
        limits = httpx.Limits(max_connections=None)
        self._http = httpx.AsyncClient(verify=trust, timeout=httpx.Timeout(15, read=None), limits=limits)

    def asking(self, asked: Asked, headers: dict[str, str]) -> Any:
        credentials: dict[str, str] = {}
        self._client.update_params_for_auth(credentials, [], ["BearerToken"], "", "", None)
        query = f"?{urlencode(asked.query)}" if asked.query else ""
        return self._http.stream(
            asked.method,
            f"{self._server}{asked.path}{query}",
            content=None if asked.body is None else json.dumps(asked.body).encode(),
            headers={**headers, **credentials, "accept-encoding": "identity"},
        )

    async def close(self) -> None:
        await self._http.aclose()
        self._client.close()


async def left(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass  # the rest of a body that was read already


async def say(send: Any, code: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def pass_back(response: httpx.Response, send: Any) -> None:
    headers = [(name.lower(), value) for name, value in response.headers.raw if name.lower() in PASSED_BACK]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    # A held answer was read already; a watch comes as it comes.
    if response.is_stream_consumed:
        await send({"type": "http.response.body", "body": response.content, "more_body": True})
    else:
        async for piece in response.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
