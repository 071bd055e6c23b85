"""The unit tests: no Redis, no network. Flows run on `dev`, as real processes."""

import os
import tempfile

from config.settings.base import *  # noqa: F403

SECRET_KEY = "tests"  # noqa: S105
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# A layer that forgets everything: what a unit test wants to know of a message it asks `announce`.
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    # In memory, SQLite's threads share a cache and lock each other out at once; in a file they wait, as in life.
    name = f"quarterdeck-test-{os.getpid()}.sqlite3"
    DATABASES["default"]["TEST"] = {"NAME": os.path.join(tempfile.gettempdir(), name)}  # noqa: F405, PTH118
