import psycopg
import pytest

from demo import postgres


def test_a_fresh_server_wants_its_password_and_leaves_nothing():
    with postgres.running() as url, psycopg.connect(url) as connection:
        answer = connection.execute("SELECT current_user").fetchone()
        wrong = url.replace(url.split(":")[2].split("@")[0], "wrong")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(wrong)

    assert answer == ("quarterdeck",)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
