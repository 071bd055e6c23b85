"""The service level of a pool: chosen by its admin, measured each hour, and compared where there is enough data."""

import json
from datetime import timedelta
from urllib.parse import unquote_plus

import pytest

from capacity import tasks
from capacity.models import PoolServiceLevel, ServiceLevelHour
from capacity.placements import service_level_history
from capacity.placements.placement_findings import worse_on_full_nodes
from capacity.placements.service_level_history import due_clusters, measure, measure_due, service_level_of_pool, tidy
from fleet.models import Pool
from health.models import GpuHour, UsageDay
from health.sources.hours import provide_partition
from people.models import AuditEntry
from tests import make
from tests.callers import calling
from tests.health.telemetry.prometheus.a_server import a_server, saying
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
HOUR = timedelta(hours=1)
OWN = 'max(latency_p99{pod=~"{{pods}}"})'


@pytest.fixture
def pool():
    return make.a_pool(make.a_cluster("east"), "chat")


@pytest.fixture
def ada(pool):
    """The admin of the pool alone."""
    return make.a_user("ada", role="admin", on=pool)


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


def address(pool, more: str = "") -> str:
    return f"/api/v1/pools/{pool.pk}/service-level{more}"


def an_answer(value: str, samples: str = "50"):
    parts = (("value", value), ("samples0", samples), ("newest0", "100"))
    rows = [{"metric": {"quarterdeck": name}, "value": [1, number]} for name, number in parts]
    return saying(json.dumps({"status": "success", "data": {"resultType": "vector", "result": rows}}).encode())


def a_level(pool, **given) -> PoolServiceLevel:
    given = {"expression": OWN, "unit": "s"} | given
    return PoolServiceLevel.objects.create(pool=pool, by="ada", at=NOON, **given)


def a_measured_node(pool, name: str, *, allocated_s: float):
    node = make.a_node(pool.cluster, name, pool=pool, gpus=1)
    provide_partition(NOON - HOUR)
    GpuHour.objects.create(
        cluster=pool.cluster, node_name=name, uuid=f"GPU-{name}", gi_id="", hour=NOON - HOUR, allocated_s=allocated_s,
        seen_s=3600,
    )  # fmt: skip
    make.a_placement(node, f"pod-on-{name}", since=NOON - 5 * HOUR, until=None)
    return node


def some_hours(pool, number: int, *, full: float = 0.4, other: float = 0.2, samples: float = 50):
    for at in range(number):
        ServiceLevelHour.objects.create(
            pool=pool, hour=NOON - at * HOUR, full_value=full, full_samples=samples, other_value=other,
            other_samples=samples,
        )  # fmt: skip


def some_hours_of_classes(pool, number: int, **full_of: float):
    some_hours(pool, number)
    values = {"full_samples": 50, "other_value": 0.2, "other_samples": 50, "trouble": ""}
    classes = {its_class: values | {"full_value": full} for its_class, full in full_of.items()}
    ServiceLevelHour.objects.update(classes=classes)


def test_an_admin_of_the_pool_chooses_changes_and_removes_it(ada, pool):
    ada = calling(ada)

    chosen = ada.put(address(pool), {"expression": OWN, "unit": "s"}, format="json").json()
    some_hours(pool, 1)
    again = ada.put(address(pool), {"expression": OWN, "unit": "s"}, format="json")
    kept = ServiceLevelHour.objects.count()
    ada.put(address(pool), {"indicator": "vllm-ttft-p99"}, format="json")

    assert (chosen["expression"], chosen["unit"], chosen["by"]) == (OWN, "s", "ada")
    assert (again.status_code, kept, ServiceLevelHour.objects.count()) == (200, 1, 0), "another one is not comparable"
    assert ada.get(address(pool)).json()["indicator"] == "vllm-ttft-p99"
    assert ada.delete(address(pool)).status_code == 204
    assert ada.get(address(pool)).status_code == 404
    verbs = list(AuditEntry.objects.filter(subject=f"pool:{pool.pk}").order_by("pk").values_list("verb", flat=True))
    assert verbs == ["pool.service_level.put"] * 3 + ["pool.service_level.remove"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "indicator is one of"),
        ({"indicator": "nothing"}, "is not a valid choice"),
        ({"expression": "rate("}, "not valid PromQL"),
        ({"expression": "up"}, "Otherwise the query would read every node"),
        ({"expression": OWN, "samples": "sum("}, "samples: This is not valid PromQL"),
        ({"indicator": "vllm-ttft-p99", "samples": OWN}, "only allowed with your own expression"),
        ({"indicator": "vllm-ttft-p99", "unit": "s"}, "only allowed with your own expression"),
        ({"expression": "x" * 1001}, "no more than 1000 characters"),
    ],
)
def test_what_is_no_service_level_is_refused_with_a_sentence(ada, pool, given, said):
    refused = calling(ada).put(address(pool), given, format="json")

    assert (refused.status_code, PoolServiceLevel.objects.count()) == (400, 0)
    assert said in json.dumps(refused.json())


