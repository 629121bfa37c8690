# SPDX-License-Identifier: Apache-2.0
"""Fetches URLs as any Python program does, by `urllib` or by `requests`; the certificates are those of a file.

Usage: fetch.py urllib|requests CERTIFICATES URL...
"""
import ssl
import sys
import urllib.request


def by_urllib(url, certificates):
    with urllib.request.urlopen(url, context=ssl.create_default_context(cafile=certificates)) as answer:
        return answer.read().decode()


def by_requests(url, certificates):
    import requests

    return requests.get(url, verify=certificates).text


fetch = {"urllib": by_urllib, "requests": by_requests}[sys.argv[1]]
for address in sys.argv[3:]:
    try:
        sys.stdout.write(fetch(address, sys.argv[2]))
    except OSError as error:
        sys.exit(str(error))
