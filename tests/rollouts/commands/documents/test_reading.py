import json

import pytest

from rollouts.commands.documents import parse_plan_document
from rollouts.commands.refusals import BadPlan

DOCUMENT = """\
cluster: east
object: {name: h200}
from: 570.172.08
to: 580.95.05
title: October
stages:
- name: Canary
  kind: canary
  count: 2
- name: Training
  kind: pool
  pool: training
  selector: zone=a
  max_unavailable: 4
  timeout: 2h
  gates:
    approval: {needed: 2, valid_for: 8h}
    window: {must_last: 30m}
    driver_version:
    workloads_ready: {advisory: true, reason: Noisy., wait_timeout: 10m}
    soak: {duration: 1h30m}
"""


def problems(text: str) -> dict[str, str]:
    with pytest.raises(BadPlan) as refusal:
        parse_plan_document(text)
    return {each["field"]: each["sentence"] for each in refusal.value.problems}


def test_a_document_is_read():
    document = parse_plan_document(DOCUMENT)

    assert (document.cluster, document.kind, document.name) == ("east", "NVIDIADriver", "h200")
    assert (document.from_version, document.to_version, document.title) == ("570.172.08", "580.95.05", "October")
    canary, training = document.stages
    assert (canary.count, canary.max_unavailable, canary.timeout_s) == (2, 1, 3600)
    assert canary.gate_options is None  # the default gates of its pool
    assert (training.pool, training.selector, training.max_unavailable) == ("training", "zone=a", 4)
    assert training.timeout_s == 7200
    assert training.gate_options == {
        "approval": {"needed": 2, "valid_for_s": 28_800},
        "window": {"must_last_s": 1800},
        "driver_version": {},
        "workloads_ready": {"advisory": True, "reason": "Noisy.", "wait_timeout_s": 600},
        "soak": {"duration_s": 5400},
    }


def test_json_says_the_same():
    content = {
        "cluster": "east", "object": {"name": "h200"}, "to": "580.95.05", "title": "\U0001f680 \t",
        "stages": [{"name": "Canary", "kind": "canary", "count": 1, "gates": {"soak": {"duration": "30m"}}}],
    }  # fmt: skip

    for text in (json.dumps(content), json.dumps(content, indent="\t", ensure_ascii=False)):
        document = parse_plan_document(text)

        assert document.title == "\U0001f680"
        assert document.stages[0].gate_options == {"soak": {"duration_s": 1800}}


