"""The draft as its form spells it: rows of stages, and of each the gates with the numbers that people change."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from edges.digits import whole
from rollouts.gates import GATES
from rollouts.gates.approval import GROUP
from rollouts.models import Plan, Stage, StageKind
from rollouts.steering.refusals import BadPlan
from rollouts.steering.stage_drafts import StageDraft

# Gates with a number of their own on the form; the other options keep what they were.
FORM_NAMES = {"timeout_s": "timeout_min"}  # what people write in other units than plans keep
LONGEST_OPTIONS = 8000
WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)
NUMBER = re.compile(r"-?\d{1,9}(\.\d{0,9})?", re.ASCII)
OWN_FIELDS = {"approval", "soak", "failure_budget"}


def gate_choices() -> list[tuple[str, str]]:
    """The gates that are simply on or off."""
    return [(key, gate.title) for key, gate in GATES.items() if key not in OWN_FIELDS]


def advisable() -> list[tuple[str, str]]:
    """The gates that may be only advisory."""
    return [(key, gate.title) for key, gate in GATES.items() if key != "approval"]


@dataclass
class StageFields:
    """One stage as text, so that what cannot be read can be shown again as it was written."""

    number: str = "0"
    name: str = ""
    kind: str = StageKind.POOL.value
    pool: str = ""
    selector: str = ""
    count: str = ""
    max_unavailable: str = "1"
    timeout_min: str = "60"
    approvals: str = "1"
    groups: str = ""  # sre: 1, platform: 2
    soak_min: str = "30"
    tolerate: str = "0"
    gates: list[str] = field(default_factory=list)
    advisory: list[str] = field(default_factory=list)  # gates that are shown and not counted
    advisory_because: str = ""
    options: dict[str, dict[str, Any]] = field(default_factory=dict)  # what has no field here: kept as it was
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def blank(cls) -> "StageFields":
        return cls.of(StageDraft("", StageKind.POOL), "NEW")

    @classmethod
    def of(cls, stage: StageDraft | Stage, number: str) -> "StageFields":
        options = {key: dict(value) for key, value in stage.gate_options.items()}
        return cls(
            number=number,
            name=stage.name,
            kind=str(stage.kind),
            pool=str(stage.pool_id or ""),
            selector=stage.selector,
            count=str(stage.count or ""),
            max_unavailable=str(stage.max_unavailable),
            timeout_min=f"{stage.timeout_s / 60:g}",
            approvals=str(options["approval"].get("needed", 1)) if "approval" in options else "0",
            groups=_groups_text(options.get("approval", {}).get("groups")),
            soak_min=f"{options['soak'].get('duration_s', 1800) / 60:g}" if "soak" in options else "0",
            tolerate=str(options.get("failure_budget", {}).get("tolerate", 0)),
            gates=[key for key in options if key not in OWN_FIELDS],
            advisory=[key for key, given in options.items() if given.get("advisory")],
            advisory_because=next((str(given["because"]) for given in options.values() if given.get("because")), ""),
            options=options,
        )

    @classmethod
    def read(cls, post: QueryDict, number: str) -> "StageFields":
        def text(name: str) -> str:
            return post.get(f"stage-{number}-{name}", "").strip()[:1000]

        return cls(
            number=number,
            name=text("name"),
            kind=text("kind"),
            pool=text("pool"),
            selector=text("selector"),
            count=text("count"),
            max_unavailable=text("max_unavailable"),
            timeout_min=text("timeout_min"),
            approvals=text("approvals"),
            groups=text("groups"),
            soak_min=text("soak_min"),
            tolerate=text("tolerate"),
            gates=post.getlist(f"stage-{number}-gates"),
            advisory=[key for key in post.getlist(f"stage-{number}-advisory") if key in dict(advisable())],
            advisory_because=text("advisory_because"),
            options=_options(post.get(f"stage-{number}-options", "").strip()[:LONGEST_OPTIONS]),
        )

    @property
    def options_text(self) -> str:
        return json.dumps(self.options, sort_keys=True)

    def draft(self) -> StageDraft:
        count = self._number("count")
        pool = self._number("pool")
        soak = self._number("soak_min", float)
        return StageDraft(
            name=self.name,
            kind=self.kind,
            pool_id=int(pool) if pool else None,
            selector=self.selector,
            count=None if count is None else int(count),
            max_unavailable=int(self._number("max_unavailable") or 0),
            timeout_s=round((self._number("timeout_min", float) or 0) * 60),
            gate_options=self._gate_options(soak_s=(soak or 0) * 60),
        )

    def _gate_options(self, *, soak_s: float) -> Mapping[str, Mapping[str, Any]]:
        chosen = {key: self.options.get(key, {}) for key in self.gates}
        chosen["failure_budget"] = {
            **self.options.get("failure_budget", {}),
            "tolerate": int(self._number("tolerate") or 0),
        }
        needed, groups = int(self._number("approvals") or 0), self._groups()
        if needed or groups:
            kept = {name: value for name, value in self.options.get("approval", {}).items() if name != "groups"}
            chosen["approval"] = {**kept, "needed": needed or 1} | ({"groups": groups} if groups else {})
        if soak_s:
            chosen["soak"] = {**self.options.get("soak", {}), "duration_s": soak_s}
        return {key: self._with_advice(key, options) for key, options in chosen.items()}

    def _with_advice(self, key: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """A gate that was advisory keeps its own reason; one that is now has what the form says."""
        plain = {name: value for name, value in options.items() if name not in {"advisory", "because"}}
        if key not in self.advisory:
            return plain
        because = options.get("because") if options.get("advisory") else ""
        because = because or self.advisory_because
        return {**plain, "advisory": True} | ({"because": because} if because else {})

    def _groups(self) -> dict[str, int]:
        """“sre: 1, platform: 2”; a group alone is one person of it."""
        read: dict[str, int] = {}
        for part in filter(None, (each.strip() for each in self.groups.split(","))):
            name, _, number = (each.strip() for each in part.partition(":"))
            if not GROUP.fullmatch(name) or not (number == "" or WHOLE.fullmatch(number)) or name in read:
                self.problems["groups"] = f"“{part[:80]}” is not read. Each group once, as in sre: 1, platform: 2."
                return {}
            read[name] = int(number or 1)
        return read

    def _number(self, name: str, kind: type[int] | type[float] = int) -> float | None:
        written = getattr(self, name)
        if written == "":
            return None
        if (WHOLE if kind is int else NUMBER).fullmatch(written):
            return kind(written)
        self.problems[name] = f"“{written[:80]}” is no {'whole ' if kind is int else ''}number."
        return None


def _groups_text(groups: Any) -> str:
    there = groups if isinstance(groups, dict) else {}
    return ", ".join(f"{name}: {number}" for name, number in sorted(there.items()))


def _options(written: str) -> dict[str, dict[str, Any]]:
    try:
        options = json.loads(written or "{}")
    except (
        ValueError,
        RecursionError,
    ):  # of a field that our own page fills: whoever changed it gets the usual options
        return {}
    if not isinstance(options, dict):
        return {}
    return {key: value for key, value in options.items() if key in GATES and isinstance(value, dict)}


@dataclass
class DraftForm:
    title: str = ""
    to_version: str = ""
    revision: int = 0
    rows: list[StageFields] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def suggested(cls, stages: Iterable[StageDraft]) -> "DraftForm":
        return cls(rows=[StageFields.of(stage, str(number)) for number, stage in enumerate(stages)])

    @classmethod
    def of(cls, plan: Plan) -> "DraftForm":
        rows = [StageFields.of(stage, str(number)) for number, stage in enumerate(plan.stages.forward())]
        return cls(title=plan.title, to_version=plan.to_version, revision=plan.revision, rows=rows)

    @classmethod
    def read(cls, post: QueryDict) -> "DraftForm":
        return cls(
            title=post.get("title", "").strip()[:200],
            to_version=post.get("to_version", "").strip()[:64],
            revision=whole(post.get("revision", "")) or 0,
            rows=[StageFields.read(post, number[:8]) for number in post.getlist("stage")[:50]],
        )

    def stages(self) -> list[StageDraft]:
        """:raises BadPlan: when a number cannot be read"""
        drafts = [row.draft() for row in self.rows]
        unread = [
            (f"stages.{at}.{name}", words) for at, row in enumerate(self.rows) for name, words in row.problems.items()
        ]
        if unread:
            raise BadPlan(*unread)
        return drafts

    def refuse(self, problems: Iterable[Mapping[str, str]]) -> None:
        """Put each sentence beside the field that it is about; at the top where it is about none."""
        for problem in problems:
            place, _, name = problem["field"].removeprefix("stages.").partition(".")
            if (at := whole(place)) is not None and at < len(self.rows):
                self.rows[at].problems[FORM_NAMES.get(name, name)] = problem["sentence"]
            else:
                self.problems[problem["field"] or "all"] = problem["sentence"]
