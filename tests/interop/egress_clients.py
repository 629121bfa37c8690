# SPDX-License-Identifier: Apache-2.0
"""How the egress tests of this folder start other people's clients in a sandbox: what is shown inside, and each command line.

Every client has its own settings for certificates and nothing else: no proxy, no resolver, no time limit.
"""
import shutil
import subprocess
import unittest

from egress_servers import DOWNLOADED, HERE, NODE, SSH_PORT, postgres_program

FETCH = f"--volume={HERE / 'fetch'}:/fetch:ro"
COMPILED = f"--volume={DOWNLOADED / 'fetch'}:/compiled:ro"
VENV = f"--volume={DOWNLOADED / 'egress'}:/venv:ro"
NPM = f"--volume={DOWNLOADED / 'npm'}:/npm:ro"


class Client:
    """A client: its options for the sandbox, its environment, and its command for URLs (Chromium's: for one)."""

    def __init__(self, name, command, options=(), env=None):
        self.name, self.command, self.options, self.env = name, command, options, env or {}


def trust_store(lab):
    """The lab's certificate as Java wants it."""
    store = lab.folder / "trust.p12"
    if not store.exists():
        made = subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "lab", "-file", lab.ca, "-keystore", store,
                               "-storepass", "changeit", "-storetype", "PKCS12"], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise RuntimeError(made.stdout + made.stderr)
    return store


def chromium(url):
    """Chromium's own sandbox makes namespaces, which are refused inside one; the certificate is not what is tested."""
    return ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors",
            "--user-data-dir=/tmp/chromium", "--dump-dom", url]


def web_clients(lab):
    """Everything that fetches a URL, by name."""
    for program in ("curl", "wget", "chromium", "java", "keytool"):
        if not shutil.which(program):
            raise unittest.SkipTest(f"{program} is not installed; run scripts/setup interop")
    node = f"/npm/{NODE.relative_to(DOWNLOADED / 'npm')}"
    python = ("/venv/bin/python", "-B", "/fetch/fetch.py")
    java = ("java", "-Djavax.net.ssl.trustStore=/trust.p12", "-Djavax.net.ssl.trustStorePassword=changeit",
            "-cp", "/compiled", "Fetch")
    found = [
        Client("curl", lambda *urls: ["curl", "-sS", "--cacert", "/ca.pem", *urls]),
        Client("wget", lambda *urls: ["wget", "-q", "-O", "-", "--ca-certificate=/ca.pem", *urls]),
        Client("urllib", lambda *urls: [*python, "urllib", "/ca.pem", *urls], (VENV, FETCH)),
        Client("requests", lambda *urls: [*python, "requests", "/ca.pem", *urls], (VENV, FETCH)),
        Client("node", lambda *urls: [node, "/fetch/fetch.mjs", *urls], (NPM, FETCH), {"NODE_EXTRA_CA_CERTS": "/ca.pem"}),
        Client("chromium", chromium),
        Client("go", lambda *urls: ["/compiled/fetch-go", *urls], (COMPILED,), {"SSL_CERT_FILE": "/ca.pem"}),
        Client("java", lambda *urls: [*java, *urls], (COMPILED, f"--volume={trust_store(lab)}:/trust.p12:ro")),
    ]
    return {client.name: client for client in found}


# ssh, git


def keys(lab):
    return [f"--volume={lab.folder / 'keys'}:/keys:ro"]


SSH = ("ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/keys/known_hosts "
       "-o IdentitiesOnly=yes -i /tmp/id")
WITH_KEY = "set -e; install -m 600 /keys/id /tmp/id; "
GIT_ENV = {"GIT_SSL_CAINFO": "/ca.pem", "GIT_SSH_COMMAND": SSH, "GIT_TERMINAL_PROMPT": "0"}


def ssh(lab, host, words):
    """A shell script that runs a command on a host by ssh."""
    return f"{WITH_KEY}{SSH} -p {SSH_PORT} {lab.account.pw_name}@{host} {words}"


def git_url(lab, how, host="git.test"):
    if how == "https":
        return f"https://{host}/thing.git"
    return f"ssh://{lab.account.pw_name}@{host}:{SSH_PORT}{lab.folder}/repositories/thing.git"


def git_clone(url):
    return f"{WITH_KEY}git clone -q {url} /tmp/thing; cat /tmp/thing/README"


def git_push(url, branch):
    return (f"{git_clone(url)}; cd /tmp/thing; git checkout -q -b {branch}; echo more >>README; "
            f"git -c user.name=x -c user.email=x@lab.test commit -q -a -m More; git push -q origin {branch}; "
            f"git ls-remote origin refs/heads/{branch}")


# Databases, packages


def psql(host, mode="prefer"):
    return [str(postgres_program("psql")), "-X", "-A", "-t", f"host={host} user=lab dbname=postgres sslmode={mode}", "-c",
            "select 'by ' || coalesce((select version from pg_stat_ssl where pid = pg_backend_pid() and ssl), 'plain TCP')"]


def pip():
    """`--retries 0`: how patient pip is says nothing of how a refusal comes."""
    return ["sh", "-c", "/venv/bin/python -m pip install -q --disable-pip-version-check --no-input --no-cache-dir --retries 0 "
            "--cert /ca.pem --index-url https://index.test/simple --target /tmp/got lab-thing && "
            "PYTHONPATH=/tmp/got python3 -B -c 'import lab_thing; print(lab_thing.WHERE)'"]


def npm():
    """`--fetch-retries 0`: as with pip; npm waits ten seconds between two."""
    return ["sh", "-c", "cd /tmp && npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --cafile /ca.pem "
            "--registry https://registry.test/ @lab/thing && node -e 'console.log(require(\"@lab/thing\"))'"]


def apt(source="http://deb.test/"):
    """apt with folders of its own, since the sandbox's /etc and /var/lib are not the machine's."""
    return ["sh", "-ec", """
mkdir -p /tmp/apt/etc/apt/apt.conf.d /tmp/apt/etc/apt/preferences.d /tmp/apt/etc/apt/trusted.gpg.d \\
    /tmp/apt/var/lib/apt/lists/partial /tmp/apt/var/cache/apt/archives/partial /tmp/apt/var/lib/dpkg
: >/tmp/apt/var/lib/dpkg/status
echo "deb [trusted=yes] $0 ./" >/tmp/apt/etc/apt/sources.list
cat >/tmp/apt/apt.conf <<END
Dir "/tmp/apt";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Retries "0";
Acquire::https::CAInfo "/ca.pem";
END
export APT_CONFIG=/tmp/apt/apt.conf
apt-get -q update
cd /tmp
apt-get -q download lab-thing
dpkg-deb --fsys-tarfile lab-thing_1.0_all.deb | tar -xO ./hello
""", source]

