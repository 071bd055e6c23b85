"""Sends one message through the library apprise, with its own words on a failure."""

import logging
import re
import threading
from typing import Self
from urllib.parse import unquote

from health.sources.posts import check_receiver
from health.telemetry.prometheus.answers import Unusable
from notifications.channels.base import SendOutcome
from notifications.channels.other import (
    MOST_TARGETS,
    TIMEOUT_S,
    BadAppriseAddress,
    OtherContent,
    host_of,
    outcome_of,
)
from wording.sent_secrets import SentSecrets

MOST_LINES, LONGEST_LINE = 3, 180


def post_through_apprise(address: str, content: OtherContent, severity: str) -> SendOutcome:
    """Sends one message; TLS is checked, no redirect is followed, and nothing waits for a rate limit.

    :raises Unusable: when the address is forbidden or unusable
    """
    try:
        check_receiver(f"https://{host_of(address)}")
    except BadAppriseAddress as error:
        raise Unusable(str(error)) from error
    import apprise  # here, because it takes memory and time in workers that use it only

    kinds = {"critical": apprise.NotifyType.FAILURE, "warning": apprise.NotifyType.WARNING}
    asset = apprise.AppriseAsset(async_mode=False, secure_logging=True, app_id="Quarterdeck")
    with _ThreadLog() as log:
        service = apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
        if service is None:
            raise Unusable(_words(log, address) or "apprise cannot use the address.")
        if len(service) > MOST_TARGETS:
            raise Unusable(f"The apprise address has {len(service)} targets. At most {MOST_TARGETS} are allowed.")
        service.socket_connect_timeout = service.socket_read_timeout = TIMEOUT_S
        service.verify_certificate, service.redirects = True, False
        service.throttle = lambda *_, **__: None  # type: ignore[method-assign]
        kind = kinds.get(severity, apprise.NotifyType.INFO)
        is_accepted = bool(service.notify(body=content.body, title=content.title, notify_type=kind))
    return outcome_of(_words(log, address), is_accepted=is_accepted)


class _ThreadLog(logging.Handler):
    """The warnings that apprise logs in this thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self._thread = threading.get_ident()

    def __enter__(self) -> Self:
        logging.getLogger("apprise").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("apprise").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread and len(self.lines) < MOST_LINES:
            self.lines.append(record.getMessage())


def _words(log: _ThreadLog, address: str) -> str:
    """Returns what apprise logged, without the address and its parts, also as apprise decodes them."""
    rest = address.partition("://")[2]
    parts = {rest, *rest.split("/"), *re.split(r"[/@:]", rest)}
    secrets = SentSecrets(address, *parts, *map(unquote, parts))
    return " ".join(secrets.cut_text(line)[:LONGEST_LINE] for line in log.lines)
