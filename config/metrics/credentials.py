"""The ends of credentials: of clusters, of API tokens that are in use, and of channels."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from prometheus_client.core import GaugeMetricFamily, Metric

from fleet.models import Observer
from notifications.models import Channel
from people.models import ApiToken

USED_WITHIN = timedelta(days=7)  # a token that nobody uses may expire unnoticed


def families(now: datetime) -> Iterator[Metric]:
    text = "End of a certificate or token. API tokens without use for a week, and what lives shorter, are not listed."
    gauge = GaugeMetricFamily("quarterdeck_credential_expiry_timestamp_seconds", text, labels=["of", "name", "kind"])
    observers = Observer.objects.select_related("cluster").order_by("cluster__name")
    for observer in observers:
        for life in observer.credential_lives:
            if life.is_renewed_by_hand:
                gauge.add_metric(["cluster", observer.cluster.name, life.kind], life.ends_at.timestamp())
    used = ApiToken.objects.valid(now=now).filter(expires_at__isnull=False, last_used_at__gte=now - USED_WITHIN)
    for token in used.select_related("user").order_by("pk"):
        if token.expires_at and token.expires_at - token.created_at >= USED_WITHIN:
            kind = f"API token {token.name} ({token.hint})"
            gauge.add_metric(["user", token.user.get_username(), kind], token.expires_at.timestamp())
    for channel in Channel.objects.filter(is_on=True, certificate_until__isnull=False):
        if channel.certificate_until:
            gauge.add_metric(["channel", channel.name, "client certificate"], channel.certificate_until.timestamp())
    yield gauge
