"""Eviction trial: asks for the evictions of a drain as dry runs. Nothing in the cluster changes.

Each pod is asked about by itself: a dry run uses up no budget (kubernetes, pkg/registry/core/pod/storage/eviction.go),
so a budget that allows one eviction accepts each of its pods.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from kube import client
from operations.eviction_pace import A_SECOND
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, wait
from operations.steps.drain import BETWEEN_ROUNDS, SHOWN, ask_eviction, pods_of_round, pods_on
from operations.steps.evictions import Consent, PodOnNode, evictions_of
from wording.numbers import count, either

MOST_TRIED = 150  # pods of a node; a kubelet takes 110 unless configured otherwise


class EvictionTrialStep(NodeStep):
    key: ClassVar[str] = "eviction_trial"
    effect: ClassVar[str] = "The API server is asked for each eviction as a dry run. No pod is evicted."
    is_dry_run: ClassVar[bool] = True
    takes_node: ClassVar[bool] = False
    waits_for_stop: ClassVar[bool] = False
    minds_owner: ClassVar[bool] = False
    progress: ClassVar[str] = "For a dry run of evictions: `pods`, and the numbers `tried` and `refused`."

    def run(self, work: NodeWork) -> StepResult:
        work.read_node()
        evictions = evictions_of(pods_on(work), Consent(unmanaged=True, empty_dir=True), now=work.clock())
        pods = evictions.to_evict[:MOST_TRIED]
        before = work.node.progress.get("answers", {})
        answers = {pod.uid: before[pod.uid] for pod in pods if pod.uid in before}
        for pod in pods_of_round(work, [pod for pod in pods if pod.uid not in answers]):
            work.guard()
            answers[pod.uid] = _answer(work, pod)
        rows = sorted((row for row in answers.values() if row["state"] != "gone"), key=_is_accepted)
        if len(answers) < len(pods):
            waits = f"{len(answers)} of {count(len(pods), 'eviction')} tried, at most {A_SECOND} a second in a cluster."
            return wait(waits, again_after=BETWEEN_ROUNDS, answers=answers, pods=rows[:SHOWN], tried=len(rows))
        untried = len(evictions.to_evict) - len(pods)
        refused = sum(not _is_accepted(row) for row in rows)
        sentence = _sentence(rows, refused) + (f" {count(untried, 'more pod')} not tried." if untried else "")
        return done_result(sentence, pods=rows[:SHOWN], tried=len(rows), refused=refused, untried=untried)


def _answer(work: NodeWork, pod: PodOnNode) -> dict[str, str]:
    state, reason = ask_eviction(work.connection, pod, is_dry_run=True)
    if client.NO_DRY_RUN in reason:
        state = "not tried"
    if state == "asked":
        state, reason = "accepted", ""
    return {"name": pod.title, "owner": pod.job, "state": state, "reason": reason}


def _is_accepted(row: Mapping[str, str]) -> bool:
    return row["state"] == "accepted"


def _sentence(rows: Sequence[Mapping[str, str]], refused: int) -> str:
    if not rows:
        return "No pod had to be evicted."
    if not refused:
        return f"The API server accepted {either(len(rows), 'the eviction', f'all {len(rows)} evictions')}."
    first = rows[0]
    others = f" {count(refused - 1, 'other pod')} too." if refused > 1 else ""
    why = first["reason"].removeprefix(f"{first['name']} ").rstrip(".")
    return f"{refused} of {count(len(rows), 'eviction')} not accepted. {first['name']}: {why}.{others}"
