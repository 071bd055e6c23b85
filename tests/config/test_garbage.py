import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest
from celery.signals import worker_init

import config.celery  # noqa: F401 - its worker is the one that begins
from config.garbage import NEW_OBJECTS

WEB = """
import gc, threading, config.asgi
print(gc.get_threshold()[0], gc.get_freeze_count() > 0, "tidying" in {each.name for each in threading.enumerate()})
"""
ANY = "import gc, config; print(gc.get_threshold()[0], gc.isenabled())"


@pytest.fixture
def _often() -> Iterator[None]:
    """As Python does by itself, which these tests do not."""
    was = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*was)


@pytest.mark.usefixtures("_often")
def test_a_worker_collects_rarely():
    worker_init.send(sender=None)

    assert gc.get_threshold()[0] == NEW_OBJECTS
    assert gc.isenabled()


def test_so_does_who_makes_pages_and_has_a_thread_that_keeps_tidy():
    said = subprocess.run([sys.executable, "-c", WEB], capture_output=True, text=True, check=True).stdout

    assert said.split()[-3:] == [str(NEW_OBJECTS), "True", "True"]


def test_so_does_whatever_is_ours_while_it_imports_the_rest():
    said = subprocess.run([sys.executable, "-c", ANY], capture_output=True, text=True, check=True).stdout

    assert said.split() == [str(NEW_OBJECTS), "True"]
