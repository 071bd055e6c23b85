"""Prometheus metrics of Quarterdeck itself. Each scrape reads the rows, so any process can answer."""

from collections.abc import Iterator
from datetime import datetime

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from rest_framework.negotiation import DefaultContentNegotiation

from config.metrics import credentials, fleet, health, maintenance, notifications, operations, processes, rollouts
from edges.rest import Edge
from people.rights import Permission, require

SOURCES = (fleet, credentials, health, operations, maintenance, rollouts, notifications, processes)


class Collected(Collector):
    def __init__(self, now: datetime) -> None:
        self.now = now

    def collect(self) -> Iterator[Metric]:
        for source in SOURCES:
            yield from source.families(self.now)


class AnyAccept(DefaultContentNegotiation):
    """Content negotiation that ignores Accept: Prometheus sends parameters that DRF cannot weigh, and reads this
    format."""

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type


class Metrics(Edge):
    """The metrics, for anyone who may see the whole fleet. Give Prometheus a token with the permission “see”."""

    content_negotiation_class = AnyAccept

    @extend_schema(exclude=True)
    def get(self, request) -> HttpResponse:
        require(self.user, Permission.SEE)
        registry = CollectorRegistry()
        registry.register(Collected(timezone.now()))
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
