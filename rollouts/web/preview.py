from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from rollouts.checks import Check
from rollouts.commands.documents import by_document
from rollouts.commands.preview import Preview, StartVerdict, preview
from rollouts.commands.refusals import ObjectGone
from rollouts.models import Plan


@dataclass(frozen=True)
class GonePreview:
    """The driver object is no longer in the cluster, so there is no preview."""

    blockers: list[Check]
    seen_at: datetime
    verdict = StartVerdict.BARRED
    verdict_sentence = "1 blocker prevents the start."


def preview_of(plan: Plan) -> Preview | GonePreview:
    now = timezone.now()
    try:
        return by_document(preview(plan, now=now))
    except ObjectGone:
        title = f"{plan.object_kind} {plan.object_name} no longer exists"
        steps = ("Discard this draft and write one for another object.",)
        return GonePreview([Check("gone", title=title, steps=steps)], seen_at=now)
