# SPDX-License-Identifier: Apache-2.0
"""Kills exports at random moments: each destination is the old one or the new one, whole.

ATOLL_STORM_SEED repeats a storm, ATOLL_STORM_ROUNDS makes it longer or shorter.
"""
import hashlib
import json
import os
import random
import time
import unittest

import support

ROUNDS = int(os.environ.get("ATOLL_STORM_ROUNDS", "300"))
SEED = int(os.environ.get("ATOLL_STORM_SEED", str(random.SystemRandom().randrange(1 << 32))))
FILES = 200
LARGE = 6 << 20  # large enough for the process that writes large files
SMALL = 4000
MANIFEST = "atoll-manifest.json"
# What is exported says of which round it is: LETTER is a byte, and the whole of every file.
MAKE = f"""
import os, sys
for letter in sys.argv[1]:
    os.makedirs(letter + '/folder/sub')
    open(letter + '/large', 'w').write(letter * {LARGE})
    open(letter + '/small', 'w').write(letter * {SMALL})
    for i in range({FILES}):
        open('%s/folder/%s%d' % (letter, 'sub/' if i % 2 else '', i), 'w').write(letter * (i * 17))
"""


class Storm(support.HeldTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder()
        self.sandbox = self.create()
        self.good("exec", self.sandbox, "--", support.PYTHON, "-c", MAKE, "ab")
        self.sums = {letter: hashlib.sha256(letter.encode() * LARGE).hexdigest() for letter in "ab"}
        self.standing = {name: None for name in ("large", "small", "folder")}
        # How long one takes here decides between which moments it is killed.
        self.took = {verb: self.measure(verb) for verb in ("export", "run")}

    def entries(self, letter):
        return [f"{letter}/{name}=file://{self.out}/to/{name}" for name in ("large", "folder", "small")]

    def start_export(self, letter):
        return self.begin("export", self.sandbox, *self.entries(letter))

    def start_run(self, letter):
        options = [f"--export={entry}" for entry in self.entries(letter)]
        return self.begin("run", *options, "--", support.PYTHON, "-c", MAKE, letter)

    def measure(self, verb):
        start = time.monotonic()
        self.assertEqual(getattr(self, f"start_{verb}")("a").result().status, 0)
        took = time.monotonic() - start
        self.look()
        return took

    def letter_of_file(self, name):
        """Of which export a file is; it must be of one alone."""
        path = self.out / "to" / name
        if not path.exists():
            return None
        data = path.read_bytes()
        self.assertIn(data[:1], (b"a", b"b"), (name, len(data)))
        letter = data[:1].decode()
        if name == "large":
            self.assertEqual(hashlib.sha256(data).hexdigest(), self.sums[letter], len(data))
        else:
            self.assertEqual(data, data[:1] * SMALL)
        return letter

    def letter_of_folder(self):
        folder = self.out / "to/folder"
        if not folder.exists():
            return None
        files = json.loads((folder / MANIFEST).read_text())["files"]
        found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
        self.assertEqual(found, {f["path"] for f in files} | {MANIFEST})
        self.assertEqual(len(files), FILES)
        letters = set()
        for item in files:
            data = (folder / item["path"]).read_bytes()
            self.assertEqual((len(data), hashlib.sha256(data).hexdigest()), (item["size"], item["sha256"]))
            letters |= set(data.decode())
        self.assertEqual(len(letters), 1, letters)
        return letters.pop()

    def look(self):
        """Each destination is whole, and one that stood has not gone."""
        now = {"large": self.letter_of_file("large"), "small": self.letter_of_file("small"), "folder": self.letter_of_folder()}
        for name, letter in now.items():
            if self.standing[name]:
                self.assertIsNotNone(letter, name)
        self.standing = now

    def staged(self):
        return [str(p) for p in self.out.rglob("*.partial")]

    def one_round(self, chance, verb, letter):
        client = getattr(self, f"start_{verb}")(letter)
        time.sleep(chance.uniform(0, self.took[verb] * 1.1))
        client.kill()
        client.wait()
        self._end(client)
        self.look()
        if chance.random() < 0.3:  # otherwise the next export finds what is left
            self.good("gc")
            self.assertEqual(self.staged(), [])

    def test_destinations_are_whole_after_kills_at_random_moments(self):
        print(f"storm of {ROUNDS} rounds, seed {SEED}", flush=True)
        chance = random.Random(SEED)
        for number in range(ROUNDS):
            verb = "run" if number % 4 == 0 else "export"
            with self.subTest(number=number, verb=verb):
                self.one_round(chance, verb, "ab"[number % 2])
        self.good("gc")
        self.assertEqual(self.staged(), [])
        self.assertEqual([n for n in os.listdir(self.state) if n.startswith("export-")], [])
        self.look()


if __name__ == "__main__":
    unittest.main()
