"""Z36: an image that cannot be pulled is found before the window; what cannot be seen is never fine."""

import pytest

from fleet.models import Node, Operand
from operations.models import OperationNode
from rollouts.commands.preview import preview
from rollouts.models import Plan, PlanPull
from tests.make import NOON, a_draft, an_image_pull, an_operand
from tests.rollouts.make import lines_of, steps_of, values_of

pytestmark = pytest.mark.django_db

CODES = {"image-untried", "image-unknown", "image-failed", "image-pulled"}


def needing(plan: Plan, *systems: str) -> Plan:
    """Each of its nodes needs the image that `an_image_pull` has for gpu-1 and gpu-2; gpu-0 that of gpu-1."""
    cluster = plan.cluster
    owner = Operand.objects.get().owner_uid
    for number, system in enumerate(systems or ("ubuntu21.04", "ubuntu21.04", "ubuntu22.04")):
        image = f"nvcr.io/nvidia/driver:{plan.from_version}-{system}"
        row = an_operand(cluster, name=f"driver-{number}", owner_uid=owner, image=image)
        Node.objects.filter(name=f"gpu-{number}").update(driver_daemon_set=row.uid)
    return plan


def said(plan: Plan):
    return [check for check in preview(plan, now=NOON).warnings if check.code in CODES]


def test_a_draft_whose_image_nobody_tried_says_so():
    (check,) = said(a_draft())

    assert check.code == "image-untried"
    assert not check.is_grave
    assert not check.is_good


def test_an_image_that_a_registry_refused_is_grave_and_names_the_node():
    plan = a_draft()
    an_image_pull(plan, "failed", "pulled")

    (check,) = said(plan)

    assert (check.code, check.is_grave) == ("image-failed", True)
    words = f"The image of {plan.to_version} could not be pulled on gpu-1 at 2026-11-21 12:00 UTC"
    assert str(values_of(check)["Result"]).startswith(words)
    assert len(lines_of(check)) == 2


def test_one_that_was_pulled_for_each_system_says_where_when_and_where_it_was_not_tried():
    plan = needing(a_draft())
    an_image_pull(plan, "pulled", "pulled")

    (check,) = said(plan)

    assert (check.code, check.is_good) == ("image-pulled", True)
    assert values_of(check)["Result"] == (
        f"The image of {plan.to_version} was pulled beforehand on 2 of 3 nodes at 2026-11-21 12:00 UTC: gpu-1 "
        "(ubuntu21.04), gpu-2 (ubuntu22.04). The other node was not tried."
    )


SAME = ("ubuntu21.04",) * 3


def the_same(plan: Plan) -> str:
    return f"nvcr.io/nvidia/driver:{plan.to_version}-ubuntu21.04"


@pytest.mark.parametrize(
    ("outcome", "tail"),
    [("unknown", "The result on 1 node is unknown."), ("", "The pull on 1 node is in progress.")],
)
def test_a_node_that_has_told_nothing_is_said_apart_and_is_not_fine(outcome: str, tail: str):
    plan = needing(a_draft(), *SAME)
    an_image_pull(plan, "pulled", outcome, image=the_same(plan))

    (check,) = said(plan)

    assert (check.code, check.is_good) == ("image-pulled", False)
    assert "on 1 of 3 nodes" in str(values_of(check)["Result"])
    assert str(values_of(check)["Result"]).endswith(f": gpu-1 (ubuntu21.04). {tail} The other node was not tried.")


def test_nodes_that_the_plan_does_not_take_are_not_counted():
    plan = needing(a_draft(), *SAME)
    an_image_pull(plan, *["pulled"] * 5, image=the_same(plan))

    (check,) = said(plan)

    assert "on 2 of 3 nodes" in str(values_of(check)["Result"])
    assert "gpu-5" not in str(values_of(check)["Result"])