def test_others_may_only_read_it_and_strangers_not_even_that(bob, pool):
    a_level(pool)
    eve = calling(make.a_user("eve"))

    for method in ("put", "delete"):
        assert getattr(calling(bob), method)(address(pool)).status_code == 403
    assert calling(bob).post(address(pool, "/preview"), {"expression": OWN}, format="json").status_code == 403
    assert visiting(bob).post(f"/pools/{pool.pk}/service-level", {"do": "remove"}).status_code == 403
    assert calling(bob).get(address(pool)).json()["expression"] == OWN
    assert eve.get(address(pool)).status_code == 404
    assert PoolServiceLevel.objects.count() == 1


def test_a_preview_says_what_it_answers_now(ada, pool, settings):
    settings.TELEMETRY_LOOPBACK = True
    a_measured_node(pool, "gpu-1", allocated_s=3600)
    with a_server(an_answer("0.25")) as (url, server):
        make.a_source(pool.cluster, url=url)
        found = calling(ada).post(address(pool, "/preview"), {"expression": OWN}, format="json").json()
        shown = visiting(ada).post(f"/pools/{pool.pk}/service-level", {"do": "preview", "expression": OWN})

    assert found == {"value": 0.25, "samples": 50.0, "trouble": ""}
    assert "<dt>Value</dt><dd>0.25</dd>" in shown.content.decode()
    assert "pod-on-gpu-1" in unquote_plus(server.queries[0])
    assert PoolServiceLevel.objects.count() == 0


def test_a_preview_without_a_prometheus_is_a_sentence(ada, pool):
    found = calling(ada).post(address(pool, "/preview"), {"expression": OWN}, format="json").json()

    assert (found["value"], found["trouble"]) == (None, "The cluster has no Prometheus as telemetry source.")


def test_the_page_saves_and_removes_it(ada, pool):
    ada = visiting(ada)
    where = f"/pools/{pool.pk}/service-level"

    wrong = ada.post(where, {"do": "save", "expression": "rate("})
    saved = ada.post(where, {"do": "save", "expression": OWN, "unit": "ms", "is_higher_better": "on"})

    assert (wrong.status_code, "not valid PromQL" in wrong.content.decode()) == (400, True)
    assert saved.status_code == 302
    row = PoolServiceLevel.objects.get()
    assert (row.unit, row.is_higher_better) == ("ms", True)
    assert ada.post(where, {"do": "remove"}).status_code == 302
    assert PoolServiceLevel.objects.count() == 0


def test_a_form_that_did_not_see_the_last_change_overwrites_nothing(ada, pool):
    ada = visiting(ada)
    where = f"/pools/{pool.pk}/service-level"
    a_level(pool, unit="ms")

    lost = ada.post(where, {"do": "save", "was": "none", "expression": OWN, "unit": "s"})
    removed = ada.post(where, {"do": "remove", "was": "0" * 16})

    assert (lost.status_code, removed.status_code) == (409, 409)
    assert "after you opened this form" in lost.content.decode()
    assert PoolServiceLevel.objects.get().unit == "ms"


