"""Signals that end a run in good order."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SIGNALLED: Final = 128
"""A shell's way of telling which signal ended a program."""


class Interrupt:
    """SIGINT, SIGTERM and SIGHUP (the terminal closes; servers have sessions of their own and would stay).

    The first cancels what runs, the second lets nothing wait any longer, the third leaves at once: what was recorded is
    stored already, and the servers' watchers end them.
    """

    def __init__(self) -> None:
        self.hurry = asyncio.Event()
        self.number = 0
        """The first signal's."""
        self._task = asyncio.current_task()

    @property
    def asked(self) -> bool:
        """Whether the run is to end."""
        return bool(self.number)

    def ask(self, number: int) -> None:
        """Called by the signal."""
        if self.hurry.is_set():
            os._exit(SIGNALLED + self.number)
        if self.number:
            self.hurry.set()
        elif self._task is not None:
            self.number = number
            self._task.cancel()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Only the main thread can listen; elsewhere nothing is changed."""
        numbers = heard_signals() if threading.current_thread() is threading.main_thread() else ()
        loop = asyncio.get_running_loop()
        for number in numbers:
            loop.add_signal_handler(number, self.ask, int(number))
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)


def heard_signals() -> tuple[signal.Signals, ...]:
    """SIGHUP only where `nohup` does not ask to ignore it."""
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGINT, signal.SIGTERM, *hangup)