@pytest.mark.parametrize("left", ["gone", "cordoned"])
def test_where_every_node_that_was_tried_has_left_nothing_is_proven(left: str):
    plan = needing(a_draft(), *SAME)
    an_image_pull(plan, "pulled")
    tried = Node.objects.filter(name="gpu-1")
    if left == "gone":
        tried.delete()
    else:
        tried.update(is_unschedulable=True)

    (check,) = said(plan)

    assert (check.code, check.is_good) == ("image-untried", False)


def test_a_pull_that_ended_before_the_turn_of_a_node_has_not_tried_it():
    plan = needing(a_draft(), *SAME)
    an_image_pull(plan, "pulled", "", image=the_same(plan), state="cancelled")
    OperationNode.objects.filter(state="pending").update(state="cancelled")

    (check,) = said(plan)

    assert str(values_of(check)["Result"]).endswith("The other 2 were not tried.")


def test_a_node_of_which_nobody_can_tell_the_image_is_not_fine():
    plan = needing(a_draft(), *SAME)
    an_image_pull(plan, "pulled")
    Node.objects.filter(name="gpu-0").update(driver_daemon_set="")

    (check,) = said(plan)

    assert (check.code, check.is_good) == ("image-pulled", False)
    assert str(values_of(check)["Result"]).endswith("The other 2 were not tried.")


def test_a_node_that_needs_another_image_by_now_was_not_tried():
    plan = needing(a_draft(), "ubuntu21.04", "rhel9", "ubuntu21.04")
    an_image_pull(plan, "pulled")

    (check,) = said(plan)

    assert check.code == "image-untried"


def test_an_image_that_a_registry_refused_is_grave_also_where_its_node_has_left():
    plan = needing(a_draft(), *SAME)
    an_image_pull(plan, "failed")
    Node.objects.filter(name="gpu-1").delete()

    assert ("image-failed", True) in [(check.code, check.is_grave) for check in said(plan)]


@pytest.mark.parametrize("outcome", ["unknown", ""])
def test_what_one_system_has_not_told_is_not_fine(outcome: str):
    plan = a_draft()
    an_image_pull(plan, "pulled", outcome)

    (check,) = said(plan)

    assert (check.code, check.is_good) == ("image-unknown", False)
    assert "gpu-2" in str(lines_of(check))


def test_nodes_whose_image_nobody_can_tell_are_not_fine():
    plan = a_draft()
    an_image_pull(plan, "pulled", left_out="1 node has no driver pod that shows the image: gpu-9.")

    (check,) = said(plan)

    assert not check.is_good
    assert "gpu-9" in steps_of(check)


def test_a_system_that_came_since_is_not_fine():
    plan = a_draft()
    an_image_pull(plan, "pulled")
    daemonset = Operand.objects.get()
    Operand.objects.update(image=f"nvcr.io/nvidia/driver:{plan.from_version}-rhel9")
    Node.objects.filter(name="gpu-0").update(driver_daemon_set=daemonset.uid)

    checks = said(plan)

    assert [(check.code, check.is_good) for check in checks] == [("image-unknown", False), ("image-pulled", False)]
    assert f"driver:{plan.to_version}-rhel9 is untested." in checks[0].sentence
    assert [item.label for item in checks[0].evidence] == ["gpu-0"]


def test_a_pull_of_another_version_proves_nothing_of_this_one():
    plan = a_draft()
    an_image_pull(plan, "pulled")
    PlanPull.objects.update(to_version="570.1.1")

    assert [check.code for check in said(plan)] == ["image-untried"]


@pytest.mark.parametrize("columns", [{"state": "failed", "progress": {}}, {"state": "cancelled", "step_since": NOON}])
def test_a_pull_that_was_not_read_to_its_end_proves_nothing(columns: dict):
    """A node that is gone, another one of its name, a cancellation in the middle."""
    plan = needing(a_draft(), *SAME)
    an_image_pull(plan, "", image=the_same(plan), state="cancelled")
    OperationNode.objects.update(**columns)

    (check,) = said(plan)

    assert (check.code, check.is_good) == ("image-unknown", False)
