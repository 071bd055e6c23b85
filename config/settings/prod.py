"""Production settings: behind TLS, with collected static files. The environment provides all required values."""

from config.settings.base import *  # noqa: F403

SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
SECURE_HSTS_SECONDS = 31_536_000
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = True
# Called by machines on our network, without a proxy
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz(/|$)", r"^metrics$"]
# HSTS for subdomains and browser preload lists are up to the domain's owner.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
