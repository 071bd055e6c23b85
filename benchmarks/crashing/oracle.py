"""What the API server's log says of a plan, told by nobody else. It shares no rule with the engine.

Held against it: what people said and were answered, and how the plan and its nodes ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from benchmarks.crashing.nodes_seen import (
    CORDONED_BY,
    EXCLUDED_BY,
    HELD_BY,
    IDLE,
    STATE,
    NodeSeen,
    apply,
    as_seen,
    is_unavailable,
    note_opt_outs,
    offered_in,
    waits_held,
)
from benchmarks.crashing.words import ENGINE, Word

DEPLOY = "nvidia.com/gpu.deploy.driver"
QUIET = "quiet"  # a pool, and the label by which a node is in it
OURS = "quarterdeck/"
REFUSED = 300
ROUNDS_TO_RECALL = 3
ENDS_A_STOP = {"resume", "rollback", "abort"}
STOPS = {"halt", "pause", "freeze", "close", "abort", "rollback", "stop"}
VOID, WATCH_ONLY, MAY_WRITE = "void", "watch only", "may write"
FRESH = timedelta(seconds=60)
OWN_UID = "/namespaces/kube-system"
ASKED_ONCE_A_WAVE = "/configmaps/cluster-autoscaler-status"  # after its nodes, and before any of them goes
NODES, OBJECTS, LEASES = "/api/v1/nodes/", ("/nvidiadrivers/", "/clusterpolicies/"), "/leases/"
JOBS, PODS, SLICES = "/jobs", "/pods", "/resourceslices"


@dataclass(frozen=True)
class Violation:
    figure: str
    says: str


@dataclass
class Told:
    """What people have said, and nobody has taken back."""

    halted: bool = False
    paused: bool = False
    given_up: bool = False
    goes_back: bool = False
    stopped: bool = False  # by the ConfigMap
    freezes: list[bool] = field(default_factory=list)  # of each: whether it holds those who go back
    quiet: bool = False  # the pool of this name is frozen
    approved: int = 0
    rejected: bool = False
    seen_halted: bool = False


class Reading:
    """One log, read from its beginning."""

    def __init__(
        self, entries: Sequence[dict[str, Any]], words: Sequence[Word], nodes: Iterable[dict[str, Any]],
        *, selector: dict[str, str], version: str, new: str, budget: int, parallel: int, canary: str, asks: bool,
        driver_object: str = "", offered: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """`driver_object`: its name, where there is another one with a plan of its own. `offered`: by name of the node,
        the driver that its ResourceSlice names."""
        self.entries, self.words = entries, list(words)
        named = {node["metadata"]["name"]: node for node in nodes}
        self.nodes = {name: as_seen(node, (offered or {}).get(name, "")) for name, node in named.items()}
        self.selector, self.version, self.old, self.new = selector, version, version, new
        self.budget, self.parallel, self.canary, self.asks = budget, parallel, canary, asks
        self.is_written_by_us = False  # the new version
        self.is_version_ours = False  # that which the object has: else somebody else wrote it last
        self.is_old_copy = False
        self.told = Told()
        self.driver_object = driver_object
        self.out: list[tuple[str, str, bool]] = []  # when a node was let go, or was back or held again
        self.found: list[Violation] = []
        self.listed_held: dict[str, bool] | None = None  # at our last list of all nodes
        self.listed_by: str = ""  # in which turn
        self.lease: dict[str, Any] = {}
        self.lease_when_asked: dict[str, dict[str, Any]] = {}  # turn → the Lease when it last asked
        self.is_watch_only = False  # the cluster is, by a person's word
        self.began_watch_only: dict[str, bool] = {}  # turn → whether it was when it asked first
        self.is_elsewhere = False  # the address leads to another cluster
        self.was_elsewhere: dict[str, bool] = {}  # turn → whether it did when it last asked
        self.version_read: dict[str, str] = {}  # turn → version of the object when it last asked
        self.unfit_read: dict[str, dict[str, Violation]] = {}  # turn → nodes that may not go, as it was shown them
        self.unfit_in_wave: dict[str, dict[str, Violation]] = {}  # the same, when it made up a wave
        self.known_broken: set[str] = set()  # when the round that is on began
        self.asked_since_stop: Counter[str] = Counter()  # turn → requests since the ConfigMap is there
        self.turns: dict[int, str] = {}  # each that asked anything → when it began
        self.whole_rounds = 0  # since the last stop
        self.stopped_at: list[tuple[str, str]] = []  # (when, by what), of those in force
        self.left_unseen: set[str] = set()  # nodes that lost their driver since our last list of its pods
        self.seen_through: str = ""  # when a whole round ended that began after the last stop

    def read(self) -> list[Violation]:
        words = iter(self.words)
        word = next(words, None)
        for number, entry in enumerate(self.entries):
            while word is not None and word.after <= number:
                self._hear(word)
                word = next(words, None)
            self._see(entry)
        while word is not None:
            self._hear(word)
            word = next(words, None)
        return self.found

    # Words

    def _hear(self, word: Word) -> None:
        if word.who == ENGINE:
            self._look(word)
            return
        told = self.told
        if word.verb in ENDS_A_STOP:
            told.halted = told.paused = told.seen_halted = False
        told.halted = told.halted or word.verb == "halt"
        told.seen_halted = (told.seen_halted or word.verb == "halt") and word.verb != "old copy"
        told.paused = told.paused or word.verb == "pause"
        told.given_up = told.given_up or word.verb == "abort"
        told.goes_back = told.goes_back or word.verb in {"abort", "rollback"}
        told.stopped = word.verb == "stop" or (told.stopped and word.verb != "unstop")
        told.approved += word.verb == "approve"
        if word.verb == VOID:
            told.approved = 0
        self.is_watch_only = word.verb == WATCH_ONLY or (self.is_watch_only and word.verb != MAY_WRITE)
        told.rejected = (told.rejected or word.verb == "reject") and word.verb != "resume"
        if word.verb == "stop":
            self.asked_since_stop.clear()
        self.is_old_copy = self.is_old_copy or word.verb == "old copy"
        self.is_elsewhere = word.verb == "elsewhere" or (self.is_elsewhere and word.verb != "here again")
        if word.verb in {"freeze", "close"}:
            told.freezes.append(word.binds_rollbacks)
        elif word.verb == "lift":
            told.freezes.clear()
            told.quiet = False
        told.quiet = told.quiet or word.verb == f"freeze {QUIET}"
        if word.verb in STOPS:
            self.stopped_at.append((word.at, word.verb))
            self.seen_through, self.whole_rounds = "", 0
        elif word.verb in {"resume", "lift"}:
            self.stopped_at.clear()

    def _look(self, word: Word) -> None:
        """What the plan's page said after a round."""
        told = self.told
        is_halted = word.verb.startswith("is halted")
        goes_on = word.verb.startswith(("is promoting", "is holding"))
        if self.is_old_copy:
            return  # What it says is of before: what counts is that it lets nothing go.
        if told.seen_halted and goes_on:
            self._say("lost_halts", f"It was halted, nobody resumed it, and it {word.verb}.")
            told.seen_halted = False
        if told.paused and goes_on and "paused" not in word.verb:
            self._say("lost_pauses", f"It was paused, nobody resumed it, and it {word.verb}.")
            told.paused = False
        told.seen_halted = told.seen_halted or is_halted
        for name in word.soaking & self.nodes.keys():
            if self.nodes[name].annotations.get(EXCLUDED_BY):
                self._say("leaked_optouts", f"{name} is judged, and somebody is kept off it: {word.verb}")
        if word.is_whole:
            self.seen_through = word.at
            self.whole_rounds += 1
            self._check_recalled(word)
        self.known_broken = {name for name, node in self.nodes.items() if self._is_broken(node)}

    def _check_recalled(self, word: Word) -> None:
        """Some whole rounds after a stop: what was let go and has not begun is held again."""
        told = self.told
        if self.whole_rounds < ROUNDS_TO_RECALL or self.version != self.new or self.is_old_copy:
            return
        if not (told.halted or told.paused or told.given_up or told.goes_back):
            return
        for name, node in self.nodes.items():
            if node.let_go == self.new and not node.has_begun and not node.is_held and self._is_driven(node):
                self._say("lost_halts", f"{name} was not held again: {word.verb} at {word.at}")
                node.let_go = ""

    # Requests

    def _see(self, entry: dict[str, Any]) -> None:
        is_ours = entry["user_agent"].startswith(OURS)
        path, method = entry["path"], entry["method"]
        if is_ours:
            self._note_turn(entry)
        if entry["code"] >= REFUSED:
            return
        if is_ours and _writes_where_it_must_be_ours(entry):
            self._check_lease(entry)
            self._see_test(entry)
        if LEASES in path or path.endswith("/leases"):
            self._see_lease(entry)
        elif path.startswith(NODES) and method == "PATCH":
            self._see_node(entry, is_ours=is_ours)
        elif path == NODES.rstrip("/") and method == "POST":
            node = self.nodes[entry["body"]["metadata"]["name"]] = as_seen(entry["body"])
            node.is_another = HELD_BY in node.annotations
        elif path.startswith(NODES) and method == "DELETE":
            self.nodes.pop(path.removeprefix(NODES), None)
        elif SLICES in path and method in {"POST", "PATCH"}:
            self._see_slice(entry["body"])
        elif self._is_object(path) and method == "PATCH":
            self._see_object(entry, is_ours=is_ours)

    def _see_test(self, entry: dict[str, Any]) -> None:
        """A test Job names its node by its affinity."""
        if entry["method"] != "POST" or JOBS not in entry["path"]:
            return
        affinity = str(entry["body"]["spec"]["template"]["spec"].get("affinity"))
        for name in (name for name in self.nodes if f"'{name}'" in affinity):
            self.nodes[name].is_tested = True

    def _see_slice(self, body: dict[str, Any]) -> None:
        if node := self.nodes.get(body["spec"]["nodeName"]):
            node.offered = offered_in(body)

    def _note_turn(self, entry: dict[str, Any]) -> None:
        """One worker at a time: who writes after the next one began has lost his turn."""
        self.asked_since_stop[entry["user"]] += 1
        self.began_watch_only.setdefault(entry["user"], self.is_watch_only)
        if entry["method"] == "GET":
            self._note_what_was_asked(entry)
        number = int(entry["user"].removeprefix("turn-") or 0) if entry["user"].startswith("turn-") else 0
        self.turns.setdefault(number, entry["at"])
        is_write = entry["method"] == "PATCH" and entry["code"] < REFUSED
        later = [at for other, at in self.turns.items() if other > number]
        if number and is_write and any(at < entry["at"] for at in later):
            self._say("writes_out_of_turn", f"{entry['path']} at {entry['at']}, in turn {number}")

    def _note_what_was_asked(self, entry: dict[str, Any]) -> None:
        path = entry["path"]
        if path.endswith(PODS):
            self.left_unseen.clear()
        elif path.rstrip("/") == NODES.rstrip("/"):
            self.listed_held, self.listed_by = self._held(), entry["user"]
        elif path.removeprefix(NODES) in self.nodes:
            name, unfit = path.removeprefix(NODES), self.unfit_read.setdefault(entry["user"], {})
            unfit.pop(name, None)
            if reason := self._why_unfit(self.nodes[name]):
                unfit[name] = reason
        elif path.endswith(ASKED_ONCE_A_WAVE):
            self.unfit_in_wave[entry["user"]] = dict(self.unfit_read.get(entry["user"], {}))
        elif LEASES in path:
            self.lease_when_asked[entry["user"]] = dict(self.lease)
        elif path.endswith(OWN_UID):
            self.was_elsewhere[entry["user"]] = self.is_elsewhere
        elif self._is_object(path):
            self.version_read[entry["user"]] = self.version

    def _why_unfit(self, node: NodeSeen) -> Violation | None:
        """What a node shows that keeps it from going forward, whatever its row says."""
        if node.is_cordoned and node.cordoned_by_others:
            return Violation("over_budget", "cordoned by somebody else, it goes past the operator's slots.")
        if node.state not in IDLE:
            return Violation("double_releases", f"it was at {node.state} already.")
        if self.told.quiet and QUIET in node.labels:
            return Violation("releases_while_frozen", "its labels name a pool that is frozen.")
        return None

    def _is_object(self, path: str) -> bool:
        return path.endswith(self.driver_object) and any(part in path for part in OBJECTS)

    def _held(self) -> dict[str, bool]:
        """Of the nodes that have a driver: one that joins without gets its first one, of whichever version."""
        return {name: node.is_held for name, node in self.nodes.items() if node.loaded}

    def _see_lease(self, entry: dict[str, Any]) -> None:
        if entry["method"] == "DELETE":
            self.lease = {}
        elif entry["method"] in {"POST", "PUT"}:
            self.lease = dict(entry["body"]["spec"])
        elif entry["method"] == "PATCH":
            self.lease = self.lease | entry["body"]["spec"]

    def _check_lease(self, entry: dict[str, Any]) -> None:
        """At the time at which we last looked, another one drove this cluster, or it was another cluster."""
        if self.was_elsewhere.get(entry["user"], self.is_elsewhere):
            self._say("writes_to_another", f"{entry['path']} at {entry['at']}")
        if self.began_watch_only.get(entry["user"], False):
            self._say("writes_to_another", f"{entry['path']} at {entry['at']}: it is only watched.")
        lease = self.lease_when_asked.get(entry["user"], self.lease)
        if lease.get("holderIdentity") != "another":
            return
        renewed = datetime.fromisoformat(lease["renewTime"])
        if datetime.fromisoformat(entry["at"]) - renewed < FRESH:
            self._say("writes_beside_another", f"{entry['path']} at {entry['at']}")

    def _see_object(self, entry: dict[str, Any], *, is_ours: bool) -> None:
        version = version_in(entry["body"])
        if version is None:
            return
        if is_ours and (read := self.version_read.get(entry["user"], "")) != self.version:
            self._say("versions_overwritten", f"{version} at {entry['at']}: it was {self.version}, and {read} as read.")
        if is_ours and version == self.new:
            is_listed = self.listed_held is not None and self.listed_by == entry["user"]
            held = (is_listed and self.listed_held) or self._held()
            driven = [name for name in held if name in self.nodes and self._is_driven(self.nodes[name])]
            if free := [name for name in driven if not held[name]]:
                self._say("unheld_writes", f"{version} was written while {', '.join(free)} could change.")
        self.is_written_by_us = self.is_written_by_us or (is_ours and version == self.new)
        self.version, self.is_version_ours = version, is_ours
        self.listed_held = None

    def _see_node(self, entry: dict[str, Any], *, is_ours: bool) -> None:
        name = entry["path"].removeprefix(NODES).removesuffix("/status")
        node = self.nodes.get(name)
        if node is None:
            return
        was_held, holder, was_out = node.is_held, node.annotations.get(HELD_BY), bool(node.let_go)
        was_cordoned, cordoned_by = node.is_cordoned, node.annotations.get(CORDONED_BY)
        if is_ours:
            apply(node, entry["body"])
        else:
            self._see_what_others_wrote(name, node, entry)
        if was_cordoned and not node.is_cordoned:
            self._see_uncordoned(name, node, entry, is_ours=is_ours, cordoned_by=cordoned_by)
        if is_ours and was_held and not node.is_held and holder is None:
            self._say("foreign_labels_touched", f"{name}: {entry['body']}")
        if was_held and not node.is_held and is_ours:
            self._see_release(name, node, entry)
        elif not was_held and node.is_held and not node.has_begun:
            node.let_go = ""
        if node.let_go and node.state not in IDLE:
            node.has_begun = True
            node.done.add(node.let_go)
        if self._is_back(node):
            node.let_go, node.has_begun = "", False
        if bool(node.let_go) != was_out:
            self.out.append((entry["at"], name, not was_out))

    def _see_uncordoned(
        self, name: str, node: NodeSeen, entry: dict[str, Any], *, is_ours: bool, cordoned_by: str | None
    ) -> None:
        """By us, who take no cordon off but our own, or by the operator, which is to leave ours alone."""
        where = f"{name} at {entry['at']} (request {entry['n']})"
        if is_ours and cordoned_by is None:
            self._say("foreign_labels_touched", f"{where} was cordoned by somebody else.")
        is_operator = entry["user_agent"].startswith("gpu-operator")
        if not (is_ours or is_operator) or cordoned_by is None or self.told.given_up or self.told.goes_back:
            return
        if node.runs(self.new) and self.version == self.new and not node.is_held and not node.is_tested:
            self._say("untested_nodes", f"{where} was uncordoned, and no test Job was made for it.")

    def _see_what_others_wrote(self, name: str, node: NodeSeen, entry: dict[str, Any]) -> None:
        was_cordoned, had_driver = node.is_cordoned, node.labels.get(DEPLOY) != "false"
        apply(node, entry["body"])
        note_opt_outs(node, entry["body"])
        if had_driver and node.labels.get(DEPLOY) == "false":
            self.left_unseen.add(name)
        if node.is_cordoned != was_cordoned:
            node.cordoned_by_others = node.is_cordoned and not entry["user_agent"].startswith("gpu-operator")

    def _see_release(self, name: str, node: NodeSeen, entry: dict[str, Any]) -> None:
        """Of a node that would change by it; one that is as its object says may be let go whenever.

        Or as the object said when it was asked: who writes another version into it after that cannot be seen.
        """
        asked = self.version if self.is_version_ours else self.version_read.get(entry["user"], self.version)
        if self._is_as(node, self.version) or self._is_as(node, asked) or not self._is_driven(node):
            return
        told, where = self.told, f"{name} at {entry['at']} (request {entry['n']})"
        if asked not in {self.old, self.new} or (asked == self.new and not self.is_written_by_us):
            self._say("releases_to_others", f"{where}: the object asked for {asked}, by somebody else's word.")
        if told.given_up and not self.is_written_by_us:
            return  # of a plan that has written nothing
        is_forward = self.version == self.new == asked
        self._check_words(entry, where, is_forward=is_forward)
        if is_forward and (unfit := self.unfit_in_wave.get(entry["user"], {}).get(name)):
            self._say(unfit.figure, f"{where}: {unfit.says}")
        if is_forward and node.is_another:
            self._say("unapproved_releases", f"{where} is another node than that which was to go.")
        if is_forward and self.version in node.done:
            self._say("double_releases", f"{where} had begun to change before.")
        if is_forward and name != self.canary and self.asks and (told.rejected or not told.approved):
            self._say("unapproved_releases", where)
        node.let_go, node.has_begun, node.is_tested = self.version, False, False
        self._count(name, where, is_forward=is_forward)

    def _check_words(self, entry: dict[str, Any], where: str, *, is_forward: bool) -> None:
        """Whether somebody had said that nothing goes, and it could have been heard."""
        told = self.told
        if told.stopped and self.asked_since_stop[entry["user"]] > 1:
            self._say("releases_after_halt", f"{where}: the ConfigMap was there, and was not asked for.")
        if self._was_on_its_way(entry):
            return
        if told.halted or (is_forward and (told.given_up or told.goes_back or told.seen_halted)):
            self._say("releases_after_halt", f"{where}: {told}")
        if told.paused:
            self._say("lost_pauses", f"{where} was let go while the plan was paused.")
        if any(holds or is_forward for holds in told.freezes):
            self._say("releases_while_frozen", where)

    def _was_on_its_way(self, entry: dict[str, Any]) -> bool:
        """Sent before the stop was answered, and no whole round has been since: nothing could have kept it."""
        before = [at for at, _ in self.stopped_at if at > entry["at"]]
        return bool(before) and len(before) == len(self.stopped_at) and not self.seen_through

    def _count(self, name: str, where: str, *, is_forward: bool) -> None:
        # One that the object selects no more is left out of the plan, and the operator does nothing on it.
        going = {other for other, node in self.nodes.items() if node.let_go and self._is_driven(node)}
        broken = {other for other in self.known_broken if other in self.nodes and self._is_broken(self.nodes[other])}
        taken = going | (broken if is_forward else set())
        if len(taken) > self.budget:
            self._say("over_budget", f"{where}: {', '.join(sorted(taken))}, where {self.budget} may be.")
        busy = {other for other, node in self.nodes.items() if node.state not in IDLE and self._is_driven(node)}
        in_slots = {other for other in going if not waits_held(self.nodes[other])} | (busy & self.known_broken)
        if len(in_slots) > self.parallel and (is_forward or not is_unavailable(self.nodes[name])):
            self._say("over_budget", f"{where}: {len(in_slots)} let go, and the operator takes {self.parallel}.")

    def _is_broken(self, node: NodeSeen) -> bool:
        is_cordoned = node.is_cordoned and node.cordoned_by_others
        return self._is_driven(node) and (is_cordoned or not node.is_ready or node.state == "upgrade-failed")

    def _is_driven(self, node: NodeSeen) -> bool:
        return self.selector.items() <= node.labels.items()

    def _is_as(self, node: NodeSeen, version: str) -> bool:
        return node.runs(version) and node.state in {"", "upgrade-done"}

    def _is_back(self, node: NodeSeen) -> bool:
        return node.has_begun and node.state == "upgrade-done" and not node.is_cordoned

    def opt_outs_at_the_end(self) -> Iterator[Violation]:
        """What keeps a controller off a node is as somebody else has made it last, or as it was."""
        for name, node in self.nodes.items():
            for mark, value in node.opt_outs.items():
                if mark not in node.unclear and value != (wanted := node.theirs[mark]):
                    yield Violation("leaked_optouts", f"{mark} of {name} is {value}, and was {wanted} but for us.")

    def _say(self, figure: str, says: str) -> None:
        self.found.append(Violation(figure, says))


