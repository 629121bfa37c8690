#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cleans a pci.ids file (vendors, devices, subsystems and classes of PCI hardware) into one CSV table.

Usage: clean_pci_ids.py INPUT OUTPUT      the report goes to standard error
       clean_pci_ids.py --check OUTPUT    reads a table back and prints how many rows are sound

The format is indentation by tabs below a vendor or, after "C", a class:

    1002  Advanced Micro Devices, Inc.
    <tab>1304  Kaveri
    <tab><tab>1787 201c  HD 7970 IceQ
    C 02  Network controller
    <tab>00  Ethernet controller

What is repaired: bytes that are not UTF-8, composed and decomposed letters, blanks of every kind in a
row or at the ends, line ends of other systems, the remark "(wrong ID)" in a name, keys that occur twice.
"""
import csv
import re
import sys
import unicodedata
from collections import Counter

COLUMNS = ("kind", "id", "parent", "vendor_name", "name", "remark")
KINDS = ("vendor", "device", "subsystem", "class", "subclass", "interface")
ENTRY = re.compile(
    r"(?P<tabs>\t{0,2})(?P<id>C [0-9a-f]{2}|[0-9a-f]{4} [0-9a-f]{4}|[0-9a-f]{4}|[0-9a-f]{2})\s+(?P<name>\S.*)",
    re.IGNORECASE)
WRONG_ID = re.compile(r"\s*[(\[]\s*wrong id\s*[)\]]", re.IGNORECASE)
ID_LENGTH = {"vendor": 4, "device": 4, "subsystem": 9, "class": 4, "subclass": 2, "interface": 2}


def decode(line, counts):
    """The text of a line, whatever its encoding; old entries are Latin-1."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        text = line.decode("latin-1")
        counts["lines not in UTF-8"] += 1
    if not text.isascii():
        counts["lines with letters beyond ASCII"] += 1
    return unicodedata.normalize("NFC", text)


def clean_name(raw, counts):
    """A name without stray blanks, and the remark taken out of it."""
    name = " ".join(raw.split())
    if name != raw:
        counts["names with stray blanks"] += 1
    stripped = WRONG_ID.sub("", name)
    return (stripped, "wrong id") if stripped and stripped != name else (name, "")


def entries(lines, counts):
    """Yields kind, id, parent, name and remark of each entry, in the order of the file."""
    family = None
    above = ["", ""]  # the vendor or class, and the device or subclass, that the next line is below
    for line in lines:
        text = decode(line, counts).rstrip("\r\n")
        if not text.strip():
            continue
        if text.lstrip().startswith("#"):
            counts["comments"] += 1
            continue
        match = ENTRY.fullmatch(text)
        level = len(match["tabs"]) if match else 0
        if match and level == 0:
            family = KINDS[3:] if match["id"][0] == "C" and match["id"][1] == " " else KINDS[:3]
        kind = family[level] if match and family else None
        if kind is None or len(match["id"]) != ID_LENGTH[kind] or (level and not above[level - 1]):
            counts["lines not understood"] += 1
            continue
        own = match["id"].lower().removeprefix("c ").replace(" ", ":")
        parent = above[level - 1] if level else ""
        if level < 2:
            above[level:] = [f"{parent}:{own}".lstrip(":")] + [""] * (1 - level)
        yield kind, own, parent, *clean_name(match["name"], counts)


def clean(source, target):
    """Reads one file, writes the other, and returns the counts."""
    counts = Counter()
    with open(source, "rb") as file:
        rows = list(entries(file, counts))
    vendor_names = {}
    for kind, own, _, name, _ in rows:
        if kind == "vendor":
            vendor_names.setdefault(own, name)
    seen = set()
    with open(target, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for kind, own, parent, name, remark in rows:
            if (kind, own, parent) in seen:
                counts["duplicates dropped"] += 1
                continue
            seen.add((kind, own, parent))
            vendor = {"vendor": own, "device": parent, "subsystem": own.partition(":")[0]}.get(kind, "")
            if kind == "subsystem" and vendor not in vendor_names:
                counts["subsystems of unknown vendors"] += 1
            out.writerow((kind, own, parent, vendor_names.get(vendor, ""), name, remark))
            counts[kind] += 1
    return counts


def check(path):
    """Returns the number of rows of a table; raises ValueError at the first that is not sound."""
    seen = set()
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.reader(file, strict=True)
        if tuple(next(rows, ())) != COLUMNS:
            raise ValueError("the header is not " + ",".join(COLUMNS))
        for row in rows:
            if len(row) != len(COLUMNS):
                raise ValueError(f"line {rows.line_num} has {len(row)} fields")
            kind, own, parent, _, name, _ = row
            if kind not in KINDS or not own or not name or name != " ".join(name.split()):
                raise ValueError(f"line {rows.line_num} is not clean: {row}")
            if (kind, own, parent) in seen:
                raise ValueError(f"line {rows.line_num} is there twice: {row}")
            seen.add((kind, own, parent))
    return len(seen)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--check":
        print(check(sys.argv[2]))
        return
    counts = clean(sys.argv[1], sys.argv[2])
    print("rows:", sum(counts[kind] for kind in KINDS), file=sys.stderr)
    for what, count in counts.items():
        print(f"{what}: {count}", file=sys.stderr)


if __name__ == "__main__":
    main()
