import pytest
from django.contrib.auth.models import AnonymousUser

from people.models import Role
from people.rights import ROLES_FOR, Deed, NotAllowed, reach, require, why_not
from tests.make import a_cluster, a_pool, a_user, give

pytestmark = pytest.mark.django_db

TABLE = {
    #              see    draft  stop   run    approve administer
    "viewer":     (True,  False, False, False, False,  False),
    "operator":   (True,  True,  True,  True,  False,  False),
    "approver":   (True,  False, True,  False, True,   False),
    "admin":      (True,  True,  True,  True,  True,   True),
}  # fmt: skip


@pytest.mark.parametrize("role", TABLE)
def test_what_each_role_may(role):
    user = a_user(role=role)

    assert tuple(reach(user, deed).everywhere for deed in Deed) == TABLE[role]


def test_every_role_and_deed_is_in_the_table():
    assert set(TABLE) == set(Role)
    assert set(ROLES_FOR) == set(Deed)


@pytest.mark.parametrize("deed", Deed)
def test_a_role_on_one_cluster_reaches_no_other(deed):
    here, there = a_cluster(), a_cluster()
    user = a_user(role="admin", on=here)

    assert reach(user, deed).covers_cluster(here.pk)
    assert not reach(user, deed).covers_cluster(there.pk)


def test_a_role_on_a_pool_does_not_reach_its_cluster():
    pool = a_pool(a_cluster())
    user = a_user(role="admin", on=pool)

    assert reach(user, Deed.RUN).pool_ids == {pool.pk}
    assert not reach(user, Deed.RUN).covers_cluster(pool.cluster_id)


def test_roles_add_up():
    here, there = a_cluster(), a_cluster()
    user = give(a_user(role="viewer"), "operator", on=here)

    assert reach(user, Deed.SEE).everywhere
    assert reach(user, Deed.RUN).covers_cluster(here.pk)
    assert not reach(user, Deed.RUN).covers_cluster(there.pk)


@pytest.mark.parametrize("deed", Deed)
def test_nobody_and_the_dismissed_reach_nothing(deed):
    dismissed = a_user(role="admin")
    dismissed.is_active = False

    assert reach(AnonymousUser(), deed).nowhere
    assert reach(dismissed, deed).nowhere
    assert reach(a_user(), deed).nowhere


def test_a_superuser_without_a_role_reaches_nothing():
    user = a_user()
    user.is_superuser = user.is_staff = True

    assert reach(user, Deed.SEE).nowhere


def test_a_refusal_names_the_role_and_the_place():
    cluster = a_cluster("east")
    user = a_user(role="viewer")

    with pytest.raises(NotAllowed, match=r"^To halt or pause a plan you need the role operator, approver or admin"):
        require(user, Deed.STOP, cluster_id=cluster.pk, where="cluster east")

    assert why_not(user, Deed.SEE) == ""
    assert why_not(user, Deed.ADMINISTER) == (
        "To change clusters, pools or people you need the role admin on the fleet."
    )
