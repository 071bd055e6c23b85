"""The draft of a plan as its form spells it: the version, and a form for each of its stages."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import forms
from django.forms.utils import ErrorDict
from django.http import QueryDict

from edges.digits import whole
from edges.fields import refuse
from rollouts.models import Plan, Stage
from rollouts.steering.refusals import BadPlan
from rollouts.steering.stage_drafts import StageDraft
from rollouts.web.stage_form import StageForms, written

FORM_NAMES = {"timeout_s": "timeout_min"}  # what people write in other units than plans keep


class DraftForm(forms.Form):
    title = forms.CharField(required=False, max_length=200)
    to_version = forms.CharField(required=False, max_length=64)
    revision = forms.CharField(required=False)

    def __init__(
        self, data: QueryDict | None = None, *, stages: Iterable[StageDraft | Stage] = (), **given: Any
    ) -> None:
        super().__init__(data, **given)
        self.rows = StageForms(data, prefix="stage", initial=[written(stage) for stage in stages])

    @classmethod
    def of(cls, plan: Plan) -> "DraftForm":
        asked = {"title": plan.title, "to_version": plan.to_version, "revision": plan.revision}
        return cls(stages=plan.stages.forward(), initial=asked)

    def clean_revision(self) -> int:
        return whole(self.cleaned_data["revision"]) or 0

    def stages(self) -> list[StageDraft]:
        """:raises BadPlan: when anything of the form cannot be read"""
        unread = list(_sentences(self.errors))
        unread += [("stages", str(sentence)) for sentence in self.rows.non_form_errors()]
        for at, row in enumerate(self.rows):
            unread += [(f"stages.{at}.{name}", sentence) for name, sentence in _sentences(row.errors)]
        if unread:
            raise BadPlan(*unread)
        return [row.draft() for row in self.rows]

    def refuse(self, problems: Iterable[Mapping[str, str]]) -> None:
        """Put each sentence beside the field that it is about; at the top where it is about none."""
        for problem in problems:
            place, _, name = problem["field"].removeprefix("stages.").partition(".")
            if (at := whole(place)) is not None and at < len(self.rows):
                refuse(self.rows[at], FORM_NAMES.get(name, name), problem["sentence"])
            else:
                refuse(self, problem["field"], problem["sentence"])


def _sentences(errors: ErrorDict) -> Iterator[tuple[str, str]]:
    for name, said in errors.items():
        for sentence in said:
            yield name, str(sentence)
