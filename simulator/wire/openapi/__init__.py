"""The schemas by which kubectl explains, and learns what the server can check."""

from simulator.store import Store
from simulator.wire.answers import Answer, of_json
from simulator.wire.asks import Ask
from simulator.wire.openapi import gnostic, v2, v3

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""Asked for with an `@`; answered without, in the form that is a legal content type."""


def answer(store: Store, ask: Ask, path: str) -> Answer | None:
    if path == "/openapi/v2":
        return _v2(store, ask)
    if path == "/openapi/v3":
        return of_json(v3.index(store))
    base = path.removeprefix("/openapi/v3/")
    found = v3.document(store, base) if base != path else None
    return None if found is None else of_json(found)


def _v2(store: Store, ask: Ask) -> Answer:
    body = v2.document(store)
    asked = ask.accept.partition(",")[0].strip()
    if asked.endswith("+protobuf"):
        return Answer(body=gnostic.encode(body), content_type=PROTOBUF)
    return of_json(body)
