"""All settings. The environment is read only here."""

from ipaddress import ip_network
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from structlog.stdlib import ProcessorFormatter

from config import logs
from config.settings.oidc import ROLES, read_oidc
from config.settings.token_peppers import read_token_peppers
from config.settings.variables import Variables
from config.version import VERSION

env = Variables()
SETTING_VARIABLES = env.names  # variables that settings read, including those of modules that build on this one
BASE_DIR = Path(__file__).resolve().parents[2]
DATA_DIR = Path(env("QUARTERDECK_DATA_DIR", default=str(BASE_DIR / ".data")))

SECRET_KEY = env("QUARTERDECK_SECRET_KEY", default="")
DEBUG = env.bool("QUARTERDECK_DEBUG", default=False)
ALLOWED_HOSTS = env.list("QUARTERDECK_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("QUARTERDECK_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "edges",
    "people",
    "fleet",
    "health",
    "capacity",
    "operations",
    "maintenance",
    "rollouts",
    "notifications",
    "config.apps.QuarterdeckConfig",
]

MIDDLEWARE = [
    "config.request_id.RequestId",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "config.error_pages.MethodNotAllowedPage",
    "config.nul.RefuseNul",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "people.web.sessions.SignInFirst",
    "people.web.no_role.NoRole",
    "people.web.second_factor.SecondFactorFirst",
    "people.web.step_up.AskToConfirm",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
AUTH_USER_MODEL = "people.User"
PASSWORD_RESET_TIMEOUT = 24 * 3600  # of a link to set a password
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "fleet"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
OIDC = read_oidc(env)
SOCIALACCOUNT_PROVIDERS = OIDC.providers
SOCIALACCOUNT_ADAPTER = "people.sign_in.single_sign_on.AccountAdapter"
# Local accounts are the way in when the identity provider is down. False: only single sign-on.
LOCAL_SIGN_IN = env.bool("QUARTERDECK_LOCAL_SIGN_IN", default=True)
if not (LOCAL_SIGN_IN or OIDC.is_on):
    raise ImproperlyConfigured(
        "QUARTERDECK_LOCAL_SIGN_IN is off and QUARTERDECK_OIDC_ISSUER is blank: nobody can sign in."
    )
CSRF_FAILURE_VIEW = "config.errors.foreign_form"
# A session ends this long after the sign-in, however much it is used.
SESSION_COOKIE_AGE = env.int("QUARTERDECK_SESSION_HOURS", default=12) * 3600
# Approvals, overrides and changes of people need a sign-in within this time. 0: nobody is asked.
STEP_UP_MINUTES = env.int("QUARTERDECK_STEP_UP_MINUTES", default=5)
# People with these roles, as approver,admin, must have a second factor when they sign in with a password.
SECOND_FACTOR_ROLES = frozenset(env.list("QUARTERDECK_SECOND_FACTOR_ROLES", default=[]))
if unknown := sorted(SECOND_FACTOR_ROLES - set(ROLES)):
    raise ImproperlyConfigured(
        f"QUARTERDECK_SECOND_FACTOR_ROLES: unknown role {unknown[0]}. Roles: {', '.join(ROLES)}."
    )
TOKEN_PEPPERS = read_token_peppers(env)  # keys of the digests of API tokens, by id, the newest first
ACCOUNT_ADAPTER = "people.sign_in.second_factor.ClientAdapter"
MFA_ADAPTER = "people.sign_in.second_factor.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_TOTP_ISSUER = "Quarterdeck"
MFA_TOTP_TOLERANCE = 1  # steps of 30 s to each side, for clocks that differ
SESSION_ENGINE = "people.sign_in.session_store"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.version.version",
                "config.menu.menu",
                "people.web.step_up.unsent_input",
                "fleet.web.unwatched_banner.unwatched",
                "rollouts.web.fleet_stop.stop",
            ],
        },
    },
]

# A form with twice the allowed number of stages is still shown with its errors: 100 stages of 40 fields, 23 gates and
# 25 advisory gates each, and 8 fields of the draft, are 8,808. Django's default is 1,000.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 8_900

HAS_GALLERY = False  # the component gallery at /gallery

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = env("QUARTERDECK_STATIC_ROOT", default=str(BASE_DIR / "staticfiles"))
STATICFILES_DIRS = [BASE_DIR / "static"]

# PostgreSQL limits per process: wait for a lock, time of a statement, and idle time in a transaction. A request that
# waits for a hanging transaction would otherwise keep its connection. Migrations have no limits.
PROCESS = env("QUARTERDECK_PROCESS", default="command")
LIMITS = {
    "web": (("lock_timeout", "1s"), ("statement_timeout", "15s"), ("idle_in_transaction_session_timeout", "5s")),
    "worker": (("lock_timeout", "3s"), ("statement_timeout", "60s"), ("idle_in_transaction_session_timeout", "15s")),
    "command": (),
}

