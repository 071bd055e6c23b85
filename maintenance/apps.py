from django.apps import AppConfig


class MaintenanceConfig(AppConfig):
    name = "maintenance"

    def ready(self) -> None:
        from fleet import retention
        from fleet.history import lines
        from health.evaluation.finding_sources import register
        from health.inbox.shift_report import OPEN_CASES
        from maintenance.automatic import open_every_breaker
        from maintenance.chosen_round import why_no_chosen_release
        from maintenance.findings import BREAKER, UNHELD, WAITING
        from maintenance.queries import why_no_release
        from maintenance.retention import tidy
        from maintenance.shift_cases import open_cases_of
        from maintenance.web.operation_links import cases_that_follow, open_case_with
        from maintenance.web.timeline import lines_of_cases
        from operations.followers import FOLLOWERS, OPENERS
        from operations.restraints import AFTER_RESTORE, OPERATION_VETOES, RELEASE_VETOES

        FOLLOWERS.append(cases_that_follow)
        OPENERS.append(open_case_with)
        OPEN_CASES.append(open_cases_of)
        register(WAITING)
        register(BREAKER)
        register(UNHELD)
        retention.ALSO.append(tidy)
        lines.MORE.append(lines_of_cases)
        AFTER_RESTORE.append(open_every_breaker)
        RELEASE_VETOES.append(why_no_release)
        OPERATION_VETOES.append(why_no_chosen_release)
