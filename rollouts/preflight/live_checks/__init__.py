"""The rules of live checks: what only the API server knows.

To add one, add a rule to the table and its answer to `LiveFacts`.
"""

from collections.abc import Callable, Iterator

from rollouts.preflight.live_checks.answers import LiveAnswer
from rollouts.preflight.live_checks.facts import LiveFacts
from rollouts.preflight.live_checks.rules import cluster, driver_object, lease, namespace, patches, rights

LiveRule = Callable[[LiveFacts], Iterator[LiveAnswer]]

RULES: tuple[LiveRule, ...] = (
    namespace.is_there,
    lease.is_ours,
    rights.are_there,
    driver_object.is_as_shown,
    patches.version_is_taken,
    patches.hold_is_taken,
)


def evaluate(facts: LiveFacts) -> list[LiveAnswer]:
    """Returns the answers. If the cluster does not answer or is another one, that is the only answer."""
    who = list(cluster.answers(facts))
    if any(answer.bars for answer in who):
        return who
    return [*who, *(answer for rule in RULES for answer in rule(facts))]
