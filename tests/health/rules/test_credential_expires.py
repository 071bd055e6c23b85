"""When the end of a credential is reported, and how severe it is."""

from datetime import timedelta

import pytest

from health.rules.base import ClusterFacts
from health.rules.credential_expires import CredentialExpires
from kube.credential_life import SERVER_CERTIFICATE, CredentialLife
from tests.make import NOON
from tests.reports import steps, told

DAY = timedelta(days=1)


def severity(*, life: float, left: float) -> str | None:
    ends = NOON + left * DAY
    credential = CredentialLife("token", ends - life * DAY, ends)
    wrong = CredentialExpires().evaluate(ClusterFacts("eu-1", credentials=(credential,), evaluated_at=NOON))
    return wrong and wrong.severity.value


@pytest.mark.parametrize(
    ("life", "left", "said"),
    [
        (365, 14.1, None), (365, 14, "warning"), (365, 3.1, "warning"), (365, 3, "critical"), (365, -1, "critical"),
        (30, 6.1, None), (30, 6, "warning"), (30, 1.5, "critical"),  # a fifth and a twentieth of its life
        (1, 0.01, None),  # a program renews it
    ],
)  # fmt: skip
def test_it_is_reported_in_time_for_its_life(life, left, said):
    assert severity(life=life, left=left) == said


def test_it_names_each_with_its_end():
    ends = NOON + DAY
    lives = tuple(CredentialLife(kind, ends - 365 * DAY, ends) for kind in ("client certificate", "token"))

    wrong = CredentialExpires().evaluate(ClusterFacts("eu-1", credentials=lives, evaluated_at=NOON))
    over = CredentialExpires().evaluate(ClusterFacts("eu-1", credentials=lives, evaluated_at=ends))

    assert told(wrong) == (
        "Credentials of cluster eu-1 expire soon\n"
        "Client certificate, token. When one ends, Quarterdeck neither sees nor changes the cluster.\n"
        "Client certificate ends: 2026-11-22 12:00:00 UTC\nToken ends: 2026-11-22 12:00:00 UTC"
    )
    assert over.title == "Credentials of cluster eu-1 have expired"
    assert over.fingerprint != wrong.fingerprint


def test_the_certificate_of_the_api_server_has_its_own_words_and_any_of_its_hosts_answers():
    first, second = (
        CredentialExpires().evaluate(
            ClusterFacts(
                "eu-1", credentials=(CredentialLife(SERVER_CERTIFICATE, NOON - 360 * DAY, ends),), evaluated_at=NOON
            )
        )
        for ends in (NOON + 5 * DAY, NOON + 6 * DAY)
    )

    assert told(first) == (
        "API server's certificate in cluster eu-1 expires soon\n"
        "Certificate of the API server. When it ends, Quarterdeck neither sees nor changes the cluster.\n"
        "Certificate of the API server ends: 2026-11-26 12:00:00 UTC"
    )
    assert steps(first) == "Renew the certificate of the API server on each host of the control plane."
    assert first.fingerprint == second.fingerprint
