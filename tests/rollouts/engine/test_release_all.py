import pytest
from django.core.management import call_command

from fleet.models import Cluster
from rollouts.models import Hold, Plan
from tests.rollouts.engine.ground import Ground

pytestmark = [pytest.mark.rounds, pytest.mark.django_db]


def test_another_cluster_at_the_address_is_left_alone_while_the_plans_end(ground: Ground, capsys):
    """Z10: the marks over there may be another Quarterdeck's."""
    plan = ground.start()
    ground.round()
    Cluster.objects.update(uid="of-the-cluster-that-was")
    ground.writes()

    call_command("release_all", "north", "--give-up-plans", "It was rebuilt.")

    assert "another cluster answers there" in capsys.readouterr().out
    assert ground.writes() == []
    assert Plan.objects.get(pk=plan.pk).state == "aborted"


def test_what_it_released_is_not_called_held_any_more(ground: Ground):
    ground.start()
    ground.rounds(2)

    call_command("release_all", "north", "--give-up-plans", "We leave.")

    assert not Hold.objects.in_the_way().exists()
    assert {stage.state for stage in ground.plan.stages.forward()} == {"abandoned"}
