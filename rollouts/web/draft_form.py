"""The form of a draft: the version, and a form per stage."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django import forms
from django.forms.utils import ErrorDict
from django.http import QueryDict

from edges.digits import whole_number
from edges.fields import refuse
from rollouts.commands.refusals import BadPlan
from rollouts.commands.stage_drafts import StageDraft
from rollouts.models import Plan, Stage
from rollouts.web.stage_form import StageForms, stage_form_data

FORM_NAMES = {"timeout_s": "timeout_min"}  # the form uses other units than plans store


class DraftForm(forms.Form):
    title = forms.CharField(required=False, max_length=200)
    to_version = forms.CharField(required=False, max_length=64)
    revision = forms.CharField(required=False)
    cordon_affected = forms.BooleanField(required=False)

    def __init__(
        self, data: QueryDict | None = None, *, stages: Iterable[StageDraft | Stage] = (), **given: Any
    ) -> None:
        super().__init__(data, **given)
        self.rows = StageForms(data, prefix="stage", initial=[stage_form_data(stage) for stage in stages])

    @classmethod
    def of(cls, plan: Plan) -> "DraftForm":
        asked = {name: getattr(plan, name) for name in cls.base_fields}
        return cls(stages=plan.stages.forward(), initial=asked)

    def clean_revision(self) -> int:
        return whole_number(self.cleaned_data["revision"]) or 0

    def stages(self) -> list[StageDraft]:
        """Returns the stages.

        :raises BadPlan: when a field cannot be read
        """
        if unread := list(self._unread()):
            raise BadPlan(*unread)
        return self.stages_as_read()

    def stages_as_read(self) -> list[StageDraft]:
        return [row.draft() for row in self.rows]

    @property
    def version_as_read(self) -> str:
        return self.cleaned_data.get("to_version", "")

    def besides(self, problems: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Returns the problems that are about readable fields; none if stages are missing."""
        unread = {field for field, _ in self._unread()}
        whole_lot = not self.rows.non_form_errors()
        return [each for each in problems if whole_lot and _form_field_of(each[0]) not in unread]

    def _unread(self) -> Iterator[tuple[str, str]]:
        """Yields (field, problem) for unreadable fields."""
        yield from _error_sentences(self.errors)
        for sentence in self.rows.non_form_errors():
            yield "stages", str(sentence)
        for at, row in enumerate(self.rows):
            for name, sentence in _error_sentences(row.errors):
                yield f"stages.{at}.{name}", sentence

    def refuse(self, problems: Iterable[Mapping[str, str]]) -> None:
        for problem in problems:
            place, _, name = problem["field"].removeprefix("stages.").partition(".")
            if (at := whole_number(place)) is not None and at < len(self.rows):
                refuse(self.rows[at], FORM_NAMES.get(name, name), problem["sentence"])
            else:
                refuse(self, problem["field"], problem["sentence"])


def _form_field_of(field: str) -> str:
    place, _, name = field.rpartition(".")
    return f"{place}.{FORM_NAMES.get(name, name)}" if place else field


def _error_sentences(errors: ErrorDict) -> Iterator[tuple[str, str]]:
    for name, said in errors.items():
        for sentence in said:
            yield name, str(sentence)
