import pytest

from config import checks

pytestmark = pytest.mark.sqlite

GOOD_KEY = "Zq3-" * 4 + "x8Kd_vW2mN7pL0rT5yB1cF6hJ9aG4sE" * 2


@pytest.mark.parametrize(
    ("key", "hosts", "is_fine"),
    [
        (GOOD_KEY, ["quarterdeck.example"], True),
        ("short", ["quarterdeck.example"], False),
        ("ab" * 40, ["quarterdeck.example"], False),
        ("short", ["127.0.0.1", "localhost"], True),
        ("", ["127.0.0.1"], False),
    ],
)
def test_a_weak_secret_key_serves_loopback_only(settings, key, hosts, is_fine):
    settings.ALLOWED_HOSTS = hosts
    settings.SECRET_KEY = key

    found = checks.secret_key()

    assert (found == []) == is_fine
    assert all("QUARTERDECK_SECRET_KEY" in message.hint for message in found)


@pytest.mark.parametrize(
    ("url", "is_fine"),
    [
        ("redis://127.0.0.1:6379/0", True),
        ("rediss://:secret@redis.example:6380/1", True),
        ("unix:///run/valkey.sock", True),
        ("http://redis:6379", False),
        ("redis:6379", False),
        ("unix://", False),
        ("", False),
    ],
)
def test_an_address_that_is_no_redis_is_named_without_its_password(settings, url, is_fine):
    settings.REDIS_URL = url

    found = checks.redis_url()

    assert (found == []) == is_fine
    assert all("secret" not in str(message) for message in found)


def test_every_host_is_no_host(settings):
    settings.ALLOWED_HOSTS = ["*"]

    (found,) = checks.hosts()

    assert found.id == "qd.E002"


def a_file(path, settings) -> None:
    settings.DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": path}}


def test_a_data_folder_that_is_not_there_or_not_writable_fails_at_boot(settings, tmp_path, monkeypatch):
    a_file(tmp_path / "gone" / "q.sqlite3", settings)
    assert checks.sqlite_folder()[0].id == "qd.E004"

    a_file(tmp_path / "q.sqlite3", settings)
    assert checks.sqlite_folder() == []

    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    assert checks.sqlite_folder()[0].id == "qd.E005"


@pytest.mark.parametrize(
    ("redis_url", "engine", "is_fine"),
    [
        ("redis://127.0.0.1:6379/0", "sqlite3", True),
        ("unix:///run/valkey.sock", "sqlite3", True),
        ("redis://valkey:6379/0", "sqlite3", False),
        ("redis://valkey:6379/0", "postgresql", True),
    ],
)
def test_a_database_of_one_machine_doubts_workers_on_another(settings, tmp_path, redis_url, engine, is_fine):
    settings.DATABASES = {"default": {"ENGINE": f"django.db.backends.{engine}", "NAME": tmp_path / "q.sqlite3"}}
    settings.REDIS_URL = redis_url

    assert (checks.one_machine() == []) == is_fine
