"""The people who can approve a stage: a number of people, and a number from each named group."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from people.rights import Permission, people_with_permission
from people.roster.groups import groups_of, members
from rollouts.gates.approval import ApprovalGate, owes, still_owed
from rollouts.models import Approval, Plan, Stage
from wording.numbers import are, count

Members = Mapping[str, frozenset[str]]  # group → who is in it and switched on
FIRST = 5  # names in a sentence


@dataclass(frozen=True)
class Share:
    """The approvals that one group owes, or anybody beside the groups."""

    group: str  # blank: anybody who may approve
    wanted: int
    given: tuple[str, ...]
    can: tuple[str, ...]  # who may approve here, did not write the plan and has not decided


def gate_of(stage: Stage) -> ApprovalGate | None:
    return next((gate for gate in stage.gates if isinstance(gate, ApprovalGate)), None)


def eligible(plan: Plan) -> set[str]:
    """Returns the people who may approve in the plan's cluster and did not write the plan. One query."""
    return people_with_permission(Permission.APPROVE, cluster_id=plan.cluster_id) - plan.proposers


def members_asked_for(stages: Iterable[Stage]) -> Members:
    """Returns the members of the groups that these stages name. Two queries; none without groups."""
    asked = {group for stage in stages if (gate := gate_of(stage)) for group in gate.groups}
    return members(asked) if asked else {}


def shares(stage: Stage, standing: Iterable[Approval], *, may: set[str], inside: Members) -> list[Share]:
    """Returns the shares of a stage; empty without approval. `may` are the people who may approve in its cluster."""
    gate = gate_of(stage)
    if gate is None:
        return []
    standing = list(standing)
    decided = {each.by for each in standing}
    approved = {each.by for each in standing if not each.is_rejection}
    can = may - decided - stage.plan.proposers
    found = [
        Share(
            group,
            number,
            _sorted(approved & _members_in_group(inside, group)),
            _sorted(can & _members_in_group(inside, group)),
        )
        for group, number in sorted(gate.groups.items())
    ]
    if (left := gate.people - sum(gate.groups.values())) > 0:
        others = approved - set().union(*(share.given for share in found))
        found.append(Share("", left, _sorted(others), _sorted(can)))
    return found


def _members_in_group(inside: Members, group: str) -> frozenset[str]:
    return inside.get(group, frozenset())


def _sorted(those: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(those))


def missing(gate: ApprovalGate, standing: Iterable[Approval], inside: Members) -> int:
    return gate.missing(_groups_by_person(_givers(standing), inside))[0]


def counts_not(gate: ApprovalGate, who: str, standing: Iterable[Approval], inside: Members) -> str:
    """Returns why this person's approval would not count; empty if it would."""
    if not gate.groups:
        return ""
    givers = _givers(standing)
    before, owed = gate.missing(_groups_by_person(givers, inside))
    after, _ = gate.missing(_groups_by_person({*givers, who}, inside))
    if after < before or not before:
        return ""
    return (
        f"Your approval would not count: only {owes(owed)} {are(sum(owed.values()))} missing, and you are not a member."
    )


def _givers(standing: Iterable[Approval]) -> set[str]:
    return {each.by for each in standing if not each.is_rejection}


def _groups_by_person(people: Iterable[str], inside: Members) -> dict[str, list[str]]:
    return {name: [group for group in inside if name in inside[group]] for name in people}


def too_few(plan: Plan, stage: Stage, people: Iterable[str]) -> str:
    """Returns why the stage can never be approved; empty if it can. `people` are the eligible ones."""
    gate = gate_of(stage)
    if gate is None:
        return ""
    there = sorted(people)
    needs = f"{stage.name} needs {count(gate.people, 'approval')}"
    if gate.people > len(there):
        may = f"only {count(len(there), 'person', 'people')} may approve: {', '.join(there[:FIRST])}"
        return f"{needs}, and {may if there else 'only the author of the plan may approve'}."
    inside = groups_of(there, among=gate.groups)
    owed = still_owed(gate.groups, inside)
    if not owed:
        return ""
    group = min(owed)
    can = [name for name in there if group in inside[name]]
    who = f"only the members {', '.join(can[:FIRST])} may approve" if can else "no member may approve"
    author = " except the author of the plan" if not can and _is_author_alone_in_group(plan, group) else ""
    return f"{needs}, {gate.groups[group]} of group {group}, and {who}{author}."


def _is_author_alone_in_group(plan: Plan, group: str) -> bool:
    return not members([group]).get(group, frozenset()).isdisjoint(plan.proposers)
