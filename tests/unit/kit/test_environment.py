"""Settings from variables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from sandbridge_kit.config import SettingsError
from sandbridge_kit.environment import ServiceSettings, settings_from
from sandbridge_kit.rpc import TlsFiles


class Some(BaseModel, extra="forbid"):
    slots: int = 4
    folder: Path | None = None


def test_each_setting_has_a_variable() -> None:
    read = settings_from(Some, {"SANDBRIDGE_SLOTS": "7", "SANDBRIDGE_FOLDER": "/x", "PATH": "/bin"})

    assert read == Some(slots=7, folder=Path("/x"))


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    assert settings_from(Some, {"SANDBRIDGE_SLOTS": ""}) == Some()


def test_a_wrong_value_is_named_by_its_variable_and_not_quoted() -> None:
    with pytest.raises(SettingsError) as error:
        settings_from(Some, {"SANDBRIDGE_SLOTS": "s3cret"})

    assert str(error.value).startswith("SANDBRIDGE_SLOTS: ")
    assert "s3cret" not in str(error.value)


def test_a_name_that_is_nearly_right_is_an_error() -> None:
    with pytest.raises(SettingsError, match="SANDBRIDGE_SLOT: there is no such setting; did you mean SANDBRIDGE_SLOTS"):
        settings_from(Some, {"SANDBRIDGE_SLOT": "7"})


def test_variables_that_kubernetes_makes_for_a_service_are_left_alone() -> None:
    made = {"SANDBRIDGE_PORT": "tcp://10.0.0.1:80", "SANDBRIDGE_SERVICE_HOST": "10.0.0.1"}

    assert settings_from(Some, made) == Some()


@pytest.mark.parametrize(
    ("variables", "files"),
    [
        ({"SANDBRIDGE_TLS_DIR": "/t"}, ("/t/tls.crt", "/t/tls.key", "/t/ca.crt")),
        ({"SANDBRIDGE_TLS_DIR": "/t", "SANDBRIDGE_TLS_AUTHORITIES": "/ca"}, ("/t/tls.crt", "/t/tls.key", "/ca")),
        (
            {f"SANDBRIDGE_TLS_{name}": f"/{name}" for name in ("CERTIFICATE", "KEY", "AUTHORITIES")},
            ("/CERTIFICATE", "/KEY", "/AUTHORITIES"),
        ),
    ],
)
def test_certificate_files_are_named_by_their_directory_or_one_by_one(
    variables: dict[str, str], files: tuple[str, str, str]
) -> None:
    assert settings_from(ServiceSettings, variables).tls == TlsFiles(*map(Path, files))


def test_a_service_without_certificates_says_what_to_set() -> None:
    with pytest.raises(SettingsError, match="SANDBRIDGE_TLS_DIR is not set"):
        _ = settings_from(ServiceSettings, {"SANDBRIDGE_TLS_KEY": "/k"}).tls


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.1:", ":7402", "host:70000", "a b:1", "[::1]", "::1:7402"])
def test_an_address_without_host_or_port_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="SANDBRIDGE_ADDRESS: this is not HOST:PORT"):
        settings_from(ServiceSettings, {"SANDBRIDGE_ADDRESS": address})


@pytest.mark.parametrize("address", ["127.0.0.1:0", "0.0.0.0:7402", "[::]:7402", "runner-0.local:65535"])
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    assert settings_from(ServiceSettings, {"SANDBRIDGE_ADDRESS": address}).address == address
