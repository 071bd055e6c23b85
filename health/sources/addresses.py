"""Where a source is asked, with its secret: for one question only, and in no row."""

from dataclasses import replace

from django.conf import settings

from health.models import TelemetrySource
from health.sources.secrets import secret_at
from health.telemetry.prometheus.client import Address


def address_of(source: TelemetrySource) -> Address:
    """:raises NoSecret: its password or token is not there"""
    secret = secret_at(source.secret_from)
    address = Address(source.url, ca_file=source.ca_file, may_be_loopback=settings.TELEMETRY_LOOPBACK)
    return replace(address, user=source.user, password=secret) if source.user else replace(address, token=secret)
