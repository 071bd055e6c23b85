from django.apps import AppConfig


class HealthConfig(AppConfig):
    name = "health"

    def ready(self) -> None:
        from fleet import pod_reasons, retention
        from fleet.history import lines, moment
        from fleet.messages import listeners
        from fleet.messages import numbers as of_pages
        from fleet.pools.changes import GOES_WITH
        from fleet.web.node_gpus import SICKNESSES
        from health import wake
        from health.inbox.pool_limits import LIMITS_OF_A_POOL
        from health.inbox.rule_mutes import MUTES_OF_A_POOL
        from health.retention import tidy
        from health.sources import cluster_telemetry
        from health.stack import pods
        from health.web.timeline import findings_of_gpu, findings_then, gpus_then, lines_of_acts, lines_of_xids
        from health.web.which_gpus import sicknesses_of

        listeners.STATE_CHANGED.append(wake.findings_soon.ask)
        listeners.CRASHED.append(wake.wake_crash_logs_of)
        retention.ALSO.append(tidy)
        pod_reasons.READERS.append(pods.reasons)
        GOES_WITH.extend((LIMITS_OF_A_POOL, MUTES_OF_A_POOL))
        SICKNESSES.append(sicknesses_of)
        lines.MORE += [lines_of_acts, lines_of_xids]
        lines.OF_A_GPU.append(findings_of_gpu)
        of_pages.MORE.append(cluster_telemetry.numbers)
        moment.TRUE_THEN += [findings_then, gpus_then]
