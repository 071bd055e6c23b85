import gc
from collections.abc import Iterator

import pytest
from celery.signals import worker_init

from config.celery import NEW_OBJECTS


@pytest.fixture
def thresholds() -> Iterator[None]:
    was = gc.get_threshold()
    yield
    gc.set_threshold(*was)
    gc.unfreeze()


def test_a_worker_collects_rarely(thresholds: None):
    worker_init.send(sender=None)

    assert gc.get_threshold()[0] == NEW_OBJECTS
    assert gc.isenabled()
