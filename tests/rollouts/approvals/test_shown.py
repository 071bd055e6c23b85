import pytest

from fleet import retention
from rollouts.approvals.shown_bundles import show
from rollouts.models import ShownBundle, Stage
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def test_what_was_shown_goes_once_nobody_decides_on_it():
    stage = Stage.objects.get(pk=make.a_stage_to_approve().pk)
    show(stage, now=NOON)
    show(stage, now=NOON)

    retention.tidy(now=NOON)
    assert ShownBundle.objects.count() == 1

    Stage.objects.filter(pk=stage.pk).update(state="promoting")
    retention.tidy(now=NOON)
    assert not ShownBundle.objects.exists()
