"""GET pods/log and pods/proxy."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from simulator.kinds import POD
from simulator.pod_ends import Pace, PodEnds
from simulator.refusals import Refused, bad_request
from simulator.store import Store
from simulator.wire.answers import Answer
from simulator.wire.asks import Ask
from simulator.wire.closing import Closing
from simulator.wire.paths import Target

FOLLOW_EVERY_S = 0.25
DRIPS_EVERY_S = 1.0
PLAIN = "text/plain"


def log(store: Store, ends: PodEnds, ask: Ask, target: Target, *, closing: Closing) -> Answer:
    pod = store.get(POD, target.name, target.namespace)
    container = _container(pod, ask.query.get("container", ""))
    lines = _lines(ends, ask, pod, container)
    if not ask.flag("follow"):
        return Answer(body=_text(ask, _tail(ask, lines)).encode(), content_type=PLAIN)
    pieces = _follow(store, ends, ask, target, container, closing=closing)
    return Answer(pieces=pieces, content_type=PLAIN)


def _container(pod: dict[str, Any], asked: str) -> str:
    spec, name = pod["spec"], pod["metadata"]["name"]
    main = [container["name"] for container in spec["containers"]]
    initial = [container["name"] for container in spec.get("initContainers") or ()]
    if asked and asked not in main + initial:
        raise bad_request(f"container {asked} is not valid for pod {name}")
    if not asked and len(main) > 1:
        choices = f"[{' '.join(main)}]" + (f" or one of the init containers: [{' '.join(initial)}]" if initial else "")
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: {choices}")
    if not spec.get("nodeName"):
        raise bad_request(f"pod {name} does not have a host assigned")
    return asked or main[0]


def _lines(ends: PodEnds, ask: Ask, pod: dict[str, Any], container: str) -> list[str]:
    lines = ends.read_log(pod, container, ask.flag("previous"))
    if lines is None:
        before = "previous terminated " if ask.flag("previous") else ""
        name = pod["metadata"]["name"]
        raise bad_request(f'{before}container "{container}" in pod "{name}" not found')
    return lines


def _tail(ask: Ask, lines: list[str]) -> list[str]:
    if "tailLines" not in ask.query:
        return lines
    wanted = ask.number("tailLines")
    return lines[-wanted:] if wanted else []


def _text(ask: Ask, lines: list[str]) -> str:
    shown = lines if ask.flag("timestamps") else [line.partition(" ")[2] for line in lines]
    return "".join(f"{line}\n" for line in shown)


async def _follow(
    store: Store, ends: PodEnds, ask: Ask, target: Target, container: str, *, closing: Closing
) -> AsyncIterator[bytes]:
    """New lines as they come, until the pod is gone."""
    pod = store.get(POD, target.name, target.namespace)
    lines = _lines(ends, ask, pod, container)
    yield _text(ask, _tail(ask, lines)).encode()
    seen = len(lines)
    while not closing.is_near and (pod["status"].get("phase") not in {"Succeeded", "Failed"}):
        await asyncio.sleep(FOLLOW_EVERY_S)
        try:
            pod = store.get(POD, target.name, target.namespace)
        except Refused:
            return
        lines = _lines(ends, ask, pod, container)
        if len(lines) > seen:
            yield _text(ask, lines[seen:]).encode()
            seen = len(lines)


def proxy(store: Store, ends: PodEnds, target: Target, *, closing: Closing) -> Answer:
    """`pods/NAME:PORT/proxy/PATH`; without a port the first that the pod names."""
    name, _, rest = target.name.removeprefix("http:").partition(":")
    pod = store.get(POD, name, target.namespace)
    reader = ends.ports.get(_port(pod, rest))
    served = reader(pod, target.rest) if reader is not None and _is_reachable(pod) else None
    if served is None:
        address = f"{(pod.get('status') or {}).get('podIP', '')}:{_port(pod, rest)}"
        why = f"error trying to reach service: dial tcp {address}: connect: connection refused"
        raise Refused(503, "ServiceUnavailable", why)
    if served.pace is Pace.AT_ONCE:
        return Answer(served.status, served.body, served.content_type)
    pieces = _dripping(served.body, closing) if served.pace is Pace.DRIP else _nothing(closing)
    return Answer(served.status, content_type=served.content_type, pieces=pieces, waits=served.pace is Pace.NEVER)


async def _dripping(body: bytes, closing: Closing) -> AsyncIterator[bytes]:
    for at in range(len(body)):
        if closing.is_near:
            return
        yield body[at : at + 1]
        await asyncio.sleep(DRIPS_EVERY_S)


async def _nothing(closing: Closing) -> AsyncIterator[bytes]:
    """Until whoever asked gives up."""
    while not closing.is_near:  # noqa: ASYNC110 - what is near is said from another thread, too
        await asyncio.sleep(FOLLOW_EVERY_S)
    yield b""


def _is_reachable(pod: dict[str, Any]) -> bool:
    return bool((pod.get("status") or {}).get("phase") == "Running")


def _port(pod: dict[str, Any], asked: str) -> int:
    named = {
        port.get("name", ""): port["containerPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
    }
    if asked.isdigit():
        return int(asked)
    return int(named.get(asked) or next(iter(named.values()), 80))
