"""A draft's preview for its page, also where what it was written for is gone."""

from dataclasses import dataclass

from django.utils import timezone

from rollouts.checks import Check
from rollouts.models import Plan
from rollouts.steering.documents import by_document
from rollouts.steering.preview import Preview, preview
from rollouts.steering.refusals import ObjectGone


@dataclass(frozen=True)
class GonePreview:
    """The driver object is no longer in the cluster: there is nothing to preview."""

    blockers: list[Check]


def preview_of(plan: Plan) -> Preview | GonePreview:
    try:
        return by_document(preview(plan, now=timezone.now()))
    except ObjectGone:
        sentence = f"{plan.cluster.name} no longer shows {plan.object_kind} {plan.object_name}."
        return GonePreview([Check("gone", sentence, "Discard this draft and write one for an object that is there.")])
