from django.urls import path

from people.web import account, signing

urlpatterns = [
    path("sign-in", signing.SignIn.as_view(), name="sign-in"),
    path("sign-out", signing.SignOut.as_view(), name="sign-out"),
    path("account", account.account, name="account"),
    path("account/tokens", account.issue_token, name="issue-token"),
    path("account/tokens/<int:token_id>/revocations", account.revoke_token, name="revoke-token"),
]
