# SPDX-License-Identifier: Apache-2.0
"""libatoll as it is installed: what it exports, the examples, and every operation on real sandboxes."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import ATOLL, LIMIT_S, SandboxTest

ROOT = Path(__file__).resolve().parents[2]
PYTHON_BACKEND = ROOT / "examples/backend/python"


def installed():
    """The folder with an installation: scripts/run-tests has put one beside the tests, or we do now."""
    folder = ROOT / "installed"
    if not folder.exists():
        folder = Path(tempfile.mkdtemp(prefix="atoll-tests-"))
        unittest.addModuleCleanup(shutil.rmtree, folder)
        run(["meson", "install", "-C", Path(ATOLL).parent, "--quiet", "--destdir", folder], {})
    return folder


def run(command, environment, folder=None):
    """Runs a program that must succeed, and returns what it printed."""
    done = subprocess.run(
        command, env=os.environ | environment, cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False, timeout=5 * LIMIT_S)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return done.stdout


class Installation:
    """Where pkg-config and the loader find libatoll."""

    def __init__(self, folder):
        self.library = next(folder.rglob("libatoll.so.0"))
        self.static_library = next(folder.rglob("libatoll.a"))
        self.program = next(folder.rglob("bin/atoll"))
        self.environment = {
            "PKG_CONFIG_SYSROOT_DIR": str(folder),
            "PKG_CONFIG_PATH": str(next(folder.rglob("atoll.pc")).parent),
            "LD_LIBRARY_PATH": str(self.library.parent),
            "ATOLL_PROGRAM": str(self.program),
        }

    def flags(self, *options):
        return run(["pkg-config", *options, "atoll"], self.environment).split()


def setUpModule():
    global INSTALLATION, WORK
    INSTALLATION = Installation(installed())
    WORK = Path(tempfile.mkdtemp(prefix="atoll-tests-"))
    unittest.addModuleCleanup(shutil.rmtree, WORK)


class Packaging(unittest.TestCase):
    """What others link."""

    def exported(self, *command):
        lines = run(command, {}).splitlines()
        return [line.split()[-1] for line in lines if re.search(r" [TDBRVW] ", line)]

    def test_only_names_of_atoll_are_exported_with_their_version(self):
        names = self.exported("nm", "-D", "--defined-only", INSTALLATION.library)
        self.assertGreater(len(names), 40)
        for name in names:
            self.assertRegex(name, r"^atoll_\w+@@ATOLL_0\.1$")

    def test_the_static_library_shows_the_same_names(self):
        shared = self.exported("nm", "-D", "--defined-only", INSTALLATION.library)
        static = self.exported("nm", "--defined-only", INSTALLATION.static_library)
        self.assertEqual({name.partition("@")[0] for name in shared}, set(static))

    def test_every_function_of_the_headers_is_there(self):
        root = INSTALLATION.program.parents[1]
        declared = set()
        for name in ("atoll.h", "atoll_backend.h", "atoll_toolset.h"):
            text = re.sub(r"/\*.*?\*/", "", next(root.rglob(name)).read_text(), flags=re.DOTALL)
            declared |= set(re.findall(r"\b(atoll_\w+)\(", text))
        shared = self.exported("nm", "-D", "--defined-only", INSTALLATION.library)
        self.assertEqual(declared, {name.partition("@")[0] for name in shared})

    def test_the_library_bears_its_version(self):
        text = run(["readelf", "-d", INSTALLATION.library], {})
        self.assertIn("soname: [libatoll.so.0]", text)


class Programs(SandboxTest):
    """Programs that are built with nothing but the installed library, and use it."""

    def build(self, source, static=False):
        program = WORK / f"{source.stem}{'-static' if static else ''}"
        options = ["--static"] if static else []
        if not program.exists():
            run(["cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", source, "-o", program,
                 *INSTALLATION.flags("--cflags"), *(["-static"] if static else []),
                 *INSTALLATION.flags(*options, "--libs")], {})
        return program

    def run_program(self, source, *arguments, static=False, environment=None):
        with tempfile.TemporaryDirectory(prefix="atoll-tests-") as state:
            folders = {"ATOLL_STATE_DIR": state, "ATOLL_FOLDER_DIR": f"{state}/folders"}
            return run([self.build(source, static), *arguments],
                       INSTALLATION.environment | folders | (environment or {}), WORK)

    def test_the_makefile_of_the_examples_builds_them(self):
        folder = WORK / "examples"
        programs = {"agent_tools", "tour", "ten_at_once"}
        shutil.copytree(ROOT / "examples/c", folder, ignore=lambda _, names: programs & set(names))
        for options in ([], ["STATIC=1"]):
            run(["make", "clean"], INSTALLATION.environment, folder)
            run(["make", *options], INSTALLATION.environment, folder)
            self.assertLessEqual(programs, set(os.listdir(folder)))

    def test_the_tour(self):
        for static in (False, True):
            text = self.run_program(ROOT / "examples/c/tour.c", static=static)
            self.assertIn("good day, sandbox", text)
            self.assertIn("'notes' is a folder", text)
            self.assertIn("nothing of it is left", text)

    def test_the_tools_of_an_agent(self):
        text = self.run_program(ROOT / "examples/c/agent_tools.c", WORK)
        self.assertIn("token=***\n[exit code: 3]\n", text)
        self.assertIn("(an error that the model can mend, number 1 in a row)", text)
        self.assertIn("published: report.txt, 3 bytes", text)
        self.assertEqual((WORK / "report.txt").read_text(), "55\n")

    def test_ten_at_once(self):
        text = self.run_program(ROOT / "examples/c/ten_at_once.c")
        rows = dict(line.split(": ", 1) for line in text.splitlines())
        self.assertEqual(rows.pop("4"), "the operation was cancelled")
        self.assertEqual(rows, {str(i): str(i * i) for i in range(10) if i != 4})

    def test_every_operation_on_the_local_backend(self):
        for static in (False, True):
            text = self.run_program(ROOT / "tests/support/c_api.c", "local", static=static)
            self.assertTrue(text.endswith("ok end\n"))

    def test_every_operation_through_in_band_streams(self):
        path = {"PATH": f"{PYTHON_BACKEND}:{os.environ['PATH']}"}
        text = self.run_program(ROOT / "tests/support/c_api.c", "pyfolder", environment=path)
        self.assertTrue(text.endswith("ok end\n"))


if __name__ == "__main__":
    unittest.main()
