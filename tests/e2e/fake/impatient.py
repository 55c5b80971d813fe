"""Placed as `sitecustomize.py`: a run that waits a moment, not half a minute, for a GPU's memory."""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class Impatient(MetaPathFinder):
    """Changes the limit once its module is loaded."""

    def find_spec(self, name: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "specbench.execution.gpu_use":
            return None
        spec = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            module.wait_released.__defaults__ = (0.5,)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


sys.meta_path.insert(0, Impatient())