def test_each_hour_is_measured_on_full_and_on_other_nodes(pool, settings):
    settings.TELEMETRY_LOOPBACK = True
    a_level(pool)
    a_measured_node(pool, "full", allocated_s=3600)
    a_measured_node(pool, "part", allocated_s=1800)
    a_measured_node(pool, "idle", allocated_s=0)
    with a_server(an_answer("0.25")) as (url, server):
        make.a_source(pool.cluster, url=url)
        measure(PoolServiceLevel.objects.get(), NOON - HOUR)
        measure(PoolServiceLevel.objects.get(), NOON - HOUR)  # an hour may be recorded again

    row = ServiceLevelHour.objects.get()
    assert (row.hour, row.full_value, row.other_value, row.other_samples, row.trouble) == (NOON, 0.25, 0.25, 50, "")
    queries = [unquote_plus(query) for query in server.queries]
    assert ["pod-on-full" in query for query in queries[:2]] == [True, False]
    assert ["pod-on-part" in query for query in queries[:2]] == [False, True]
    assert "pod-on-idle" not in "".join(queries)


def test_an_hour_without_an_answer_has_no_value_and_says_why(pool):
    a_level(pool)
    a_measured_node(pool, "full", allocated_s=3600)

    measure(PoolServiceLevel.objects.get(), NOON - HOUR)

    row = ServiceLevelHour.objects.get()
    assert (row.full_value, row.trouble) == (None, "The cluster has no Prometheus as telemetry source.")


@pytest.mark.parametrize(("unit", "hours"), [("ms", 0), ("s", 1)])
def test_an_hour_of_a_service_level_that_was_changed_meanwhile_is_not_stored(pool, monkeypatch, unit, hours):
    """The change commits before the lock of the pool is there. The same one saved again is no change."""
    level = a_level(pool)
    a_measured_node(pool, "full", allocated_s=3600)

    def change(pool):
        PoolServiceLevel.objects.filter(pk=level.pk).update(unit=unit, at=NOON + HOUR)
        return pool

    monkeypatch.setattr(service_level_history, "locked", change)

    measure(PoolServiceLevel.objects.get(), NOON - HOUR)

    assert ServiceLevelHour.objects.count() == hours


def test_an_hour_of_a_pool_that_was_deleted_meanwhile_is_not_stored(pool):
    level = a_level(pool)
    level = PoolServiceLevel.objects.select_related("pool").get(pk=level.pk)
    Pool.objects.filter(pk=pool.pk).delete()

    measure(level, NOON - HOUR)

    assert ServiceLevelHour.objects.count() == 0


@pytest.fixture
def two_pools(pool, redis):
    """Two pools of a cluster whose last hour is recorded."""
    pools = [pool, make.a_pool(pool.cluster, "other")]
    for each in pools:
        a_level(each)
    UsageDay.objects.create(cluster=pool.cluster, day=NOON.date(), hours=1 << (NOON - HOUR).hour)
    return pools


def test_each_pool_is_measured_once_its_hour_is_recorded(two_pools):
    cluster_id = two_pools[0].cluster_id
    UsageDay.objects.update(hours=0)
    measure_due(cluster_id, clock=lambda: NOON)
    early = ServiceLevelHour.objects.count()
    UsageDay.objects.update(hours=1 << (NOON - HOUR).hour)

    measure_due(cluster_id, clock=lambda: NOON)

    assert (early, ServiceLevelHour.objects.filter(hour=NOON).count()) == (0, 2)
    assert (due_clusters(now=NOON), due_clusters(now=NOON + HOUR)) == ([], [cluster_id])


def test_a_pool_that_cannot_be_measured_stops_no_other_and_is_repeated(two_pools, monkeypatch):
    first, second = two_pools

    def fail(level, hour):
        if level.pool_id == first.pk:
            raise RuntimeError("a bug")
        measure(level, hour)

    with monkeypatch.context() as patch:
        patch.setattr(service_level_history, "measure", fail)
        measure_due(first.cluster_id, clock=lambda: NOON)
    failed = list(ServiceLevelHour.objects.values_list("pool", flat=True))
    measure_due(first.cluster_id, clock=lambda: NOON + timedelta(minutes=1))

    assert (failed, ServiceLevelHour.objects.count()) == ([second.pk], 2)


