"""A request as bytes, and the limits it runs under."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import httpx

from specbench.units import Second

WHOLE_BODY: Final = 1 << 62
"""As `wake_bytes`: wake the consumer once, when the body is complete."""
_MAX_BODY_BYTES: Final = 256 << 20
_EMPTY: Final = b"\r\nContent-Length: 0\r\n"
_BODILESS: Final = frozenset({204, 304})
NEVER_S: Final = float("inf")


class Limits(NamedTuple):
    """How long and how large a request may grow. An infinite time is no limit."""

    connect_s: Second = NEVER_S
    first_byte_s: Second = NEVER_S
    """From sending to the first byte of the response's body."""
    read_s: Second = NEVER_S
    """Between two reads; before the first byte it holds from sending, too."""
    write_s: Second = NEVER_S
    total_s: Second = NEVER_S
    """From the call, connecting included, to the last byte."""
    wake_bytes: int = 1
    """Bytes that must have arrived before a waiting consumer is woken. The stamps don't depend on it."""
    max_body_bytes: int = _MAX_BODY_BYTES

    @classmethod
    def of(cls, extensions: Mapping[str, Any]) -> "Limits":
        """From httpx's `timeout` extension and our own `specbench`, see `request_extensions`."""
        times = extensions.get("timeout", {})
        given = {f"{name}_s": times[name] for name in ("connect", "read", "write") if times.get(name) is not None}
        return cls(**(given | extensions.get("specbench", {})))


class Origin(NamedTuple):
    """Scheme, host and port: what a connection can be reused for."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: httpx.URL) -> "Origin":
        """Raises httpx.UnsupportedProtocol."""
        if url.scheme not in ("http", "https"):
            raise httpx.UnsupportedProtocol(f"The URL must begin with http:// or https://, not {str(url)!r}.")
        return cls(url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80))


class Prepared(NamedTuple):
    """A request with all done that can be done before it is due."""

    origin: Origin
    method: str
    message: bytes
    """Head and body, as they will be sent."""
    limits: Limits

    @classmethod
    def of(cls, request: httpx.Request) -> "Prepared":
        """Of a request whose content has been read. Raises httpx.UnsupportedProtocol and httpx.LocalProtocolError."""
        return cls(Origin.of(request.url), request.method, encode(request), Limits.of(request.extensions))

    def with_body(self, body: bytes) -> "Prepared":
        """The same request with a body, of one that was encoded without."""
        head = self.message.replace(_EMPTY, b"\r\nContent-Length: %d\r\n" % len(body), 1)
        return self._replace(message=head + body)


class Deadlines(NamedTuple):
    """When the response must be complete, the request be sent, the body begin and go on. `NEVER_S`: no such limit now."""

    total_s: Second
    write_s: Second
    first_byte_s: Second
    read_s: Second

    def overdue(self, now: Second, limits: Limits) -> httpx.TimeoutException | None:
        """What has been missed, if anything."""
        if now >= self.total_s:
            return httpx.ReadTimeout(f"The response was not complete after {limits.total_s:g} s in all.")
        if now >= self.write_s:
            return httpx.WriteTimeout(f"The server did not take the whole request within {limits.write_s:g} s.")
        if now >= self.first_byte_s:
            return httpx.ReadTimeout(f"No first byte of the response's body within {limits.first_byte_s:g} s.")
        if now >= self.read_s:
            return httpx.ReadTimeout(f"Nothing arrived for {limits.read_s:g} s.")
        return None


def framing(status_code: int, headers: Sequence[tuple[bytes, bytes]], without_body: bool) -> tuple[bool, bool]:
    """Whether a response's end can be told from its bytes, and whether it is chunked."""
    if status_code in _BODILESS or without_body:
        return True, False
    names = {name.lower(): value.lower() for name, value in headers}
    chunked = b"chunked" in names.get(b"transfer-encoding", b"")
    return chunked or b"content-length" in names, chunked


def request_extensions(
    *,
    first_byte_s: Second | None = None,
    total_s: Second | None = None,
    wake_bytes: int = 1,
    max_body_bytes: int = _MAX_BODY_BYTES,
) -> dict[str, Any]:
    """`extensions=` of an httpx request: the limits that httpx's own `timeout` can't say."""
    times = {"first_byte_s": first_byte_s, "total_s": total_s}
    given = {name: value for name, value in times.items() if value is not None}
    return {"specbench": {**given, "wake_bytes": max(1, wake_bytes), "max_body_bytes": max_body_bytes}}


def encode(request: httpx.Request) -> bytes:
    """Head and body. The body's bytes go out as given; one that was streamed is sent as one chunk."""
    body = request.content
    if b"chunked" in request.headers.get("transfer-encoding", "").lower().encode():
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [b"%b: %b" % (name, value) for name, value in request.headers.raw]
    head = b"\r\n".join(lines)
    if head.count(b"\n") + head.count(b"\r") != 2 * (len(lines) - 1):
        raise httpx.LocalProtocolError("A header holds a line break.", request=request)
    return b"%b\r\n\r\n%b" % (head, body)
