"""The folder in which each test runs the command line, and the Slurm that some need."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import cluster as slurm
from tests.e2e.bed import Bed
from tests.e2e.cluster import Cluster
from tests.e2e.slurm_bed import Runs


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    """With the fake engine in it."""
    return Bed(tmp_path)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Its daemons run from the first test that needs them to the last test of all."""
    with slurm.running(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture
def runs(bed: Bed, cluster: Cluster) -> Iterator[Runs]:
    """Leaves neither job nor server."""
    found = Runs(bed, cluster)
    yield found
    cluster.ask("scancel", "--user=root")
    found.wait_gone()
