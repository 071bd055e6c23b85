"""The form of a stage: its fields, and the gate options that people change."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from django import forms

from health.telemetry.service_levels.indicators import INDICATORS
from operations.test_jobs.node_tests import NODE_TESTS, TEMPLATES
from rollouts.commands.stage_drafts import StageDraft
from rollouts.gates import GATES
from rollouts.gates.approval import GROUP
from rollouts.gates.slo import SLOS
from rollouts.gates.test_job import TestJobGate
from rollouts.models import Stage, StageKind

MOST = 50  # stages of a plan
LONGEST = 1000  # characters of a field, as of an expression
LONGEST_OPTIONS = 32_000  # for each gate a reason of 200 characters, two expressions, six to an escaped character
WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)
NUMBER = re.compile(r"-?\d{1,9}(\.\d{0,9})?", re.ASCII)
SENT = re.compile(r"stage-(\d{1,2})-", re.ASCII)  # how the name of a field begins
NOT_AS_SENT = "Some stages were not received, so nothing was saved. Check that all stages are here, and save again."
NOT_KEPT = (
    "Further gate options of this stage cannot be read, so nothing was saved. Open the draft again, or remove "
    "this stage and add it again."
)
# Gates with a number of their own in the form; other options keep their values.
OWN_FIELDS = {"approval", "soak", "failure_budget"}

# Of each gate on a service level: the field of the form by option.
SLO_FIELDS: Mapping[str, Mapping[str, str]] = {
    gate.key: {
        "indicator": f"{gate.key}_indicator",
        "expression": f"{gate.key}_expression",
        "at_most_worse_percent": f"{gate.key}_worse",
        "at_most": f"{gate.key}_at_most",
        "at_least": f"{gate.key}_at_least",
    }
    for gate in SLOS
}
SLO_TEXTS = {"indicator", "expression"}

TEST_FIELDS = {
    "template": "test_template",
    "image": "test_image",
    "command": "test_command",
    "gpus": "test_gpus",
    "metric": "test_metric",
    "at_least": "test_at_least",
    "at_most": "test_at_most",
    "at_most_worse_percent": "test_worse",
}  # Switches that are on by default: the form has a checkbox that turns each off.
# Switches that are on by default: the form has a checkbox that turns each off.
TEST_SWITCHES = {"higher_is_better": "test_lower_is_better", "cordon": "test_without_cordon"}

FIELDS_OF_GATE = {
    **{gate: tuple(its.values()) for gate, its in SLO_FIELDS.items()},
    TestJobGate.key: (*TEST_FIELDS.values(), *TEST_SWITCHES.values()),
}
NOT_USED = "Not used: the gate {} is not chosen. Choose it, or save again without this value."

# Used for an unreadable field while the others are validated: it causes no other error.
STANDS_IN: Mapping[str, Any] = {
    "name": "", "kind": "", "pool": None, "selector": "not-read", "count": None, "max_unavailable": None,
    "timeout_min": None, "sick_nodes_reason": "",
    "approvals": None, "groups": {}, "soak_min": 30, "tolerate": None, "gates": [], "advisory": [],
    "advisory_reason": "It is not read.", "options": {},
    **{name: "" if wire in SLO_TEXTS else None for its in SLO_FIELDS.values() for wire, name in its.items()},
    "test_template": "", "test_image": "", "test_command": "", "test_gpus": None, "test_metric": "",
    "test_at_least": None, "test_at_most": None, "test_worse": None, "test_lower_is_better": False,
    "test_without_cordon": False,
}  # fmt: skip


def gate_choices() -> list[tuple[str, str]]:
    return [(key, gate.title) for key, gate in GATES.items() if key not in OWN_FIELDS]


def indicator_choices() -> list[tuple[str, str]]:
    return [(key, indicator.title) for key, indicator in INDICATORS.items()]


def template_choices() -> list[tuple[str, str]]:
    return [(key, NODE_TESTS[key].title) for key in TEMPLATES]


def advisable() -> list[tuple[str, str]]:
    return [(key, gate.title) for key, gate in GATES.items() if key != "approval"]


class TextField(forms.CharField):
    def __init__(self) -> None:
        super().__init__(required=False, max_length=LONGEST)


class NumberField(TextField):
    """A number; None if empty."""

    def __init__(self, *, is_whole: bool = True) -> None:
        super().__init__()
        self.is_whole = is_whole

    def clean(self, value: Any) -> float | None:
        text = super().clean(value)
        if not text:
            return None
        if not (WHOLE if self.is_whole else NUMBER).fullmatch(text):
            raise forms.ValidationError(f"“{text[:80]}” is not a {'whole ' if self.is_whole else ''}number.")
        return int(text) if self.is_whole else float(text)


class GroupsField(TextField):
    """Groups such as “sre: 1, platform: 2”; a group alone means one person."""

    def clean(self, value: Any) -> dict[str, int]:
        read: dict[str, int] = {}
        for part in filter(None, (each.strip() for each in super().clean(value).split(","))):
            name, _, number = (each.strip() for each in part.partition(":"))
            if not GROUP.fullmatch(name) or not (number == "" or WHOLE.fullmatch(number)) or name in read:
                wrong = f"“{part[:80]}” is invalid. Write each group once, as in sre: 1, platform: 2."
                raise forms.ValidationError(wrong)
            read[name] = int(number or 1)
        return read


class GatesField(forms.MultipleChoiceField):
    def __init__(self) -> None:
        super().__init__(required=False)

    def validate(self, value: Any) -> None:
        """Accepts any value; the gates' own rules report unknown ones with the other problems."""


