from dataclasses import replace

import pytest

from health.telemetry.service_levels.expression import BadExpression, ServiceScope, measurement, read_expression
from health.telemetry.service_levels.indicators import INDICATORS

SCOPE = ServiceScope(nodes=["gpu-1"], pods=["model-0", "model.1"], window_s=300, matchers='cluster="eu-1"')
OWN = 'sum(rate(requests_total{pod=~"{{pods}}",code="500"}[{{window}}]))'


def test_names_nodes_pods_window_and_cluster():
    queried = read_expression(OWN).query(SCOPE)

    assert queried == 'sum(rate(requests_total{pod=~"model-0|model[.]1",cluster="eu-1",code="500"}[300s]))'


def test_one_query_asks_for_value_samples_newest_sample_and_clusters():
    queried = measurement(read_expression(OWN), None, SCOPE)

    assert [part in queried for part in ('"value"', '"samples0"', '"newest0"', '"clusters0"')] == [True] * 4
    assert 'max(count_over_time(requests_total{pod=~"model-0|model[.]1",cluster="eu-1",code="500"}[300s]))' in queried


def test_without_matchers_the_clusters_of_the_whole_prometheus_are_counted():
    """A foreign cluster with a node or pod of the same name would answer for this one."""
    asked = measurement(read_expression(OWN), None, replace(SCOPE, matchers=""))

    assert 'count(group by (cluster) (up{cluster!=""}))' in asked
    assert "up{" not in measurement(read_expression(OWN), None, SCOPE)


@pytest.mark.parametrize("indicator", INDICATORS.values(), ids=INDICATORS)
def test_a_ready_made_expression_has_a_source_and_counts_requests(indicator):
    assert indicator.source.startswith("https://")
    assert {"{{pods}}", "{{window}}"} <= {
        each for each in ("{{pods}}", "{{window}}") if each in indicator.expression and each in indicator.samples
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("up", 'Write up{pod=~"{{pods}}"}'),
        ('up{pod="{{pods}}"}', "Write up{pod=~"),
        ('a{pod=~"{{pods}}"} / b', "Write b{pod=~"),
        ('rate(up{pod=~"{{pods}}"}[5m])', "Write [{{window}}] for every range"),
        ('up{pod=~"{{pods}}"} offset 1h', "before the change"),
        ('up{pod=~"{{pods}}"} @ 0', "before the change"),
        ('max_over_time(up{pod=~"{{pods}}"}[1h:1m])', "A subquery"),
        ('up{pod=~"{{pool}}"}', "{{pool}} is unknown"),
        ("1", "this one selects 0"),
        ("((", "This is not valid PromQL"),
        ("x" * 1001, "at most 1000 characters"),
    ],
)
def test_what_would_read_more_than_the_changed_nodes_is_refused(text: str, said: str):
    with pytest.raises(BadExpression) as refusal:
        read_expression(text)

    assert said in str(refusal.value)
