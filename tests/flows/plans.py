"""A plan as two people drive it over REST, and what the API server was asked in its course."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

from demo.visitor import RefusedError, Visitor, wait_until
from operations.stop_switch import STOP_SWITCH
from tests.flows.asked import Asked
from tests.flows.cluster import HOLD, PATIENCE_S, Cluster
from tests.flows.proxy import Proxy

VERSIONS = ("580.126.20", "580.95.05", "580.105.08")
BAD = "580.142.10"  # under which tenants' GPU pods crash
MISSING = "580.167.01"  # of which the registry has no image
GATES: dict[str, dict[str, float]] = {
    "compatibility": {"allow_unknown": True},
    "driver_version": {},
    "operands_ready": {},
    "validator_passed": {},
    "allocatable_restored": {},
    "mig_state": {},
    "workloads_ready": {},
    "failure_budget": {"tolerate": 0},
    "soak": {"duration_s": 1},
}
APPROVED = {"approval": {"needed": 1}, **GATES}
PAUSE_S = 1.0  # a plan with its gates is the most that the web process is asked for
FINAL = {"promoted", "rolled-back", "aborted", "discarded"}
Shown = dict[str, Any]


def canary(count: int = 1, **more: Any) -> Shown:
    """It waits for an approval, so that a flow can do things before anything goes."""
    return {"name": "Canary", "kind": "canary", "count": count, "max_unavailable": 1, "gate_options": APPROVED} | more


def the_others(**more: Any) -> Shown:
    """Nobody is asked about it: the flows' cluster says “approval: none”."""
    return {"name": "The others", "kind": "pool", "max_unavailable": 1, "gate_options": GATES} | more