class OptionsField(forms.CharField):
    """Options without a field of their own, as our page filled them: read completely or refused."""

    def __init__(self) -> None:
        super().__init__(required=False)

    def clean(self, value: Any) -> dict[str, dict[str, Any]]:
        text = super().clean(value)
        if len(text) > LONGEST_OPTIONS:
            raise forms.ValidationError(NOT_KEPT)
        try:
            options = json.loads(text or "{}")
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(NOT_KEPT) from error
        if not isinstance(options, dict) or not all(isinstance(given, dict) for given in options.values()):
            raise forms.ValidationError(NOT_KEPT)
        return {key: given for key, given in options.items() if key in GATES}


class ObjectiveFields(NamedTuple):
    """The fields of one gate on a service level, in the order of `SLO_FIELDS`."""

    title: str
    is_open: bool
    indicator: forms.BoundField
    expression: forms.BoundField
    worse: forms.BoundField
    at_most: forms.BoundField
    at_least: forms.BoundField


class StageForm(forms.Form):
    """Refuses unreadable input. Rules on meaning are in `DraftForm.refuse`."""

    name = TextField()
    kind = TextField()
    pool = NumberField()
    selector = TextField()
    count = NumberField()
    max_unavailable = NumberField()
    timeout_min = NumberField(is_whole=False)
    sick_nodes_reason = TextField()
    approvals = NumberField()
    groups = GroupsField()
    soak_min = NumberField(is_whole=False)
    tolerate = NumberField()
    gates = GatesField()
    advisory = GatesField()  # shown, and not counted
    advisory_reason = TextField()
    test_template = TextField()
    test_image = TextField()
    test_command = TextField()
    test_gpus = NumberField()
    test_metric = TextField()
    test_at_least = NumberField()
    test_at_most = NumberField()
    test_worse = NumberField()
    test_lower_is_better = forms.BooleanField(required=False)
    test_without_cordon = forms.BooleanField(required=False)
    options = OptionsField()
    told = forms.CharField(required=False, max_length=LONGEST)  # the unused fields that the page has named before

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        for its in SLO_FIELDS.values():
            for wire, name in its.items():
                is_whole = wire == "at_most_worse_percent"
                self.fields[name] = TextField() if wire in SLO_TEXTS else NumberField(is_whole=is_whole)

    @property
    def objectives(self) -> Iterator[ObjectiveFields]:
        """Yields the fields of each gate on a service level."""
        for gate, its in SLO_FIELDS.items():
            bound = (self[name] for name in its.values())
            is_open = gate in (self["gates"].value() or ()) or self._is_wrong(gate)
            yield ObjectiveFields(GATES[gate].title, is_open, *bound)

    def clean(self) -> None:
        """Names each value of a gate that is not chosen, once: saved again, the values are dropped."""
        named = self.cleaned_data.get("told", "").split()
        for gate, field in self._unused():
            if field not in named:
                self.add_error(field, NOT_USED.format(GATES[gate].title))

    def _unused(self) -> Iterator[tuple[str, str]]:
        chosen = self.cleaned_data.get("gates", [])
        for gate, fields in FIELDS_OF_GATE.items():
            yield from ((gate, field) for field in fields if gate not in chosen and self.cleaned_data.get(field))

    @property
    def unused(self) -> str:
        """Returns the names of the fields that the page names as unused, for `told`."""
        chosen = self["gates"].value() or []
        others = (fields for gate, fields in FIELDS_OF_GATE.items() if gate not in chosen)
        return " ".join(field for fields in others for field in fields if self.is_bound and self[field].value())

    def has_wrong_test_job(self) -> bool:
        return self._is_wrong(TestJobGate.key)

    def _is_wrong(self, gate: str) -> bool:
        return not self.errors.keys().isdisjoint(FIELDS_OF_GATE[gate])

    def draft(self) -> StageDraft:
        given = self._given_values
        return StageDraft(
            name=given["name"],
            kind=given["kind"],
            pool_id=given["pool"] or None,
            selector=given["selector"],
            count=given["count"],
            max_unavailable=given["max_unavailable"] or 0,
            timeout_s=round((given["timeout_min"] or 0) * 60),
            sick_nodes_reason=given["sick_nodes_reason"],
            gate_options=self._gate_options(given["options"], soak_s=(given["soak_min"] or 0) * 60),
        )

    @cached_property
    def _given_values(self) -> Mapping[str, Any]:
        return {**STANDS_IN, **self.cleaned_data}

    def _gate_options(self, kept: Mapping[str, Mapping[str, Any]], *, soak_s: float) -> dict[str, Mapping[str, Any]]:
        given = self._given_values
        chosen = {key: kept.get(key, {}) for key in given["gates"]}
        chosen["failure_budget"] = {**kept.get("failure_budget", {}), "tolerate": given["tolerate"] or 0}
        needed, groups = given["approvals"] or 0, given["groups"]
        if needed or groups:
            others = {name: value for name, value in kept.get("approval", {}).items() if name != "groups"}
            chosen["approval"] = {**others, "needed": needed or 1} | ({"groups": groups} if groups else {})
        for gate, fields in SLO_FIELDS.items():
            if gate in chosen:
                chosen[gate] = self._with_fields(chosen[gate], fields)
        if TestJobGate.key in chosen:
            options = self._with_fields(chosen[TestJobGate.key], TEST_FIELDS)
            switched_off = {name: False for name, field in TEST_SWITCHES.items() if given[field]}
            chosen[TestJobGate.key] = {k: v for k, v in options.items() if k not in TEST_SWITCHES} | switched_off
        if soak_s:
            chosen["soak"] = {**kept.get("soak", {}), "duration_s": soak_s}
        is_new = given["advisory_reason"] != _reason_shown(kept)
        return {key: self._with_advice(key, options, is_new_reason=is_new) for key, options in chosen.items()}

    def _with_fields(self, kept: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
        """Returns the options of a gate with fields of its own; a blank field is the default, and 0 is no limit."""
        given = {wire: self._given_values[field] for wire, field in fields.items()}
        others = {name: value for name, value in kept.items() if name not in fields}
        return others | {name: value for name, value in given.items() if value not in (None, "")}

    def _with_advice(self, key: str, options: Mapping[str, Any], *, is_new_reason: bool) -> Mapping[str, Any]:
        """Returns the options. An advisory gate keeps its own reason unless the form shows another."""
        plain = {name: value for name, value in options.items() if name not in {"advisory", "reason"}}
        if key not in self._given_values["advisory"] or key not in dict(advisable()):
            return plain
        own = options.get("reason") if options.get("advisory") and not is_new_reason else ""
        reason = own or self._given_values["advisory_reason"]
        return {**plain, "advisory": True} | ({"reason": reason} if reason else {})


class StagesOfDraft(forms.BaseFormSet):
    """The stage forms, as many as were sent. The page's own count is checked, so that none is lost."""

    default_error_messages = {
        "missing_management_form": NOT_AS_SENT,
        "too_many_forms": "A plan has at most %(num)d stages.",
    }

    def get_form_kwargs(self, index: int | None) -> dict[str, Any]:
        if index is None:  # the one that is there to be added
            return {"initial": stage_form_data(StageDraft("", StageKind.POOL))}
        return {"empty_permitted": False}

    def total_form_count(self) -> int:
        return self._sent if self.is_bound else super().total_form_count()

    def clean(self) -> None:
        if self.management_form.cleaned_data["TOTAL_FORMS"] != self._sent:
            raise forms.ValidationError(NOT_AS_SENT)

    @cached_property
    def _sent(self) -> int:
        numbers = (SENT.match(name) for name in self.data)
        return max((int(number[1]) + 1 for number in numbers if number), default=0)


# No more than SENT can name are ever made.
StageForms = forms.formset_factory(
    StageForm, formset=StagesOfDraft, extra=0, max_num=MOST, absolute_max=2 * MOST, validate_max=True
)


def stage_form_data(stage: StageDraft | Stage) -> dict[str, Any]:
    options = {key: dict(value) for key, value in stage.gate_options.items()}
    return {
        "name": stage.name,
        "kind": str(stage.kind),
        "pool": str(stage.pool_id or ""),
        "selector": stage.selector,
        "count": str(stage.count or ""),
        "max_unavailable": str(stage.max_unavailable),
        "timeout_min": f"{stage.timeout_s / 60:g}",
        "sick_nodes_reason": stage.sick_nodes_reason,
        "approvals": str(options["approval"].get("needed", 1)) if "approval" in options else "0",
        "groups": _groups_text(options.get("approval", {}).get("groups")),
        "soak_min": f"{options['soak'].get('duration_s', 1800) / 60:g}" if "soak" in options else "0",
        "tolerate": str(options.get("failure_budget", {}).get("tolerate", 0)),
        "gates": [key for key in options if key not in OWN_FIELDS],
        "advisory": [key for key, given in options.items() if given.get("advisory")],
        "advisory_reason": _reason_shown(options),
        **{
            field: _option_text(options.get(gate, {}).get(wire))
            for gate, its in SLO_FIELDS.items()
            for wire, field in its.items()
        },
        **{field: _option_text(options.get(TestJobGate.key, {}).get(wire)) for wire, field in TEST_FIELDS.items()},
        **{field: options.get(TestJobGate.key, {}).get(name) is False for name, field in TEST_SWITCHES.items()},
        "options": json.dumps(options, sort_keys=True, ensure_ascii=False),
    }


def _reason_shown(options: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the shown reason; the form has one field for all gates."""
    return next((str(given["reason"]).strip() for _, given in sorted(options.items()) if given.get("reason")), "")


def _option_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str("" if value is None else value)


def _groups_text(groups: Any) -> str:
    there = groups if isinstance(groups, dict) else {}
    return ", ".join(f"{name}: {number}" for name, number in sorted(there.items()))
