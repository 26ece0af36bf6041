"""Keys of issuers, their metadata, and sign-in by bearer token; rows A04, A07, A11 and A13 of the attacks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tokens import ISSUER, NOW, RESOURCE, Signer, claims, jwks

from sandbridge_kit.config import IssuerSettings, SettingsError
from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.adapters.grants import BearerGrant, token_of
from sandbridge_orchestrator.adapters.issuers import IssuerEndpoints, IssuerHttp, IssuerUnavailable
from sandbridge_orchestrator.adapters.keys import FRESH_S, MOST_S, PAUSE_S, IssuerKeys
from sandbridge_orchestrator.adapters.signin import BearerSignIn, TrustedIssuer, trusted
from sandbridge_orchestrator.core.answers import Received
from sandbridge_orchestrator.core.claims import Refusal
from sandbridge_orchestrator.ports import Outgoing, ResponseTooLarge, Unreachable
from sandbridge_orchestrator.testing import ScriptedSender

OLD, NEW = Signer("old", "ES256"), Signer("new", "ES256", copy=1)
OLD_KEY, NEW_KEY = OLD.jwk(), NEW.jwk()


@dataclass
class PublishedKeys:
    """What an issuer publishes, or that it is away; counts how often it was asked."""

    keys: list[dict[str, Any]] = field(default_factory=lambda: [OLD_KEY])
    away: bool = False
    fetched: int = 0
    now: float = 1000.0

    async def fetch(self) -> bytes:
        self.fetched += 1
        await asyncio.sleep(0)
        if self.away:
            raise IssuerUnavailable("no connection could be made")
        return jwks(*self.keys)

    def cache(self) -> IssuerKeys:
        return IssuerKeys(ISSUER, self.fetch, monotonic=lambda: self.now)


async def names(keys: IssuerKeys, kid: str) -> list[str | None]:
    found = [key.kid for key in await keys.matching(kid, "ES256")]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return found


async def test_keys_are_fetched_once_however_many_ask_at_the_same_time() -> None:
    issuer = PublishedKeys()
    keys = issuer.cache()

    found = await asyncio.gather(*(names(keys, "old") for _ in range(50)))

    assert (found, issuer.fetched) == ([["old"]] * 50, 1)


async def test_a11_a_new_key_is_taken_within_one_refresh() -> None:
    issuer = PublishedKeys()
    keys = issuer.cache()
    await names(keys, "old")
    issuer.keys = [OLD_KEY, NEW_KEY]

    assert (await names(keys, "new"), await names(keys, "old"), issuer.fetched) == (["new"], ["old"], 2)


async def test_a11_a_withdrawn_key_counts_until_its_time_is_over_and_no_longer() -> None:
    issuer = PublishedKeys()
    keys = issuer.cache()
    await names(keys, "old")
    issuer.keys = [NEW_KEY]
    issuer.now += 1
    await names(keys, "new")
    before = await names(keys, "old")
    issuer.now += FRESH_S

    assert (before, await names(keys, "old")) == (["old"], [])


async def test_unknown_keys_make_one_refresh_in_ten_seconds_whatever_their_number() -> None:
    issuer = PublishedKeys()
    keys = issuer.cache()
    await names(keys, "old")

    first = await asyncio.gather(*(names(keys, f"unknown-{number}") for number in range(200)))
    at_once = issuer.fetched
    issuer.now += PAUSE_S - 0.1
    await names(keys, "unknown")
    paused = issuer.fetched
    issuer.now += 0.1
    await names(keys, "unknown")

    assert (first, at_once, paused, issuer.fetched) == ([[]] * 200, 2, 2, 3)


async def test_old_keys_are_renewed_in_the_background() -> None:
    issuer = PublishedKeys()
    keys = issuer.cache()
    await names(keys, "old")
    issuer.now += FRESH_S

    assert (await names(keys, "old"), issuer.fetched) == (["old"], 2)


async def test_an_outage_is_survived_with_the_keys_at_hand_until_they_are_an_hour_old() -> None:
    issuer = PublishedKeys()
    keys = issuer.cache()
    await names(keys, "old")
    issuer.away = True
    issuer.now += MOST_S - 1
    during = await names(keys, "old")
    issuer.now += 1

    assert during == ["old"]
    with pytest.raises(IssuerUnavailable):
        await keys.matching("old", "ES256")
    issuer.away = False
    issuer.now += PAUSE_S
    assert await names(keys, "old") == ["old"]


async def test_without_keys_nobody_is_refused_for_good_and_the_issuer_is_asked_seldom() -> None:
    issuer = PublishedKeys(away=True)
    keys = issuer.cache()
    waits = []
    for _ in range(5):
        with pytest.raises(IssuerUnavailable) as error:
            await keys.matching("old", "ES256")
        waits.append(error.value.retry_after_s)
        issuer.now += 1

    assert (waits, issuer.fetched) == ([10, 9, 8, 7, 6], 1)


async def test_what_is_no_set_of_keys_does_not_replace_the_one_at_hand() -> None:
    issuer = PublishedKeys()
    keys = issuer.cache()
    await names(keys, "old")
    issuer.keys = [{}] * 101

    with pytest.raises(IssuerUnavailable):
        await keys.matching("unknown", "ES256")
    assert await names(keys, "old") == ["old"]


def sign_in(issuer: PublishedKeys, now: Callable[[], float] = lambda: NOW) -> BearerSignIn:
    settings = IssuerSettings(issuer=ISSUER, audiences=(RESOURCE,))
    return BearerSignIn([TrustedIssuer(trusted(settings, RESOURCE), issuer.cache())], now_s=now)


async def test_a_good_token_gives_a_caller_whose_grant_shows_nothing() -> None:
    token = OLD.sign(claims())
    caller = await sign_in(PublishedKeys()).caller_of(token)

    assert isinstance(caller, Caller)
    assert isinstance(caller.grant, BearerGrant)
    assert (caller.subject, token_of(caller.grant), caller.grant.session) == ("alice", token, "token-1")
    assert caller.grant.expires_at_s == NOW + 630
    assert token not in repr(caller)
    with pytest.raises(TypeError, match="stays in its process"):
        caller.grant.__reduce__()


async def test_an_outage_is_503_with_a_time_and_never_401() -> None:
    refusal = await sign_in(PublishedKeys(away=True)).caller_of(OLD.sign(claims()))

    assert refusal == Refusal(
        503, "temporarily_unavailable", "The issuer's keys cannot be had at the moment", retry_after_s=10
    )


@pytest.mark.parametrize("header", [{"jku": "https://evil.example/keys"}, {"x5u": "https://evil.example/cert"}])
async def test_a04_a_token_sends_nobody_anywhere(header: dict[str, str]) -> None:
    issuer = PublishedKeys()
    refusal = await sign_in(issuer).caller_of(NEW.sign(claims(), kid="old", **header))

    assert isinstance(refusal, Refusal)
    assert (refusal.status, issuer.fetched) == (401, 1)


async def test_a07_a_token_of_a_stranger_causes_no_request() -> None:
    issuer = PublishedKeys()
    refusal = await sign_in(issuer).caller_of(NEW.sign(claims(iss="https://evil.example")))

    assert isinstance(refusal, Refusal)
    assert (refusal.status, issuer.fetched) == (401, 0)


async def test_a13_a_clock_that_jumps_back_makes_no_expired_token_last() -> None:
    moments = iter([NOW, NOW + 631, NOW - 3600])
    door = sign_in(PublishedKeys(), lambda: next(moments))
    found = [await door.caller_of(OLD.sign(claims())) for _ in range(3)]

    assert [isinstance(one, Caller) for one in found] == [True, False, False]


METADATA = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks", "token_endpoint": f"{ISSUER}/token"}


def endpoints(respond: Callable[[str], Received], **settings: Any) -> IssuerEndpoints:
    chosen = IssuerSettings(issuer=settings.pop("issuer", ISSUER), audiences=(RESOURCE,), **settings)
    sender = ScriptedSender(lambda outgoing: respond(outgoing.request.url))
    return IssuerEndpoints(chosen, IssuerHttp(sender), monotonic=lambda: 0.0)


def page(document: Any, status: int = 200) -> Received:
    return Received(status, (), json.dumps(document).encode())


async def test_endpoints_are_those_of_the_metadata_wherever_that_is_published() -> None:
    at = f"{ISSUER}/.well-known/openid-configuration"
    pages = {at: page(METADATA), f"{ISSUER}/jwks": page(["keys"])}
    found = endpoints(lambda url: pages.get(url, page({}, 404)))

    assert (await found.token_endpoint(), await found.jwks()) == (f"{ISSUER}/token", b'["keys"]')


async def test_metadata_of_another_issuer_stops_the_start_and_is_named() -> None:
    found = endpoints(lambda url: page({**METADATA, "issuer": f"{ISSUER}/"}))

    with pytest.raises(SettingsError, match="The issuer 'main': it is the metadata of"):
        await found.check()


async def test_a_host_that_answers_for_another_of_its_issuers_first_is_asked_further() -> None:
    issuer = f"{ISSUER}/realms/one"
    pages = {
        f"{ISSUER}/.well-known/oauth-authorization-server/realms/one": page(METADATA),
        f"{issuer}/.well-known/openid-configuration": page({**METADATA, "issuer": issuer}),
    }
    found = endpoints(lambda url: pages.get(url, page({}, 404)), issuer=issuer)

    assert (await found.metadata()).issuer == issuer


async def test_an_issuer_that_is_away_does_not_stop_the_start() -> None:
    def away(url: str) -> Received:
        raise Unreachable("no connection could be made", sent=False)

    await endpoints(away).check()


async def test_a_redirect_is_no_answer() -> None:
    found = endpoints(lambda url: Received(302, (("location", "https://evil.example/"),), b""))

    with pytest.raises(IssuerUnavailable, match="publishes no metadata"):
        await found.metadata()


async def test_a_secret_goes_to_a_host_that_was_typed() -> None:
    elsewhere = {**METADATA, "token_endpoint": "https://tokens.example.net/token"}
    exchange = {"clientId": "c", "tokenEndpoint": "https://tokens.example.net/token"}

    with pytest.raises(IssuerUnavailable, match=r"set exchange\.tokenEndpoint"):
        await endpoints(lambda url: page(elsewhere)).token_endpoint()
    typed = endpoints(lambda url: page(elsewhere), exchange=exchange)
    assert await typed.token_endpoint() == "https://tokens.example.net/token"


@pytest.mark.parametrize(
    ("addresses", "allowed", "told"),
    [
        (("10.0.0.8",), (), "private address"),
        (("169.254.169.254",), ("issuer.example.com:443",), "never reachable"),
        (("10.0.0.8",), ("issuer.example.com:443",), None),
    ],
)
async def test_an_issuer_is_judged_by_its_addresses(
    addresses: tuple[str, ...], allowed: tuple[str, ...], told: str | None
) -> None:
    def respond(outgoing: Outgoing) -> Received:
        return page(METADATA)

    http = IssuerHttp(ScriptedSender(respond, {"issuer.example.com": addresses}), frozenset(allowed))
    if told is None:
        assert (await http.get(f"{ISSUER}/jwks")).status == 200
        return
    with pytest.raises(IssuerUnavailable, match=told):
        await http.get(f"{ISSUER}/jwks")


async def test_plain_http_is_for_loopback_only() -> None:
    sender = ScriptedSender(lambda outgoing: page(METADATA), {"localhost": ("93.184.215.14",)})

    with pytest.raises(IssuerUnavailable, match="plain http"):
        await IssuerHttp(sender).get("http://localhost:9000/jwks")
    assert sender.sent == []


async def test_an_answer_that_is_too_large_is_none() -> None:
    def respond(outgoing: Outgoing) -> Received:
        raise ResponseTooLarge("more than 1,024 KiB")

    with pytest.raises(IssuerUnavailable, match="1,024 KiB"):
        await IssuerHttp(ScriptedSender(respond)).get(f"{ISSUER}/jwks")
