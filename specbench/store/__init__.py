"""The results folder.

    results/<suite>-<utc>/
      run.json  suite.yaml  run.lock (while a run writes here)
      <variant>.launch<n>/
        manifest.json  requests.jsonl  observations.jsonl  server.log
      aside/<variant>.launch<n>.<m>/   cut off, and done again since

Lines are appended whole, one write each, as they come: a finished request survives the death of the process at once, and
that of the machine from the next manifest on. A manifest is replaced as a whole (written beside, synced, renamed, the folder
synced) after the lines it tells of were synced, and its `complete` is the last thing set, with the count of both files'
lines. What can't be read without a doubt raises `StoreError`.
"""

from specbench.store.files import (
    ASIDE_FOLDER,
    LOG_FILE,
    MANIFEST_FILE,
    OBSERVATIONS_FILE,
    REQUESTS_FILE,
    RUN_FILE,
    SUITE_FILE,
    inside,
    pretty,
    replace_file,
)
from specbench.store.lock import LOCK_FILE, Lock
from specbench.store.reading import (
    StoredRun,
    StoredTrial,
    begun,
    lost_count,
    read_launch,
    read_lines,
    read_manifest,
    read_plan,
    read_run,
    read_trial,
)
from specbench.store.writing import LineFile, RunWriter, TrialWriter, create_run, open_run

__all__ = [
    "ASIDE_FOLDER",
    "LOCK_FILE",
    "LOG_FILE",
    "MANIFEST_FILE",
    "OBSERVATIONS_FILE",
    "REQUESTS_FILE",
    "RUN_FILE",
    "SUITE_FILE",
    "LineFile",
    "Lock",
    "RunWriter",
    "StoredRun",
    "StoredTrial",
    "TrialWriter",
    "begun",
    "create_run",
    "inside",
    "lost_count",
    "open_run",
    "pretty",
    "read_launch",
    "read_lines",
    "read_manifest",
    "read_plan",
    "read_run",
    "read_trial",
    "replace_file",
]