def test_a_turn_is_one_workers_and_ends_in_time(two_pools):
    times = iter([NOON, NOON, NOON + timedelta(seconds=31)])
    cluster_id = two_pools[0].cluster_id

    measure_due(cluster_id, clock=lambda: next(times))
    in_time = ServiceLevelHour.objects.count()
    measure_due(cluster_id, clock=lambda: NOON + timedelta(seconds=40))
    of_another = ServiceLevelHour.objects.count()
    measure_due(cluster_id, clock=lambda: NOON + timedelta(minutes=1))

    assert (in_time, of_another, ServiceLevelHour.objects.count()) == (1, 1, 2)


def test_a_tick_queues_each_cluster_that_is_due(two_pools, monkeypatch):
    queued: list[dict[str, int]] = []
    monkeypatch.setattr(tasks, "queue", lambda *_, kwargs, **__: queued.append(kwargs))

    tasks.sweep_service_levels()

    assert queued == [{"cluster_id": two_pools[0].cluster_id}]


def test_medians_are_compared_once_there_are_enough_hours(bob, pool):
    a_level(pool)
    some_hours(pool, 11)
    few = calling(bob).get(f"/api/v1/pools/{pool.pk}/placement").json()["measures"]["service_level"]
    ServiceLevelHour.objects.create(
        pool=pool, hour=NOON - 20 * HOUR, full_value=9, full_samples=50, other_value=9, other_samples=50
    )

    enough = service_level_of_pool(pool, now=NOON)

    assert (few["hours"], few["full_nodes"], few["percent_worse"]) == (11, None, None)
    assert (enough.hours, enough.full, enough.other, enough.percent_worse) == (12, 0.4, 0.2, 100)
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text
    assert "0.4 s on full nodes, 0.2 s on others (100 % worse on full nodes)" in text


@pytest.mark.parametrize(
    ("full", "is_open", "is_found"),
    [(0.25, False, True), (0.23, False, False), (0.23, True, True), (0.21, True, False), (0.1, False, False)],
)
def test_a_finding_names_a_pool_whose_service_level_is_worse_on_full_nodes(pool, full, is_open, is_found):
    a_level(pool)
    some_hours(pool, 12, full=full)
    if is_open:
        make.a_finding(pool.cluster, "pool chat", rule="worse-on-full-nodes", facts={"pool": pool.pk})

    found = list(worse_on_full_nodes(pool.cluster, now=NOON))

    assert bool(found) is is_found
    for subject, problem in found:
        assert (subject, problem.title) == ("pool chat", "Service level worse on full nodes of chat")
        texts = [f"{round(500 * full - 100)} %", f"{full} s", "0.2 s", "12", "2026-11-21 12:00:00 UTC"]
        assert [item.text for item in problem.evidence] == texts


def test_hours_that_ended_long_ago_are_unknown_now_and_no_finding(bob, pool):
    a_level(pool)
    some_hours(pool, 12)
    ServiceLevelHour.objects.filter(hour__gt=NOON - 4 * HOUR).update(full_value=None, other_value=None)
    for at in range(12, 16):
        ServiceLevelHour.objects.create(
            pool=pool, hour=NOON - at * HOUR, full_value=0.4, full_samples=50, other_value=0.2, other_samples=50
        )

    said = calling(bob).get(f"/api/v1/pools/{pool.pk}/placement").json()["measures"]["service_level"]

    assert (said["percent_worse"], said["newest_hour"], said["is_current"]) == (100, "2026-11-21T08:00:00Z", False)
    assert list(worse_on_full_nodes(pool.cluster, now=NOON)) == []
    assert "unknown now: last value" in page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text


def test_too_few_hours_are_no_finding(pool):
    a_level(pool)
    some_hours(pool, 11)

    assert list(worse_on_full_nodes(pool.cluster, now=NOON)) == []


def test_hours_with_few_samples_and_old_ones_do_not_count(bob, pool):
    a_level(pool)
    some_hours(pool, 12, samples=19)
    ServiceLevelHour.objects.create(
        pool=pool, hour=NOON - 8 * 24 * HOUR, full_value=1, full_samples=50, other_value=1, other_samples=50
    )

    found = service_level_of_pool(pool, now=NOON)

    assert (found.hours, found.measured, found.full) == (0, 12, None)
    assert "not compared: 0 of 12 hours" in page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text


