"""What was wrong when its rule went on trial: told until then, and tried from then on. When that ends, the other way.

Each side has a row of its own, so that what people were told stays in every history, and what they were not never is.
"""

from health.judging.opening import Openings, note
from health.lifecycle import FindingState
from health.models import Finding
from health.rules import RULES
from health.rules.gpus import GPU_RULES

BEGAN, ENDED = "its rule went on trial", "the trial of its rule ended"
NO_LONGER_TOLD = "No longer told"  # what the entry of a node's timeline begins with
TITLES = {rule.key: rule.title for rule in RULES} | {rule.key: rule.title for rule in GPU_RULES}
CARRIED = (
    "cluster_id", "node_id", "subject", "rule", "severity", "cause", "sentence", "action", "evidence", "since",
    "confirmed_at", "as_bad_since", "worse_since",
)  # fmt: skip


def turn(finding: Finding, openings: Openings) -> Finding:
    """To the other side. The row that is so from now on: of what nobody was told, the same. In the cluster's lock."""
    is_shadow, now = not finding.is_shadow, openings.now
    if finding.opened_at is None:
        Finding.objects.filter(pk=finding.pk).update(is_shadow=is_shadow, parent=None)
        finding.is_shadow, finding.parent = is_shadow, None
        return finding
    node = finding.node
    uid, name = (node.uid, node.name) if node else ("", "")
    finding.move(FindingState.RESOLVED, now=now, resolved_because=BEGAN if is_shadow else ENDED)
    other = Finding(**{column: getattr(finding, column) for column in CARRIED}, is_shadow=is_shadow, updated_at=now)
    other.save()
    other = openings.open(other, name)
    if is_shadow:
        note(finding, uid, name, f"{NO_LONGER_TOLD}, as {BEGAN}: {finding.sentence}", now=now)
    else:
        note(other, uid, name, f"{TITLES.get(other.rule, other.rule)}: {other.sentence}", now=now)
    return other
