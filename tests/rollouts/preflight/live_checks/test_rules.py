"""Each rule over a record of answers: what passes, what bars, and that no answer is neither."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rollouts.preflight.live_checks import RULES, evaluate, rules
from rollouts.preflight.live_checks.answers import LiveAnswer, LiveResult, blocking_checks, passed, unanswered
from rollouts.preflight.live_checks.facts import (
    LiveFacts,
    NamespaceState,
    NoAnswer,
    ObjectFacts,
    PlanFacts,
    Right,
    Tried,
)
from tests.rollouts.make import lines_of, steps_of

PLAN = PlanFacts(
    cluster="east",
    cluster_uid="uid-east",
    own_namespace="quarterdeck",
    object_title="NVIDIADriver h200",
    object_uid="uid-h200",
    generation=3,
    from_version="580.95.05",
    to_version="580.126.20",
    command="kubectl -n quarterdeck get lease quarterdeck -o yaml",
)
LOST = NoAnswer("The API server did not answer in time.")
RIGHTS = (
    Right("patch", "nodes", is_allowed=True),
    Right("create", "leases.coordination.k8s.io", "quarterdeck", is_allowed=True),
    Right("create", "jobs.batch", "gpu-operator", is_needed=False, is_allowed=True),
)
WELL = LiveFacts(
    plan=PLAN,
    cluster_uid="uid-east",
    namespace=NamespaceState.THERE,
    lease="",
    driver_object=ObjectFacts("uid-h200", "580.95.05", 3),
    rights=RIGHTS,
    version_patch=Tried(),
    node_patches=(("gpu-1", Tried()),),
)


def barred(facts: LiveFacts) -> list[LiveAnswer]:
    return [answer for answer in evaluate(facts) if answer.bars]


def without(place: int, answer: bool | NoAnswer) -> LiveFacts:
    rights = [replace(right, is_allowed=answer) if at == place else right for at, right in enumerate(RIGHTS)]
    return replace(WELL, rights=rights)


def test_where_all_is_well_each_question_is_said_to_be_in_order():
    answers = evaluate(WELL)

    assert len(answers) == len(RULES) + 1
    assert {answer.result for answer in answers} == {LiveResult.PASSED}
    assert all(answer.check.is_good for answer in answers)


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ({"cluster_uid": "uid-west"}, "live-cluster", "Another cluster answers at the address of east"),
        ({"namespace": NamespaceState.ABSENT}, "live-namespace", "east has no namespace quarterdeck"),
        ({"namespace": NamespaceState.GOING}, "live-namespace", "is being deleted"),
        ({"lease": "Another Quarterdeck (x) drives east."}, "live-lease", "Another Quarterdeck may write to east"),
        ({"driver_object": ObjectFacts("", "", 0)}, "live-object", "NVIDIADriver h200 was deleted."),
        ({"driver_object": ObjectFacts("uid-2", "580.95.05", 1)}, "live-object", "was deleted and created again"),
        ({"driver_object": ObjectFacts("uid-h200", "570.1.1", 4)}, "live-object", "asks for 570.1.1"),
        ({"driver_object": ObjectFacts("uid-h200", "", 4)}, "live-object", "names no version"),
        ({"driver_object": ObjectFacts("uid-h200", "580.95.05", 4)}, "live-object", "changed after the preview"),
        ({"version_patch": Tried("denied by policy")}, "live-version", "rejects 580.126.20 in NVIDIADriver h200"),
        ({"node_patches": (("gpu-1", Tried("denied by policy")),)}, "live-hold", "denied by policy"),
    ],
)  # fmt: skip
def test_what_bars_a_start(given: dict[str, Any], code: str, says: str):
    (answer,) = barred(replace(WELL, **given))

    assert answer.result is LiveResult.BARRED
    assert answer.check.code == code
    assert says in answer.check.sentence
    assert steps_of(answer.check)


def test_a_version_that_is_refused_names_its_field():
    (answer,) = barred(replace(WELL, version_patch=Tried("denied")))

    assert answer.check.field == "to_version"


def test_a_right_that_is_missing_bars_and_names_verb_kind_and_namespace():
    (answer,) = barred(without(1, False))

    assert answer.check.title == "Quarterdeck lacks 1 right that the plan needs"
    assert answer.check.summary == "It may not create leases.coordination.k8s.io in quarterdeck."
    assert lines_of(answer.check) == ("leases.coordination.k8s.io in quarterdeck: create",)


def test_several_rights_of_a_kind_are_one_sentence():
    missing = [Right(verb, "nodes") for verb in ("list", "patch")] + [Right("create", "leases", "quarterdeck")]

    (answer,) = barred(replace(WELL, rights=missing))

    assert answer.check.summary == "It may not list or patch nodes, nor create leases in quarterdeck."


def test_a_right_that_only_a_pull_needs_bars_nothing():
    found = [answer for answer in evaluate(without(2, False)) if answer.result is LiveResult.WARNED]

    assert [answer.check.code for answer in found] == ["live-pull-rights"]
    assert barred(without(2, False)) == []
    assert barred(without(2, LOST)) == []


@pytest.mark.parametrize(
    "facts",
    [
        replace(WELL, cluster_uid=LOST),
        replace(WELL, namespace=LOST),
        replace(WELL, lease=LOST),
        replace(WELL, driver_object=LOST),
        replace(WELL, version_patch=LOST),
        replace(WELL, node_patches=(("gpu-1", Tried()), ("gpu-2", LOST))),
        without(0, LOST),
    ],
    ids=["cluster", "namespace", "lease", "object", "version", "node", "right"],
)
def test_no_answer_is_neither_a_pass_nor_a_no(facts: LiveFacts):
    (answer,) = barred(facts)

    assert answer.result is LiveResult.UNANSWERED
    assert answer.check.title.startswith("It is unknown ")
    assert LOST.reason in answer.check.sentence
    assert steps_of(answer.check)
    assert not answer.check.may_be_overridden


@pytest.mark.parametrize("field", ["namespace", "lease", "driver_object", "rights", "version_patch", "node_patches"])
def test_what_was_not_asked_is_no_pass(field: str):
    nothing = () if field in {"rights", "node_patches"} else None

    (answer,) = barred(replace(WELL, **{field: nothing}))

    assert answer.result is LiveResult.UNANSWERED


def test_a_cluster_that_does_not_answer_says_only_that():
    (answer,) = evaluate(LiveFacts(PLAN, silence="It did not answer in time."))

    assert answer.result is LiveResult.UNANSWERED
    assert answer.check.code == "live-silent"
    assert "It did not answer in time." in answer.check.sentence


def test_another_cluster_is_asked_nothing_more():
    (answer,) = evaluate(LiveFacts(PLAN, cluster_uid="uid-west"))

    assert answer.check.code == "live-cluster"


def test_only_what_nobody_could_ask_gives_way_to_a_reason():
    cannot = unanswered("whether it is taken", NoAnswer("No dry run.", may_be_overridden=True))
    lost = unanswered("whether it is taken", LOST)

    assert blocking_checks([cannot, lost], is_overridden=False) == [cannot.check, lost.check]
    assert blocking_checks([cannot, lost], is_overridden=True) == [lost.check]
    assert blocking_checks([passed(cannot.check)], is_overridden=False) == []


@pytest.mark.parametrize("answer", [*evaluate(WELL), *evaluate(replace(WELL, version_patch=Tried("no"), lease=LOST))])
def test_an_answer_is_read_back_as_it_was_written(answer: LiveAnswer):
    assert replace(LiveAnswer.of(answer.written), is_for_good=answer.is_for_good) == answer


def test_no_rule_was_forgotten_in_the_table():
    folder = Path(rules.__file__).parent
    asked = {rule.__module__.rpartition(".")[2] for rule in RULES}

    assert asked | {"cluster", "__init__"} == {each.stem for each in folder.glob("*.py")}


UNDER_WAY = replace(WELL, plan=replace(PLAN, is_written=True), version_patch=None)


def test_of_a_plan_that_has_written_its_version_the_object_asks_for_that_one():
    facts = replace(UNDER_WAY, driver_object=ObjectFacts("uid-h200", "580.126.20", 4))

    answers = evaluate(facts)

    assert {answer.result for answer in answers} == {LiveResult.PASSED}
    assert "live-version" not in {answer.check.code for answer in answers}, "it is written: there is nothing to try"
    assert "NVIDIADriver h200 asks for 580.126.20. The plan wrote this version." in [
        one.check.sentence for one in answers
    ]


def test_of_a_plan_under_way_a_version_that_somebody_else_wrote_speaks_against_it():
    (answer,) = barred(UNDER_WAY)

    assert answer.check.sentence == "NVIDIADriver h200 asks for 580.95.05. The plan wrote 580.126.20."
