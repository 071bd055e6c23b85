"""Settings for one machine on loopback (demo, development): plain HTTP, no collected static files."""

from config.settings.base import *  # noqa: F403

SECRET_KEY = SECRET_KEY or "for-loopback-only"  # noqa: F405
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG  # noqa: F405
HAS_GALLERY = True