def _writes_where_it_must_be_ours(entry: dict[str, Any]) -> bool:
    """A node, the driver object or a Job: whatever may be written only with the Lease, and in the right cluster."""
    path, method = entry["path"], entry["method"]
    if method == "PATCH":
        is_node = path.startswith(NODES) and not path.endswith("/status")
        return is_node or any(part in path for part in OBJECTS)
    return JOBS in path and method in {"POST", "DELETE"}


def version_in(body: Any) -> str | None:
    """None: the request leaves the version alone."""
    if isinstance(body, dict):
        spec = body.get("spec") or {}
        found = spec.get("version") or (spec.get("driver") or {}).get("version")
        return str(found) if found else None
    return next(
        (str(step["value"]) for step in body if step["op"] != "test" and step["path"].endswith("/version")), None
    )


def at_the_end(
    nodes: Iterable[dict[str, Any]], *, state: str, mark: str, version: str, left_out: set[str], cordoned: set[str],
    offered: Mapping[str, str] | None = None, left_unseen: Collection[str] = (), unproven: Collection[str] = (),
) -> Iterator[Violation]:  # fmt: skip
    """What a plan that is over has left. `left_out`: UIDs of nodes in no stage of it, or taken out by a person.

    `offered`, `left_unseen`: as `Reading` has them, in the end. A node that lost its driver after the plan had looked
    for the last time stays held, as the plan says of it, and is found by a sweep. `unproven`: UIDs of nodes on which a
    test Job failed last: they stay cordoned, unless they are as before.
    """
    for node in nodes:
        labels, annotations = node["metadata"].get("labels") or {}, node["metadata"].get("annotations") or {}
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]
        is_cordoned = bool(node["spec"].get("unschedulable"))
        runs_it = as_seen(node, (offered or {}).get(name, "")).runs(version)
        is_as_asked = runs_it and labels.get(STATE, "") in {"", "upgrade-done"}
        is_driven = labels.get(DEPLOY) != "false" or name in left_unseen
        is_ours = annotations.get(HELD_BY) == mark
        if is_ours and (is_as_asked or not is_driven or (state != "aborted" and uid not in left_out)):
            yield Violation("leaked_labels", f"{name} is held by a plan that is {state}.")
        if annotations.get(EXCLUDED_BY) == mark:
            yield Violation("leaked_optouts", f"Somebody is kept off {name} by a plan that is {state}.")
        is_kept = annotations.get(CORDONED_BY) == mark and uid in unproven and state != "rolled-back"
        if annotations.get(CORDONED_BY) == mark and not is_kept:
            yield Violation("leaked_cordons", f"{name} is cordoned by a plan that is {state}.")
        waits_held = is_ours and labels.get(STATE) == "upgrade-required"  # freed, the operator goes on, and uncordons
        if is_cordoned and labels.get(STATE, "") in IDLE and name not in cordoned and not (waits_held or is_kept):
            yield Violation("leaked_cordons", f"{name} is cordoned, and nobody is at work on it.")
