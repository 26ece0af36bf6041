"""A Kubernetes control plane on loopback: etcd, API server, controllers and scheduler, each a real process."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from child_processes import ended, free_port
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

BUILD = Path(__file__).parents[2] / "tools" / "kube" / "build"
SERVICES = "10.96.0.0/16"
READY_S = 120.0
_AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running one. `audit_log` has a line of JSON for each request that the API server took."""

    programs: Path
    admin: Path
    """A kubeconfig for everything."""
    audit_log: Path

    def kubectl(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator."""
        command = [str(self.programs / "kubectl"), f"--kubeconfig={self.admin}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)


def programs() -> Path:
    """Return the folder with the programs, which are built where they are not yet."""
    made = subprocess.run([str(BUILD)], stdout=subprocess.PIPE, text=True, check=True)
    return Path(made.stdout.splitlines()[-1])


@contextlib.contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """Start all parts with their files in `folder`; none is left behind, whatever happens."""
    found = programs()
    authority = _Authority(folder)
    port = free_port()
    authority.sign("api", names=["localhost", "kubernetes.default.svc"], addresses=["127.0.0.1", "10.96.0.1"])
    plane = ControlPlane(found, authority.kubeconfig("admin", port, groups=["system:masters"]), folder / "audit.log")
    (folder / "audit.yaml").write_text(json.dumps(_AUDIT), encoding="utf-8")
    etcd = f"http://127.0.0.1:{free_port()}"
    with contextlib.ExitStack() as stack:

        def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            process = subprocess.Popen([str(found / name), *arguments], stdout=log, stderr=log, cwd=folder)
            return stack.enter_context(ended(process))

        start("etcd", *_etcd(folder, etcd))
        server = start("kube-apiserver", *_api_server(folder, etcd, port))
        _await_ready(plane, server, folder / "kube-apiserver.log")
        for name, more in (("kube-controller-manager", _controllers(folder)), ("kube-scheduler", ())):
            start(name, *_client(folder, authority.kubeconfig(f"system:{name}", port)), *more)
        yield plane


def _etcd(folder: Path, url: str) -> Sequence[str]:
    peers = f"http://127.0.0.1:{free_port()}"
    return (
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",  # what is kept here need not outlive the machine
    )


def _api_server(folder: Path, etcd: str, port: int) -> Sequence[str]:
    return (
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        "--endpoint-reconciler-type=none",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--tls-cert-file={folder / 'api.crt'}",
        f"--tls-private-key-file={folder / 'api.key'}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged",  # as clusters do; who may be privileged is up to their admission
        "--enable-admission-plugins=PodSecurity,NodeRestriction",
        f"--audit-policy-file={folder / 'audit.yaml'}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'accounts.pub'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        f"--service-cluster-ip-range={SERVICES}",
        f"--cert-dir={folder}",
    )


def _client(folder: Path, kubeconfig: Path) -> Sequence[str]:
    return (
        f"--kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        "--leader-elect=false",
        f"--cert-dir={folder}",
    )


def _controllers(folder: Path) -> Sequence[str]:
    return (
        f"--service-account-private-key-file={folder / 'accounts.key'}",
        f"--root-ca-file={folder / 'ca.crt'}",
        "--use-service-account-credentials=true",
    )


class _Authority:
    """Signs the certificates of one control plane."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = self._new_key("ca")
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
        self._write("ca", self._signed(self._name, self._key, is_authority=True))
        accounts = self._new_key("accounts").public_key()
        public = accounts.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / "accounts.pub").write_bytes(public)

    def sign(
        self, name: str, *, groups: Sequence[str] = (), names: Sequence[str] = (), addresses: Sequence[str] = ()
    ) -> None:
        """Write `name`.crt and `name`.key; a client's name and groups are its common name and organisations."""
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, name),
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            ]
        )
        alternatives = [
            *map(x509.DNSName, names),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
        ]
        self._write(name, self._signed(subject, self._new_key(name), alternatives=alternatives))

    def kubeconfig(self, user: str, port: int, *, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig with a certificate for the user, and return its path."""
        self.sign(user, groups=groups)
        path = self._folder / f"{user}.kubeconfig"
        server = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(self._folder / "ca.crt")}
        client = {
            "client-certificate": str(self._folder / f"{user}.crt"),
            "client-key": str(self._folder / f"{user}.key"),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": user}}],
            "clusters": [{"name": "it", "cluster": server}],
            "users": [{"name": user, "user": client}],
        }
        path.write_text(json.dumps(config), encoding="utf-8")
        return path

    def _new_key(self, name: str) -> ec.EllipticCurvePrivateKey:
        key = ec.generate_private_key(ec.SECP256R1())
        path = self._folder / f"{name}.key"
        path.touch(mode=0o600)
        path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return key

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        is_authority: bool = False,
        alternatives: Sequence[x509.GeneralName] = (),
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, certificate: x509.Certificate) -> None:
        (self._folder / f"{name}.crt").write_bytes(certificate.public_bytes(Encoding.PEM))


def _await_ready(plane: ControlPlane, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while (asked := plane.kubectl("get", "--raw", "/readyz")).returncode:
        if server.poll() is not None or time.monotonic() > deadline:
            told = log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise RuntimeError(f"the API server is not ready: {asked.stderr}\n{told}")
        time.sleep(0.3)
