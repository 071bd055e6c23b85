"""From Quarterdeck's connection to the API server, in this process: no socket, and all else as on the wire.

It stands in the place of urllib3's pool. The request is read, refused, answered and logged by the simulator's own code.
"""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import urllib3
from kubernetes.client import ApiClient, Configuration
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from benchmarks.crashing.clock import VirtualClock
from benchmarks.crashing.seams import Fault, Seams
from kube.client.connection import Connection
from simulator.actors.diag_report import diag_lines, runs_diag
from simulator.clock import micro_stamp
from simulator.pod_ends import PodEnds
from simulator.refusals import Refused
from simulator.request_log import Entry
from simulator.store import Store
from simulator.wire.access import ADMIN, Access, Authorization, act_of
from simulator.wire.answers import Answer, of_refusal
from simulator.wire.api import Api
from simulator.wire.asks import Ask
from simulator.wire.closing import Closing
from simulator.wire.paths import parse

SERVER = "http://in-process"
REFUSALS = {
    Fault.CONFLICT: Refused(409, "Conflict", "the object has been modified; please apply your changes to the latest"),
    Fault.THROTTLED: Refused(429, "TooManyRequests", "too many requests, please try again later", retry_after_s=1),
    Fault.FAILING: Refused(500, "InternalError", "an error on the server has prevented the request from succeeding"),
}
WRITES = {"POST", "PUT", "PATCH", "DELETE"}
LEASES = "/leases"


@dataclass
class Late:
    """A write on its way: its sender has given it up, and it takes effect when it arrives."""

    ask: Ask
    at: str
    user: str  # whose turn it was


class Line:
    """Everybody who asks the API server asks here, and is in its log."""

    def __init__(self, store: Store, clock: VirtualClock, seams: Seams) -> None:
        self.store, self.clock, self.seams = store, clock, seams
        self.log: list[dict[str, Any]] = []
        self.late: list[Late] = []
        self._api = Api(store, Access(store, Authorization.ALLOW), PodEnds(read_log=_log_of), closing=Closing())

    def begin_log(self) -> None:
        self.log = []

    # In the place of urllib3's pool

    def request(
        self, method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, **_: Any
    ) -> urllib3.HTTPResponse:
        """:raises urllib3.exceptions.HTTPError: where the network fails"""
        parts = urlsplit(url)
        known = {name.lower(): value for name, value in (headers or {}).items()}
        ask = Ask(method, parts.path, parts.query, known, body or b"", ADMIN, parse(parts.path))
        if method in WRITES:
            self.seams.pass_one(is_over=False)
        fault = self.seams.next_fault(method, parts.path, ask.body)
        if fault is Fault.LATE and method in WRITES and LEASES not in parts.path:
            self.late.append(Late(ask, micro_stamp(self.clock.moment()), self._user))
        answer = None if fault in {Fault.RESET_BEFORE, Fault.LATE} else self._answer(ask, fault)
        self.seams.pass_one(is_over=True)
        if answer is None or fault is Fault.RESET_AFTER:
            raise ProtocolError("Connection aborted.", ConnectionResetError(104, "Connection reset by peer"))
        if fault is Fault.TIMEOUT_AFTER:
            raise ReadTimeoutError(None, url, "Read timed out.")  # type: ignore[arg-type]
        return _response(answer)

    def clear(self) -> None:
        """As a pool that lets its connections go."""

    def arrive(self) -> None:
        """What was late takes effect."""
        for late in self.late:
            self._log(late.ask, _answered(self._api, late.ask), late.at, late.user)
        self.late.clear()

    # For whoever else lives in the cluster

    def notify(self, who: str, method: str, path: str, body: Any = None, *, content_type: str = "") -> Answer:
        """Of the operator, and of people with kubectl: their requests never fail on the way."""
        kind = content_type or ("application/merge-patch+json" if method == "PATCH" else "application/json")
        headers = {"user-agent": who, "content-type": kind}
        sent = b"" if body is None else json.dumps(body).encode()
        return self._answer(Ask(method, path, "", headers, sent, ADMIN, parse(path)), None)

    def note_post(self, url: str, body: dict[str, Any], *, code: int) -> None:
        """Logs a request of ours that went past the API server, to a receiver."""
        ask = Ask("POST", url, "", {"user-agent": "quarterdeck/receivers"}, json.dumps(body).encode(), ADMIN, None)
        self._log(ask, Answer(status=code), micro_stamp(self.clock.moment()), self._user)

    def _answer(self, ask: Ask, fault: Fault | None) -> Answer:
        at = micro_stamp(self.clock.moment())
        answer = of_refusal(REFUSALS[fault]) if fault in REFUSALS else _answered(self._api, ask)
        self._log(ask, answer, at, self._user)
        return answer

    @property
    def _user(self) -> str:
        """Blank: nobody's turn."""
        turn = self.seams.turn
        return f"{turn.of}-{turn.number}" if turn and turn.number else ""

    def _log(self, ask: Ask, answer: Answer, at: str, user: str) -> None:
        entry = Entry(
            n=len(self.log) + 1,
            at=at,
            verb=act_of(ask.method, ask.path, ask.target, is_watch=False).verb,
            method=ask.method,
            path=ask.path,
            query=ask.query_string,
            user_agent=ask.headers.get("user-agent", ""),
            user=user or ask.user.name,
            code=answer.status,
            took_ms=0.0,
            body=ask.json() if ask.method in WRITES and ask.body else None,
        )
        self.log.append(entry.as_json())


def _log_of(pod: dict[str, Any], _container: str, _is_previous: bool) -> list[str]:  # noqa: FBT001
    """Returns what a test prints that has passed."""
    container = pod["spec"]["containers"][0]["name"]
    lines = diag_lines(pod, container) if runs_diag(pod, container) else ["It has run."]
    return [f"{pod['metadata']['creationTimestamp']} {line}" for line in lines]


def _answered(api: Api, ask: Ask) -> Answer:
    try:
        return api.answer(ask)
    except Refused as refusal:
        return of_refusal(refusal)


def _response(answer: Answer) -> urllib3.HTTPResponse:
    headers = {"content-type": answer.content_type, **answer.headers}
    return urllib3.HTTPResponse(io.BytesIO(answer.body), headers, answer.status, preload_content=False)


def connecting(line: Line) -> Callable[[str, str], Connection]:
    """In the place of `kube.client.connect`."""
    settings = Configuration(host=SERVER)
    settings.api_key = {}

    def connect(_kubeconfig: str, _context: str) -> Connection:
        client = ApiClient(settings)
        client.rest_client.pool_manager = line
        return Connection(client)

    return connect