def test_the_file_has_the_hours_that_are_compared(bob, pool):
    a_level(pool)
    some_hours_of_classes(pool, 2, inference=0.5)
    ServiceLevelHour.objects.filter(hour=NOON).update(full_value=None, trouble="No answer.", classes={})

    body = visiting(bob).get(f"/pools/{pool.pk}/service-level.csv").content.decode().splitlines()

    assert body[1:] == [
        "2026-11-21T11:00:00+00:00,0.4,50.0,0.2,50.0,,",
        "2026-11-21T11:00:00+00:00,0.5,50,0.2,50,,inference",
        "2026-11-21T12:00:00+00:00,,50.0,0.2,50.0,No answer.,",
    ]
    assert visiting(make.a_user("eve")).get(f"/pools/{pool.pk}/service-level.csv").status_code == 404
    links = page(visiting(bob), f"/parts/pools/{pool.pk}/placement").links
    assert f"/pools/{pool.pk}/service-level.csv" in links


def test_where_higher_is_better_less_on_full_nodes_is_worse(pool):
    a_level(pool, is_higher_better=True)
    some_hours(pool, 12, full=100, other=200)

    assert service_level_of_pool(pool, now=NOON).percent_worse == 50


def test_an_indicator_of_another_version_is_a_sentence(bob, pool):
    a_level(pool, expression="", unit="", indicator="from-the-future")
    some_hours(pool, 1)

    found = service_level_of_pool(pool, now=NOON)
    measure(PoolServiceLevel.objects.get(), NOON - HOUR)

    assert (found.title, found.full) == ("from-the-future", None)
    assert found.trouble.startswith("indicator is one of")
    assert "from-the-future" in page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text


def test_a_pool_without_one_is_not_compared(bob, pool):
    assert calling(bob).get(f"/api/v1/pools/{pool.pk}/placement").json()["measures"]["service_level"] is None
    assert "none chosen" in page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text


def test_old_hours_are_deleted(pool, settings):
    a_level(pool)
    some_hours(pool, 3)

    assert tidy(now=NOON + timedelta(days=settings.KEEP_GPU_HOURS_DAYS) - HOUR) == 1


def test_each_class_is_measured_by_its_own_pods(pool, settings):
    settings.TELEMETRY_LOOPBACK = True
    a_level(pool)
    node = a_measured_node(pool, "full", allocated_s=3600)  # its pod is one of a Job
    owners = {"owner_kind": "ReplicaSet", "owner_name": "chat-1", "top_owner": "Deployment/chat"}
    make.a_placement(node, "chat-1-x", since=NOON - 5 * HOUR, until=None, **owners)
    make.a_placement(node, "odd", since=NOON - 5 * HOUR, until=None, owner_kind="Odd", owner_name="odd")
    with a_server(an_answer("0.25")) as (url, server):
        make.a_source(pool.cluster, url=url)
        measure(PoolServiceLevel.objects.get(), NOON - HOUR)

    classes = ServiceLevelHour.objects.get().classes
    assert {its_class: values["full_value"] for its_class, values in classes.items()} == {
        "training": 0.25, "inference": 0.25,
    }  # fmt: skip
    pods = {
        frozenset(name for name in ("chat-1-x", "pod-on-full", "odd") if name in unquote_plus(query))
        for query in server.queries
    }
    assert pods == {frozenset({"chat-1-x", "pod-on-full", "odd"}), frozenset({"chat-1-x"}), frozenset({"pod-on-full"})}


def test_the_only_class_of_an_hour_has_the_values_of_all_pods(pool, settings):
    settings.TELEMETRY_LOOPBACK = True
    a_level(pool)
    a_measured_node(pool, "full", allocated_s=3600)
    with a_server(an_answer("0.25")) as (url, server):
        make.a_source(pool.cluster, url=url)
        measure(PoolServiceLevel.objects.get(), NOON - HOUR)

    (values,) = ServiceLevelHour.objects.get().classes.values()
    assert (values["full_value"], values["full_samples"], len(server.queries)) == (0.25, 50, 1)


