"""The snapshot of a plan and its cluster that a round decides on. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from operations.failure_domains import UNBOUND, Budgets
from rollouts.components.base import BEGUN, Component, Phase
from rollouts.components.terms import HoldWords
from rollouts.components.throttle import UpgradePolicy
from rollouts.gates.base import Evidence, Gate, TargetEvidence
from rollouts.lifecycle import PlanState, StageState, TargetState


@dataclass(frozen=True)
class NodeSnapshot:
    uid: str
    name: str
    has_label: bool  # the label that keeps it from changing is there; where nothing is held, our row wants it kept
    label_is_ours: bool  # the annotation beside it names this plan
    phase: Phase  # how far its change is, as the component reads it
    upgrade_state: str  # value of the operator's label
    is_ready: bool | None  # None: nobody knows
    is_unschedulable: bool
    driver_version: str
    pod_hash: str  # revision of its driver pod; blank: it has none
    hold_wanted: bool | None = None  # our row; None: we have none for it yet
    hold_is_foreign: bool = False
    was_held_again: bool = False  # since the new version is in the object: our label was gone, and we put it back
    label_was_placed: bool = False  # we read it back from the API server, and have not taken it off since
    label_is_older: bool = False  # than that we want it: a release from before may still be on its way
    busy_with: str = ""  # another plan that changes this node, and is not over; blank: none
    trouble: str = ""  # why the last try to write it did not work
    is_of_another: bool = False  # moved to another driver object, which would change it after a release
    is_late_node: bool = False  # joined after the version was written: its first driver pod has the new template

    @cached_property
    def is_held(self) -> bool:
        """Returns whether the label is there and names who wants it: this plan, or somebody else for good."""
        return self.has_label and (self.label_is_ours or self.hold_is_foreign)

    @cached_property
    def is_unwritten(self) -> bool:
        """Returns whether our label is there with an older value than ours of now.

        The node was recreated under its name, or a killed worker recalled it without writing the label again (Z3).
        """
        is_known = self.hold_wanted is not None and not self.label_is_older
        return self.has_label and self.label_is_ours and not is_known and not self.busy_with

    @cached_property
    def is_unavailable(self) -> bool:
        return self.is_unschedulable or self.is_ready is not True

    @cached_property
    def has_begun(self) -> bool:
        """Returns whether the operator works, or worked, on the node and has not reported the end."""
        return self.phase in BEGUN


@dataclass(frozen=True)
class NodeExclusions:
    name: str
    controllers: tuple[str, ...]  # as a sentence names them
    is_wanted: bool = True  # all of it, still
    is_placed: bool = True  # and read back
    trouble: str = ""  # why the last try to write it did not work


@dataclass(frozen=True)
class CordonedByUs:
    """A node that a plan cordons until its test Job completes, or since a person asked for it after a halt."""

    name: str
    is_placed: bool = True  # read back
    has_failed: bool = False  # newest test Job since the release: only its rollback or a person admits pods
    trouble: str = ""  # why the last try to write it did not work
    is_of_halt: bool = False  # a person asked for it after a halt, or the plan does after a gate


@dataclass(frozen=True)
class TestJobInCluster:
    pk: int
    uid: str  # of its node
    name: str
    is_told: bool  # its result is known: only the deletion remains
    trouble: str = ""  # why it is not deleted


@dataclass(frozen=True)
class StageSnapshot:
    index: int
    name: str
    is_rollback: bool
    state: StageState
    state_since: datetime
    wait_timeout: timedelta  # how long a gate may wait before a person is asked
    max_unavailable: int
    gates: tuple[Gate, ...]
    evidence: Evidence
    failures: Mapping[str, int] = field(default_factory=dict)  # UID of a node → failures since the last resume
    overridden: frozenset[str] = frozenset()  # gates that a person has overridden, for now
    waiting_since: Mapping[str, datetime] = field(default_factory=dict)  # gate → since when it waits; now: it did not

    @property
    def targets(self) -> tuple[TargetEvidence, ...]:
        return self.evidence.targets

    def in_state(self, *states: TargetState) -> tuple[TargetEvidence, ...]:
        if len(states) == 1:
            return self._by_state.get(states[0], ())
        return tuple(target for target in self.targets if target.state in states)

    @cached_property
    def _by_state(self) -> Mapping[TargetState, tuple[TargetEvidence, ...]]:
        found: dict[TargetState, list[TargetEvidence]] = {}
        for target in self.targets:
            found.setdefault(target.state, []).append(target)
        return {state: tuple(its) for state, its in found.items()}


@dataclass(frozen=True)
class VersionSnapshot:
    """The version in the driver object, and whose it is."""

    old: str  # before the plan
    new: str  # that the plan promotes
    current: str  # read live
    write_intended: bool
    object_trouble: str = ""  # the driver object is gone, or another; blank: it is there
    template_change: str = ""  # foreign changes of the driver pods' template; blank: the template is the plan's own
    handed_to: str = ""  # version of somebody else to which a person released the nodes; blank: none
    handed_by: str = ""  # that person

    @property
    def is_old(self) -> bool:
        return self.current == self.old

    @property
    def is_new(self) -> bool:
        return self.current == self.new

    @property
    def is_of_others(self) -> bool:
        """Returns whether the version is neither the previous one nor the plan's (Z38)."""
        if self.is_new and self.write_intended:
            return False
        return not self.is_old or bool(self.template_change)

    @property
    def is_handed_over(self) -> bool:
        """Returns whether a person has decided to release the nodes to the object's present version."""
        return bool(self.handed_to) and self.handed_to == self.current and not self.template_change

    @property
    def by_others(self) -> str:
        return f"Somebody else set the version to {self.current or 'nothing'}"


