"""Where an API's credential may go is decided by whoever started the server, never by the document alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from sandbridge_kit.config import ApiSettings, DocumentSettings, SettingsError
from sandbridge_local.apis import load_api
from sandbridge_local.report import as_text, report, unreadable
from sandbridge_local.running import Printed
from sandbridge_local.settings import Settings, settings_from
from sandbridge_local.sources import Source, api_arguments, read_source
from sandbridge_local.starting_file import starting_file
from sandbridge_openapi.document import load
from sandbridge_openapi.errors import DocumentError
from sandbridge_orchestrator.deployment import LoadedApi, base_url, with_a_place_for_the_key


def document(*servers: str) -> bytes:
    paths = {"/things": {"get": {"operationId": "things.list", "responses": {"200": {"description": "ok"}}}}}
    body = {"openapi": "3.1.0", "info": {"title": 'A "quoted": title', "version": "1"}, "paths": paths}
    return json.dumps(body | {"servers": [{"url": url} for url in servers]}).encode()


@pytest.mark.parametrize(
    ("place", "servers", "typed", "expected"),
    [
        ({"path": "a.json"}, ["https://api.example/v1/"], None, "https://api.example/v1"),
        ({"path": "a.json"}, ["/v1"], None, None),
        ({"path": "a.json"}, [], None, None),
        ({"path": "a.json"}, ["https://api.example"], "http://127.0.0.1:9/x/", "http://127.0.0.1:9/x"),
        ({"url": "https://docs.example/a.json"}, ["https://docs.example/v1"], None, "https://docs.example/v1"),
        ({"url": "https://docs.example/a.json"}, ["/v2"], None, "https://docs.example/v2"),
        ({"url": "https://docs.example/a.json"}, ["https://evil.example"], "https://ok.example", "https://ok.example"),
    ],
)
def test_the_base_url_is_the_typed_one_else_the_documents_first_server_where_it_may_name_it(
    place: dict[str, str], servers: list[str], typed: str | None, expected: str | None
) -> None:
    settings = ApiSettings(openapi=DocumentSettings(**place), base_url=typed)
    source = Source(document(*servers), place.get("url") or place["path"])

    assert base_url(settings, load(source.data, origin=source.origin)) == expected


def test_a_fetched_document_cannot_name_another_origin() -> None:
    settings = ApiSettings(openapi=DocumentSettings(url="https://docs.example/a.json"))
    source = Source(document("https://evil.example/v1"), "https://docs.example/a.json")

    with pytest.raises(SettingsError, match="say which one you mean with --base-url"):
        base_url(settings, load(source.data, origin=source.origin))


@pytest.mark.parametrize(
    "url",
    [
        "https://user:canary@h/",
        "https://h/?key=canary",
        "https://h/#canary",
        "file:///x",
        "//h",
        "http://h:99999",
        "http://h:0",
        "http://[::1",
    ],
)
def test_a_base_url_with_anything_but_origin_and_path_is_refused_without_showing_secrets(url: str) -> None:
    settings = ApiSettings(openapi=DocumentSettings(path="a.json"), base_url=url)

    with pytest.raises(SettingsError) as caught:
        base_url(settings, load(document()))

    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "http://[fe80::1]", "http://metadata.google.internal"]
)
def test_a_base_url_that_no_call_could_ever_reach_is_refused_at_the_start(url: str) -> None:
    settings = ApiSettings(openapi=DocumentSettings(path="a.json"), base_url=url)

    with pytest.raises(SettingsError, match=r"The base URL of 'api' http://.* is never reachable\."):
        base_url(settings, load(document()))


def test_relative_references_stay_inside_the_documents_own_directory(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("a: 1")
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "api.json").write_bytes(document())
    (folder / "part.yaml").write_text("type: string")
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    read = read_source(DocumentSettings(path=str(folder / "api.json"))).read
    assert read is not None

    assert read("part.yaml") == b"type: string"
    for escape in ("../secret.yaml", "link.yaml", "/etc/passwd"):
        with pytest.raises(PermissionError):
            read(escape)


def test_a_document_with_another_digest_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(document())

    with pytest.raises(SettingsError, match="does not have the digest"):
        read_source(DocumentSettings(path=str(path), sha256="0" * 64))


def test_the_report_counts_what_was_loaded_and_what_was_skipped() -> None:
    outcome = report(load(document()))

    assert (outcome["operations"], outcome["loaded"], outcome["skipped"]) == (1, 1, [])
    assert as_text("a.json", outcome).startswith('a.json: A "quoted": title: 1 of 1 operations loaded')
    assert as_text("a.json", unreadable(DocumentError("unreadable", "No.", "/x"))) == (
        "a.json cannot be used: No. (at /x) [unreadable]"
    )


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"path": "nowhere.json"}, "Cannot read nowhere.json: No such file or directory."),
        ({"path": "Shop=nowhere.json"}, "'Shop' is not taken for a name: an API's name is a lower-case letter"),
        ({"url": "http://127.0.0.1:9/x"}, "Cannot fetch http://127.0.0.1:9/x: no connection could be made."),
        ({"url": "http://[::1"}, "Cannot fetch http://[::1: it is not a valid URL."),
    ],
)
def test_a_document_that_cannot_be_had_is_named_with_the_reason(place: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_source(DocumentSettings(**place))

    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["config", "deployment"])
def test_a_starting_file_is_yaml_whatever_the_document_is_called(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(document("https://api.example/v1"))
    api = load_api(ApiSettings(name="things", openapi=DocumentSettings(path=str(path))))

    tree = yaml.safe_load(starting_file((api,), kind))  # type: ignore[arg-type]

    spec = tree if kind == "config" else tree["spec"]
    assert spec["displayName"] == 'A "quoted": title'
    assert spec["apis"][0]["baseUrl"] == "https://api.example/v1"


def test_the_starting_config_file_is_a_valid_one(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(document("https://api.example/v1"))
    api = load_api(ApiSettings(name="things", openapi=DocumentSettings(path=str(path))))

    settings = settings_from(flags={}, environ={}, config_text=starting_file((api,), "config"), apis=())

    assert isinstance(settings, Settings)
    assert (settings.apis[0].name, settings.apis[0].openapi.path) == ("things", str(path))


def test_a_starting_file_holds_every_api_with_the_private_addresses_that_were_typed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(document("http://127.0.0.1:9000"))
    arguments = api_arguments([f"a={path}", f"b={path}"], ["b=http://127.0.0.1:9001/"], [])
    apis = tuple(load_api(ApiSettings.model_validate(one)) for one in arguments)

    text = starting_file(apis, "config")

    tree = yaml.safe_load(text)
    assert [(api["name"], api["baseUrl"], api.get("allowPrivate")) for api in tree["apis"]] == [
        ("a", "http://127.0.0.1:9000", None),
        ("b", "http://127.0.0.1:9001", ["127.0.0.1:9001"]),
    ]
    assert '# allowPrivate: ["127.0.0.1:9000"]' in text
    assert "SANDBRIDGE_API_KEY_A, SANDBRIDGE_API_KEY_B" in text


@pytest.mark.parametrize(
    ("base_url", "listed", "target"),
    [
        ("http://127.0.0.1:9000", (), "127.0.0.1:9000"),
        ("http://127.0.0.1:9000", ("127.0.0.1:9000",), None),
        ("https://[fd00::1]", (), "[fd00::1]:443"),
        ("http://localhost/v1", (), "localhost:80"),
        ("https://api.example", (), None),
        (None, (), None),
    ],
)
def test_a_private_base_url_that_nobody_typed_is_cautioned_against(
    base_url: str | None, listed: tuple[str, ...], target: str | None
) -> None:
    settings = ApiSettings(openapi=DocumentSettings(path="a.json"), allow_private=listed)
    api = LoadedApi(settings, load(document()), base_url)

    assert api.unlisted_target == target
    assert (api.caution is None) if target is None else (f"--allow-private {target}" in (api.caution or ""))


@pytest.mark.parametrize(
    ("components", "kind", "parameter"),
    [
        ({}, "http", None),
        ({"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}}}, "apiKey", "X-Key"),
    ],
)
def test_a_key_for_a_document_that_asks_for_none_goes_to_its_only_scheme_else_as_a_bearer_token(
    components: dict[str, object], kind: str, parameter: str | None
) -> None:
    body = json.loads(document("https://api.example/v1")) | {"components": components}
    api = LoadedApi(ApiSettings(openapi=DocumentSettings(inline="x")), load(json.dumps(body).encode()), None)

    stated = with_a_place_for_the_key(api)

    (scheme,) = stated.document.security_schemes.values()
    assert (scheme.kind, scheme.parameter, stated.key_place_is_assumed) == (kind, parameter, True)
    assert [list(one) for one in stated.document.operations[0].security] == [[scheme.name]]


def test_a_document_that_asks_for_a_credential_is_taken_at_its_word() -> None:
    body = json.loads(document("https://api.example/v1"))
    body["components"] = {"securitySchemes": {"k": {"type": "http", "scheme": "bearer"}}}
    body["paths"]["/things"]["get"]["security"] = [{"k": []}]
    api = LoadedApi(ApiSettings(openapi=DocumentSettings(inline="x")), load(json.dumps(body).encode()), None)

    assert with_a_place_for_the_key(api) is api


def test_a_failed_run_is_told_with_its_calls_beside_it() -> None:
    error = {"code": "script_error", "message": "No.", "hint": "Fix it.", "position": {"line": 1, "column": 2}}
    calls = [
        {"operation": "api:orders.get", "status": 401, "decision": "allowed"},
        {"operation": "api:orders.list", "status": None, "decision": "refused"},
    ]
    printed = Printed(False, {"error": error, "logs": [{"level": "log", "text": "hi"}], "calls": calls})

    assert printed.text == "script_error at line 1, column 2: No.\nNext: Fix it."
    assert printed.notes == ("[log] hi", "[call] api:orders.get: HTTP 401", "[call] api:orders.list: refused")


def test_a_result_stands_alone_and_what_belongs_to_it_beside_it() -> None:
    files = [{"name": "a.csv", "mime": "text/csv", "bytes": 1234, "handle": "h"}]
    structure = {"result": [1], "logs": [], "calls": [], "files": files, "truncated": {"bytes": 9000, "handle": "h"}}
    printed = Printed(True, structure)

    assert json.loads(printed.text) == [1]
    assert printed.notes == ("[file] a.csv: text/csv, 1,234 bytes", "[cut] the whole result has 9,000 bytes")