def test_an_expression_about_nodes_tells_nothing_of_classes(pool, settings):
    settings.TELEMETRY_LOOPBACK = True
    a_level(pool, expression='max(latency_p99{node=~"{{nodes}}"})')
    node = a_measured_node(pool, "full", allocated_s=3600)
    make.a_placement(node, "shell", since=NOON - 5 * HOUR, until=None, owner_kind="", owner_name="")
    with a_server(an_answer("0.25")) as (url, server):
        make.a_source(pool.cluster, url=url)
        measure(PoolServiceLevel.objects.get(), NOON - HOUR)

    level = service_level_of_pool(pool, now=NOON)
    assert {each.workload_class: each.why_not for each in level.classes} == {
        "inference": "no such pods in a measured hour",
        "training": "The expression selects nodes, not pods.",
        "development": "The expression selects nodes, not pods.",
    }
    assert len(server.queries) == 1


def test_page_rest_and_file_have_the_same_number_of_each_class(bob, pool):
    a_level(pool)
    some_hours_of_classes(pool, 12, inference=0.5)
    ServiceLevelHour.objects.update(
        classes=ServiceLevelHour.objects.first().classes
        | {"training": {"full_value": None, "full_samples": 0, "other_value": None, "other_samples": 0, "trouble": ""}}
    )

    level = calling(bob).get(f"/api/v1/pools/{pool.pk}/placement").json()["measures"]["service_level"]
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text
    file = visiting(bob).get(f"/pools/{pool.pk}/placement.csv").content.decode()

    assert {each["workload_class"]: (each["full_nodes"], each["why_not"]) for each in level["classes"]} == {
        "inference": (0.5, ""),
        "training": (None, "no source exports it for these pods"),
        "development": (None, "no such pods in a measured hour"),
    }
    assert "services 0.5 s on full nodes, 0.2 s on others (150 % worse on full nodes)" in text
    assert "jobs not measured: no source exports it for these pods" in text
    assert "service_level.classes.full_nodes,inference,0.5,s\r\n" in file
    why = "not measured: no source exports it for these pods"
    assert f"service_level.classes.full_nodes,training,unknown,{why}\r\n" in file


def judged(pool) -> dict[str, str]:
    return {subject: problem.title for subject, problem in worse_on_full_nodes(pool.cluster, now=NOON)}


def an_open_finding(pool, its_class: str = ""):
    facts = {"pool": pool.pk, **({"class": its_class} if its_class else {})}
    make.a_finding(pool.cluster, f"pool chat {its_class}".strip(), rule="worse-on-full-nodes", facts=facts)


def test_several_classes_are_judged_each(pool):
    a_level(pool)
    some_hours_of_classes(pool, 12, inference=0.23, development=0.6)

    assert judged(pool) == {"pool chat development": "Notebooks of chat are worse on full nodes"}


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("", {"pool chat inference", "pool chat development"}),
        ("inference", {"pool chat inference"}),
        ("training", set()),
    ],
)
def test_an_open_finding_of_the_pool_holds_its_classes_to_the_lower_limit(pool, before, found):
    a_level(pool)
    some_hours_of_classes(pool, 12, inference=0.23, development=0.23)
    an_open_finding(pool, before)

    assert set(judged(pool)) == found


def test_an_open_finding_of_a_class_that_is_not_compared_any_more_holds_its_pool_to_the_lower_limit(pool):
    a_level(pool)
    some_hours(pool, 12, full=0.23)
    an_open_finding(pool, "inference")

    assert set(judged(pool)) == {"pool chat"}


def test_classes_without_a_current_value_are_not_judged_in_place_of_their_pool(pool):
    a_level(pool)
    some_hours_of_classes(pool, 16, inference=0.2, development=0.2)
    ServiceLevelHour.objects.filter(hour__gt=NOON - 4 * HOUR).update(classes={})
    ServiceLevelHour.objects.update(full_value=0.5)

    assert set(judged(pool)) == {"pool chat"}


def test_the_pool_is_judged_too_where_its_classes_have_few_of_its_samples(pool):
    a_level(pool)
    some_hours_of_classes(pool, 12, inference=0.2, development=0.2)
    ServiceLevelHour.objects.update(full_value=0.5, full_samples=500)

    assert set(judged(pool)) == {"pool chat"}


def test_an_odd_finding_does_not_end_the_search(pool):
    a_level(pool)
    some_hours(pool, 12)
    make.a_finding(pool.cluster, "pool odd", rule="worse-on-full-nodes", facts={})

    assert set(judged(pool)) == {"pool chat"}
