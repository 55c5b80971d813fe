"""What was seen, as stored. Derived figures never live here: `analysis` computes them again from these."""

from typing import Any, Literal

from msgspec import Struct, field

from specbench.plan import Slot, Trial
from specbench.units import Second

SCHEMA_VERSION = 1

TokenSource = Literal["meta_info", "usage_per_chunk", "usage_at_end", "none"]
"""Where a response's token counts came from. `none`: the server gave no count, and none is guessed."""


class RequestRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request as the client saw it. Times in seconds since the trial began, on one monotonic clock."""

    request_index: int
    """Order of sending in this launch, warm-up included."""
    prompt_id: str
    category: str
    workload: str
    concurrency: int
    """Streams offered in this level."""
    warmup: bool = False
    """Sent to warm the server; never counted."""
    turn_index: int = 0
    due_s: Second
    """When the request should have been sent. Closed loop: when its stream was free, the answer before it read."""
    sent_s: Second
    done_s: Second
    clock: str = "client"
    """What stamped the chunks: `kernel` (arrival in this machine's kernel), or `loop` (when the event loop read them; in
    records before the kernel's stamps: `client`)."""
    stepped: bool = False
    """The system's clock was set while the chunks were stamped: their times are not to be trusted."""
    chunk_s: tuple[Second, ...] = ()
    """Arrival of each chunk that carried text or tokens."""
    chunk_tokens: tuple[int, ...] = ()
    """New tokens in each of these chunks; empty when the server gave no count per chunk."""
    token_source: TokenSource = "none"
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    verify_count: int | None = None
    """Verify steps that the engine counted for this request."""
    correct_tokens: int | None = None
    """Draft tokens accepted; the bonus token is not one."""
    proposed_tokens: int | None = None
    accept_histogram: tuple[int, ...] = ()
    """Index j: verify steps that accepted j draft tokens."""
    finish_reason: str | None = None
    output_text: str = ""
    status_code: int | None = None
    error: str | None = None
    """One sentence; None when the request ended well."""


class Observation(Struct, frozen=True, kw_only=True):
    """One thing the server said of itself."""

    at_s: Second
    """When it was read, in seconds since the trial began."""
    source: Literal["log", "metrics", "server_info", "telemetry", "client"]
    name: str
    """`decode`, `prefill`, `phase`, `warning`, `flush`, … as the engine's grammar names it."""
    value: Any = None
    """JSON value; for `decode` the mapping of `dialects.DecodeSample`."""


class LevelRecord(Struct, frozen=True, kw_only=True):
    """One concurrency of one workload, as it was driven."""

    workload: str
    concurrency: int
    started_s: Second
    ended_s: Second
    request_count: int
    flushed: bool | None = None
    """Whether the cache was flushed before; None when the engine can't."""
    client_processes_count: int = 1
    """Processes that the load was dealt to."""


class Phase(Struct, frozen=True, kw_only=True):
    """A step of the start-up, when it began."""

    name: str
    at_s: Second


class Failure(Struct, frozen=True, kw_only=True):
    """Why a launch did not run to its end."""

    kind: str
    """`died_while_loading`, `startup_timeout`, `died_under_load`, `port_in_use`, `interrupted`, …"""
    cause: str
    """One sentence."""
    log_tail: tuple[str, ...] = ()
    """The last 20 lines of its log, oldest first."""
    exit_code: int | None = None


class ServerProcess(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which process the server was: enough to find it again after a crash, and never to take another for it."""

    launch_id: str
    """In the environment of all that it started, as `SPECBENCH_LAUNCH_ID`."""
    pid: int
    born: str
    """When it started, in the system's own unit; only compared."""
    watcher_pid: int
    host: str
    boot: str = ""
    """Of the machine, and the namespace of its pids."""
    cgroup: str = ""
    """Folder of the control group that it was put into; empty where there was none."""
    no_cgroup: str = ""
    """Why there was none."""


class Lease(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long a launch held its slot, on the wall clock: leases are compared with one another."""

    begun_utc: str
    """To the microsecond."""
    ended_utc: str | None = None
    """When its GPUs were free again; None while it holds them, and when it was cut off."""
    neighbours: tuple[str, ...] = ()
    """Folders of launches that ran on the same machine meanwhile, sorted."""


class TrialRecord(Struct, frozen=True, kw_only=True):
    """One launch: `manifest.json`. `complete` is written last; a launch without it was cut off."""

    schema_version: int = SCHEMA_VERSION
    trial: Trial
    engine: str
    engine_version: str | None = None
    simulated: bool = False
    rehearsal: str | None = None
    """How a rehearsal shrank the load, in a sentence; None in a real run."""
    argv: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    """What was added to the environment."""
    slot: Slot = Slot()
    lease: Lease | None = None
    process: ServerProcess | None = None
    started_utc: str = ""
    base_url: str = ""
    phases: tuple[Phase, ...] = ()
    ready_s: Second | None = None
    ended_s: Second | None = None
    levels: tuple[LevelRecord, ...] = ()
    resolved: dict[str, Any] = field(default_factory=dict)
    """The server's own word on its arguments (`/server_info`)."""
    environment: dict[str, Any] = field(default_factory=dict)
    failure: Failure | None = None
    request_count: int | None = None
    """Lines of `requests.jsonl` by then; where there are fewer, some were lost since, and that is told."""
    observation_count: int | None = None
    """Lines of `observations.jsonl`, likewise."""
    complete: bool = False


class RunRecord(Struct, frozen=True, kw_only=True):
    """The run: `run.json`, its plan and environment."""

    schema_version: int = SCHEMA_VERSION
    suite_name: str
    suite_path: str
    suite: dict[str, Any]
    """The resolved suite, as JSON."""
    checked: bool | None = None
    """Whether faults were looked for before the start; false after `--no-check`, None in older runs."""
    trials: tuple[Trial, ...]
    started_utc: str
    resumed_utc: tuple[str, ...] = ()
    """When `--resume` went on with it."""
    ended_utc: str | None = None
    simulated: bool = False
    rehearsal: str | None = None
    specbench_version: str
    environment: dict[str, Any] = field(default_factory=dict)
    datasets: dict[str, Any] = field(default_factory=dict)
    """Per workload: dataset, prompt ids in order, sha256 of the prompts."""
    complete: bool = False


class Progress(Struct, frozen=True, kw_only=True):
    """How far a launch's load is. Never stored."""

    workload: str
    concurrency: int
    warmup: bool = False
    ended_count: int
    """Requests of the level that runs, failed ones included."""
    failed_count: int
    planned_count: int
    launch_ended_count: int
    """Requests of the whole launch."""
    launch_planned_count: int
    output_tps: float | None = None
    """Of the server's last seconds where it tells them, else of the level so far."""
    accept_length: float | None = None
    """Of the level so far where requests tell it, else of the server's last seconds."""
    gpus: Any = None
    """The last sample of telemetry, a mapping a GPU, as it is stored."""


class Event(Struct, frozen=True, kw_only=True):
    """Progress, for whoever watches. Never stored."""

    kind: Literal["launch", "phase", "ready", "level", "request", "progress", "launch_done", "kept", "failure", "note"]
    """`kept`: a launch that is whole since before this run was resumed; nobody is shown it."""
    trial: Trial | None = None
    text: str = ""
    at_s: Second = 0.0
    """Since the trial began."""
    gpu_ids: tuple[int, ...] = ()
    """What the launch holds."""
    progress: Progress | None = None
    """Of a `progress`, which comes once a second under load and at the end of each level."""
