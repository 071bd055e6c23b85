"""What people write on a node's timeline."""

from datetime import datetime

from django.db import IntegrityError, transaction

from fleet.cells.pieces import told
from fleet.history.lines import NodeKept
from fleet.messages import announce
from fleet.models import GoneNode, Node, NodeNote, Observer
from people.models import AuditEntry, User
from people.rights import NotAllowed, Permission, why_not

LONGEST = 1000  # characters
WHAT = "write notes on nodes"


class BadNote(ValueError):
    """It has no text, or too much."""


def why_not_note(user: User, node: NodeKept) -> str:
    """Whoever may act on findings there. Blank: they may. Two queries at most."""
    cluster, pools = node.cluster, node.pools.values_list("pk", flat=True)
    where = f"cluster {cluster.name}"
    return why_not(user, Permission.STOP, cluster_id=cluster.pk, or_in=pools, where=where, what=WHAT)


def require_note(user: User, node: NodeKept) -> None:
    """:raises NotAllowed: with the sentence of `why_not_note`"""
    if refusal := why_not_note(user, node):
        raise NotAllowed(refusal)


def add_note(node: NodeKept, user: User, text: str, *, key: str = "", now: datetime) -> NodeNote:
    """Load the node with its cluster. The same key and text again give the same note.

    :raises NotAllowed, BadNote: a sentence each
    """
    require_note(user, node)
    text = text.strip()
    if not text or len(text) > LONGEST:
        raise BadNote(f"A note has 1 to {LONGEST} characters; this one has {len(text)}.")
    by = user.get_username()
    mine = NodeNote.objects.filter(cluster=node.cluster_id, node_uid=node.uid, by=by, key=key)
    if key and (before := mine.first()):
        return _same(before, text)
    try:
        with transaction.atomic():
            # Two writers of one chain, one after the other.
            list(type(node).objects.select_for_update(no_key=True).filter(pk=node.pk).values_list("pk"))
            note = NodeNote.objects.create(
                cluster_id=node.cluster_id, node_uid=node.uid, node_name=node.name, at=now, by=by, text=text, key=key
            )
            AuditEntry.record(
                f"node:{_key_of(node)}", verb="node.note", actor=by, because=text, evidence={"node": node.name}, now=now
            )
            transaction.on_commit(lambda: _announce(node, at=now), robust=True)
    except IntegrityError:
        if key and (first := mine.first()):  # the same, sent twice at once
            return _same(first, text)
        raise
    return note


def _same(before: NodeNote, text: str) -> NodeNote:
    """:raises BadNote: when another was written under this key: else this one would be lost unseen"""
    if before.text != text:
        raise BadNote("This Idempotency-Key has written another note already. Choose a new one.")
    return before


def _announce(node: NodeKept, *, at: datetime) -> None:
    """To who looks at its timeline."""
    newest = Observer.batch_of(node.cluster_id)
    its = told(Node.objects.filter(pk=_key_of(node)))
    announce.cluster_changed(node.cluster_id, seq=newest, nodes=its, kinds=("notes",), at=at)


def _key_of(node: NodeKept) -> int:
    return node.node_id if isinstance(node, GoneNode) else node.pk
