"""The repairs that can be asked for now: each actor with what it does, the repair that the fault needs first."""

from dataclasses import dataclass

from maintenance.actors import ACTORS
from maintenance.actors.base import RepairActor
from maintenance.lifecycle import MOST_REBOOTS, ChosenAfterRepair, RepairAnswer, RepairKind
from maintenance.models import NodeCase
from maintenance.queries import repair_scope
from maintenance.repeat_offenders import why_replace
from maintenance.step_choice import REPAIRS, repair_kind
from maintenance.triggers import trigger_of

TITLES = {
    RepairKind.REBOOT: "Reboot",
    RepairKind.GPU_RESET: "GPU reset",
    RepairKind.HARDWARE: "Hardware repair",
    RepairKind.OTHER: "Other repair",
}


@dataclass(frozen=True)
class RepairOffer:
    actor: RepairActor
    kind: RepairKind

    @property
    def key(self) -> str:
        return f"{self.actor.key} {self.kind}"

    @property
    def title(self) -> str:
        by = self.actor.title if self.actor.is_asked else "a person"
        return f"{TITLES[self.kind]}, by {by}"


OFFERS = {offer.key: offer for actor in ACTORS.values() for offer in (RepairOffer(actor, kind) for kind in actor.kinds)}


def repair_offers(case: NodeCase, *, boot_id: str) -> list[RepairOffer]:
    """Returns the repairs that can be asked for, the suggested one first. At most six queries.

    The fault decides the kind. An actor that works by itself comes before a person.
    """
    wanted, place = _wanted_kind(case), repair_scope(case)
    able = {actor.key for actor in ACTORS.values() if not actor.why_not(place)}
    why_not = why_no_reboot(case, boot_id=boot_id)
    offers = [each for each in OFFERS.values() if each.actor.key in able]
    offers = [each for each in offers if each.kind != RepairKind.REBOOT or not why_not]
    order = list(RepairKind)
    return sorted(offers, key=lambda each: (each.kind != wanted, not each.actor.is_asked, order.index(each.kind)))


def answer_effects(kind: RepairKind, chosen: ChosenAfterRepair | None) -> dict[str, str]:
    """Returns the consequence of each answer to a repair, by answer."""
    then = chosen.sentence if chosen and not chosen.has_ended else "The case then waits for a test."
    proof = "The repair ends once the boot ID has changed and the node is Ready. " if kind == RepairKind.REBOOT else ""
    again = "The node returns to its state before the repair."
    return {
        RepairAnswer.DONE: f"{proof}{then}",
        RepairAnswer.REFUSED: f"Nothing was done. {again} You may ask again.",
        RepairAnswer.UNCLEAR: f"Nobody knows what was done. {again} Look at it before you ask again.",
    }


def why_no_reboot(case: NodeCase, *, boot_id: str) -> str:
    """Returns why no further reboot is asked for (lifecycle R7). Blank: one may be."""
    if case.repairs.filter(kind=RepairKind.REBOOT).exclude(answer=RepairAnswer.REFUSED).count() >= MOST_REBOOTS:
        return "Two reboots did not mend the node. Ask for a hardware repair, or retire it."
    if not boot_id:
        return "The node reports no boot ID, so a reboot cannot be proven. Ask for another repair."
    return ""


def _wanted_kind(case: NodeCase) -> RepairKind:
    if why_replace(case):
        return RepairKind.HARDWARE
    trigger = trigger_of(case.finding.rule, case.finding.xid) if case.finding else None
    if trigger is None or not REPAIRS.get(trigger.key):
        return RepairKind.OTHER
    done = case.repairs.filter(answer=RepairAnswer.DONE, ended_at__isnull=False).count()
    return repair_kind(trigger.key, done, set(RepairKind)) or RepairKind.HARDWARE
