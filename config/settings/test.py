"""Settings of unit tests: no Redis, no network. Flows use `dev` with real processes."""

import tempfile

from config.settings.base import *  # noqa: F403

SECRET_KEY = "tests"  # noqa: S105
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# A channel layer that delivers nothing; tests check messages at `announce`.
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    # In memory, SQLite's threads share a cache and lock each other out at once. In a file they wait, as in production.
    OF_THIS_RUN = tempfile.TemporaryDirectory(prefix="quarterdeck-test-")  # removed with the process
    DATABASES["default"]["TEST"] = {"NAME": f"{OF_THIS_RUN.name}/test.sqlite3"}  # noqa: F405
else:  # the Unix socket of `demo.postgres`, if it has started the server
    DATABASES["default"]["HOST"] = env("QUARTERDECK_TEST_SOCKET", default=DATABASES["default"]["HOST"])  # noqa: F405