# Transactions must be short: a person's halt waits behind every one of them.
DATABASES = {"default": env.db("DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'quarterdeck.sqlite3'}")}
DATABASES["default"]["CONN_MAX_AGE"] = 0
SQLITE_MMAP_MIB = env.int("QUARTERDECK_SQLITE_MMAP_MIB", default=0)
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["ENGINE"] = "config.sqlite3"
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        # The first list of 5,000 nodes writes 80 MB: pages (4 KiB) between two checkpoints, and KiB of cache. A request
        # opens a connection with an empty cache; with the file mapped, pages need not be copied into it.
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
            "PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-16000; "
            f"PRAGMA mmap_size={SQLITE_MMAP_MIB * 2**20};"
        ),
    }
else:
    given = DATABASES["default"].get("OPTIONS", {})
    DATABASES["default"]["OPTIONS"] = {
        **given,
        # Options of the URL come last, since PostgreSQL takes the last of two.
        "options": " ".join(
            [*(f"-c {name}={value}" for name, value in LIMITS[PROCESS]), given.get("options", "")]
        ).strip(),
        "pool": {"min_size": 1, "max_size": 24 if PROCESS == "web" else 12, "timeout": 10},
    }

# Workers read secrets and CAs of sources from files here, and secrets also from variables with the prefix
# QUARTERDECK_SOURCE_. No setting has this prefix, since admins of a cluster name such variables (Z39).
SECRETS_DIR = env("QUARTERDECK_SECRETS_DIR", default="/etc/quarterdeck/secrets")
# Allows a source on this machine, and passwords over http; for demos.
TELEMETRY_LOOPBACK = env.bool("QUARTERDECK_TELEMETRY_LOOPBACK", default=False)

# The address of this installation for links in messages, as https://quarterdeck.example.org. Blank: without links.
PUBLIC_URL = env("QUARTERDECK_PUBLIC_URL", default="")
# A part of the keys by which receivers recognize a subject. Two installations need two names.
INSTANCE = env("QUARTERDECK_INSTANCE", default="default")
# Private networks in which a channel may be, as 10.0.0.0/8. Public addresses are always allowed.
NOTIFICATION_NETWORKS = [ip_network(text) for text in env.list("QUARTERDECK_NOTIFICATION_NETWORKS", default=[])]
# The HTTP proxy for receivers outside of these networks, as http://proxy.example.org:3128. Blank: none.
NOTIFICATION_PROXY = env("QUARTERDECK_NOTIFICATION_PROXY", default="")
# smtp+tls://user:password@mail.example.org:587; blank: no mail can be sent.
SMTP_URL = env("QUARTERDECK_SMTP_URL", default="")
if SMTP_URL:
    smtp = env.email_url_config(SMTP_URL)
    EMAIL_HOST, EMAIL_PORT = smtp["EMAIL_HOST"], smtp["EMAIL_PORT"]
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = smtp["EMAIL_HOST_USER"] or "", smtp["EMAIL_HOST_PASSWORD"] or ""
    EMAIL_USE_TLS, EMAIL_USE_SSL = smtp.get("EMAIL_USE_TLS", False), smtp.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 15
DEFAULT_FROM_EMAIL = env("QUARTERDECK_MAIL_FROM", default="quarterdeck@localhost")

REDIS_URL = env("REDIS_URL", default="redis://127.0.0.1:6379/0")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {
            # redis-py 8 has a socket timeout of five seconds by default, which would kill an idle subscriber.
            "hosts": [{"address": REDIS_URL, "socket_timeout": None, "health_check_interval": 15}],
            "prefix": "quarterdeck",
        },
    },
}

