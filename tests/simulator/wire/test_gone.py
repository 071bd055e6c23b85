"""410 in its three places: in the middle of a list, at the start of a watch, in the middle of one."""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from simulator.kinds import NODE
from simulator.run import Simulation
from simulator.store import Store
from tests.patience import PATIENCE_S
from tests.simulator.wire.objects import a_node

NODES = "/api/v1/nodes"


class Plain:
    """HTTP without any client's mercy."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def lines(self, path: str) -> Iterator[dict[str, Any]]:
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.getheader("transfer-encoding") == "chunked"
        while line := answer.readline():
            yield json.loads(line)


@pytest.fixture
def plain(simulation: Simulation) -> Plain:
    return Plain(simulation.url)


@pytest.fixture(scope="module")
def store(simulation: Simulation) -> Store:
    for index in range(5):
        simulation.store.seed(NODE, a_node(f"gpu-{index}"))
    return simulation.store


def test_a_continue_token_that_is_too_old_answers_410_with_a_token_that_goes_on(plain: Plain, store: Store) -> None:
    _, first = plain.get(f"{NODES}?limit=2")
    store.expire()

    code, status = plain.get(f"{NODES}?limit=2&continue={first['metadata']['continue']}")
    _, rest = plain.get(f"{NODES}?limit=9&continue={status['metadata']['continue']}")

    assert (code, status["code"], status["reason"]) == (410, 410, "Expired")
    assert status["message"].startswith("The provided continue parameter is too old to display a consistent list")
    assert [item["metadata"]["name"] for item in rest["items"]] == ["gpu-2", "gpu-3", "gpu-4"]


def test_a_token_of_our_own_making_is_a_bad_request(plain: Plain, store: Store) -> None:
    code, status = plain.get(f"{NODES}?limit=2&continue=nonsense")

    assert (code, status["reason"]) == (400, "BadRequest")


def test_a_watch_from_a_forgotten_version_answers_410(plain: Plain, store: Store) -> None:
    _, listed = plain.get(NODES)
    store.expire()

    code, status = plain.get(f"{NODES}?watch=true&resourceVersion={listed['metadata']['resourceVersion']}")

    assert (code, status["reason"]) == (410, "Expired")
    assert status["message"].startswith("too old resource version: ")


def test_a_watch_whose_past_is_forgotten_gets_an_error_event_and_ends(plain: Plain, store: Store) -> None:
    _, listed = plain.get(NODES)
    lines = plain.lines(f"{NODES}?watch=true&timeoutSeconds=5&resourceVersion={listed['metadata']['resourceVersion']}")
    store.patch(NODE, "gpu-0", {"metadata": {"labels": {"turn": listed["metadata"]["resourceVersion"]}}}, how="merge")
    first = next(lines)

    store.expire()
    rest = list(lines)

    assert first["type"] == "MODIFIED"
    assert [(line["type"], line["object"]["code"], line["object"]["reason"]) for line in rest] == [
        ("ERROR", 410, "Expired")
    ]


def test_an_exact_list_of_a_forgotten_version_answers_410(plain: Plain, store: Store) -> None:
    _, listed = plain.get(NODES)
    version = listed["metadata"]["resourceVersion"]
    store.expire()

    code, status = plain.get(f"{NODES}?resourceVersion={version}&resourceVersionMatch=Exact")

    assert (code, status["reason"]) == (410, "Expired")


def test_a_watch_from_zero_or_from_nothing_begins_with_what_is_there(plain: Plain, store: Store) -> None:
    for version in ("resourceVersion=0", "resourceVersion=", ""):
        lines = plain.lines(f"{NODES}?watch=true&timeoutSeconds=1&{version}")

        seen = [next(lines) for _ in range(5)]

        assert [line["type"] for line in seen] == ["ADDED"] * 5
        assert list(lines) == []


def test_bookmarks_come_before_the_end_and_carry_the_version_to_go_on_from(plain: Plain, store: Store) -> None:
    _, listed = plain.get(NODES)
    version = listed["metadata"]["resourceVersion"]

    lines = list(plain.lines(f"{NODES}?watch=true&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={version}"))

    assert [line["type"] for line in lines] == ["BOOKMARK"]
    assert (lines[0]["object"]["kind"], lines[0]["object"]["apiVersion"]) == ("Node", "v1")
    assert int(lines[0]["object"]["metadata"]["resourceVersion"]) >= int(version)


def test_initial_events_end_with_an_annotated_bookmark(plain: Plain, store: Store) -> None:
    asked = (
        "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    )

    lines = plain.lines(f"{NODES}?{asked}")
    seen = [next(lines) for _ in range(6)]
    list(lines)

    assert [line["type"] for line in seen] == ["ADDED"] * 5 + ["BOOKMARK"]
    assert seen[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_initial_events_without_the_match_are_refused(plain: Plain, store: Store) -> None:
    code, status = plain.get(f"{NODES}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true")

    assert (code, status["reason"]) == (422, "Invalid")
    assert "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan" in status["message"]
