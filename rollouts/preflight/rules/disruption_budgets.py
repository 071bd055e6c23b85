"""PodDisruptionBudgets that block evictions from a node (Z30)."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from rollouts.checks import Check, each
from rollouts.preflight.facts import BudgetFacts, PodFacts, PreflightFacts
from rollouts.preflight.rules.eviction_outcomes import while_it_tries
from wording.lists import names
from wording.numbers import are, count, either


def keep_pods(facts: PreflightFacts) -> Iterator[Check]:
    """Yields blockers for budgets that fail a node now. A person may override them with a reason."""
    of = facts.budgets_of
    yield from _several({pod: those for pod, those in of.items() if len(those) > 1})
    yield from _none_allowed(facts, {pod: one for pod, one in _alone(facts).items() if not one.allowed})


def slow_down(facts: PreflightFacts) -> Iterator[Check]:
    if facts.budgets_unseen:
        unknown = "Whether PodDisruptionBudgets hold the pods back that have to go is not known."
        yield Check("budgets-unseen", f"{unknown} {facts.budgets_unseen}", "Let Quarterdeck read poddisruptionbudgets.")
        return
    yield from _too_few_allowed(facts, {pod: one for pod, one in _alone(facts).items() if one.allowed})


def _alone(facts: PreflightFacts) -> dict[PodFacts, BudgetFacts]:
    """Returns the one budget of each pod that has exactly one."""
    of = facts.budgets_of
    return {pod: those[0] for pod, those in of.items() if len(those) == 1 and those[0].is_asked(pod)}


def _several(pods: dict[PodFacts, Sequence[BudgetFacts]]) -> Iterator[Check]:
    if pods:
        number = len(pods)
        has = f"{names(sorted(pod.name for pod in pods))} {either(number, 'has', 'have')}"
        sentence = (
            f"{has} more than one PodDisruptionBudget{either(number, '', ' each')}: the API server evicts no such pod."
        )
        fails = f"Until then the {either(number, 'node fails', 'nodes fail')}."
        fix = f"Leave one budget to a pod. {fails}"
        about = each(f"{pod.name} on {pod.node}: {', '.join(map(str, those))}" for pod, those in pods.items())
        yield Check("several-budgets", sentence, fix, may_be_overridden=True, about=about)


def _none_allowed(facts: PreflightFacts, pods: dict[PodFacts, BudgetFacts]) -> Iterator[Check]:
    if pods:
        budgets = sorted({str(budget) for budget in pods.values()})
        allow = either(len(budgets), "allows", "allow")
        titled = f"{either(len(budgets), 'PodDisruptionBudget', 'PodDisruptionBudgets')} {names(budgets)}"
        held = f"{names(sorted(pod.name for pod in pods))} cannot be evicted now"
        fix = f"Let it allow one, or give the workload another replica. {while_it_tries(facts.policy)}"
        about = each(f"{pod.name} on {pod.node}: {_said(budget)}" for pod, budget in pods.items())
        sentence = f"{held}: {titled} {allow} none to go."
        yield Check("budget-allows-none", sentence, fix, may_be_overridden=True, about=about)


def _said(budget: BudgetFacts) -> str:
    if budget.allowed is None:
        return f"{budget} is not counted yet"
    return f"{budget} needs {budget.needed} healthy and has {budget.healthy}"


def _too_few_allowed(facts: PreflightFacts, pods: dict[PodFacts, BudgetFacts]) -> Iterator[Check]:
    """Yields blockers where a budget allows fewer evictions than a node needs at once."""
    at_once = Counter((pod.node, budget) for pod, budget in pods.items())
    short: dict[BudgetFacts, list[str]] = defaultdict(list)
    for (node, budget), number in at_once.items():
        if number > (budget.allowed or 0):
            short[budget].append(f"{node}: {number} pods, and {budget} allows {budget.allowed}")
    if short:
        budgets, nodes = sorted(map(str, short)), {line for lines in short.values() for line in lines}
        more = f"{count(len(nodes), 'node')} {are(len(nodes))} to lose more pods at once"
        than = either(len(budgets), "PodDisruptionBudget", "PodDisruptionBudgets")
        sentence = f"{more} than {than} {names(budgets)} {either(len(budgets), 'allows', 'allow')}: the others wait."
        yield Check("budget-allows-few", sentence, while_it_tries(facts.policy), about=each(nodes))
