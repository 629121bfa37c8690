#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an agent might write first, to clean a pci.ids file into a CSV table. It knows only the head of the file.

Usage: first_try.py INPUT OUTPUT
"""
import csv
import sys

source, target = sys.argv[1:]
vendor = device = vendor_name = ""
with open(source, encoding="utf-8") as lines, open(target, "w", encoding="utf-8", newline="") as table:
    out = csv.writer(table, lineterminator="\n")
    out.writerow(["kind", "id", "parent", "vendor_name", "name", "remark"])
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        number, name = line.strip().split("  ", 1)
        if line.startswith("\t\t"):
            out.writerow(["subsystem", number.replace(" ", ":"), f"{vendor}:{device}", vendor_name, name, ""])
        elif line.startswith("\t"):
            device = number
            out.writerow(["device", device, vendor, vendor_name, name, ""])
        else:
            vendor, vendor_name = f"{int(number, 16):04x}", name
            out.writerow(["vendor", vendor, "", vendor_name, name, ""])