class Plan:
    """One promotion of one NVIDIADriver."""

    def __init__(self, driver: str, operator: Visitor, approver: Visitor, cluster: Cluster, proxy: Proxy) -> None:
        self.driver = driver
        self.operator, self.approver = operator, approver
        self.cluster, self.proxy = cluster, proxy
        self.from_version = cluster.version(driver)
        self.since = proxy.count
        self.id = 0

    @property
    def path(self) -> str:
        return f"/api/v1/plans/{self.id}"

    def draft(self, *stages: Shown, to: str = "") -> "Plan":
        driver_object = wait_until(self._driver_object, what="the object as it is", timeout_s=PATIENCE_S)
        self.to_version = to or next(version for version in VERSIONS if version != self.from_version)
        asked = {
            "driver_object": driver_object,
            "to_version": self.to_version,
            "stages": stages or (canary(), the_others()),
        }
        self.id = self.operator.post("/api/v1/plans", asked)["id"]
        return self

    def _driver_object(self) -> int | None:
        """Its number, once Quarterdeck has seen it as it is now."""
        rows = self.operator.all("/api/v1/driver-objects")
        return next(
            (row["id"] for row in rows if (row["name"], row["version"]) == (self.driver, self.from_version)), None
        )

    def start(self) -> "Plan":
        self._ask_for_start()
        self.until(lambda shown: shown["state"] != "draft", "a plan that its cluster lets start")
        return self

    def start_in_vain(self) -> Shown:
        """Started, and left a draft by what its cluster itself says."""
        self._ask_for_start()
        return self.until(lambda shown: shown["why"].startswith("Not started: "), "a start that is not made")

    def _ask_for_start(self) -> None:
        wait_until(self._is_start_taken, what=lambda: f"a plan that may start: {self.blockers()}", timeout_s=PATIENCE_S)

    def _is_start_taken(self) -> bool:
        """On a busy machine a watch may end between what the preview says and the start, which is refused then."""
        if self.blockers():
            return False
        try:
            self.operator.post(
                f"{self.path}/starts", {"reason": "To see it go.", "expected_revision": self.now()["revision"]}
            )
        except RefusedError as refusal:
            if "is not seen" not in str(refusal):
                raise
            return False
        return True

    def live_answers(self) -> dict[str, Shown]:
        """What its cluster itself said last, by code."""
        shown = self.operator.get(f"{self.path}/live-checks")["live_check"]
        return {one["check"]["code"]: one for one in shown["answers"]}

    def blockers(self) -> list[str]:
        return [blocker["title"] for blocker in self.operator.get(f"{self.path}/preview")["blockers"]]

    def now(self) -> Shown:
        return dict(self.operator.get(self.path))

    def notify(self, verb: str, reason: str = "A flow wants it.") -> None:
        self.operator.post(f"{self.path}/{verb}", {"reason": reason})

    def until(self, is_so: Callable[[Shown], object], what: str, timeout_s: float = PATIENCE_S) -> Shown:
        def look() -> Shown | None:
            shown = self.now()
            return shown if is_so(shown) else None

        shown = wait_until(
            look,
            what=lambda: f"{what}; {told(self.now())}",
            timeout_s=timeout_s,
            longest_pause_s=PAUSE_S,
        )
        return shown or {}

    def until_state(self, *states: str) -> Shown:
        """Wait for one of them; a plan that has ended otherwise will not get there."""
        shown = self.until(lambda shown: shown["state"] in {*states, *FINAL, "halted"}, f"a plan that is {states}")
        assert shown["state"] in states, told(shown)
        return shown

    def until_opening(self) -> "Plan":
        """Wait until the version is written and the canary waits for its approval."""
        self.until(lambda shown: waits_for_approval(shown["stages"][0]), "a canary that waits for its approval")
        return self

    def seen_cordoned(self) -> list[str]:
        """The nodes that Quarterdeck sees cordoned."""
        return [node["name"] for node in self.operator.all("/api/v1/nodes", is_unschedulable="true")]

    def until_looked_twice(self) -> None:
        """Wait until a whole round has been gone through: the second to begin begins after the first has ended."""
        before = self.looks()
        wait_until(lambda: self.looks() >= before + 2, what="two more rounds", timeout_s=PATIENCE_S)

    def looks(self) -> int:
        """How many rounds have begun in this cluster of this plan's time: each asks for the stop switch."""
        return len(
            [asked for asked in self.requests() if asked.method == "GET" and asked.path.endswith(f"/{STOP_SWITCH}")]
        )

    def until_said(self, words: str) -> Shown:
        return self.until(lambda shown: words in shown["waiting_for"] or words in shown["reason"], f"“{words}”")

    def page(self, part: str = "") -> str:
        """The text of the plan's page, or of a part that it loads, as one line without its tags."""
        answer = self.operator.http.get(f"/parts/plans/{self.id}/{part}" if part else f"/plans/{self.id}")
        return " ".join(unescape(re.sub("<[^>]*>", " ", answer.raise_for_status().text)).split())

    def until_shown(self, words: str) -> str:
        """Wait until the page has these words; returns its text."""
        return wait_until(
            lambda: text if words in (text := self.page()) else "",
            what=lambda: f"“{words}”; {told(self.now())} {self.page()[:3000]}",
            timeout_s=PATIENCE_S,
        )

    def bundle(self, stage: int = 0) -> Shown:
        return dict(self.approver.get(f"/api/v1/stages/{self.stage_id(stage)}/bundle"))

    def approve(self, stage: int = 0, *, bundle_hash: str = "", by: Visitor | None = None) -> None:
        decision = {"decision": "approve", "bundle_hash": bundle_hash or self.bundle(stage)["hash"], "reason": "Seen."}
        (by or self.approver).post(f"/api/v1/stages/{self.stage_id(stage)}/approvals", decision)

    def stage_id(self, stage: int) -> int:
        return int(self.now()["stages"][stage]["id"])

    def stage(self, stage: int) -> Shown:
        return dict(self.operator.get(f"/api/v1/stages/{self.stage_id(stage)}"))

    def targets(self, stage: int) -> dict[str, str]:
        """Node → the state of its target, in the order of release."""
        return {target["node"]: target["state"] for target in self.stage(stage)["targets"]}

    def all_targets(self) -> list[str]:
        forward = [stage for stage in self.now()["stages"] if stage["kind"] != "rollback"]
        return [name for number in range(len(forward)) for name in self.targets(number)]

    def requests(self) -> list[Asked]:
        return self.proxy.requests(self.since)

    def releases(self) -> list[Asked]:
        """The writes that took the hold from a node, as the API server has them."""
        return [asked for asked in self.requests() if is_release(asked) and asked.is_forwarded and asked.code == 200]

    def released(self) -> list[str]:
        return [node_of(asked) for asked in self.releases()]

    def end(self) -> None:
        """Give it up, if it is not over."""
        state = self.now()["state"]
        if state == "draft":
            self.notify("discards")
        elif state not in FINAL:
            if state != "aborting":
                self.notify("aborts", "The flow is over.")
            self.until(lambda shown: shown["state"] in FINAL, "the end of a plan that was given up")


def waits_for_approval(stage: Shown) -> bool:
    return stage["state"] == "opening" and any(
        said["gate"] == "approval" and said["answer"] == "wait" for said in stage["answers"]
    )


def told(shown: Shown) -> str:
    answers = [
        f"{said['gate']} {said['answer']}: {said['title']}" for stage in shown["stages"] for said in stage["answers"]
    ]
    return f"plan {shown['id']} is {shown['state']}: {shown['reason']} {shown['waiting_for']} {answers}"


def is_release(asked: Asked) -> bool:
    return _takes_hold(asked, "remove")


def is_hold(asked: Asked) -> bool:
    return _takes_hold(asked, "add") or _takes_hold(asked, "replace")


def _takes_hold(asked: Asked, op: str) -> bool:
    if asked.method != "PATCH" or not asked.is_write or not asked.path.startswith("/api/v1/nodes/"):
        return False
    return any(step["op"] == op and step["path"].endswith(HOLD.replace("/", "~1")) for step in asked.body)


def is_version_write(asked: Asked) -> bool:
    return asked.method == "PATCH" and asked.is_write and "/nvidiadrivers/" in asked.path


def node_of(asked: Asked) -> str:
    return asked.path.rpartition("/")[2]


def refused(act: Callable[[], object]) -> RefusedError:
    """The refusal that an act meets."""
    try:
        act()
    except RefusedError as refusal:
        return refusal
    raise AssertionError("it was not refused")
