"""The template of the driver pods and the owner of the object, as the plan knows them, and foreign changes of both.

The driver object's spec shows a change in words; the newest revisions of its DaemonSets prove it. An upgrade of the
operator changes them as well (Z11). Rows keep only digests of the spec, since its `env` may contain a secret.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from edges.digests import digest
from edges.transition_errors import LostRace
from rollouts.engine.live_state import Live
from rollouts.models import Plan

Digests = Mapping[str, str]


@dataclass(frozen=True)
class TemplateChange:
    """The differences from the known template, by spec field and by DaemonSet, with the present value."""

    says: str
    spec: Digests = field(default_factory=dict)
    old: Digests = field(default_factory=dict)  # DaemonSet uid → revision that the old version has now
    new: Digests = field(default_factory=dict)  # and that the new one has
    owners: Sequence[str] = ()  # who else writes the object now

    @property
    def written(self) -> dict[str, Any]:
        return {
            "says": self.says,
            "spec": dict(self.spec),
            "old": dict(self.old),
            "new": dict(self.new),
            "owners": [*self.owners],
        }


def digests_of(plan: Plan, spec: Mapping[str, Any]) -> dict[str, str]:
    return {name: digest(value)[:16] for name, value in plan.its_component.template(spec).items()}


def learn(plan: Plan, live: Live, *, now: datetime) -> None:
    """Records the template at the plan's start, and the first one that the new version produces."""
    known = learned(plan, live)
    if known != plan.templates:
        _save_template(plan, now=now, templates=known)


def learned(plan: Plan, live: Live) -> dict[str, Any]:
    if live.object_trouble:
        return plan.templates
    spec = digests_of(plan, live.spec)
    began = {"spec": spec, "old": plan.sealed.get("revisions", {}), "new": {}, "owners": [*live.owned_by]}
    known = began | plan.templates
    is_our_spec = spec == known["spec"]  # else it is somebody else's template, of whichever version
    if plan.write_intended_at and not live.unsettled and is_our_spec:  # put back at once, it is seen for a moment
        known["new"] = _changed_by_version(known["old"], live.hashes) | known["new"]
    return known


def _changed_by_version(old: Digests, newest: Digests) -> dict[str, str]:
    return {uid: now for uid, now in newest.items() if uid in old and now != old[uid]}


def change(plan: Plan, live: Live) -> TemplateChange | None:
    """Returns the differences from the known template; None if there are none or nothing can be read yet."""
    if live.object_trouble or not plan.templates:
        return None
    known = plan.templates
    is_forward = live.object_version == plan.to_version
    spec = digests_of(plan, live.spec)
    if live.unsettled or live.object_version not in {plan.from_version, plan.to_version}:
        newest: Digests = {}
    else:
        newest = _foreign(known, live.hashes, is_forward=is_forward)
    fields = sorted(name for name in {*spec, *known["spec"]} if spec.get(name) != known["spec"].get(name))
    new_owners = [one for one in live.owned_by if one not in known.get("owners", live.owned_by)]
    # A changed spec alone does not stop a rollback: the engine waits for its template.
    if not newest and (not (fields or new_owners) or (plan.put_back_at and not is_forward)):
        return None
    says = _change_sentence(plan, fields, newest, live, new_owners)
    return TemplateChange(says, spec, **{"new" if is_forward else "old": newest}, owners=live.owned_by)


def _foreign(known: Mapping[str, Digests], newest: Digests, *, is_forward: bool) -> dict[str, str]:
    """Returns revisions that belong to neither version. The operator takes a moment to switch between both."""
    expected = {uid: {known["old"][uid]} | {known["new"].get(uid, "")} for uid in known["old"]}
    if is_forward:
        expected = {uid: {known["new"][uid]} for uid in known["new"]}
    return {uid: now for uid, now in newest.items() if uid in expected and now not in expected[uid]}


def _change_sentence(plan: Plan, fields: list[str], newest: Digests, live: Live, new_owners: list[str]) -> str:
    name = f"{plan.object_kind} {plan.object_name}"
    if new_owners and not (fields or newest):
        return f"{name} now belongs to {' and '.join(new_owners)}, which may overwrite the version"
    if fields:
        return f"{' and '.join(f'spec.{one}' for one in fields)} of {name} was changed by somebody else"
    daemonsets = sorted(one.name for one in live.daemonsets if one.uid in newest)
    return f"The template of DaemonSet {' and '.join(daemonsets)} was changed by somebody else, or by the operator"


def remember(plan: Plan, found: TemplateChange | None, *, now: datetime) -> None:
    """Records the change that a person accepts by resuming: the last one reported."""
    written = found.written if found else {}
    if written != plan.template_change:
        _save_template(plan, now=now, template_change=written)


def _save_template(plan: Plan, *, now: datetime, **given: Any) -> None:
    """Saves the plan's known template.

    :raises LostRace: when a person has accepted a change since the plan was read
    """
    with transaction.atomic():
        plan.keep_lease(now=now)
        as_is = Plan.objects.only("templates", "template_change").get(pk=plan.pk)
        if (as_is.templates, as_is.template_change) != (plan.templates, plan.template_change):
            raise LostRace("A person accepted the present template.")
        Plan.objects.filter(pk=plan.pk).update(**given)
    for name, value in given.items():
        setattr(plan, name, value)
