"""Judging bearer tokens. Names carry the row of the catalogue of attacks that they answer (A01 to A14)."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tokens import ISSUER, NOW, RESOURCE, Signer, claims, encoded, jwks, raw

from sandbridge_kit.identity import Caller
from sandbridge_orchestrator.core.claims import Accepted, Presented, Refusal, Trusted, judge, missing_scopes, read
from sandbridge_orchestrator.core.jwk import JwksError, matching, read_jwks

KEY = Signer("k1")
STRANGER = Signer("k1", copy=1)
STRICT = Trusted(ISSUER, frozenset({RESOURCE, f"{RESOURCE}/"}))
LEGACY = Trusted(ISSUER, STRICT.audiences, profile="legacy")
KEYS = read_jwks(jwks(KEY.jwk()))
ALICE = Caller(ISSUER, "alice", "a-client", frozenset({"docs:read", "run:execute"}), {"jti": "token-1"})


def judged(token: str, trusted: Trusted = STRICT, published: bytes | None = None, now: float = NOW) -> Any:
    """Return what becomes of a token, where only this issuer is trusted."""
    found = read(token, {trusted.issuer: trusted})
    if isinstance(found, Refusal):
        return found
    presented, issuer = found
    keys = KEYS if published is None else read_jwks(published)
    return judge(presented, issuer, matching(keys, presented.kid, presented.algorithm), now_s=now)


def test_a_good_token_is_its_caller() -> None:
    assert judged(KEY.sign(claims())) == Accepted(ALICE, NOW + 600, "token-1")


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
def test_each_pinned_algorithm_is_taken(algorithm: str) -> None:
    key = Signer("k", algorithm)

    assert isinstance(judged(key.sign(claims()), published=jwks(key.jwk())), Accepted)


def hmac_signed(secret: bytes) -> str:
    """Return a token whose signature is a HMAC made with what everybody knows: the public key."""
    signed = raw(json.dumps({"alg": "HS256", "kid": "k1", "typ": "at+jwt"}), json.dumps(claims()), "").rstrip(".")
    digest = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{encoded(digest.decode('latin-1'))}"


PUBLIC = KEY.private.public_key()
SPELLINGS = {
    "pem": PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    "der": PUBLIC.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    "ssh": PUBLIC.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH),
    "jwk": json.dumps(KEY.jwk()).encode(),
}


def unsigned(algorithm: str, signature: str = "") -> str:
    return raw(json.dumps({"alg": algorithm, "kid": "k1", "typ": "at+jwt"}), json.dumps(claims()), signature)


def twice(name: str, value: str) -> str:
    text = json.dumps(claims())
    body = f'{{"{name}": {value}, {text[1:]}'
    return raw(json.dumps({"alg": "RS256", "kid": "k1", "typ": "at+jwt"}), body)


def with_text(claim: str, text: str) -> str:
    """Return a signed token where a claim is written as this text."""
    body = json.dumps(claims() | {claim: "@"}).replace('"@"', text)
    return jwt.PyJWS().encode(body.encode(), KEY.private, "RS256", headers={"kid": "k1", "typ": "at+jwt"})


REFUSED: Mapping[str, tuple[str, str]] = {
    "A01 alg none": (unsigned("none", "c2ln"), "algorithm that is not accepted"),
    "A01 alg None": (unsigned("None", "c2ln"), "algorithm that is not accepted"),
    "A01 alg nOnE": (unsigned("nOnE", "c2ln"), "algorithm that is not accepted"),
    "A01 alg none without signature": (unsigned("none"), "not a signed JWT"),
    "A01 empty signature": (KEY.sign(claims()).rpartition(".")[0] + ".", "not a signed JWT"),
    "A01 no alg": (raw(json.dumps({"kid": "k1", "typ": "at+jwt"}), json.dumps(claims())), "not accepted"),
    **{f"A02 HMAC with the {name}": (hmac_signed(key), "not accepted") for name, key in SPELLINGS.items()},
    "A02 another algorithm of the family": (Signer("k1", "PS256").sign(claims()), "signature"),
    "A04 a key of its own in the header": (STRANGER.sign(claims(), jwk=STRANGER.jwk()), "signature"),
    "A04 a place for keys in the header": (STRANGER.sign(claims(), jku="https://evil.example/jwks"), "signature"),
    "A04 a certificate in the header": (STRANGER.sign(claims(), x5u="https://evil.example/cert"), "signature"),
    "A05 expired": (KEY.sign(claims(exp=int(NOW) - 31)), "has expired"),
    "A05 expired just now": (KEY.sign(claims(exp=int(NOW) - 30)), "has expired"),
    "A05 not before": (KEY.sign(claims(nbf=int(NOW) + 31)), "not valid yet"),
    "A05 made in the future": (KEY.sign(claims(iat=int(NOW) + 31)), "not valid yet"),
    "A05 no exp": (KEY.sign(claims(exp=None)), "does not say when"),
    "A05 exp is text": (KEY.sign(claims(exp=str(int(NOW) + 60))), "exp is no time"),
    "A05 exp is true": (KEY.sign(claims(exp=True)), "exp is no time"),
    "A05 exp is 1e400": (with_text("exp", "1e400"), "exp is no time"),
    "A05 exp has a thousand digits": (with_text("exp", "9" * 1000), "exp is no time"),
    "A05 exp is NaN": (with_text("exp", "NaN"), "exp is no time"),
    "A05 exp is negative": (KEY.sign(claims(exp=-1)), "exp is no time"),
    "A05 nbf is a list": (KEY.sign(claims(nbf=[1])), "nbf is no time"),
    "A05 iat is text": (KEY.sign(claims(iat="now")), "iat is no time"),
    "A07 another issuer": (KEY.sign(claims(iss="https://evil.example")), "another issuer"),
    "A07 the issuer with a slash": (KEY.sign(claims(iss=f"{ISSUER}/")), "another issuer"),
    "A07 the issuer in capitals": (KEY.sign(claims(iss=ISSUER.upper())), "another issuer"),
    "A07 a list of issuers": (KEY.sign(claims(iss=[ISSUER])), "another issuer"),
    "A07 no issuer": (KEY.sign(claims(iss=None)), "another issuer"),
    "A07 the same kid of another key": (STRANGER.sign(claims()), "signature"),
    "A07 an unknown kid": (KEY.sign(claims(), kid="k2"), "signature"),
    "A08 an ID token": (KEY.sign(claims(), typ="JWT"), "typ is not at+jwt"),
    "A08 no typ": (KEY.sign(claims(), typ=None), "typ is not at+jwt"),
    "A08 a logout token": (KEY.sign(claims(), typ="logout+jwt"), "typ is not at+jwt"),
    "A08 no client": (KEY.sign(claims(client_id=None)), "lacks client_id"),
    "no audience": (KEY.sign(claims(aud=None)), "no audience"),
    "another audience": (KEY.sign(claims(aud="https://other.example/mcp")), "another audience"),
    "an audience that only begins like ours": (KEY.sign(claims(aud=f"{RESOURCE}.evil.example")), "another audience"),
    "audiences that are no texts": (KEY.sign(claims(aud=[RESOURCE, 1])), "no audience"),
    "no subject": (KEY.sign(claims(sub=None)), "lacks a usable sub"),
    "an empty subject": (KEY.sign(claims(sub="")), "lacks a usable sub"),
    "a subject with a line break": (KEY.sign(claims(sub="alice\nbob")), "lacks a usable sub"),
    "a subject that is a number": (KEY.sign(claims(sub=7)), "lacks a usable sub"),
    "A14 64 KB": ("a" * 65_536, "longer than 16,384"),
    "A14 1 MB that is signed": (KEY.sign(claims(pad="x" * 1_000_000)), "longer than 16,384"),
    "A14 ten thousand segments": (".".join("a" * 8_000), "not a signed JWT"),
    "A14 letters that are not ASCII": (KEY.sign(claims()).replace("a", "а", 1), "not a signed JWT"),
    "A14 padding": (KEY.sign(claims()) + "==", "not a signed JWT"),
    "A14 a line break at the end": (KEY.sign(claims()) + "\n", "not a signed JWT"),
    "A14 a claim twice": (twice("sub", '"bob"'), "cannot be read"),
    "A14 nested deeply": (raw('{"alg":"RS256"}', "[" * 9_000), "cannot be read"),
    "A14 claims that are a list": (raw('{"alg":"RS256"}', "[]"), "cannot be read"),
    "A14 an extension that must be understood": (KEY.sign(claims(), crit=["exp"], exp=1), "not supported"),
    "A14 a kid that is a number": (raw('{"alg":"RS256","kid":1,"typ":"at+jwt"}', json.dumps(claims())), "no text"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_good_access_token_is_refused_with_401(case: str) -> None:
    token, reason = REFUSED[case]
    refusal = judged(token)

    assert (refusal.status, refusal.error, reason in refusal.description) == (401, "invalid_token", True), refusal


@pytest.mark.parametrize(
    ("shift", "accepted"),
    [(-3600, False), (-41, False), (-30, True), (0, True), (600, True), (629, True), (630, False), (4200, False)],
)
def test_a13_clocks_may_differ_by_the_leeway_and_no_more(shift: int, accepted: bool) -> None:
    assert isinstance(judged(KEY.sign(claims()), now=NOW + shift), Accepted) is accepted


@pytest.mark.parametrize("leeway", [-1, 61])
def test_a13_no_issuer_gets_more_leeway_than_a_minute(leeway: int) -> None:
    with pytest.raises(ValueError, match="leeway"):
        Trusted(ISSUER, frozenset({RESOURCE}), leeway_s=leeway)


def test_an_issuer_without_audiences_cannot_be() -> None:
    with pytest.raises(ValueError, match="audiences"):
        Trusted(ISSUER, frozenset())


def test_a10_every_token_is_judged_by_its_own_scopes() -> None:
    high, low = judged(KEY.sign(claims())), judged(KEY.sign(claims(scope="docs:read", jti="token-2")))
    needed = frozenset({"docs:read", "run:execute"})

    assert missing_scopes(high.caller, needed) is None
    assert missing_scopes(low.caller, needed) == Refusal(
        403, "insufficient_scope", "More permission is needed for this", needed
    )


def test_a07_a_token_is_checked_with_the_keys_of_its_own_issuer_only() -> None:
    other = "https://other.example.com"
    trusted = {ISSUER: STRICT, other: Trusted(other, STRICT.audiences)}
    found = read(STRANGER.sign(claims(iss=other)), trusted)

    assert isinstance(found, tuple)
    assert found[1].issuer == other
    assert isinstance(judge(found[0], found[1], read_jwks(jwks(STRANGER.jwk())), now_s=NOW), Accepted)
    assert judge(found[0], found[1], KEYS, now_s=NOW) == Refusal(
        401, "invalid_token", "The token's signature is not one of its issuer's keys"
    )


@pytest.mark.parametrize(
    ("changes", "header", "reason"),
    [
        ({}, {"typ": "JWT"}, None),
        ({}, {"typ": None}, None),
        ({"client_id": None, "jti": None, "azp": "portal"}, {"typ": "JWT"}, None),
        ({"typ": "Bearer"}, {"typ": "JWT"}, None),
        ({"scope": None}, {"typ": "JWT"}, "it has no scope"),
        ({"nonce": "n"}, {"typ": "JWT"}, "no access token"),
        ({"at_hash": "h"}, {"typ": "JWT"}, "no access token"),
        ({"typ": "ID"}, {"typ": "JWT"}, "no access token"),
        ({"typ": "Refresh"}, {"typ": "JWT"}, "no access token"),
        ({"typ": "Offline"}, {"typ": "JWT"}, "no access token"),
        ({"token_use": "id"}, {"typ": "JWT"}, "no access token"),
        ({}, {"typ": "logout+jwt"}, "no access token"),
        ({}, {"typ": 7}, "no access token"),
    ],
)
def test_a08_the_legacy_profile_takes_access_tokens_and_no_other_kind(
    changes: dict[str, Any], header: dict[str, Any], reason: str | None
) -> None:
    found = judged(KEY.sign(claims(**changes), **header), LEGACY)

    assert isinstance(found, Accepted) if reason is None else reason in found.description


def test_scopes_may_be_a_list_under_another_name_and_claims_are_kept_only_where_listed() -> None:
    trusted = Trusted(ISSUER, STRICT.audiences, scope_claim="scp", kept_claims=frozenset({"groups", "tenant", "deep"}))
    token = KEY.sign(
        claims(scp=["a", "b", "c d", ""], groups=["x", "y"], tenant="t1", deep={"a": 1}, email="a@example.com", sid="s")
    )

    assert judged(token, trusted).caller == Caller(
        ISSUER,
        "alice",
        "a-client",
        frozenset({"a", "b"}),
        {"sid": "s", "jti": "token-1", "groups": ("x", "y"), "tenant": "t1"},
    )


def test_a_subject_of_several_claims_needs_all_of_them() -> None:
    trusted = Trusted(ISSUER, STRICT.audiences, subject_claims=("tid", "oid"))

    assert judged(KEY.sign(claims(tid="t", oid="o")), trusted).caller.subject == '["t","o"]'
    assert "tid and oid" in judged(KEY.sign(claims(oid="o")), trusted).description


def test_an_audience_may_be_one_of_several_and_may_end_with_a_slash() -> None:
    found = [judged(KEY.sign(claims(aud=aud))) for aud in (["https://other", RESOURCE], f"{RESOURCE}/")]

    assert [isinstance(one, Accepted) for one in found] == [True, True]


def test_a_token_without_a_key_id_is_checked_with_every_key_of_its_algorithm() -> None:
    published = jwks(STRANGER.jwk(kid="other"), Signer("e", "ES256").jwk(), KEY.jwk())

    assert isinstance(judged(KEY.sign(claims(), kid=None), published=published), Accepted)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(Signer("k", kind="RS256-1024").jwk(), id="RSA of 1024 bits"),
        pytest.param(KEY.jwk(use="enc"), id="for encryption"),
        pytest.param(KEY.jwk(key_ops=["sign"]), id="for signing"),
        pytest.param(KEY.jwk(alg="RS512"), id="for an algorithm that is not accepted"),
        pytest.param(KEY.jwk(alg="ES256"), id="for an algorithm of another family"),
        pytest.param(KEY.jwk(kty="EC"), id="of another family than it says"),
        pytest.param(KEY.jwk(kid=7), id="with a number for a name"),
        pytest.param(KEY.jwk(n="!"), id="that cannot be read"),
        pytest.param(
            json.loads(jwt.get_algorithm_by_name("ES256").to_jwk(Signer("p", "ES256").private)) | {"kid": "p"},
            id="with its private half",
        ),
        pytest.param({"kty": "oct", "kid": "k1", "k": "c2VjcmV0", "alg": "HS256"}, id="a shared secret"),
        pytest.param(Signer("k", "ES384", kind="ES384").jwk(), id="a curve that is not accepted"),
        pytest.param({"kty": ["RSA"]}, id="of no family"),
    ],
)
def test_a_key_that_may_not_verify_is_left_out_and_the_others_stay(key: dict[str, Any]) -> None:
    assert [one.kid for one in read_jwks(jwks(key, Signer("good", "ES256").jwk()))] == ["good"]


@pytest.mark.parametrize("text", [b"", b"[]", b'{"keys": {}}', jwks(*[{}] * 101), b"[" * 100_000])
def test_what_is_no_set_of_keys_is_said_to_be_none(text: bytes) -> None:
    with pytest.raises(JwksError):
        read_jwks(text)


def test_a_key_that_states_no_algorithm_serves_those_of_its_family() -> None:
    (key,) = read_jwks(jwks(KEY.jwk(alg=None, use=None)))

    assert (key.algorithms, matching([key], "k1", "PS256"), matching([key], "k1", "ES256")) == (
        ("RS256", "PS256"),
        (key,),
        (),
    )


def test_a_token_prints_without_its_text() -> None:
    token = KEY.sign(claims())
    found = read(token, {ISSUER: STRICT})

    assert isinstance(found, tuple)
    assert isinstance(found[0], Presented)
    assert token not in repr(found)
