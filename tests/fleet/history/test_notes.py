import pytest

from fleet.history.notes import add_note
from fleet.models import Node
from people.models import AuditEntry
from tests import make
from tests.locks import while_it_is_written
from tests.make import NOON

pytestmark = pytest.mark.sqlite


@pytest.mark.django_db(transaction=True)
def test_two_notes_on_one_node_at_the_same_moment_are_both_written():
    node, ada, bob = make.a_node(make.a_cluster()), make.a_user("ada", role="operator"), make.a_user(role="operator")

    errors = while_it_is_written(
        lambda: add_note(node, ada, "Its fan.", now=NOON),
        lambda: add_note(Node.objects.get(pk=node.pk), bob, "A cable.", now=NOON),
    )

    assert errors == []
    assert list(AuditEntry.objects.values_list("number", "reason")) == [(1, "Its fan."), (2, "A cable.")]
