"""What a simulated API server was asked, as rights, and whether those of a start are these."""

from collections.abc import Callable, Iterable
from typing import Any

from kube import client
from kube.client import AccessAsked
from simulator.rbac import Act
from simulator.wire.access import act_of
from simulator.wire.paths import parse
from tests.rollouts.engine.ground import Ground


def asked_in(ground: Ground, act: Callable[[], object]) -> set[Act]:
    """While it went on. Each as the RBAC authorizer is asked about it."""
    log = ground.simulation.log
    for _ in range(2):  # an answer is logged once it is sent: by the next one, the last ones are
        client.server_version(ground.connection)
    since = log.since(0)[-1]["n"]
    act()
    client.server_version(ground.connection)
    return {found for one in log.since(since) if (found := _as_act(one)).resource}


def _as_act(one: dict[str, Any]) -> Act:
    return act_of(one["method"], one["path"], parse(one["path"]), is_watch=False)


def unnamed(acts: Iterable[Act], rights: Iterable[AccessAsked]) -> set[Act]:
    """Those that none of the rights covers."""
    rights = list(rights)
    return {act for act in acts if not any(_covers(right, act) for right in rights)}


def unused(acts: Iterable[Act], rights: Iterable[AccessAsked]) -> list[AccessAsked]:
    acts = list(acts)
    return [right for right in rights if not any(_covers(right, act) for act in acts)]


def _covers(right: AccessAsked, act: Act) -> bool:
    is_what = (right.verb, right.resource.group, right.resource.plural) == (act.verb, act.group, act.what)
    return is_what and right.namespace in ("", act.namespace) and right.name in ("", act.name)
