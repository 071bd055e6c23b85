"""POST pods/eviction and pods/binding: the two ways a pod is moved without being written."""

from simulator.refusals import bad_request
from simulator.store import Store
from simulator.wire.answers import Answer, success
from simulator.wire.asks import Ask
from simulator.wire.paths import Target
from simulator.wire.writing import deletion_wishes


def evict(store: Store, ask: Ask, target: Target) -> Answer:
    body = ask.mapping()
    name = (body.get("metadata") or {}).get("name")
    if name != target.name:
        raise bad_request("name in URL does not match name in Eviction object")
    wishes = deletion_wishes(ask, body.get("deleteOptions") or {})
    del wishes["propagation"]
    store.evict(target.name, target.namespace, **wishes)
    return success(201)


def bind(store: Store, ask: Ask, target: Target) -> Answer:
    wanted = ask.mapping().get("target") or {}
    if not wanted.get("name"):
        raise bad_request("target.name: Required value")
    store.bind(target.name, target.namespace, wanted["name"])
    return success(201)
