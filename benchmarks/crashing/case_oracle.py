"""What the API server's log says of cases and operations. It shares no rule with them.

Held against it: what people said and were answered, and the rows of breaker and ledger at the end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from benchmarks.crashing.case_actors import HOSTS_PATH
from benchmarks.crashing.case_neighbours import EVENT, IS_CORDONED, PRE_EXISTING, has_no_service
from benchmarks.crashing.case_world import CaseWorld
from benchmarks.crashing.job_reading import JobReading, takes_gpus, test_jobs_at_the_end
from benchmarks.crashing.jobs import node_of
from benchmarks.crashing.nodes_seen import CORDONED_BY, OUT_OF_SERVICE, OUT_OF_SERVICE_BY, NodeSeen, apply, as_seen
from benchmarks.crashing.oracle import JOBS, NODES, OURS, REFUSED, Violation
from benchmarks.crashing.tenants import ALLOWED, PODS, REPLICAS, TRAINING
from benchmarks.crashing.words import Word
from fleet.models import DomainEvent
from maintenance.automatic import ACTOR
from maintenance.models import AutomaticDecision, NodeCase, Repair
from operations.kinds import KINDS
from operations.models import Disruption, Operation, OperationNode, Quarantine
from people.models import AuditEntry
from rollouts.models import PlanPull
from simulator.kinds import JOB, NODE

EVICTION = "/eviction"
DRAINS = list(KINDS["drain"].steps)
SWITCH = "/configmaps/quarterdeck-stop"
OPERATION = "operation-"
MOST_SHARE, MOST_AN_HOUR = 0.05, 3  # of a pool in automatic cases; new ones of a cluster
MOST_REPAIRS = 2  # automatic ones of a case


@dataclass
class Told:
    """What people have said by a moment, and nobody has taken back."""

    is_frozen: bool = False
    is_stopped: bool = False  # the whole fleet
    seen: dict[tuple[str, str], str] = field(
        default_factory=dict
    )  # mark and node → NVSentinel's events that somebody saw
    paused: set[str] = field(default_factory=set)  # marks of operations
    cancelled: set[str] = field(default_factory=set)
    approved: set[str] = field(default_factory=set)
    is_purposeless: bool = False  # the plan needs no image any more, and a sweep has seen that
    is_over: bool = False  # the draft was edited or discarded since its image was asked for
    last: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))  # UID → word → its number

    def hear(self, word: Word, number: float) -> None:
        verb, _, of = word.verb.partition(" ")
        if verb in {"freeze", "lift"}:
            self.is_frozen = verb == "freeze"
            self.is_stopped = self.is_frozen and (self.is_stopped or word.is_stop)
        elif verb == "saw":
            mark, node, events = of.split(" ", 2)
            self.seen[mark, node] = events
        elif verb == "draft":
            self.is_over = of != "asks"
            self.is_purposeless = False
        elif verb == "sweep":
            self.is_purposeless = self.is_over
        elif verb == "pause":
            self.paused.add(of)
        elif verb in {"resume", "retry"}:
            self.paused.discard(of)
        elif verb in {"cancel", "approve"}:
            (self.cancelled if verb == "cancel" else self.approved).add(of)
        else:
            self.last[of][verb] = number

    def why_not_back(self, uid: str) -> str:
        """Returns why a node with an open case may not return. Blank: it may."""
        its = self.last[uid]
        against = max((its[verb] for verb in ("fault", "failed", "boot", "case") if verb in its), default=0)
        if max(its.get("passed", -1), its.get("override", -1)) > against:
            return ""
        return "no test has passed since the last fault or repair, and nobody has overridden it"


class CaseOracle:
    """`cases`: when the case of a node was open, by UID. `nodes_of`: names of nodes by the mark of their operation.
    `past`: UIDs of pods that may go past a budget once that is approved, by the mark of their operation.
    `of_plans`: marks of operations that pull the image of a plan.
    `asking`: until when jobs stay, by the mark of a drain that asks their owners.
    """

    def __init__(
        self, entries: Sequence[Mapping[str, Any]], words: Sequence[Word], nodes: Iterable[dict[str, Any]], *,
        cases: Mapping[str, Sequence[tuple[datetime, datetime | None]]] | None = None,
        nodes_of: Mapping[str, Collection[str]] | None = None,
        past: Mapping[str, str] | None = None,
        of_plans: Collection[str] = (),
        asking: Mapping[str, datetime] | None = None,
    ) -> None:  # fmt: skip
        self.entries, self.words = entries, list(words)
        self.nodes: dict[str, NodeSeen] = {node["metadata"]["name"]: as_seen(node) for node in nodes}
        self.uids = {node["metadata"]["name"]: node["metadata"]["uid"] for node in nodes}
        self.cases = cases_by_node() if cases is None else cases
        self.nodes_of = nodes_by_operation() if nodes_of is None else nodes_of
        self.past = past or {}
        self.of_plans, self.asking = of_plans, asking or {}
        self.pods: dict[str, str] = {}  # name → node, of the pods that run
        self.least = {app: replicas - ALLOWED for app, replicas in REPLICAS.items()}
        self.switched: set[str] = set()  # turns that read the switch
        self.tests: dict[str, tuple[str, int]] = {}  # test Job → UID of its node, words heard when it was made
        self.asked: set[str] = set()  # marks of repairs whose actor has the request
        self.jobs = JobReading()
        self.aware: set[str] = set()  # turns that asked something since the last word
        self.told = Told()
        self.found: list[Violation] = []
        self._heard = 0
        self._at = ""  # of the last request that arrived in time
        self._is_late = False  # the request was sent before others that arrived first

    def read(self) -> list[Violation]:
        for entry in self.entries:
            self._hear(entry["at"])
            if entry["code"] < REFUSED:
                self._take(entry)
        return self.found

    def _hear(self, at: str) -> None:
        self._is_late, self._at = at < self._at, max(at, self._at)
        while self._heard < len(self.words) and self.words[self._heard].at <= at:
            word = self.words[self._heard]
            self._heard += 1
            self.aware.clear()
            self._hear_of_test(word)
            if word.verb.startswith("budget "):
                _, app, least = word.verb.split()
                self.least[app] = int(least)
            self.told.hear(word, self._heard)

    def _hear_of_test(self, word: Word) -> None:
        """A test that passed is as new as its begin; one that failed is as new as its end."""
        verb, _, job = word.verb.partition(" ")
        if verb in {"completed", "broke"} and job in self.tests:
            node_uid, heard = self.tests[job]
            if verb == "completed":
                passed = self.told.last[node_uid].get("passed", 0)
                self.told.last[node_uid]["passed"] = max(passed, heard + 0.5)
            else:
                self.told.last[node_uid]["failed"] = self._heard

    def _take(self, entry: Mapping[str, Any]) -> None:
        is_ours = entry["user_agent"].startswith(OURS)
        if is_ours and is_repair_request(entry):
            self._asks_repair(entry)
        elif JOBS in entry["path"] and entry["method"] in {"POST", "DELETE"}:
            self.found += self.jobs.take(entry, is_ours=is_ours, is_late=self._is_late)
            if is_ours and entry["method"] == "POST":
                self._makes_job(entry)
        else:
            self._take_change(entry, is_ours=is_ours)
        self.aware.add(entry["user"])

    def _asks_repair(self, entry: Mapping[str, Any]) -> None:
        """An actor has a request once: nobody knows what an unclear one has started."""
        mark = entry["user"].rpartition("-")[0]
        if mark in self.asked:
            self._say("repeated_repairs", f"{mark} asks its actor again: {entry['path']}.")
        self.asked.add(mark)
        self._judge_aware(entry, f"{mark} asks its actor")

    def _makes_job(self, entry: Mapping[str, Any]) -> None:
        job, node, mark = entry["body"]["metadata"]["name"], node_of(entry["body"]), entry["user"].rpartition("-")[0]
        if takes_gpus(entry["body"]):
            self.tests[job] = (self.uids.get(node, ""), self._heard)
            if not self.nodes.get(node, NodeSeen()).is_cordoned and entry["user"] in self.aware:
                self._say("tests_beside_pods", f"{job} takes the GPUs of {node}, which is not cordoned.")
        elif self.told.is_frozen and entry["user"] in self.aware and not self._is_late:
            self._say("acts_after_stop", f"{job} is made during a stop or a freeze.")
        elif self.told.is_purposeless and mark in self.of_plans and entry["user"] in self.aware:
            self._say("acts_after_stop", f"{job} is made by {mark}, and its plan needs no image any more.")
        if (mark in self.told.cancelled or mark in self.told.paused) and entry["user"] in self.aware:
            self._say("acts_after_stop", f"{job} is made by {mark}, which was cancelled or paused.")
        if entry["user"] in self.switched and not self._is_late:
            self._say("acts_after_stop", f"{job} is made during a stop.")

    def _judge_aware(self, entry: Mapping[str, Any], says: str) -> None:
        """Whoever has asked anything since a stop or a freeze could know of it."""
        user = entry["user"]
        if ((self.told.is_frozen and user in self.aware) or user in self.switched) and not self._is_late:
            self._say("acts_after_stop", f"{says} during a stop or a freeze.")

    def _take_change(self, entry: Mapping[str, Any], *, is_ours: bool) -> None:
        path, method = entry["path"], entry["method"]
        if path.endswith(EVICTION):
            self._evicts(entry, path.removeprefix(f"{PODS}/").removesuffix(EVICTION))
        elif path.startswith(PODS) and method == "POST":
            self.pods[entry["body"]["metadata"]["name"]] = entry["body"]["spec"]["nodeName"]
        elif path.startswith(PODS) and method == "DELETE":
            if is_ours:
                self._deletes(entry, path)
            self.pods.pop(path.removeprefix(f"{PODS}/"), None)
        elif path.endswith(SWITCH) and method == "GET" and is_ours:
            self.switched.add(entry["user"])
        elif path.startswith(NODES) and method == "PATCH":
            name = path.removeprefix(NODES).removesuffix("/status")
            if is_ours:
                self._writes_node(entry, name)
            if name in self.nodes:
                apply(self.nodes[name], entry["body"])
        elif path == NODES.removesuffix("/") and method == "POST":
            self.nodes[entry["body"]["metadata"]["name"]] = NodeSeen()
            self.uids.pop(entry["body"]["metadata"]["name"], None)

    def _evicts(self, entry: Mapping[str, Any], pod: str) -> None:
        mark = entry["user"].rpartition("-")[0]
        if pod not in self.pods:
            return  # it ends already
        if entry["body"].get("deleteOptions", {}).get("dryRun"):
            return  # it only asks what blocks a drain whose deadline is over
        node, app = self.pods.pop(pod), pod.partition("-")[0]
        left = sum(each.partition("-")[0] == app for each in self.pods)
        until = self.asking.get(mark) if app == TRAINING else None
        if until and datetime.fromisoformat(entry["at"]) < until:
            self._say("jobs_ended_early", f"{mark} evicts {pod} before {until:%H:%M:%S}.")
        if left < self.least.get(app, 0):
            self._say("evictions_over_budget", f"{pod} leaves {left} of {self.least[app]} pods.")
        if node not in self.nodes_of.get(mark, ()):
            self._say("wrong_evictions", f"{mark} evicts {pod}, which is on {node}.")
        if (self.told.is_frozen or entry["user"] in self.switched) and not self._is_late:
            self._say("acts_after_stop", f"{pod} is evicted during a stop or a freeze.")
        self._judge_owner(mark, f"{pod} is evicted")

    def _deletes(self, entry: Mapping[str, Any], path: str) -> None:
        """Only the pod that was approved, under the UID that it had then."""
        mark, body = entry["user"].rpartition("-")[0], entry["body"] or {}
        asked = (body.get("preconditions") or {}).get("uid")
        if asked is None or self.past.get(mark) != asked or mark not in self.told.approved:
            self._say("evictions_over_budget", f"{path} is deleted by {mark}, and nobody approved that.")
        if "gracePeriodSeconds" in body:
            self._say("evictions_over_budget", f"{path} is deleted with another grace period than its own.")
        if (self.told.is_frozen or entry["user"] in self.switched) and not self._is_late:
            self._say("acts_after_stop", f"{path} is deleted during a stop or a freeze.")
        self._judge_owner(mark, f"{path} is deleted")

    def _judge_owner(self, mark: str, says: str) -> None:
        """Nobody calls back what was sent before."""
        if (mark in self.told.cancelled or mark in self.told.paused) and not self._is_late:
            self._say("acts_after_stop", f"{says} by {mark}, which was cancelled or paused.")

    def _writes_node(self, entry: Mapping[str, Any], name: str) -> None:
        mark, node = entry["user"].rpartition("-")[0], self.nodes.get(name, NodeSeen())
        if not mark.startswith(OPERATION):
            return
        if any(is_taint(step) for step in entry["body"]):
            self._taints(entry, name, mark, node)
        steps = [step for step in entry["body"] if step["path"] == "/spec/unschedulable" and step["op"] != "test"]
        if not steps:
            return
        self._judge_owner(mark, f"{name} is written")
        if steps[0]["op"] != "remove" and steps[0].get("value"):
            return
        if (mark, name) in self.told.seen:
            self._cancels(entry, name, mark, node)
        elif not node.annotations.get(CORDONED_BY, "").startswith(OPERATION):
            self._say("foreign_cordons_removed", f"{mark} uncordons {name}, and the cordon is not ours.")
        uid, at = self.uids.get(name, ""), datetime.fromisoformat(entry["at"])
        is_sick = any(began <= at and (ended is None or at < ended) for began, ended in self.cases.get(uid, ()))
        if is_sick and not self._is_late and (reason := self.told.why_not_back(uid)):
            self._say("unvalidated_returns", f"{mark} uncordons {name}: {reason}.")

    def _taints(self, entry: Mapping[str, Any], name: str, mark: str, node: NodeSeen) -> None:
        if not (node.is_silent and node.is_cordoned):
            self._say("wrong_taints", f"{mark} marks {name} out of service, which reports or takes pods.")
        if mark not in self.told.approved:
            self._say("wrong_taints", f"{mark} marks {name} out of service, and nobody approved that.")
        if (self.told.is_frozen or entry["user"] in self.switched) and not self._is_late:
            self._say("acts_after_stop", f"{name} is marked out of service during a stop or a freeze.")
        self._judge_owner(mark, f"{name} is marked out of service")

    def _cancels(self, entry: Mapping[str, Any], name: str, mark: str, node: NodeSeen) -> None:
        """NVSentinel's cordon goes with the events that somebody saw, and no cordon but its own and ours."""
        marks, is_ours = node.annotations, node.annotations.get(CORDONED_BY, "").startswith(OPERATION)
        if IS_CORDONED not in marks or marks.get(EVENT, "") != self.told.seen[mark, name]:
            self._say("wrong_cancels", f"{mark} cancels {marks.get(EVENT) or 'nothing'} on {name}, which nobody saw.")
        if not is_ours and (CORDONED_BY in marks or PRE_EXISTING in marks):
            self._say("wrong_cancels", f"{mark} uncordons {name}, which was cordoned before NVSentinel's event.")
        if (self.told.is_stopped or entry["user"] in self.switched) and not self._is_late:
            self._say("acts_after_stop", f"{mark} cancels a break-fix on {name} during a stop.")

    def _say(self, figure: str, says: str) -> None:
        self.found.append(Violation(figure, says))


