"""Notes of people on a node's timeline."""

from datetime import datetime

from django.db import IntegrityError, transaction

from edges.idempotency import EarlierCommand, IdempotencyKey, is_done
from fleet.history.lines import NodeKept
from fleet.map_cells.chunks import announce_nodes
from fleet.models import GoneNode, Node, NodeNote
from people.models import AuditEntry, User
from people.rights import NotAllowed, Permission, why_not

LONGEST = 1000  # characters
WHAT = "write notes on nodes"


class BadNote(ValueError):
    """The refusal of an empty or too long note."""


def why_not_note(user: User, node: NodeKept) -> str:
    """Returns why the user may not write notes. Blank: they may. At most two queries."""
    cluster, pools = node.cluster, node.pools.values_list("pk", flat=True)
    where = f"cluster {cluster.name}"
    return why_not(user, Permission.STOP, cluster_id=cluster.pk, or_in=pools, where=where, what=WHAT)


def require_note(user: User, node: NodeKept) -> None:
    """Refuses a user who may not write notes.

    :raises NotAllowed: with the sentence of `why_not_note`
    """
    if refusal := why_not_note(user, node):
        raise NotAllowed(refusal)


def add_note(node: NodeKept, user: User, text: str, *, key: str = "", now: datetime) -> NodeNote:
    """Adds a note. Load the node with its cluster. A repeat with the same key and text returns the same note.

    :raises NotAllowed, BadNote: with a sentence
    """
    require_note(user, node)
    text = text.strip()
    if not text or len(text) > LONGEST:
        raise BadNote(f"A note has 1 to {LONGEST} characters; this one has {len(text)}.")
    by = user.get_username()
    asked = NodeNote(
        cluster_id=node.cluster_id, node_uid=node.uid, node_name=node.name, at=now, by=by, text=text, key=key
    )
    if before := _note_of_key(asked):
        return before
    try:
        with transaction.atomic():
            # Two writers of one chain run one after the other.
            list(type(node).objects.select_for_update(no_key=True).filter(pk=node.pk).values_list("pk"))
            asked.save(force_insert=True)
            AuditEntry.record(
                f"node:{_key_of(node)}", verb="node.note", actor=by, reason=text, evidence={"node": node.name}, now=now
            )
            its_row = Node.objects.filter(pk=_key_of(node))
            transaction.on_commit(lambda: announce_nodes(node.cluster_id, its_row, kind="notes", at=now), robust=True)
    except IntegrityError:
        if first := _note_of_key(asked):  # sent twice at once
            return first
        raise
    return asked


def _note_of_key(asked: NodeNote) -> NodeNote | None:
    """Returns the note written with this key. None: no key, or no note yet.

    :raises BadNote: when the key was used for another text, which would be lost
    """
    mine = NodeNote.objects.filter(cluster=asked.cluster_id, node_uid=asked.node_uid, by=asked.by, key=asked.key)
    before = mine.first() if asked.key else None
    if before is None:
        return None
    earlier = EarlierCommand(_idempotency_key(before), before.at, holds=True, now_is=lambda: "")
    return before if is_done(_idempotency_key(asked), earlier, refusal=BadNote) else None


def _idempotency_key(note: NodeNote) -> IdempotencyKey:
    return IdempotencyKey.of(note.key, person=note.by, verb="note", body={"text": note.text})


def _key_of(node: NodeKept) -> int:
    return node.node_id if isinstance(node, GoneNode) else node.pk
