"""SQL that the bench of crashes makes once is, word for word, what Django makes."""

import pytest
from django.apps import apps
from django.db.models import Model, QuerySet

from benchmarks.crashing.compiled import compiled_once
from operations.models import Disruption
from rollouts.models import Hold, Stage, Target

APPS = {"fleet", "rollouts", "health", "people"}
OURS = [each for each in apps.get_models() if each._meta.app_label in APPS and len(each._meta.pk_fields) == 1]


def queries(model: type[Model]) -> list[QuerySet]:
    rows = model._default_manager.all()
    return [
        rows,
        rows.filter(pk=1),
        rows.order_by("pk"),
        rows.order_by("-pk"),
        rows.order_by("pk").reverse(),
        rows.order_by(),
        rows.values_list("pk"),
        rows.values_list("pk").order_by("pk").distinct(),
        rows.only("pk"),
        rows.filter(pk__in=model._default_manager.filter(pk=2)),
        rows.filter(pk=1)[:1],
    ]


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
@pytest.mark.django_db
def test_every_model_is_asked_for_in_the_same_words(model: type[Model]):
    wanted = [str(query.query) for query in queries(model)]

    with compiled_once():
        first, again = ([str(query.query) for query in queries(model)] for _ in range(2))

    assert first == again == wanted


@pytest.mark.django_db
def test_what_joins_or_counts_is_asked_for_in_the_same_words():
    def joined() -> list[QuerySet]:
        return [
            Target.objects.filter(stage__plan=1).values_list("stage__index", "node_name"),
            Stage.objects.filter(approvals__isnull=False).values_list("index", "approvals__is_rejection"),
            Hold.objects.filter(plan__cluster=1).select_related("plan"),
            Disruption.objects.filter(cluster__name="north").order_by("node_name").values_list("node_uid", flat=True),
        ]

    wanted = [str(query.query) for query in joined()]

    with compiled_once():
        first, again = ([str(query.query) for query in joined()] for _ in range(2))

    assert first == again == wanted
