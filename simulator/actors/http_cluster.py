"""Any API server, over HTTP: the official client's configuration and connections, and bytes that we read ourselves."""

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes import client, config

from simulator.actors.cluster import How, Stream
from simulator.actors.objects import Obj
from simulator.kinds import POD, Kind
from simulator.refusals import Refused

CONNECT_S, READ_S = 5.0, 30.0
WATCH_S = 300
PAGE = 500
ENCODER, DECODER = msgspec.json.Encoder(), msgspec.json.Decoder()
TRIES = 5
MEDIA = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
SERVER_SETS = ("uid", "creationTimestamp", "resourceVersion", "generation")


class HttpCluster:
    def __init__(self, api: client.ApiClient) -> None:
        self._api = api
        self._base = api.configuration.host.rstrip("/")
        self._pool: urllib3.PoolManager = api.rest_client.pool_manager

    @classmethod
    def of_kubeconfig(cls, path: str, context: str | None = None) -> "HttpCluster":
        configuration = client.Configuration()
        config.load_kube_config(path, context=context, client_configuration=configuration)
        configuration.connection_pool_maxsize = 32
        return cls(client.ApiClient(configuration))

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        return self._ask("GET", path_of(kind, namespace, name))

    def list(self, kind: Kind) -> tuple[list[Obj], str]:
        listed: list[Obj] = []
        token = ""
        while True:
            query = {"limit": PAGE} | ({"continue": token} if token else {})
            page = self._ask("GET", path_of(kind), query=query)
            # Items of a list do not say what they are.
            listed += [{"apiVersion": kind.api_version, "kind": kind.name, **item} for item in page["items"]]
            token = page["metadata"].get("continue", "")
            if not token:
                return listed, page["metadata"]["resourceVersion"]

    def watch(self, kind: Kind, *, since: str) -> Stream:
        query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": since, "timeoutSeconds": WATCH_S}
        timeout = urllib3.Timeout(connect=CONNECT_S, read=WATCH_S + READ_S)
        response = self._send("GET", path_of(kind), query=query, timeout=timeout, is_stream=True)
        return Lines(response)

    def create(self, kind: Kind, obj: Obj, namespace: str = "") -> Obj:
        return self._ask("POST", path_of(kind, namespace), _typed(kind, obj))

    def seed(self, kind: Kind, obj: Obj, namespace: str = "") -> Obj:
        """A definition takes the server a moment; until then its objects have no path."""
        metadata = {key: value for key, value in obj["metadata"].items() if key not in SERVER_SETS}
        bare = {**obj, "metadata": metadata}
        status = bare.pop("status", None)
        made = self._create_when_served(kind, bare, namespace)
        if not status or not kind.has_status:
            return made
        return self.patch(kind, metadata["name"], {"status": status}, namespace, subresource="status")

    def _create_when_served(self, kind: Kind, obj: Obj, namespace: str) -> Obj:
        for _ in range(TRIES):
            try:
                return self.create(kind, obj, namespace)
            except Refused as refusal:
                if refusal.status != 404 or not kind.is_custom:
                    raise
                time.sleep(1)
        return self.create(kind, obj, namespace)

    def patch(
        self,
        kind: Kind,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        how: How = "merge",
        subresource: str = "",
        manager: str = "",
    ) -> Obj:
        query = {"fieldManager": manager} if manager else None
        return self._ask("PATCH", path_of(kind, namespace, name, subresource), patch, media=MEDIA[how], query=query)

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        grace_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        options: Obj = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        self._ask("DELETE", path_of(kind, namespace, name), options)

    def evict(self, name: str, namespace: str, *, uid: str | None = None) -> None:
        eviction: Obj = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        }
        if uid is not None:
            eviction["deleteOptions"] = {"preconditions": {"uid": uid}}
        self._ask("POST", path_of(POD, namespace, name, "eviction"), eviction)

    def bind(self, name: str, namespace: str, node_name: str) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
        }
        self._ask("POST", path_of(POD, namespace, name, "binding"), binding)

    def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = "application/json",
        query: Obj | None = None,
    ) -> Obj:
        response = self._send(method, path, body, media=media, query=query)
        answer: Obj = DECODER.decode(response.data)
        return answer

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        media: str = "application/json",
        query: Obj | None = None,
        timeout: urllib3.Timeout | None = None,
        is_stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        """:raises Refused: in the server's words. :raises OSError: when it cannot be reached."""
        url = f"{self._base}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json", "Content-Type": media, "User-Agent": "simulator-actors"}
        self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        try:
            response = self._pool.request(
                method,
                url,
                body=None if body is None else _spelled(body),
                headers=headers,
                timeout=timeout or urllib3.Timeout(connect=CONNECT_S, read=READ_S),
                retries=False,
                preload_content=not is_stream,
            )
        except urllib3.exceptions.HTTPError as error:
            raise ConnectionError(f"{method} {path}: {error}") from error
        if response.status >= 400:
            raise _refused(response)
        return response


def _spelled(body: Any) -> bytes:
    """As Go's encoding/json does it (`HTMLEscape`): whenever a ControllerRevision is patched, an API server writes anew
    what it holds, and refuses it as changed when a byte of that is another one.
    """
    text = ENCODER.encode(body)
    for character in b"&<>":
        text = text.replace(bytes([character]), b"\\u%04x" % character)
    return text


class Lines:
    """A watch's answer: one JSON object a line."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self._lines = self._read()
        self.is_closed = False

    def take(self, timeout_s: float | None = 0) -> list[tuple[str, Obj]]:
        line = next(self._lines, None)
        if line is None:
            self.is_closed = True
            return []
        event = json.loads(line)
        if event["type"] == "ERROR":
            raise Refused(event["object"].get("code", 500), event["object"].get("reason", ""), str(event["object"]))
        return [(event["type"], event["object"])]

    def close(self) -> None:
        """Closing the connection would wait for the thread that reads it; that thread ends with its next line."""
        self.is_closed = True

    def _read(self) -> Iterator[bytes]:
        rest = b""
        try:
            for chunk in self._response.stream(65536):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line for line in lines if line)
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            if not self.is_closed:
                raise ConnectionError(str(error)) from error


def path_of(kind: Kind, namespace: str = "", name: str = "", subresource: str = "") -> str:
    parts = ["apis", kind.group, kind.version] if kind.group else ["api", kind.version]
    if kind.namespaced and namespace:
        parts += ["namespaces", namespace]
    return "/" + "/".join([*parts, kind.plural, *(part for part in (name, subresource) if part)])


def _typed(kind: Kind, obj: Obj) -> Obj:
    return {"apiVersion": kind.api_version, "kind": kind.name, **obj}


def _refused(response: urllib3.BaseHTTPResponse) -> Refused:
    try:
        status = json.loads(response.data)
    except ValueError:
        status = {"message": response.data[:200].decode(errors="replace")}
    return Refused(response.status, status.get("reason", ""), status.get("message", ""), details=status.get("details"))
