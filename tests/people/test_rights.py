import pytest
from django.contrib.auth.models import AnonymousUser

from people.models import Role
from people.rights import ROLES_FOR, NotAllowed, Permission, require, scope_of, why_not
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

    assert tuple(scope_of(user, permission).everywhere for permission in Permission) == TABLE[role]


def test_every_role_and_permission_is_in_the_table():
    assert set(TABLE) == set(Role)
    assert set(ROLES_FOR) == set(Permission)


@pytest.mark.parametrize("permission", Permission)
def test_a_role_on_one_cluster_reaches_no_other(permission):
    here, there = a_cluster(), a_cluster()
    user = a_user(role="admin", on=here)

    assert scope_of(user, permission).covers_cluster(here.pk)
    assert not scope_of(user, permission).covers_cluster(there.pk)


def test_a_role_on_a_pool_does_not_reach_its_cluster():
    pool = a_pool(a_cluster())
    user = a_user(role="admin", on=pool)

    assert scope_of(user, Permission.RUN).pool_ids == {pool.pk}
    assert not scope_of(user, Permission.RUN).covers_cluster(pool.cluster_id)


def test_a_role_on_one_of_its_pools_is_enough_where_that_is_said():
    cluster = a_cluster()
    mine, other = a_pool(cluster), a_pool(cluster)
    user = a_user(role="operator", on=mine)

    assert not why_not(user, Permission.STOP, cluster_id=cluster.pk, or_in=[other.pk, mine.pk])
    assert why_not(user, Permission.STOP, cluster_id=cluster.pk, or_in=[other.pk])
    assert why_not(user, Permission.STOP, cluster_id=cluster.pk, or_in=[])
    assert why_not(user, Permission.APPROVE, cluster_id=cluster.pk, or_in=[mine.pk])


def test_pools_are_not_read_where_the_cluster_is_enough(django_assert_num_queries):
    cluster = a_cluster()
    pools = a_pool(cluster).nodes.values_list("pk", flat=True)
    user = a_user(role="operator", on=cluster)

    with django_assert_num_queries(1):
        assert not why_not(user, Permission.STOP, cluster_id=cluster.pk, or_in=pools)


def test_roles_add_up():
    here, there = a_cluster(), a_cluster()
    user = give(a_user(role="viewer"), "operator", on=here)

    assert scope_of(user, Permission.SEE).everywhere
    assert scope_of(user, Permission.RUN).covers_cluster(here.pk)
    assert not scope_of(user, Permission.RUN).covers_cluster(there.pk)


@pytest.mark.parametrize("permission", Permission)
def test_nobody_and_the_dismissed_reach_nothing(permission):
    dismissed = a_user(role="admin")
    dismissed.is_active = False

    assert scope_of(AnonymousUser(), permission).nowhere
    assert scope_of(dismissed, permission).nowhere
    assert scope_of(a_user(), permission).nowhere


def test_a_superuser_without_a_role_reaches_nothing():
    user = a_user()
    user.is_superuser = user.is_staff = True

    assert scope_of(user, Permission.SEE).nowhere


def test_a_refusal_names_the_role_and_the_place():
    cluster = a_cluster("east")
    user = a_user(role="viewer")

    with pytest.raises(
        NotAllowed, match=r"^To halt or pause a plan, freeze or stop you need the role operator, approver or admin"
    ):
        require(user, Permission.STOP, cluster_id=cluster.pk, where="cluster east")

    assert why_not(user, Permission.SEE) == ""
    assert why_not(user, Permission.ADMINISTER) == (
        "To change clusters, pools or people you need the role admin on the fleet."
    )
