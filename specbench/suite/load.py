"""The way from a YAML file to a resolved `Suite`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from specbench.errors import Problem, SuiteError
from specbench.suite.document import Document
from specbench.suite.file import SuiteFile
from specbench.suite.meaning import DRAFTS_IN_STEPS, check_meaning
from specbench.suite.reading import read_document
from specbench.suite.sketch import Sketch, sketch_variants
from specbench.suite.structure import check_structure
from specbench.suite.types import OPEN_LOOP, Drafter, Model, Server, Speculation, Suite, Variant, Workload

OVERRIDDEN = ("python", "tensor_parallel", "host", "url", "log", "startup_timeout_s", "stop_grace_s", "stall_timeout_s")
"""Fields of `Server` that a variant's own value replaces; `args` are appended and `env` is laid over."""


PACKED: Final[dict[Any, Any]] = {True: "on", False: "off"}
"""`on` and `off` without quotes are truth values in YAML."""


def load_suite(
    path: str | Path,
    environ: Mapping[str, str],
    known: Mapping[str, Collection[str]] | None = None,
    text: str | None = None,
) -> Suite:
    """Raises SuiteError with every mistake in the file, sorted by line.

    `known` lists the names that exist for `engine` and `dataset`; a kind left out is not checked. `text` is the
    file's, where it was read already.
    """
    document = read_document(path, environ, text)
    check_structure(document)
    sketches = sketch_variants(document)
    check_meaning(document, sketches, known or {})
    document.raise_problems()
    return _resolve(document, sketches.found)


def _resolve(document: Document, sketches: tuple[Sketch, ...]) -> Suite:
    written = {key: value for key, value in document.value.items() if not key.startswith("x-")}
    try:
        file = msgspec.convert(written, SuiteFile)
    except msgspec.ValidationError as error:  # the schema was made from the same types, so this is not expected
        raise SuiteError([Problem(document.path, 0, str(error))]) from error
    drafters = {name: _drafter(one) for name, one in file.drafters.items()}
    variants = tuple(_variant(sketch, file, drafters) for sketch in sketches)
    return Suite(
        name=file.name,
        path=document.path,
        model=Model(path=file.model) if isinstance(file.model, str) else file.model,
        drafters=drafters,
        variants=variants,
        baseline=file.baseline or next(one.name for one in variants if one.speculation is None),
        workloads=_workloads(document, file.workloads),
        launches=file.launches,
        seed=file.seed,
        hardware=file.hardware,
        packing=PACKED.get(file.packing, file.packing),
        launcher=file.launcher,
        slurm=file.slurm,
        expected=file.expected,
        warmup=file.warmup,
        rehearsal=file.rehearsal,
        secrets=file.secrets,
        sources=tuple(sorted(document.variables)),
    )


def _workloads(document: Document, written: Sequence[Workload]) -> tuple[Workload, ...]:
    """With the levels of their sweeps. Raises SuiteError when a sweep's name for a level is taken."""
    found = tuple(level for one in written for level in _levels(one))
    names = [one.name for one in found]
    if taken := next((name for name in names if names.count(name) > 1), None):
        raise SuiteError(
            [Problem(document.path, 0, f"a sweep calls one of its levels {taken!r}, the name of another workload")]
        )
    return found


def _levels(written: Workload) -> Iterator[Workload]:
    """A closed loop's sweep is more concurrencies; each rate of an open loop's is a workload of its own."""
    replace = msgspec.structs.replace
    arrival, saturate = written.arrival, written.saturate
    if arrival is None and saturate is None:
        yield written
    elif arrival is None and saturate is not None:
        more = dict.fromkeys(round(one) for one in saturate.levels(written.concurrency[-1]))
        yield replace(written, concurrency=tuple(dict.fromkeys((*written.concurrency, *more))))
    elif arrival is not None and (saturate is None or arrival.rate_rps is None):
        yield replace(written, concurrency=OPEN_LOOP)
    elif arrival is not None and saturate is not None and arrival.rate_rps is not None:
        for rate_rps in saturate.levels(arrival.rate_rps):
            level = replace(arrival, rate_rps=rate_rps)
            yield replace(written, name=f"{written.name}-{rate_rps:g}rps", concurrency=OPEN_LOOP, arrival=level)


def _drafter(written: str | Drafter) -> Drafter:
    return Drafter(path=written) if isinstance(written, str) else written


def _variant(sketch: Sketch, file: SuiteFile, drafters: Mapping[str, Drafter]) -> Variant:
    fields = {key: given.value for key, given in sketch.fields.items()}
    return msgspec.convert(
        {
            "name": sketch.name.value if sketch.name else None,
            "engine": fields.get("engine", file.engine),
            "cuda_graph": fields.get("cuda_graph"),
            "speculation": _speculation(sketch, drafters),
            "server": _server(file.server, fields),
        },
        Variant,
    )


def _server(common: Server, fields: Mapping[str, Any]) -> Server:
    return msgspec.structs.replace(
        common,
        args=(*common.args, *fields.get("args", ())),
        env=common.env | fields.get("env", {}),
        **{key: fields[key] for key in OVERRIDDEN if key in fields},
    )


def _speculation(sketch: Sketch, drafters: Mapping[str, Drafter]) -> Speculation | None:
    """Method and steps are written out even where the file implies them."""
    if sketch.speculation is None:
        return None
    stated = msgspec.convert({key: given.value for key, given in sketch.speculation.items()}, Speculation)
    method = stated.method or (drafters[stated.drafter].method if stated.drafter else None)
    steps = stated.steps_count if method in DRAFTS_IN_STEPS else stated.steps
    return msgspec.structs.replace(stated, method=method, steps=steps)
