"""One schema, four places a setting can come from, and errors that name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbridge_kit.config import SettingsError
from sandbridge_kit.destination import origin_of
from sandbridge_kit.validity import Accepted, Authority, Refused
from sandbridge_local.engines import reach_of
from sandbridge_local.settings import (
    LocalSandboxSettings,
    Settings,
    acknowledges_no_egress_control,
    sandbox_from,
    settings_from,
)
from sandbridge_local.sources import api_arguments, named
from sandbridge_local.validity import banners_of, verdict_of
from sandbridge_orchestrator.api_keys import api_keys
from sandbridge_runner.runtimes.base import Reach

APIS = ({"name": "api", "openapi": {"path": "a.yaml"}},)


def settings(
    *, flags: dict[str, object] | None = None, environ: dict[str, str] | None = None, config: str | None = None
) -> Settings:
    return settings_from(flags=flags or {}, environ=environ or {}, config_text=config, apis=APIS)


def test_a_flag_wins_over_a_variable_which_wins_over_the_file_which_wins_over_the_default() -> None:
    config = "sandbox: {limits: {wallClockMs: 1000}, poolSize: 3, concurrency: 5}"
    environ = {"SANDBRIDGE_TIMEOUT_MS": "2000", "SANDBRIDGE_POOL_SIZE": "7"}

    chosen = settings(flags={"timeout-ms": "3000"}, environ=environ, config=config).sandbox

    assert (chosen.limits.wall_clock_ms, chosen.pool_size, chosen.concurrency, chosen.limits.calls) == (3000, 7, 5, 100)


def test_the_file_may_be_a_whole_deployment() -> None:
    config = "kind: McpDeployment\nmetadata: {name: x}\nspec: {sandbox: {poolSize: 9}}"

    assert settings(config=config).sandbox.pool_size == 9


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("sandbx: {}", "sandbx: there is no such setting; did you mean sandbox?"),
        ("sandbox: {poolsize: 2}", "sandbox.poolsize: there is no such setting; did you mean poolSize?"),
        ("sandbox: {poolSize: -1}", "sandbox.poolSize: Input should be greater than or equal to 0"),
        ("kind: McpDeployment\nspec: 3", "The config file must be a mapping"),
        ("apis: 5", "apis: this must be a list"),
        ("apis: [a]", "apis.0: this must be a mapping"),
        ("apis: []", "No API given: use --openapi"),
        ("1: 2", "1: "),
        (
            "apis: [{name: Shop, openapi: {path: a}}]",
            "apis.0.name: 'Shop' is not a name: an API's name is a lower-case",
        ),
        ("apis: [{openapi: {path: a}, allowPrivate: [nowhere]}]", "apis.0.allowPrivate.0: 'nowhere' is not HOST:PORT"),
        ("apis: [{openapi: {path: a}, allowPrivate: ['h:65536']}]", "'h:65536' is not HOST:PORT, such as"),
        ("[1]", "The config file must be a mapping"),
        ("a: [", "The config file is not YAML"),
    ],
)
def test_a_wrong_key_or_value_in_the_file_is_named(config: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from(flags={}, environ={}, config_text=config, apis=() if "apis" in config else APIS)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "environ", "place"),
    [
        ({"port": "x"}, {}, "--port: Input should be a valid integer"),
        ({}, {"SANDBRIDGE_PORT": "x"}, "SANDBRIDGE_PORT: Input should be a valid integer"),
        ({"port": "x"}, {"SANDBRIDGE_PORT": "1"}, "--port: Input should be a valid integer"),
    ],
)
def test_a_wrong_value_is_named_by_where_it_was_set(
    flags: dict[str, object], environ: dict[str, str], place: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        settings(flags=flags, environ=environ)

    assert str(caught.value).startswith(place)


def test_a_misspelt_variable_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"SANDBRIDGE_TRANSPROT; did you mean SANDBRIDGE_TRANSPORT\?"):
        settings(environ={"SANDBRIDGE_TRANSPROT": "http"})


def test_an_acknowledgement_by_variable_needs_a_clear_value() -> None:
    assert settings(environ={"SANDBRIDGE_ACKNOWLEDGE_SINGLE_TENANT": "1"}).single_tenant is True
    with pytest.raises(SettingsError, match="use 1 or 0"):
        settings(environ={"SANDBRIDGE_ACKNOWLEDGE_SINGLE_TENANT": "maybe"})


def test_nothing_to_serve_is_an_error_that_says_how_to_name_a_document() -> None:
    with pytest.raises(SettingsError, match="use --openapi"):
        settings_from(flags={}, environ={}, config_text=None, apis=())


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("orders=a.yaml", ("orders", "a.yaml")),
        ("a.yaml", (None, "a.yaml")),
        ("https://h/x?a=b", (None, "https://h/x?a=b")),
        ("Orders=a.yaml", (None, "Orders=a.yaml")),
        ("./odd=name.yaml", (None, "./odd=name.yaml")),
    ],
)
def test_only_a_valid_name_before_the_first_equals_sign_is_a_name(
    argument: str, expected: tuple[str | None, str]
) -> None:
    assert named(argument) == expected


def test_a_typed_base_url_counts_as_an_allowed_private_address() -> None:
    assert api_arguments(["a=x.yaml"], ["a=http://127.0.0.1:9000/v1"], ["10.0.0.1:80"]) == (
        {
            "name": "a",
            "openapi": {"path": "x.yaml"},
            "allowPrivate": ["10.0.0.1:80", "127.0.0.1:9000"],
            "baseUrl": "http://127.0.0.1:9000/v1",
        },
    )


@pytest.mark.parametrize(
    ("openapi", "base_urls", "message"),
    [
        (["a.yaml", "b=b.yaml"], [], "each needs a name"),
        (["a=a.yaml", "a=b.yaml"], [], "Two documents are called 'a'"),
        (["a=a.yaml", "b=b.yaml"], ["http://x"], "name the API of each base URL"),
        (["a=a.yaml"], ["c=http://x"], "--base-url names 'c', but the APIs are a"),
        ([], ["http://x"], "--base-url and --allow-private go with --openapi"),
        (["a=a.yaml"], ["ftp://x"], "--base-url ftp://x must be http"),
        (["a=a.yaml"], ["http://[::1"], "--base-url cannot be read as a URL"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(openapi: list[str], base_urls: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        api_arguments(openapi, base_urls, [])


def test_each_api_gets_the_key_that_carries_its_name() -> None:
    environ = {"SANDBRIDGE_API_KEY_A": "ka", "SANDBRIDGE_API_KEY_B": "kb", "OTHER": "x"}

    assert api_keys(("a", "b"), environ) == {"a": "ka", "b": "kb"}


def test_mounted_files_carry_keys_too(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "a").write_text("from-file\n")
    (tmp_path / "a").symlink_to("..data/a")

    assert api_keys(("a", "b"), {"SANDBRIDGE_API_KEY_B": "kb"}, tmp_path) == {"a": "from-file", "b": "kb"}


def test_a_key_file_of_no_api_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("canary")

    with pytest.raises(SettingsError) as caught:
        api_keys(("a", "b"), {}, tmp_path)

    assert str(caught.value) == "The key file 'c' belongs to no API; the APIs are a, b."


def test_a_directory_of_keys_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"SANDBRIDGE_API_KEYS_DIR: cannot read .*nowhere: No such file"):
        api_keys(("a",), {}, tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"SANDBRIDGE_API_KEY": "canary"}, "SANDBRIDGE_API_KEY_A, SANDBRIDGE_API_KEY_B"),
        ({"SANDBRIDGE_API_KEY_C": "canary"}, "SANDBRIDGE_API_KEY_C belongs to no API; the APIs are a, b"),
        ({"SANDBRIDGE_API_KEY_A": "canary\n"}, "The key of API 'a' is empty, too long, or holds control characters"),
        ({"SANDBRIDGE_API_KEY_A": ""}, "The key of API 'a' is empty"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_without_being_shown(environ: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        api_keys(("a", "b"), environ)

    assert message in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({}, ()),
        ({"transport": "http", "single-tenant": True}, "SINGLE TENANT"),
        ({"transport": "http", "single-tenant": True, "host": "0.0.0.0"}, "Use --host 127.0.0.1."),
        ({"mode": "hosted"}, "hard boundary"),
        ({"engine": "deno", "runtime": "node"}, "is its own runtime"),
        ({"egress-authority": "executor"}, "shop has one"),
        ({"egress-authority": "none"}, "SANDBRIDGE_ACKNOWLEDGE_NO_EGRESS_CONTROL=1"),
        ({"engine": "gvisor", "allow-outdated-runsc": True}, "OUTDATED GVISOR"),
    ],
)
def test_the_matrix_is_asked_about_what_was_set(flags: dict[str, object], said: str | tuple[()]) -> None:
    verdict = verdict_of(settings(flags=flags), platform="linux", credentialed=["shop"])

    text = verdict.line if isinstance(verdict, Refused) else verdict.banners
    assert text == () if said == () else said in "".join(text)


def test_a_command_that_listens_nowhere_is_not_refused_for_its_transport() -> None:
    chosen = settings(flags={"transport": "http"})

    assert (
        isinstance(verdict_of(chosen, platform="linux"), Refused),
        verdict_of(chosen, platform="linux", serves=False),
    ) == (True, Accepted())


def test_what_the_matrix_refuses_is_wrong_usage() -> None:
    with pytest.raises(SettingsError, match="no good"):
        banners_of(Refused("no good"))
    assert banners_of(Accepted(("weak",))) == ("weak",)


def test_no_egress_control_is_acknowledged_by_a_variable_alone() -> None:
    name = "SANDBRIDGE_ACKNOWLEDGE_NO_EGRESS_CONTROL"

    assert (acknowledges_no_egress_control({}), acknowledges_no_egress_control({name: "1"})) == (False, True)
    assert settings(environ={name: "1"}).egress.authority == "bridge"
    with pytest.raises(SettingsError, match="use 1 or 0"):
        acknowledges_no_egress_control({name: "sure"})
    with pytest.raises(SettingsError, match="there is no such setting"):
        settings(config="egress: {noEgressControl: true}")


def test_engine_runtime_and_egress_are_set_like_everything_else() -> None:
    environ = {"SANDBRIDGE_ENGINE": "gvisor", "SANDBRIDGE_RUNTIME": "node", "SANDBRIDGE_ALLOW_OUTDATED_RUNSC": "1"}
    config = "sandbox: {engine: node, runsc: /opt/runsc}\negress: {authority: wrapper}"

    chosen = settings(flags={"engine": "microsandbox"}, environ=environ, config=config)

    assert (chosen.sandbox, chosen.egress.authority) == (
        LocalSandboxSettings(engine="microsandbox", runtime="node", runsc="/opt/runsc", allow_outdated_runsc=True),
        "wrapper",
    )


def test_a_command_without_apis_reads_its_engine_settings_alone() -> None:
    assert sandbox_from(flags={"runsc": "/r"}, environ={"SANDBRIDGE_ALLOW_OUTDATED_RUNSC": "yes"}) == (
        LocalSandboxSettings(runsc="/r", allow_outdated_runsc=True)
    )
    with pytest.raises(SettingsError, match="SANDBRIDGE_ENGINE: Input should be 'deno', 'node'"):
        sandbox_from(flags={}, environ={"SANDBRIDGE_ENGINE": "v8"})


@pytest.mark.parametrize(
    ("authority", "reach"),
    [("bridge", ()), ("executor", ("api.example:443", "[::1]:8080")), ("wrapper", None), ("none", None)],
)
def test_a_script_reaches_by_itself_what_its_authority_says_and_no_more(authority: Authority, reach: Reach) -> None:
    origins = [origin_of(url) for url in ("https://api.example/v1", "http://[::1]:8080", "https://api.example/v2")]

    assert reach_of(authority, origins) == reach


@pytest.mark.parametrize(
    ("environ", "flag", "folder"),
    [
        ({}, None, None),
        ({"HOME": "/home/a"}, None, "/home/a/.cache/sandbridge"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": "/var/cache/a"}, None, "/var/cache/a/sandbridge"),
        ({"HOME": "/home/a", "XDG_CACHE_HOME": "relative"}, None, "/home/a/.cache/sandbridge"),
        ({"HOME": "/home/a", "SANDBRIDGE_CACHE_DIR": "/kept"}, None, "/kept"),
        ({"HOME": "/home/a"}, "", ""),
    ],
)
def test_indexes_are_kept_in_the_users_cache_unless_a_place_or_none_is_named(
    environ: dict[str, str], flag: str | None, folder: str | None
) -> None:
    assert settings(flags={"cache-dir": flag}, environ=environ).cache_dir == folder
