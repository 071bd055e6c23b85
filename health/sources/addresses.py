"""The address of a source with its secret, for one request only and never in a row."""

from dataclasses import replace

from django.conf import settings

from health.models import TelemetrySource
from health.sources.secrets import SOURCE_SECRETS, NotReadable, path_in_folder, read_in_folder
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import UNREADABLE_CA, Address

CA_AT_MOST = 1 << 20  # bytes: all the authorities that a browser trusts are 0.2 MiB


def address_of(source: TelemetrySource) -> Address:
    """Returns the address of a source.

    :raises NoSecret: when its cluster has no password or token there
    :raises Unusable: when its CA cannot be read
    """
    secret = SOURCE_SECRETS.secret_at(source.secret_from, source.cluster.name)
    address = Address(source.url, ca=certificates_at(source.ca_file), may_be_loopback=settings.TELEMETRY_LOOPBACK)
    return replace(address, user=source.user, password=secret) if source.user else replace(address, token=secret)


def check_ca(name: str) -> None:
    """Checks that a CA of that name can be read.

    :raises Unusable: when it cannot
    """
    try:
        path_in_folder(name)
    except NotReadable as error:
        raise Unusable("A CA is a file in the folder that QUARTERDECK_SECRETS_DIR names.") from error


def certificates_at(name: str) -> str:
    """Returns the certificates; empty without a name.

    :raises Unusable: with one sentence for all reasons, so that nobody learns which files exist
    """
    if not name:
        return ""
    try:
        # Of a blank text, all the world's authorities would be taken instead.
        return read_in_folder(name, at_most=CA_AT_MOST).decode("ascii") or "\n"
    except (NotReadable, UnicodeDecodeError) as error:
        raise Unusable(UNREADABLE_CA) from error
