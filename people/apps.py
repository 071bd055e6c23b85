from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in


class PeopleConfig(AppConfig):
    name = "people"

    def ready(self) -> None:
        from people.sign_in.session_store import begin_session

        user_logged_in.connect(begin_session, dispatch_uid="begin_session")