WRONG = {
    "nothing": ("", "line 1", "The file is empty. It must begin with “cluster:”."),
    "a list": ("- a", "", "Must be “key: value”, with the keys"),
    "no yaml": ("cluster: [", "line 1", "This is not YAML"),
    "unknown field": (DOCUMENT + "colour: red", "colour", "Unknown field. Known fields: plan,"),
    "does not exist, or you may not see it": (DOCUMENT.replace("cluster: east\n", ""), "cluster", "A plan needs this."),
    "no object": (DOCUMENT.replace("object: {name: h200}\n", ""), "object", "A plan needs this."),
    "object of no name": (DOCUMENT.replace("{name: h200}", "{}"), "object.name", "Name the driver object"),
    "no stages": (DOCUMENT.partition("stages")[0], "stages", "A plan needs this."),
    "stages of one": (
        DOCUMENT.partition("stages")[0] + "stages: 3",
        "stages",
        "Must be a list. Each stage begins with “- name:”",
    ),
    "too many": (DOCUMENT.partition("- ")[0] + "- {}\n" * 51, "stages", "at most 50 stages; this one has 51."),
    "version as a number": (DOCUMENT.replace("580.95.05", "580.95"), "to", "Write it in quotes."),
    "stage of no name": (
        DOCUMENT.replace("name: Training", "count: 1"),
        "stages[1].name",
        "Each stage needs this field.",
    ),
    "long name": (DOCUMENT.replace("Training", "x" * 101), "stages[1].name", "at most 100 characters"),
    "count of none": (DOCUMENT.replace("count: 2", "count: 0"), "stages[0].count", "whole number from 1 to 100000"),
    "count of a half": (DOCUMENT.replace("count: 2", "count: 1.5"), "stages[0].count", "whole number"),
    "count of true": (DOCUMENT.replace("count: 2", "count: true"), "stages[0].count", "whole number"),
    "no budget": (DOCUMENT.replace("able: 4", "able: -4"), "stages[1].max_unavailable", "whole number"),
    "timeout": (DOCUMENT.replace("2h", "soon"), "stages[1].timeout", "“soon” is not a duration. Write it as 90s"),
    "part of a second": (DOCUMENT.replace("2h", "90.5s"), "stages[1].timeout", "whole seconds"),
    "groups as a list": (
        DOCUMENT.replace("needed: 2", "groups: [sre]"),
        "stages[1].gates.approval.groups",
        "Must be “group: number of people”, such as sre: 1",
    ),
    "a group of nobody": (
        DOCUMENT.replace("needed: 2", "groups: {sre: 0}"),
        "stages[1].gates.approval.groups.sre",
        "from 1 to 20",
    ),
    "a group of two words": (
        DOCUMENT.replace("needed: 2", "groups: {a b: 1}"),
        "stages[1].gates.approval.groups",
        "one word",
    ),
    "gate": (DOCUMENT.replace("driver_version", "luck"), "stages[1].gates.luck", "Known fields: approval"),
    "option": (DOCUMENT.replace("duration:", "length:"), "stages[1].gates.soak.length", "Known fields: duration, "),
    "length": (DOCUMENT.replace("1h30m", "5400"), "stages[1].gates.soak.duration", "is not a duration"),
    "switch": (DOCUMENT.replace("true", "1"), "stages[1].gates.workloads_ready.advisory", "true or false"),
    "number": (DOCUMENT.replace("needed: 2", "needed: two"), "stages[1].gates.approval.needed", "whole number"),
    "reason": (DOCUMENT.replace("Noisy.", "x" * 201), "stages[1].gates.workloads_ready.reason", "at most 200"),
    "what the gate refuses": (DOCUMENT.replace("needed: 2", "needed: 0"), "stages[1].gates.approval", "approval: "),
    "a window longer than any": (DOCUMENT.replace("last: 30m", "last: 8d"), "stages[1].gates.window", "at most 7 days"),
    "gates of a list": (DOCUMENT.replace("{duration: 1h30m}", "[]"), "stages[1].gates.soak", "“key: value”"),
    "twice": (DOCUMENT + "title: Again", "line 22", "The key “title” is there twice."),
    "twice within": (
        DOCUMENT.replace("count: 2", "count: 2\n  count: 3"),
        "line 10",
        "The key “count” is there twice.",
    ),
    "alias": (DOCUMENT.replace("{name: h200}", "&a {name: h200}") + "from: *a", "line 22", "Aliases (*)"),
    "bomb": ("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", "line 2", "Aliases (*)"),
    "deep": ("cluster: " + "[" * 500, "line 1", "Aliases (*) and deeply nested values"),
    "deep json": ('{"cluster": ' + "[" * 30_000, "line 1", "Aliases (*) and deeply nested values"),
    "large": ("a" * 50_000_000, "line 1", "The file is larger than 64 KiB."),
    "large json": ("{" + " " * 50_000_000, "line 1", "The file is larger than 64 KiB."),
    "a date": (DOCUMENT.replace("October", "2026-10-01"), "line 5", "write it in quotes"),
    "base sixty": (DOCUMENT.replace("count: 2", "count: 1:30"), "line 9", "can be read in several ways"),
    "a tag": (DOCUMENT.replace("October", "!!python/name:os.system x"), "line 5", "can be read in several ways"),
    "no text": (DOCUMENT.replace("October", '"a\\0b"'), "title", "cannot be stored"),
    "json twice": ('{"cluster": "a", "cluster": "b"}', "line 1", "The key “cluster” is there twice."),
    "key of no word": ("1: a", "line 1", "A key is a word."),
    "keys of a merge": (DOCUMENT + "<<: {title: x}", "line 22", "A key is a word."),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_names_its_field(what: str):
    text, field, sentence = WRONG[what]

    found = problems(text)

    assert list(found) == [field]
    assert sentence in found[field]


def test_all_problems_are_told_at_once_up_to_fifty():
    found = problems(DOCUMENT.replace("count: 2", "count: none").replace("2h", "soon"))
    many = problems("\n".join(f"a{number}: 1" for number in range(200)))

    assert list(found) == ["stages[0].count", "stages[1].timeout"]
    assert len(many) == 51


@pytest.mark.parametrize(
    ("text", "line"), [('a: 1\n"\\uD800": 1', 2), ('"a\\0": 1', 1), ('{"\\ud800": 1}', 1), ('{"a": {"\\u0000": 1}}', 1)]
)
def test_a_key_that_is_no_text_is_named_by_its_line_and_told_by_nobody(text, line):
    """YAML and JSON spell it in escapes, and no page could be written with it."""
    with pytest.raises(BadPlan) as refusal:
        parse_plan_document(text)

    (problem,) = refusal.value.problems
    assert (problem["field"], "cannot be stored" in problem["sentence"]) == (
        f"line {line}",
        True,
    )


def test_a_length_that_is_no_text_is_not_repeated():
    with pytest.raises(BadPlan) as refusal:
        parse_plan_document(DOCUMENT.replace("timeout: 2h", 'timeout: "\\uD800"'))

    (problem,) = refusal.value.problems
    assert (problem["field"], problem["sentence"][:20]) == ("stages[1].timeout", "This is not a durati")
