# SPDX-License-Identifier: Apache-2.0
"""Every backend in the tree does what the table of tests/conformance/scenarios.py asks for.

A test is one scenario on one backend: Local.statuses_are_those_of_the_command.
"""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
import driver  # noqa: E402
from scenarios import TABLE  # noqa: E402
from support import SandboxTest  # noqa: E402

BACKENDS = (driver.Local, driver.Folder, driver.PyFolder)


def make(backend):
    """A class of tests: what of the table the backend says that it can do."""

    def method(scenario):
        return lambda self: driver.run(self, scenario, backend)

    with tempfile.TemporaryDirectory(prefix="atoll-tests-", dir="/tmp") as folder:
        features = backend(folder).features()
    tests = {f"test_{scenario.name}": method(scenario) for scenario in TABLE if set(scenario.needs) <= features}
    return type(backend.__name__, (SandboxTest,), {"__module__": __name__, **tests})


for one in BACKENDS:
    globals()[one.__name__] = make(one)


if __name__ == "__main__":
    unittest.main()
