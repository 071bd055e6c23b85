"""Pods that come and go and labels that change, as often as was asked for."""

from simulator.actors.churn import LABEL, Churn
from simulator.kinds import NODE, POD
from tests.simulator.actors.stage import Stage, a_fleet


def tenants(stage: Stage) -> set[str]:
    return {
        pod["metadata"]["uid"] for pod in stage.store.list(POD)[0] if not pod["metadata"]["namespace"].startswith("gpu")
    }


def labelled(stage: Stage) -> list[str]:
    return [
        node["metadata"]["labels"][LABEL] for node in stage.store.list(NODE)[0] if LABEL in node["metadata"]["labels"]
    ]


def test_pods_and_labels_take_turns():
    stage = a_fleet(4)
    before = tenants(stage)
    churn = Churn(stage.play.world)

    churn.ask(2.0)
    stage.run(5)

    # A more important pod that comes back may push another aside, which comes back, too.
    assert 4 <= len(tenants(stage) - before) <= 12
    assert labelled(stage)


def test_every_tenant_that_goes_is_followed_by_another():
    stage = a_fleet(4)
    before = len(tenants(stage))
    churn = Churn(stage.play.world)

    churn.ask(2.0)
    stage.run(10)
    churn.ask(0.0)
    stage.run(60)

    assert len(tenants(stage)) == before


def test_nothing_changes_once_it_is_told_to_end():
    stage = a_fleet(2)
    churn = Churn(stage.play.world)
    churn.ask(5.0)
    stage.run(3)

    churn.ask(0.0)
    stage.run(60)
    version = stage.store.version
    pods = tenants(stage)
    stage.run(20)

    assert tenants(stage) == pods
    assert stage.store.version - version < 20
