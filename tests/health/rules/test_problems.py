"""What holds for the problem of every rule, on its planted examples."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from health.evaluation.signals import Signal, Subject
from health.rules import RULES
from health.rules.base import NODE, OWNER, WAITING, Problem
from health.rules.gpus import GPU_RULES
from tests.health.rules.examples import (
    cluster_examples,
    gpu_examples,
    node_examples,
    owner_examples,
    waiting_examples,
)
from wording.reports import LONGEST_SUMMARY, LONGEST_TITLE

EVERY_RULE: tuple[Any, ...] = (*RULES, *GPU_RULES)
QUOTING = {"node-conditions", "pods-rejected"}  # their summaries quote others
MOST_WORDS = 20  # of a sentence
LONGEST_CAUSE, LONGEST_STEP = 200, 200  # characters; of a known cause of an operand also its summary
COMMAND = re.compile(r"(?::|\() ?(?:kubectl|nvidia-smi|dcgmi|journalctl|bin/manage|curl|systemctl)\b.*$")


def examples_of(rule: Any, name: str = "") -> list[Any]:
    """The facts of the rule's examples; `name` is that of the node, the cluster or the owner."""
    given = (name,) if name else ()
    if rule in GPU_RULES:
        every: Mapping[str, Any] = gpu_examples(*given)
    elif rule.subject == OWNER:
        every = owner_examples(*given)
    elif rule.subject == WAITING:
        every = waiting_examples(*given)
    else:
        every = node_examples(*given) if rule.subject == NODE else cluster_examples(*given)
    return list(every[rule.key])


def problems_of(rule: Any, name: str = "") -> list[Problem]:
    return [problem for facts in examples_of(rule, name) if (problem := rule.evaluate(facts)) is not None]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.key)
def test_every_rule_reports_a_problem_on_its_examples(rule):
    problems = problems_of(rule)

    is_of_xids = rule.key == "gpu-xid"  # some Xids ask for nothing
    assert problems
    assert is_of_xids or len(problems) == len(examples_of(rule))


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.key)
def test_titles_name_their_object_and_no_text_is_cut(rule):
    for problem in problems_of(rule):
        steps = problem.steps or rule.steps
        assert 0 < len(problem.title) <= LONGEST_TITLE, problem.title
        assert len(problem.summary) <= LONGEST_SUMMARY, problem.summary
        assert "…" not in problem.title, problem.title
        assert "…" not in problem.summary or rule.key in QUOTING, problem.summary
        assert all(0 < len(cause) <= LONGEST_CAUSE for cause in problem.causes), problem.causes
        assert steps
        assert all(0 < len(step) <= LONGEST_STEP for step in steps), steps


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.key)
def test_evidence_is_labelled_values(rule):
    for problem in problems_of(rule):
        for item in problem.evidence:
            assert item.label
            assert type(item.value) in (str, int, float), item
            assert item.value != "", item
            assert item.text


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.key)
def test_a_title_with_the_longest_name_still_says_what_is_wrong(rule):
    longest = f"gpu-{'x' * 245}-007"
    for problem in problems_of(rule, longest):
        assert len(problem.title) <= LONGEST_TITLE
        assert not problem.title.endswith(("…", ":")), problem.title
        if rule in GPU_RULES or rule.subject == NODE:
            signal = Signal(Subject(f"node {longest}", 1, "uid", longest), rule, problem)
            assert "…" in problem.title
            assert ("Node", longest) in [(item.label, item.value) for item in signal.evidence]


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.key)
def test_sentences_are_short(rule):
    for problem in problems_of(rule):
        texts = [problem.summary, *problem.causes, *(problem.steps or rule.steps), *rule.steps]
        for sentence in (each for text in texts for each in re.split(r"(?<=[.;]) ", COMMAND.sub("", text))):
            assert len(sentence.split()) <= MOST_WORDS, sentence


def test_steps_name_the_node():
    rule = next(rule for rule in RULES if rule.key == "cordon-removed")
    [problem] = problems_of(rule, "gpu-001")

    signal = Signal(Subject("node gpu-001", 1, "uid", "gpu-001"), rule, problem)

    assert (
        "If the reason persists, quarantine the node again in Quarterdeck. By hand: kubectl cordon gpu-001"
        in signal.steps
    )
    assert signal.evidence == problem.evidence


def test_steps_of_a_finding_without_a_node_name_no_node():
    clusters = [rule for rule in RULES if rule not in GPU_RULES and rule.subject != NODE]

    assert [rule.key for rule in clusters if any(re.search(r"\bNODE\b", step) for step in rule.steps)] == []
