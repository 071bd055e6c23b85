"""One plan, driven through REST by its operator and approved by somebody else."""

from collections.abc import Callable
from typing import Any

from demo.visitor import RefusedError, Visitor, wait_until

PLAN_S = 90.0
# What a plan asks of every stage. Soak is seconds here: the fleet's own clock runs faster than ours.
GATES = {
    "approval": {"needed": 1},
    "compatibility": {"allow_unknown": True},
    "driver_version": {},
    "operands_ready": {},
    "validator_passed": {},
    "allocatable_restored": {},
    "mig_state": {},
    "workloads_ready": {},
    "failure_budget": {"tolerate": 0},
    "soak": {"duration_s": 3},
}
Shown = dict[str, Any]


class Promotion:
    """A plan as both people see it."""

    def __init__(self, operator: Visitor, approver: Visitor, *, driver_object: int, to_version: str) -> None:
        self.operator = operator
        self.approver = approver
        self.driver_object = driver_object
        self.to_version = to_version
        self.id = 0

    @property
    def path(self) -> str:
        return f"/api/v1/plans/{self.id}"

    def draft(self, *, canaries: int, at_once: int) -> None:
        """Write it down: a canary, then everything that is left."""
        stages = [
            {"name": "Canary", "kind": "canary", "count": canaries, "max_unavailable": at_once, "gate_options": GATES},
            {"name": "The others", "kind": "pool", "max_unavailable": at_once, "gate_options": GATES},
        ]
        wanted = {"driver_object": self.driver_object, "to_version": self.to_version, "stages": stages}
        self.id = self.operator.post("/api/v1/plans", wanted)["id"]

    def start(self) -> None:
        """Seal it, once nothing stands in its way."""
        wait_until(
            lambda: not self.blockers(), what=lambda: f"a plan that may start: {self.blockers()}", timeout_s=20.0
        )
        self.operator.post(
            f"{self.path}/starts", {"reason": "To see it go.", "expected_revision": self.now()["revision"]}
        )
        wait_until(lambda: self.now()["state"] != "draft", what=lambda: f"a start: {self.now()['why']}", timeout_s=30.0)

    def blockers(self) -> list[str]:
        """Why it may not start."""
        return [blocker["title"] for blocker in self.operator.get(f"{self.path}/preview")["blockers"]]

    def tell(self, verb: str, reason: str) -> None:
        """Give it a command: halts, resumptions, rollbacks."""
        self.operator.post(f"{self.path}/{verb}", {"reason": reason})

    def now(self) -> Shown:
        """What the plan's page is made from."""
        return dict(self.operator.get(self.path))

    def drive_until(self, is_there: Callable[[Shown], bool], *, what: str) -> Shown:
        """Approve each stage when its turn comes, until the plan is where it is wanted."""

        def look() -> Shown | None:
            shown = self.now()
            self.approve_what_waits(shown)
            return shown if is_there(shown) else None

        def described() -> str:
            shown = self.now()
            return f"{what}; the plan is {shown['state']}: {shown['reason']} {shown['waiting_for']}"

        return wait_until(look, what=described, timeout_s=PLAN_S) or {}

    def approve_what_waits(self, shown: Shown) -> None:
        """Approve the stage whose gate waits for it, on exactly the bundle that is shown."""
        for stage in shown["stages"]:
            waits = any(said["gate"] == "approval" and said["answer"] == "wait" for said in stage["answers"])
            if stage["state"] == "opening" and waits and not any(one["is_standing"] for one in stage["approvals"]):
                self.approve(stage["id"])

    def approve(self, stage_id: int) -> None:
        """One that has changed since it was read is read again at the next look."""
        bundle = self.approver.get(f"/api/v1/stages/{stage_id}/bundle")
        decision = {"decision": "approve", "bundle_hash": bundle["hash"], "reason": "As seen."}
        try:
            self.approver.post(f"/api/v1/stages/{stage_id}/approvals", decision)
        except RefusedError as refusal:
            if refusal.status != 409:
                raise

    def stages(self) -> list[Shown]:
        """Every stage on the way forward, with what its gates have said until now."""
        forward = [stage for stage in self.now()["stages"] if stage["kind"] != "rollback"]
        return [self.operator.get(f"/api/v1/stages/{stage['id']}") for stage in forward]

    def gates_that_waited(self) -> set[str]:
        """Every gate that has answered WAIT at least once."""
        said = [answer for stage in self.stages() for answer in (*stage["answers"], *stage["history"])]
        return {answer["gate"] for answer in said if answer["answer"] == "wait"}
