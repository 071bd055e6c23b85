from django.urls import path, re_path

from people.web import account, audit_page, groups_page, people_page, sessions, single_sign_on, step_up

urlpatterns = [
    path("sign-in", sessions.SignIn.as_view(), name="sign-in"),
    path("sign-in/sso", single_sign_on.begin, name="single-sign-on"),
    # The name by which django-allauth finds it
    path("sign-in/<slug:provider_id>/callback", single_sign_on.finish, name="openid_connect_callback"),
    path("sign-in/<slug:provider_id>/logout", single_sign_on.end_at_logout, name="back-channel-logout"),
    path("confirm", step_up.confirm, name="confirm"),
    path("sign-out", sessions.SignOut.as_view(), name="sign-out"),
    path("set-password/<uidb64>/<token>", sessions.SetPassword.as_view(), name="set-password"),
    path("people", people_page.people, name="people"),
    path("people/add", people_page.add, name="add-person"),
    path("people/<int:person_id>", people_page.person, name="person"),
    path("people/<int:person_id>/password-links", people_page.offer_password, name="offer-password"),
    re_path(r"^people/(?P<person_id>[0-9]{1,18})/switch-(?P<to>on|off)$", people_page.switch, name="switch-person"),
    path("people/<int:person_id>/roles", people_page.grant, name="grant-role"),
    path("people/<int:person_id>/roles/<int:binding_id>/removals", people_page.take, name="take-role"),
    path(
        "people/<int:person_id>/tokens/<int:token_id>/revocations",
        people_page.revoke_token,
        name="revoke-persons-token",
    ),
    path("people/<int:person_id>/sessions/endings", people_page.end_every_session, name="end-persons-sessions"),
    path(
        "people/<int:person_id>/sessions/<slug:session_id>/endings",
        people_page.end_session,
        name="end-persons-session",
    ),
    path("groups", groups_page.people_groups, name="groups"),
    path("groups/add", groups_page.add, name="add-group"),
    path("groups/<int:group_id>/removals", groups_page.remove, name="remove-group"),
    path("groups/<int:group_id>/members", groups_page.join, name="join-group"),
    path("groups/<int:group_id>/members/<int:person_id>/removals", groups_page.leave, name="leave-group"),
    path("audit", audit_page.audit, name="audit"),
    path("account", account.account, name="account"),
    path("account/sessions/endings", account.end_other_sessions, name="end-other-sessions"),
    path("account/sessions/<slug:session_id>/endings", account.end_session, name="end-session"),
    path("account/tokens", account.issue_token, name="issue-token"),
    path("account/tokens/<int:token_id>/revocations", account.revoke_token, name="revoke-token"),
]
