"""An authority of a company's own, and the certificates that it signs."""

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Authority:
    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    @property
    def ca(self) -> str:
        certificate = self._signed(self.name, self.key.public_key(), [], from_=-10 * DAY, to=10 * DAY, is_ca=True)
        return certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def ca_file(self) -> str:
        written = self.folder / f"{self.name}.pem"
        written.write_text(self.ca)
        return str(written)

    def issue(self, subject: str, *, to: timedelta = DAY) -> Path:
        """A certificate of a client with its key, as one file."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._written(f"{subject}.pem", key, self._signed(subject, key.public_key(), [], from_=-DAY, to=to))

    def serving(
        self, *, host: str = "127.0.0.1", from_: timedelta = -DAY, to: timedelta = DAY, clients_of: str = ""
    ) -> ssl.SSLContext:
        """What a server shows: of this host, valid from then to then, from now on. `clients_of` is a CA file: clients
        must show a certificate of it."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)]
        certificate = self._signed("prometheus", key.public_key(), names, from_=from_, to=to)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._written("server.pem", key, certificate))
        if clients_of:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients_of)
        return context

    def _written(self, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> Path:
        written = self.folder / name
        written.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return written

    def _signed(
        self,
        subject: str,
        public_key: ec.EllipticCurvePublicKey,
        names: list[x509.GeneralName],
        *,
        from_: timedelta,
        to: timedelta,
        is_ca: bool = False,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        usage = dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only",
             "decipher_only"), False,
        )  # fmt: skip
        builder = (
            x509.CertificateBuilder()
            .subject_name(_named(subject))
            .issuer_name(_named(self.name))
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + from_)
            .not_valid_after(now + to)
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(digital_signature=not is_ca, key_cert_sign=is_ca, crl_sign=is_ca, **usage), critical=True
            )
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, hashes.SHA256())


def _named(subject: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