def is_repair_request(entry: Mapping[str, Any]) -> bool:
    """Returns whether it asks an actor for a repair, and does not withdraw a request."""
    path, method = entry["path"], entry["method"]
    if path.startswith("https:") or (method == "POST" and path.endswith("/rebootnodes")):
        return True
    if method != "PATCH" or not path.startswith(HOSTS_PATH):
        return False
    return any(step["op"] != "test" and step.get("value") for step in entry["body"])


def is_taint(step: Mapping[str, Any]) -> bool:
    """Returns whether a step of a patch marks a node out of service."""
    value = step.get("value")
    taints = value if isinstance(value, list) else [value]
    is_add = step["path"].startswith("/spec/taints") and step["op"] == "add"
    return is_add and any(each["key"] == OUT_OF_SERVICE for each in taints)


def cases_by_node() -> Mapping[str, Sequence[tuple[datetime, datetime | None]]]:
    found: dict[str, list[tuple[datetime, datetime | None]]] = defaultdict(list)
    for case in NodeCase.objects.order_by("pk"):
        found[case.node_uid].append((case.opened_at, None if case.is_open else case.state_since))
    return found


def nodes_by_operation() -> Mapping[str, Collection[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for operation, name in OperationNode.objects.order_by("pk").values_list("operation", "node_name"):
        found[f"{OPERATION}{operation}"].add(name)
    return found


def pods_past_budgets() -> Mapping[str, str]:
    found = Operation.objects.filter(steps=list(KINDS["delete-pod"].steps))
    return {operation.mark: operation.options["pod_uid"] for operation in found}


def asking_drains() -> Mapping[str, datetime]:
    """Returns until when the jobs of a drain that asks their owners stay at least, by its mark."""
    drains = Operation.objects.filter(steps=DRAINS, options__ask_owners=True)
    return {each.mark: each.asked_at + timedelta(seconds=each.options["jobs_wait_s"]) for each in drains}


def pulls_of_plans() -> set[str]:
    return {pull.operation.mark for pull in PlanPull.objects.select_related("operation")}


def rows_at_the_end(ground: CaseWorld) -> Iterator[Violation]:
    """What is left once every node is in service again, and every case is over."""
    for node in ground.world.store.list(NODE)[0]:
        owner = (node["metadata"].get("annotations") or {}).get(CORDONED_BY, "")
        if owner or node["spec"].get("unschedulable"):
            yield Violation("leaked_cordons", f"{node['metadata']['name']} is cordoned, by {owner or 'nobody'}.")
        if has_no_service(node) or OUT_OF_SERVICE_BY in (node["metadata"].get("annotations") or {}):
            yield Violation("wrong_taints", f"{node['metadata']['name']} is still marked out of service.")
    for row in Quarantine.objects.in_force():
        yield Violation("leaked_cordons", f"{row.node_name} is quarantined, and released by nobody.")
    for place in Disruption.objects.in_force():
        yield Violation(
            "leaked_leases", f"{place.node_name} still has a place in the ledger, taken by {place.taken_by}."
        )
    yield from test_jobs_at_the_end(ground.world.store.list(JOB)[0])
    yield from passed_breakers(ground.pool.nodes.count())
    yield from steps_past_people()
    yield from requests_made_twice()
    for says in ground.begun_beside:
        yield Violation("begun_beside_others", says)


def requests_made_twice() -> Iterator[Violation]:
    for operation in Operation.objects.filter(steps=DRAINS):
        events = DomainEvent.objects.filter(key=f"operation/{operation.pk}").values_list("facts", flat=True)
        asked = Counter(job for facts in events for job in facts.get("jobs", ()))
        for job, times in asked.items():
            if times > 1:
                yield Violation("repeated_requests", f"{operation.mark} asks the owner of {job} {times} times.")


def steps_past_people() -> Iterator[Violation]:
    """Automatic steps in the order in which they were committed, against what people decided before.

    An unclear repair is never repeated by a machine, and no case gets more than two.
    """
    is_on, handed_over, repairs = False, set(), Counter[str]()
    for entry in AuditEntry.objects.order_by("pk"):
        case, verb = entry.subject, entry.verb
        if verb == "automatic-quarantine.switches":
            is_on = entry.evidence["to"]["drain"]
        elif verb in {"automatic-quarantine.shadow", "automatic-quarantine.suggest", "automatic-quarantine.off"}:
            is_on = False
        elif verb == "case.handed-over":
            handed_over.add(case)
        elif verb.startswith("case.automatic-"):
            repairs[case] += verb == "case.automatic-repair"
            if not is_on or case in handed_over or repairs[case] > MOST_REPAIRS:
                yield Violation("automatic_past_people", f"{case}: {verb}, though a person has it, or it is off.")
    asked = Repair.objects.filter(asked_by=ACTOR).order_by("pk")
    for repair in asked:
        if earlier := asked.filter(case=repair.case_id, pk__lt=repair.pk, ended_at__isnull=False).exclude(
            answer="done"
        ):
            yield Violation(
                "repeated_repairs", f"{repair} is asked for again after {earlier[0].answer or 'no answer'}."
            )


def passed_breakers(nodes: int) -> Iterator[Violation]:
    """Automatic acts in the order in which they were committed. `nodes`: of the pool."""
    breaker, after = Breaker(max(1, int(nodes * MOST_SHARE))), None
    acted = dict(AutomaticDecision.objects.filter(verdict="acted").values_list("case", "finding__opened_at"))
    for entry in AuditEntry.objects.order_by("pk"):
        number = int(entry.subject.removeprefix("case-")) if entry.subject.startswith("case-") else 0
        if entry.verb.startswith("automatic-quarantine.breaker-"):
            breaker.state, breaker.acts_since = entry.verb.removeprefix("automatic-quarantine.breaker-"), 0
            after = entry.at if breaker.state == "half-open" else after
        elif entry.verb in {"case.closed", "case.retired", "case.probation"}:
            breaker.cases.discard(number)
        elif entry.verb == "case.suspect" and number in acted:
            breaker.cases.add(number)
        elif entry.verb == "case.opened" and entry.actor == ACTOR and number in acted:
            if after and acted[number] and acted[number] <= after:
                yield Violation("breaker_passed", f"case-{number}: its finding is older than the reset.")
            for reason in breaker.take(number, entry.at):
                yield Violation("breaker_passed", f"case-{number} is opened automatically: {reason}.")


@dataclass
class Breaker:
    """The acts that a breaker has let pass."""

    most: int  # cases
    state: str = "closed"
    acts_since: int = 0  # since its state changed
    cases: set[int] = field(default_factory=set)  # that are open, with a node out of service
    acts: list[datetime] = field(default_factory=list)

    def take(self, number: int, at: datetime) -> Iterator[str]:
        if self.state == "open":
            yield "the breaker is open"
        if self.state == "half-open" and self.acts_since:
            yield "the breaker is half-open, and has let one pass"
        if len(self.cases) >= self.most:
            yield f"{len(self.cases)} others are open, of at most {self.most}"
        if sum(at - each < timedelta(hours=1) for each in self.acts) >= MOST_AN_HOUR:
            yield f"the last hour had {MOST_AN_HOUR}"
        self.cases.add(number)
        self.acts.append(at)
        self.acts_since += 1
