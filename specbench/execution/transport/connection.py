"""What an exchange needs of a connection, whatever carries it."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from specbench.execution.transport.exchange import Exchange


class NothingSentError(Exception):
    """The connection was dead before it took a single byte: the request may safely be sent on another."""


class Link(Protocol):
    """A connection, as an exchange sees it."""

    def attach(self, exchange: "Exchange") -> None: ...
    def send(self, message: bytes) -> None:
        """Hands the request to the kernel. Raises NothingSentError."""
        ...

    def unsent_bytes(self) -> int: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def release(self, reusable: bool) -> None:
        """The exchange is over: back to the pool, or closed."""
        ...
