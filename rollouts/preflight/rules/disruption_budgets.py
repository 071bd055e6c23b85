"""PodDisruptionBudgets that block evictions from a node (Z30)."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from rollouts.checks import Check, each
from rollouts.preflight.facts import BudgetFacts, PodFacts, PreflightFacts
from rollouts.preflight.rules.eviction_outcomes import while_it_tries
from wording.lists import one_or_count
from wording.numbers import count
from wording.reports import fit


def keep_pods(facts: PreflightFacts) -> Iterator[Check]:
    """Yields blockers for budgets that fail a node now. A person may override them with a reason."""
    of = facts.budgets_of
    yield from _checks_of_several_budgets({pod: those for pod, those in of.items() if len(those) > 1})
    yield from _none_allowed(facts, {pod: one for pod, one in _single_budgets(facts).items() if not one.allowed})


def slow_down(facts: PreflightFacts) -> Iterator[Check]:
    if facts.budgets_unseen:
        steps = ("Let Quarterdeck read poddisruptionbudgets.",)
        title = "PodDisruptionBudgets are not seen"
        yield Check("budgets-unseen", title=title, summary=facts.budgets_unseen, steps=steps)
        return
    yield from _too_few_allowed(facts, {pod: one for pod, one in _single_budgets(facts).items() if one.allowed})


def _single_budgets(facts: PreflightFacts) -> dict[PodFacts, BudgetFacts]:
    """Returns the one budget of each pod that has exactly one."""
    of = facts.budgets_of
    return {pod: those[0] for pod, those in of.items() if len(those) == 1 and those[0].is_asked(pod)}


def _checks_of_several_budgets(pods: dict[PodFacts, Sequence[BudgetFacts]]) -> Iterator[Check]:
    if pods:
        yield Check(
            "several-budgets",
            title=fit("Several PodDisruptionBudgets select {}", one_or_count([pod.name for pod in pods], "pod")),
            summary="The API server does not evict such pods, and their nodes fail.",
            evidence=each((f"{pod.name} on {pod.node}", ", ".join(map(str, those))) for pod, those in pods.items()),
            steps=("Leave one budget for each pod.",),
            may_be_overridden=True,
        )


def _none_allowed(facts: PreflightFacts, pods: dict[PodFacts, BudgetFacts]) -> Iterator[Check]:
    if pods:
        yield Check(
            "budget-allows-none",
            title=fit("PodDisruptionBudgets block the eviction of {}", one_or_count([pod.name for pod in pods], "pod")),
            summary=while_it_tries(facts.policy),
            evidence=each((f"{pod.name} on {pod.node}", _budget_text(budget)) for pod, budget in pods.items()),
            steps=("Let the budgets allow an eviction, or add a replica to the workloads.",),
            may_be_overridden=True,
        )


def _budget_text(budget: BudgetFacts) -> str:
    if budget.allowed is None:
        return f"{budget} is not counted yet"
    return f"{budget} needs {budget.needed} healthy and has {budget.healthy}"


def _too_few_allowed(facts: PreflightFacts, pods: dict[PodFacts, BudgetFacts]) -> Iterator[Check]:
    """Yields blockers where a budget allows fewer evictions than a node needs at once."""
    at_once = Counter((pod.node, budget) for pod, budget in pods.items())
    short: dict[BudgetFacts, list[tuple[str, str]]] = defaultdict(list)
    for (node, budget), number in at_once.items():
        if number > (budget.allowed or 0):
            short[budget].append((node, f"{number} pods; {budget} allows {budget.allowed}"))
    if short:
        items = each(line for lines in short.values() for line in lines)
        title = f"PodDisruptionBudgets slow down {count(len({item.label for item in items}), 'node')}"
        summary, steps = while_it_tries(facts.policy), ("Raise the budgets, or accept the wait.",)
        yield Check("budget-allows-few", title=title, summary=summary, evidence=items, steps=steps)
