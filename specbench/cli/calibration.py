"""Where calibrations lie, and how verbs read and write them."""

from pathlib import Path

import msgspec

from specbench.analysis.comparing.calibrate import Calibration
from specbench.errors import StoreError
from specbench.store import pretty, replace_file
from specbench.streams import OpenRun

FOLDER = "calibration"
SEARCHED_COUNT = 3
"""Folders above a run: `results`, and those that nightly runs lie in."""


def calibration_path(results: Path, suite_name: str, host: str, simulated: bool) -> Path:
    """`results/calibration/<suite>-<host>.json`; a simulated one apart, that it never stands for a real one."""
    suffix = ".simulated" if simulated else ""
    return results / FOLDER / f"{suite_name}-{Path(host).name or 'unknown'}{suffix}.json"


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Raises StoreError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path.parent}: can't be made: {error.strerror}") from None
    replace_file(path, pretty(calibration))


def read_calibration(path: Path) -> Calibration:
    """Raises StoreError in one sentence."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except OSError as error:
        raise StoreError(f"{path}: can't be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise StoreError(f"{path}: is no calibration: {error}") from None


def calibration_for(result: OpenRun, named: str | None) -> Calibration | None:
    """The named one; else the one for its suite and host in a folder above the run's, if there is one."""
    if named is not None:
        return read_calibration(Path(named))
    run = result.run
    host = str(run.environment.get("host") or "unknown")
    above = Path(result.folder).resolve().parents[:SEARCHED_COUNT]
    paths = (calibration_path(one, run.suite_name, host, result.simulated) for one in above)
    return next((read_calibration(path) for path in paths if path.is_file()), None)