# kombu has its own spelling of unix sockets.
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 1,
    "socket_timeout": 5,
    "socket_keepalive": True,
    # A nudge is sent once. Retries to an unreachable broker would delay later ones by four seconds each.
    "max_retries": 0,
    # A lost wake-up is harmless, since rows have the due time. A worker that returns one to an unreachable Redis would
    # crash.
    "ack_emulation": False,
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TIMEZONE = "UTC"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "people.api.authentication.TokenAuthentication",
        "people.api.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["edges.request_parsers.SmallJSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["edges.filters.StrictFilters"],
    "DEFAULT_PAGINATION_CLASS": "edges.pagination.Pages",
    "DEFAULT_SCHEMA_CLASS": "config.openapi.Schema",
    "EXCEPTION_HANDLER": "config.errors.translate",
    "NUM_PROXIES": 0,  # `people.sign_in.addresses` determines addresses
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Quarterdeck",
    "VERSION": VERSION,
    "DESCRIPTION": "A live view of a GPU fleet on Kubernetes, and driver changes that move through it in stages.",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "Role": "people.models.Role",
        "DriverVersionRole": "health.stack.DriverVersionRole",
        "ApprovalRule": "fleet.models.ApprovalRule",
        "PoolApproval": "fleet.models.pool.PoolApproval",
        "FindingState": "health.models.finding.STATES",
        "PlanState": "rollouts.lifecycle.PlanState",
        "StageState": "rollouts.lifecycle.StageState",
        "TargetState": "rollouts.lifecycle.TargetState",
        "StageKind": "rollouts.models.StageKind",
        "DraftStageKind": ["canary", "pool"],
        "CompatibilityAnswer": "health.api.stacks.ANSWERS",
        "ChecklistAnswer": ["yes", "no", "unknown"],
        "RepairAnswer": "maintenance.api.cases.ANSWERS",
        "RepairKind": "maintenance.api.cases.REPAIR_KINDS",
        "GateAnswer": ["pass", "wait", "fail"],
        "ClusterMode": "fleet.models.ClusterMode",
        "PlacementPolicy": "fleet.models.pool.PlacementPolicy",
        "ClassPlacementPolicy": "fleet.models.pool.ClassPlacement",
        "WorkloadClass": "fleet.models.pool.WorkloadClass",
        "PolicyState": "capacity.api.placement.STATES",
        "DriverSetBy": "fleet.api.clusters.MODES",
        "MetricKey": "health.api.telemetry.METRIC_KEYS",
        "ReadingState": "health.api.telemetry.READINGS",
        "TelemetrySourceState": "health.api.telemetry.STATES",
        "DomainBudgetKind": "rollouts.api.ledger.DOMAIN_KINDS",
        "CaseState": "maintenance.api.cases.STATES",
        "AutomaticMode": "maintenance.api.automatic.MODES",
        "OperationKind": "operations.api.operations.KIND_CHOICES",
        "OperationState": "operations.api.operations.STATES",
        "PodState": "fleet.api.pods.STATES",
        "NotificationChannelKind": "notifications.api.channels.KINDS",
        "AuditFormat": "notifications.models.AuditFormat",
        "SeverityEnum": "health.models.finding.SEVERITIES",
    },
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'self'"],
    },
}

# Anyone can write X-Forwarded-For. It is trusted only from our own proxies.
QUARTERDECK_PROXIES = env("QUARTERDECK_PROXIES", default="0")
# One row per hour for each GPU with telemetry, and the samples of free GPUs
KEEP_GPU_HOURS_DAYS = env.int("QUARTERDECK_KEEP_GPU_HOURS_DAYS", default=90)
# The label of pods that names their owner, for GPU-hours by owner. Blank: no such grouping
OWNER_LABEL = env("QUARTERDECK_OWNER_LABEL", default="")
# History of nodes and findings and daily GPU-hours, not of decisions
KEEP_HISTORY_DAYS = env.int("QUARTERDECK_KEEP_HISTORY_DAYS", default=400)

# The default image of test Jobs on changed nodes: vectorAdd, which ends by itself, as documented by NVIDIA
# (docs.nvidia.com/datacenter/cloud-native/confidential-containers/latest/run-sample-workload.html).
TEST_JOB_IMAGE = env(
    "QUARTERDECK_TEST_JOB_IMAGE", default="nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04"
)

# Images of the tests that validate a node, by test. Of dcgm: as Google's cluster-health-scanner uses it
# (GoogleCloudPlatform/cluster-health-scanner, deploy/slurm/dcgmi-diag.sh). Nobody publishes one of NCCL or nvbandwidth.
TEST_IMAGES = {
    "dcgm": "docker.io/nvidia/dcgm:4.3.1-1-ubuntu22.04",
    "vectoradd": TEST_JOB_IMAGE,
    "debug": TEST_JOB_IMAGE,  # any image with a shell: the toolkit adds nvidia-smi
} | env.dict("QUARTERDECK_TEST_IMAGES", default={})

logs.set_up()
LOG_LEVEL = env("QUARTERDECK_LOG_LEVEL", default="INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "structlog.stdlib.ProcessorFormatter",
            "processors": [ProcessorFormatter.remove_processors_meta, logs.RENDER],
            "foreign_pre_chain": logs.SHARED,
        },
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        # It logs a traceback per second while Redis is unreachable; our own heartbeat logs it once.
        "channels_redis": {"level": "ERROR"},
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},  # at DEBUG it logs response headers, which may contain a secret
        "urllib3": {"level": "WARNING"},  # at DEBUG it logs paths, and those of apprise's services contain a token
        # Its plugins log tokens. Only `post_through_apprise` reads its warnings, at each level of ours.
        "apprise": {"level": "WARNING", "propagate": False, "handlers": []},
        # Two lines per tick of a sweep that mostly finds nothing due; failures are errors.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
}
