"""The server's log in SGLang's dialect, and the running totals that its endpoints report from the same counters."""

import datetime
import sys
from typing import Literal, TextIO

import psutil
from packaging.version import Version

from specbench import clock
from specbench.embedded.batch_lines import DECODE_ONLY_COUNTERS, Acceptance, decode_line, prefill_line
from specbench.embedded.interface import EngineFacts, EngineStep
from specbench.units import PerSecond, Second

SIMULATED_LINE = "SIMULATED: this server runs no model; its tokens and times come from a cost model"
ALWAYS_RANKED_UNTIL = Version("0.4.3")
ELAPSED_IN_LOAD_LINE = Version("0.5.10")
NAMED_CAPTURES = Version("0.5.16")
BYTES_PER_GB = 1 << 30
SIMULATED_GPU_GB = 139.0


class DialectLog:
    """Implements `interface.EngineLog`. Lines go to stderr, as SGLang's scheduler writes them."""

    def __init__(
        self,
        facts: EngineFacts,
        *,
        decode_log_interval: int,
        tp_size: int,
        log_level: str = "info",
        stream: TextIO = sys.stderr,
    ) -> None:
        self._facts = facts
        self._version = Version(facts.dialect_version)
        self._interval = decode_log_interval
        self._rank = " TP0" if tp_size > 1 or self._version <= ALWAYS_RANKED_UNTIL else ""
        self._stream = stream
        self._silent = log_level.lower() in ("warning", "error", "critical")
        self._decode_count = 0
        self._forward_count = 0
        self._interval_tokens = 0
        self._interval_correct = 0
        self._interval_verify = 0
        self._total_correct = 0
        self._total_verify = 0
        self._decode_line_s = self._prefill_line_s = clock.now_s()
        self._used_gb = 0.0
        self.last_gen_throughput_tps: PerSecond = 0.0
        self.last_acceptance: Acceptance | None = None
        """Of the last decode line: what SGLang's gauges hold."""
        self.last_step: EngineStep | None = None
        self.totals = dict.fromkeys(("prompt_tokens_total", "generation_tokens_total", "spec_verify_calls_total"), 0)
        """Since the start, by the names of SGLang's counters; a flush does not touch them."""

    # -- start-up ------------------------------------------------------------------------------------------

    def begin(self, argument_text: str, warnings: tuple[str, ...]) -> None:
        """The first lines: what it is, its arguments, and what it changed about them."""
        if self._facts.simulated:
            self.warning(SIMULATED_LINE)
        self.line(f"server_args=ServerArgs({argument_text})")
        for text in warnings:
            self.warning(text)

    def phase(
        self, name: Literal["weights", "kv_cache", "graph_capture", "drafter"], *, done: bool, elapsed_s: Second = 0.0
    ) -> None:
        """Memory figures are this machine's own; those of a simulated server belong to its model."""
        text = {
            "weights": self._weights_line,
            "drafter": self._weights_line,
            "kv_cache": self._cache_line,
            "graph_capture": self._capture_line,
        }[name](done, elapsed_s)
        if text:
            self.ranked(text)

    def _weights_line(self, done: bool, elapsed_s: Second) -> str:
        if not done:
            return f"Load weight begin. avail mem={self._available_gb():.2f} GB"
        self._used_gb += self._facts.weight_gb
        took = f"elapsed={elapsed_s:.2f} s, " if self._version >= ELAPSED_IN_LOAD_LINE else ""
        dtype = "" if self._version >= Version("0.5.23") else f"dtype={self._facts.dtype}, "
        return (
            f"Load weight end. {took}type={self._facts.architecture}, {dtype}avail mem={self._available_gb():.2f} GB, "
            f"mem usage={self._facts.weight_gb:.2f} GB."
        )

    def _cache_line(self, done: bool, elapsed_s: Second) -> str:
        del elapsed_s  # SGLang prints none
        return f"KV Cache is allocated. #tokens: {self._facts.capacity_tokens}" if done else ""

    def _capture_line(self, done: bool, elapsed_s: Second) -> str:
        word = "cuda graph"
        if self._version >= NAMED_CAPTURES:
            word = "target verify CUDA graph" if self._facts.algorithm else "target decode CUDA graph"
        if not done:
            return f"Capture {word} begin. This can take up to several minutes. avail mem={self._available_gb():.2f} GB"
        return f"Capture {word} end. Time elapsed: {elapsed_s:.2f} s. avail mem={self._available_gb():.2f} GB."

    def limits(self) -> None:
        """The line that states what the server admits."""
        facts = self._facts
        self.ranked(
            f"max_total_num_tokens={facts.capacity_tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
            f"max_running_requests={facts.max_running_requests}, context_len={facts.context_length}, "
            f"available_gpu_mem={self._available_gb():.2f} GB"
        )

    def ready(self) -> None:
        self.line("The server is fired up and ready to roll!")

    def _available_gb(self) -> float:
        if self._facts.simulated:
            return SIMULATED_GPU_GB - self._used_gb
        available: int = psutil.virtual_memory().available
        return available / BYTES_PER_GB

    # -- at work -------------------------------------------------------------------------------------------

    def step(self, step: EngineStep) -> None:
        """Counts a step, and writes what SGLang would write of it."""
        self.last_step = step
        self._forward_count += 1
        key = "prompt_tokens_total" if step.kind == "prefill" else "generation_tokens_total"
        self.totals[key] += step.new_tokens
        self.totals["generation_tokens_total"] += step.new_requests  # each request's first token comes from its prefill
        self.totals["spec_verify_calls_total"] += step.verify_count
        if step.kind == "prefill":
            self._prefill(step)
        else:
            self._decode(step)

    def _prefill(self, step: EngineStep) -> None:
        if self._facts.algorithm and self._version < DECODE_ONLY_COUNTERS:
            self._interval_verify += step.new_requests
        now_s = clock.now_s()
        tps = step.new_tokens / max(1e-6, now_s - self._prefill_line_s)
        self._prefill_line_s = now_s
        self.ranked(prefill_line(step, self._facts, self._forward_count, tps))

    def _decode(self, step: EngineStep) -> None:
        self._decode_count += 1
        self._interval_tokens += step.new_tokens
        self._interval_correct += step.correct_tokens
        self._interval_verify += step.verify_count
        if self._decode_count % self._interval == 0:
            self._decode_line(step)

    def _decode_line(self, step: EngineStep) -> None:
        """The clock is not reset while the server idles, so the first line after a pause tells too little."""
        now_s = clock.now_s()
        self.last_gen_throughput_tps = self._interval_tokens / max(1e-6, now_s - self._decode_line_s)
        self._decode_line_s, self._interval_tokens = now_s, 0
        self.last_acceptance = None
        if self._facts.algorithm and self._interval_verify:
            self.last_acceptance = Acceptance(self._interval_correct, self._interval_verify)
            self._total_correct += self._interval_correct
            self._total_verify += self._interval_verify
            self._interval_correct = self._interval_verify = 0
        text = decode_line(step, self._facts, self.last_acceptance, self._forward_count, self.last_gen_throughput_tps)
        self.ranked(text)

    @property
    def avg_spec_accept_length(self) -> float | None:
        """Since the start or the last flush, up to the last decode line: the partial interval after it is missing."""
        return Acceptance(self._total_correct, self._total_verify).length if self._total_verify else None

    def flushed(self) -> None:
        self._decode_count = self._forward_count = 0
        self._interval_correct = self._interval_verify = 0
        self._total_correct = self._total_verify = 0
        self.ranked("Cache flushed successfully!")

    def flush_refused(self, running_requests: int, queue_requests: int) -> None:
        self.warning(
            "Cache not flushed because there are pending requests. "
            f"#queue-req: {queue_requests}, #running-req: {running_requests}"
        )

    # -- the end -------------------------------------------------------------------------------------------

    def draining(self) -> None:
        self.line("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")

    def leaving(self, remaining_requests: int) -> None:
        self.line(f"Gracefully exiting... Remaining number of requests {remaining_requests}.")

    def died(self, cause: str) -> None:
        self._write(self._rank, "Scheduler hit an exception: Traceback (most recent call last):")
        self._stream.write(f"RuntimeError: {cause}\n")
        self.warning("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")

    def warning(self, text: str) -> None:
        self._write("", text)

    def ranked(self, text: str) -> None:
        """A line of the scheduler; `--log-level warning` hides it, and the acceptance with it."""
        if not self._silent:
            self._write(self._rank, text)

    def line(self, text: str) -> None:
        """A line of the main process, which has no rank."""
        if not self._silent:
            self._write("", text)

    def _write(self, rank: str, text: str) -> None:
        local = datetime.datetime.fromtimestamp(clock.wall_s()).strftime("%Y-%m-%d %H:%M:%S")  # noqa: DTZ006 (as SGLang)
        self._stream.write(f"[{local}{rank}] {text}\n")
        self._stream.flush()
