"""The subjects of events, as they are now: their messages, and the properties that routes match."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from fleet.models import DomainEvent, Node, Pool
from health.impact import Impact
from health.inbox.queries import impacts_of
from health.lifecycle import FindingState
from health.models import Finding
from maintenance.models import AutomaticQuarantine, NodeCase
from maintenance.triggers import RULES, BreakerState, Mode
from notifications.channels.base import Notification
from notifications.models import Conversation, Preference
from notifications.route_match import CASE, OPERATION, PLAN, TRAFFIC, EventProperties
from notifications.texts import (
    message_of_case,
    message_of_finding,
    message_of_operation,
    message_of_plan,
    message_of_traffic,
)
from operations.models import Operation
from rollouts.models import Plan

WAITS = {"operation-waits", "case-waits"}  # rules about a subject that has events of its own
ATTENDED = (FindingState.OPEN, FindingState.ACKNOWLEDGED)


@dataclass(frozen=True)
class Subjects:
    """The subjects of some events, by a fixed number of queries."""

    events: Sequence[DomainEvent]
    now: datetime

    def message(self, event: DomainEvent) -> Notification | None:
        """Returns the message; None if its subject is gone, so that there is nothing to look at."""
        if "finding" in event.facts:
            finding = self._findings.get(event.facts["finding"])
            if finding is None:
                return None
            pools = [pool.name for pool in self._pools.get(finding.node_id or 0, ())]
            message = message_of_finding(
                event,
                finding,
                impact=self._impacts.get(finding.pk),
                pools=pools,
                case=self._cases.get(finding.node.uid) if finding.node else None,
                quarantining=self._quarantining(finding),
            )
            return self._mentioning(message, finding.assigned_to)
        if "operation" in event.facts or "case" in event.facts:
            return self._message_of_change(event)
        plan = self._plans.get(event.facts["plan"])
        if plan is None:
            return None
        if "pool" in event.facts:
            return message_of_traffic(event, plan)
        return self._mentioning(message_of_plan(event, plan), plan.author)

    def _message_of_change(self, event: DomainEvent) -> Notification | None:
        subject = self._changes.get(event.key)
        if isinstance(subject, Operation):
            return self._mentioning(message_of_operation(event, subject), subject.asked_by)
        return message_of_case(event, subject) if subject else None

    def _mentioning(self, message: Notification, person: str) -> Notification:
        mention = self._mentions.get(person)
        return replace(message, mentions=(mention,)) if mention else message

    def needs_attention(self, event: DomainEvent) -> bool:
        """Returns whether the subject still is as the event says, and nothing else explains it."""
        if "finding" not in event.facts:
            return True
        finding = self._findings[event.facts["finding"]]
        is_open = finding.state in ATTENDED and finding.parent_id is None and not finding.is_shadow
        return is_open and not (finding.rule in WAITS and self._has_conversation(finding))

    def _has_conversation(self, finding: Finding) -> bool:
        """Returns whether an event of the operation or case began a conversation, so that its finding begins none."""
        return Conversation.objects.open().filter(key=finding.subject.replace(" ", "/")).exists()

    def place_of(self, event: DomainEvent) -> EventProperties:
        facts = event.facts
        if "finding" in facts:
            finding = self._findings[facts["finding"]]
            pools = self._pools.get(finding.node_id or 0, ())
            return EventProperties(
                finding.cluster.name, finding.severity, finding.rule, [pool.name for pool in pools],
                [pool.workload_class for pool in pools],
            )  # fmt: skip
        if event.key in self._changes:
            subject, pools = self._changes[event.key], self._pools_of_change(event)
            kind = OPERATION if isinstance(subject, Operation) else CASE
            return EventProperties(
                subject.cluster.name, facts["severity"], kind, [pool.name for pool in pools],
                sorted({pool.workload_class for pool in pools}),
            )  # fmt: skip
        plan = self._plans[facts["plan"]]
        if "pool" in facts:
            pool, workload_class = facts["pool_name"], facts["workload_class"]
            return EventProperties(plan.cluster.name, facts["severity"], TRAFFIC, [pool], [workload_class])
        return place_of_plan(plan, facts["severity"])

    def ids_of(self, event: DomainEvent) -> tuple[int, set[int]]:
        """Returns the cluster and the pools by which people may see the subject."""
        if "finding" in event.facts:
            finding = self._findings[event.facts["finding"]]
            return finding.cluster_id, {pool.pk for pool in self._pools.get(finding.node_id or 0, ())}
        if event.key in self._changes:
            return self._changes[event.key].cluster_id, {pool.pk for pool in self._pools_of_change(event)}
        plan = self._plans[event.facts["plan"]]
        return plan.cluster_id, {stage.pool_id for stage in plan.stages.all() if stage.pool_id}

    @cached_property
    def _mentions(self) -> Mapping[str, dict[str, str]]:
        """Returns the chat handles of assignees and authors, by name."""
        people = {finding.assigned_to for finding in self._findings.values()}
        people |= {plan.author for plan in self._plans.values()}
        people |= {each.asked_by for each in self._changes.values() if isinstance(each, Operation)}
        rows = Preference.objects.filter(person__username__in=people - {""}, person__is_active=True)
        return {row.person.get_username(): row.mention for row in rows.select_related("person")}

    @cached_property
    def _findings(self) -> Mapping[int, Finding]:
        keys = {event.facts["finding"] for event in self.events if "finding" in event.facts}
        return Finding.objects.select_related("cluster", "node").in_bulk(keys) if keys else {}

    @cached_property
    def _plans(self) -> Mapping[int, Plan]:
        keys = {event.facts["plan"] for event in self.events if "plan" in event.facts}
        rows = Plan.objects.select_related("cluster").prefetch_related("stages__pool")
        return rows.in_bulk(keys) if keys else {}

    @cached_property
    def _changes(self) -> Mapping[str, Operation | NodeCase]:
        """Returns operations and cases by the key of their events."""
        operations = {event.facts["operation"] for event in self.events if "operation" in event.facts}
        cases = {event.facts["case"] for event in self.events if "case" in event.facts}
        found: dict[str, Operation | NodeCase] = {}
        if operations:
            rows = Operation.objects.select_related("cluster").prefetch_related("nodes")
            found |= {f"operation/{key}": row for key, row in rows.in_bulk(operations).items()}
        if cases:
            found |= {
                f"case/{key}": row for key, row in NodeCase.objects.select_related("cluster").in_bulk(cases).items()
            }
        return found

    def _pools_of_change(self, event: DomainEvent) -> Sequence[Pool]:
        """Returns the pools of the nodes that the operation or case is about. One query."""
        subject = self._changes[event.key]
        uids = [node.node_uid for node in subject.nodes.all()] if isinstance(subject, Operation) else [subject.node_uid]
        nodes = Node.objects.filter(cluster=subject.cluster_id, uid__in=uids)
        return list(Pool.objects.filter(nodes__in=nodes).distinct().order_by("name"))

    @cached_property
    def _pools(self) -> Mapping[int, Sequence[Pool]]:
        return pools_by_node(finding.node_id for finding in self._findings.values())

    @cached_property
    def _cases(self) -> Mapping[str, NodeCase]:
        """Returns the open cases of the findings' nodes, by node UID. One query."""
        uids = {finding.node.uid for finding in self._findings.values() if finding.node}
        return {case.node_uid: case for case in NodeCase.objects.open().filter(node_uid__in=uids).order_by("pk")}

    def _quarantining(self, finding: Finding) -> list[str]:
        """Returns the pools whose automatic quarantine may act on the finding."""
        pools = self._pools.get(finding.node_id or 0, ()) if finding.rule in RULES else ()
        return [pool.name for pool in pools if pool.pk in self._acting_pools]

    @cached_property
    def _acting_pools(self) -> set[int]:
        rows = AutomaticQuarantine.objects.filter(mode=Mode.ACT).exclude(breaker=BreakerState.OPEN)
        return set(rows.values_list("pool", flat=True))

    @cached_property
    def _impacts(self) -> Mapping[int, Impact]:
        return impacts_of(list(self._findings.values()), now=self.now)


def pools_by_node(node_ids: Iterable[int | None]) -> dict[int, list[Pool]]:
    """Returns the pools of each node. One query."""
    found: dict[int, list[Pool]] = defaultdict(list)
    through = Node.pools.through.objects.filter(node__in={key for key in node_ids if key}).select_related("pool")
    for row in through.order_by("pool__name"):
        found[row.node_id].append(row.pool)
    return found


def place_of_plan(plan: Plan, severity: str) -> EventProperties:
    pools = {stage.pool for stage in plan.stages.all() if stage.pool}
    return EventProperties(
        plan.cluster.name, severity, PLAN, sorted(pool.name for pool in pools),
        sorted({pool.workload_class for pool in pools}),
    )  # fmt: skip
