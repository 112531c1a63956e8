"""Single sign-on: tokens, their two clocks, and the lock of accounts. Source: 1.1.

Tokens are in memory: a restarted engine knows none of them.
"""

import base64
import binascii
import dataclasses
import json
import secrets
from collections.abc import Mapping

from lib.lab.zvirt.engine_core import Engine, Refused

SCOPE = "ovirt-app-api"
TOKEN_S = 360_000.0
"""Source: SSO_TOKEN_TIMEOUT of ovirt-engine.conf."""
IDLE_S = 1800.0
"""Source: UserSessionTimeOutInterval, 30 minutes."""
FAILURES = 5
LOCKED_S = 3600.0
_CODES = {
    "sso-wrong-password": "access_denied",
    "sso-locked": "access_denied",
    "sso-profile": "access_denied",
    "sso-grant": "unsupported_grant_type",
    "sso-incomplete": "invalid_request",
}


@dataclasses.dataclass(slots=True)
class _Session:
    user: str
    expires_at: float
    used_at: float


@dataclasses.dataclass(slots=True)
class _Account:
    """password: changes with `set_password`. failures: in a row."""

    password: str = dataclasses.field(repr=False)
    failures: int = 0
    locked_until: float = 0.0


class SingleSignOn:
    """The accounts and tokens of an engine. token_s, idle_s: see the constants."""

    def __init__(
        self,
        engine: Engine,
        accounts: Mapping[str, str],
        token_s: float = TOKEN_S,
        idle_s: float = IDLE_S,
    ) -> None:
        """accounts: passwords by user, such as admin@internal."""
        self._engine = engine
        self._accounts = {
            user: _Account(password) for user, password in accounts.items()
        }
        self._sessions: dict[str, _Session] = {}
        self.token_s, self.idle_s = token_s, idle_s
        self.logins = 0
        """How often a token was requested."""

    def set_password(self, user: str, password: str) -> None:
        """Change the password of an account; its tokens stay valid."""
        self._accounts[user].password = password

    def lose_tokens(self) -> None:
        """Forget all tokens."""
        self._sessions.clear()

    def token(self, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Answer a request for a token: status, JSON."""
        self.logins += 1
        try:
            document = self._token(form)
        except Refused as refused:
            code = _CODES[refused.rule]
            if form.get("scope") != SCOPE:
                self._engine.rule("sso-other-scope")
                error = {"error": code, "error_description": refused.detail}
            else:
                error = {"error_code": code, "error": refused.detail}
            return refused.status, json.dumps(error).encode()
        return 200, json.dumps(document).encode()

    def _token(self, form: Mapping[str, str]) -> Mapping[str, str]:
        grant = form.get("grant_type", "")
        if grant != "password":
            self._engine.refuse("sso-grant", "", grant=grant)
        for name in ("scope", "username", "password"):
            if not form.get(name):
                self._engine.refuse("sso-incomplete", "", name=name)
        user = form["username"]
        self._check(user, form["password"])
        self._engine.rule("sso-token")
        token = secrets.token_urlsafe(48)
        now = self._engine.now
        self._sessions[token] = _Session(user, now + self.token_s, now)
        return {
            "access_token": token,
            "scope": form["scope"],
            "exp": str(int((now + self.token_s) * 1000)),
            "token_type": "bearer",
        }

    def _check(self, user: str, password: str) -> None:
        if "@" not in user:
            self._engine.refuse("sso-profile", "", user=user)
        account, now = self._accounts.get(user), self._engine.now
        if account is None:
            self._engine.refuse("sso-wrong-password", "", user=user)
        if now < account.locked_until:
            self._engine.refuse("sso-locked", "", user=user)
        if secrets.compare_digest(account.password.encode(), password.encode()):
            account.failures = 0
            return
        account.failures += 1
        if account.failures >= FAILURES:
            account.failures, account.locked_until = 0, now + LOCKED_S
        self._engine.refuse("sso-wrong-password", "", user=user)

    def logout(self, form: Mapping[str, str]) -> tuple[int, bytes]:
        """Forget a token: status, JSON."""
        self._engine.rule("sso-logout")
        self._sessions.pop(form.get("token", ""), None)
        return 200, b"{}"

    def user(self, authorization: str) -> str:
        """Return the user of a request to the API.

        Raises:
            Refused: there is no valid token or password.
        """
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() == "basic":
            return self._basic(value)
        session = self._sessions.get(value) if scheme.lower() == "bearer" else None
        now = self._engine.now
        if session is None:
            self._engine.refuse("sso-unauthenticated", "")
        for is_over, rule in (
            (now >= session.expires_at, "sso-expired"),
            (now - session.used_at > self.idle_s, "sso-idle"),
        ):
            if is_over:
                self._engine.rule(rule)
                del self._sessions[value]
                self._engine.refuse("sso-unauthenticated", "")
        session.used_at = now
        return session.user

    def _basic(self, value: str) -> str:
        try:
            user, _, password = base64.b64decode(value).decode().partition(":")
            self._check(user, password)
        except (Refused, binascii.Error, UnicodeDecodeError):
            self._engine.refuse("sso-unauthenticated", "")
        self._engine.rule("sso-basic")
        return user