@dataclass(frozen=True)
class TemplatesSnapshot:
    """The revisions of the driver DaemonSets' pod template, by UID of the DaemonSet."""

    recorded: Mapping[str, str]  # of the old version, as sealed or accepted since
    newest: Mapping[str, str]  # read live
    unsettled: tuple[str, ...]  # DaemonSets whose controller has not seen their latest generation
    sealed: Mapping[str, str] = field(default_factory=dict)  # that the plan began from
    daemonsets: Mapping[str, str] = field(default_factory=dict)  # node uid → uid of its driver pod's DaemonSet

    @property
    def has_daemonsets(self) -> bool:
        """Returns whether the object has a driver DaemonSet; without one a node that left looks like one that waits."""
        return bool(self.newest)

    def has_old_pod(self, node: NodeSnapshot) -> bool:
        """Returns whether the driver pod is of the template recorded when the plan was sealed."""
        return self._is_of(node, self.recorded)

    def is_in_sync(self, node: NodeSnapshot) -> bool:
        """Returns whether the driver pod is of the newest template."""
        return self._is_of(node, self.newest)

    def has_sealed_pod(self, node: NodeSnapshot) -> bool:
        """Returns whether the node has the driver pod that it had when the plan began."""
        return self._is_of(node, self.sealed)

    def _is_of(self, node: NodeSnapshot, revisions: Mapping[str, str]) -> bool:
        return bool(node.pod_hash) and node.pod_hash == revisions.get(self.daemonsets.get(node.uid, ""))


@dataclass(frozen=True)
class OrdersSnapshot:
    """The orders of people that bind the plan: pause, stop, freezes, and how long it may stay armed."""

    armed_since: datetime | None  # or since the last resume; None: not armed
    may_be_armed_for: timedelta
    paused_reason: str = ""  # blank: not paused
    stopped_reason: str = ""  # blank: neither the cluster's nor the fleet's stop is set
    frozen_reason: str = ""  # blank: no freeze binds all of it
    restrained: Mapping[str, str] = field(default_factory=dict)  # node UID → restraint of this node alone

    @property
    def wait_reason(self) -> str:
        """Returns who ordered the plan to wait; empty means nobody."""
        return self.stopped_reason or self.paused_reason or self.frozen_reason


@dataclass(frozen=True)
class ExclusionsSnapshot:
    in_force: Mapping[str, NodeExclusions] = field(default_factory=dict)  # by node uid: not read back as put back yet
    back: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # node's name, all as it was → who was off it
    left: tuple[str, ...] = ()  # sentences about foreign changes in between


