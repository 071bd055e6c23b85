from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from people.models import ApiToken, AuditEntry
from tests.callers import calling
from tests.make import a_user

pytestmark = pytest.mark.django_db


def test_it_prints_a_secret_that_works():
    a_user("ada", role="operator")
    said = StringIO()

    call_command("issue_token", "ada", "--name", "ci", "--permission", "see", stdout=said)

    assert calling(token=said.getvalue().strip()).get("/api/v1/me").status_code == 200
    assert ApiToken.objects.get().permissions == ["see"]
    assert AuditEntry.objects.get().verb == "token.issue"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["eve"], "There is no user eve."), (["ada", "--days", "-1"], "--days goes from 0 to 3650.")],
)
def test_it_says_what_is_wrong(arguments, said):
    a_user("ada")

    with pytest.raises(CommandError, match=said):
        call_command("issue_token", *arguments, "--name", "ci", "--permission", "see")
