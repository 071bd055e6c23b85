"""The unit tests: no Redis, no network. Flows run on `dev`, as real processes."""

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
    OF_THIS_RUN = tempfile.TemporaryDirectory(prefix="quarterdeck-test-")  # goes with the process
    DATABASES["default"]["TEST"] = {"NAME": f"{OF_THIS_RUN.name}/test.sqlite3"}  # noqa: F405
