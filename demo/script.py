"""Plays the timetable in the simulated cluster, over HTTP: puts faults on, and makes what teams ask for."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from demo.teams import H100, PRODUCT
from demo.timetable import Scene, timetable

FAULTS = "/simulator/faults"
NODES = "/api/v1/nodes"
WHOLE = "nvidia.com/mig.config=all-disabled"  # GPUs that nobody has cut
NODES_AT_MOST = 500
THERE_ALREADY, GONE_ALREADY = 409, 404
TIMEOUT_S = 10.0
A_MINUTE_S = 60.0


class NoAnswerError(Exception):
    """The simulator does not answer."""


class Script:
    """Knows which scenes are on. Minutes count from the first look, so that each start of the demo plays all of it."""

    def __init__(self, url: str, seed: int, *, say: Callable[[str], None], minute_s: float = A_MINUTE_S) -> None:
        """`minute_s`: how many seconds a minute of the timetable takes."""
        self._url = url
        self._seed = seed
        self._say = say
        self._minute_s = minute_s
        self._began_s: float | None = None
        self._scenes: list[Scene] = []
        # By place in the timetable. What is not in it yet, an earlier start of the demo may have left on.
        self._is_on: dict[int, bool] = {}

    def play(self, now_s: float) -> None:
        """Begin and end what is due by now.

        :raises NoAnswerError: the next look does what is left
        """
        if self._began_s is None:
            self._scenes = timetable(self._nodes(), self._seed)
            self._began_s = now_s
        minute = (now_s - self._began_s) / self._minute_s
        for place, scene in enumerate(self._scenes):
            is_due, was_on = scene.is_on(minute), self._is_on.get(place)
            if is_due == was_on:
                continue
            if is_due:
                self._begin(scene)
            else:
                self._end(scene)
            self._is_on[place] = is_due
            words = scene.says if is_due else scene.ended
            if words and (is_due or was_on):
                self._say(f"Minute {minute:.0f}: {words}")

    def _begin(self, scene: Scene) -> None:
        if scene.fault:
            self._ask("POST", FAULTS, scene.fault)
        for made in scene.made:
            self._ask("POST", made.path, made.body, unless=THERE_ALREADY)

    def _end(self, scene: Scene) -> None:
        if scene.fault:
            self._ask("DELETE", f"{FAULTS}?{urlencode(scene.fault)}")
        for made in reversed(scene.made):
            self._ask("DELETE", made.own_path, unless=GONE_ALREADY)

    def _nodes(self) -> list[str]:
        asked = urlencode({"labelSelector": f"{PRODUCT}={H100},{WHOLE}", "limit": NODES_AT_MOST})
        return [node["metadata"]["name"] for node in self._ask("GET", f"{NODES}?{asked}").get("items", [])]

    def _ask(self, verb: str, path: str, body: Mapping[str, Any] | None = None, *, unless: int = 0) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(  # noqa: S310 (the simulator's address)
            self._url + path, data=sent, method=verb, headers={"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            if refusal.code != unless:  # somebody may have taken a namespace away: the demo goes on without
                self._say(f"The cluster refused {verb} {path}: {refusal.code} {refusal.reason}.")
            return {}
        except OSError as error:
            raise NoAnswerError(f"{verb} {path}: {error}") from error
