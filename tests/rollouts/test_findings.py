import pytest

from fleet import findings
from fleet.models import Finding, Observer
from rollouts.findings import HALTED
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db


def test_a_halted_plan_is_a_finding_of_its_cluster_until_it_goes_on():
    plan = make.a_plan()
    Observer.objects.create(cluster=plan.cluster, lease_until=NOON)
    plan.move("halted", now=NOON, actor="ada", because="gpu-1 failed.")

    findings.look(plan.cluster, now=NOON)
    finding = Finding.objects.get(rule=HALTED.rule)

    assert (finding.subject, finding.plan) == (f"plan {plan.pk}", plan.pk)
    assert finding.opened_at == NOON
    assert f"Plan #{plan.pk} “New driver” is halted" in finding.sentence
    assert finding.sentence.endswith("gpu-1 failed.")

    plan.move("rolling-back", now=NOON, actor="ada", because="Back.")
    findings.look(plan.cluster, now=NOON)
    assert not Finding.objects.open().filter(rule=HALTED.rule).exists()