@dataclass(frozen=True)
class CordonsSnapshot:
    in_force: Mapping[str, CordonedByUs] = field(default_factory=dict)  # by node uid: not read back as gone yet
    left: tuple[str, ...] = ()  # sentences: whose nodes are cordoned all the same
    due: Mapping[str, str] = field(default_factory=dict)  # node uid → name: affected, and the plan cordons such nodes
    ours: frozenset[str] = frozenset()  # UIDs of nodes whose cordon is ours, if rows show one


@dataclass(frozen=True)
class Snapshot:
    component: Component  # component that the plan changes
    seen_at: datetime  # time of the oldest row
    stale_reason: str  # blank: fresh enough to act on
    state: PlanState
    version: VersionSnapshot
    templates: TemplatesSnapshot
    orders: OrdersSnapshot
    policy: UpgradePolicy
    nodes: tuple[NodeSnapshot, ...]
    stages: tuple[StageSnapshot, ...]
    unmanaged_nodes: tuple[NodeSnapshot, ...] = ()  # nodes of the object no more, that carry our label or are wanted to
    gone: Mapping[str, str] = field(default_factory=dict)  # uid of a target that is no node of the object → why
    budgets: Budgets = UNBOUND  # of the failure domains of held targets in the releasing stage
    disruptions: frozenset[str] = frozenset()  # uids of the nodes that this plan has out, by the ledger
    exclusions: ExclusionsSnapshot = ExclusionsSnapshot()
    cordons: CordonsSnapshot = CordonsSnapshot()
    test_jobs: tuple[TestJobInCluster, ...] = ()
    operator_down: str = ""  # sentence that the GPU operator does not run; blank: it runs, or is unknown
    is_live: bool = False  # the nodes are as the API server listed them in this round, and no rows

    @cached_property
    def nodes_by_uid(self) -> Mapping[str, NodeSnapshot]:
        return {node.uid: node for node in self.nodes}

    @property
    def says(self) -> HoldWords:
        return self.component.says

    @property
    def forward(self) -> tuple[StageSnapshot, ...]:
        return tuple(stage for stage in self.stages if not stage.is_rollback)

    @property
    def rollback_stage(self) -> StageSnapshot:
        return next(stage for stage in self.stages if stage.is_rollback)

    def is_released(self, node: NodeSnapshot) -> bool:
        return self.component.is_released(
            has_label=node.has_label, has_pod=bool(node.pod_hash), is_in_sync=self.templates.is_in_sync(node)
        )

    def runs(self, node: NodeSnapshot, version: str) -> bool:
        """Returns whether the node itself reports the version."""
        return self.component.has_changed(
            wanted=version, loaded=node.driver_version, is_in_sync=self.templates.is_in_sync(node)
        )

    def would_change(self, node: NodeSnapshot) -> bool:
        """Returns whether the operator would change the node once it is released.

        DaemonSets may lag behind the version.
        """
        if self.component.hold is None:  # nobody does, until its pod is deleted
            return False
        if self.version.is_old:
            return bool(node.pod_hash) and not self.templates.is_in_sync(node)
        return not self.runs(node, self.version.current)

    @property
    def handover_nodes(self) -> tuple[NodeSnapshot, ...]:
        """Returns nodes that are released to a foreign version, or about to be, and do not run it yet.

        Nodes that the operator gave up on are not included.
        """
        if not self.version.is_handed_over:
            return ()
        free = (node for node in self.nodes if node.hold_wanted is False and not node.hold_is_foreign)
        return tuple(node for node in free if node.phase is not Phase.FAILED and self.would_change(node))

    def never_changed(self, node: NodeSnapshot) -> bool:
        """Returns whether the node has the driver pod that it had when the plan began."""
        is_its_pod = self.templates.has_sealed_pod(node)
        return is_its_pod and self.component.has_changed(
            wanted=self.version.old, loaded=node.driver_version, is_in_sync=is_its_pod
        )

    def is_as_before(self, node: NodeSnapshot) -> bool:
        """Returns whether, once the old template is restored, the node's pod is of it and the old driver is loaded.

        A DaemonSet that came later has no recorded template; there, being in sync counts.
        """
        return self.runs(node, self.version.old)
