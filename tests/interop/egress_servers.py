# SPDX-License-Identifier: Apache-2.0
"""What the egress tests of this folder share: the lab of tests/integration/egress_lab.py with servers of other people in it.

    www.test, shop.test        nginx, TLS and plain; both names at one address
    six.test                   the same nginx, by IPv6 alone
    git.test                   git over https (nginx, fcgiwrap, git http-backend) and over ssh (OpenSSH, port 2222)
    db.test                    PostgreSQL with TLS
    index.test, files.test     a Python package index that redirects to another host for the files
    registry.test, tarballs.test   the same as an npm registry
    deb.test                   an apt repository
    other.test                 nginx again; no test lists it

The lab host's own name server is dnsmasq. Servers run as root of the lab, or as an ordinary account where they want one.
"""
import base64
import hashlib
import io
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import unittest
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
import clients  # noqa: E402
from egress_lab import SERVERS4, Lab  # noqa: E402

PYTHON = "/usr/bin/python3"
NAME_SERVER = "172.31.0.53"
WWW4, WWW6, SIX6, OTHER4 = "93.184.215.20", "2a00:1450::20", "2a00:1450::26", "151.101.1.69"
NAMES = {
    "www.test": [WWW4, WWW6],
    "shop.test": [WWW4, WWW6],
    "six.test": [SIX6],
    "git.test": ["93.184.215.30"],
    "db.test": ["93.184.215.31"],
    "index.test": ["93.184.215.40"],
    "files.test": ["93.184.215.41"],
    "registry.test": ["93.184.215.42"],
    "tarballs.test": ["93.184.215.43"],
    "deb.test": ["93.184.215.44"],
    "other.test": [OTHER4],
}
SSH_PORT, DB_PORT = 2222, 5432
LIMIT_S = 120  # for one run, many at once on a slow machine
DOWNLOADED = clients.CLIENTS  # what tests/interop/install made
NODE = clients.node()

NGINX = """
user root root; daemon off; master_process off; pid nginx.pid; error_log stderr;
events {{ worker_connections 1024; }}
http {{
    log_format asked '$server_port $ssl_server_name $host $request_uri $status';
    access_log access.log asked;
    client_body_temp_path tmp/body; proxy_temp_path tmp/proxy; fastcgi_temp_path tmp/fastcgi; uwsgi_temp_path tmp/uwsgi;
    scgi_temp_path tmp/scgi;
    default_type text/plain;
    ssl_certificate {certificate}; ssl_certificate_key {certificate};
    server {{
        listen [::]:80 ipv6only=off backlog=256;
        listen [::]:443 ssl http2 ipv6only=off backlog=256;
        server_name www.test shop.test six.test other.test;
        location / {{ return 200 "this is $host by $scheme\\n"; }}
    }}
    server {{
        listen [::]:80; listen [::]:443 ssl http2;
        server_name git.test;
        location ~ ^(/.*)$ {{
            fastcgi_pass unix:{folder}/fcgi.sock;
            fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
            fastcgi_param GIT_PROJECT_ROOT {folder}/repositories;
            fastcgi_param GIT_HTTP_EXPORT_ALL 1;
            fastcgi_param PATH_INFO $1;
            fastcgi_param REMOTE_USER somebody;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
            fastcgi_param GIT_PROTOCOL $http_git_protocol;
        }}
    }}
    server {{
        listen [::]:80; listen [::]:443 ssl http2;
        server_name index.test registry.test;
        root {folder}/$host;
        location /simple/ {{ default_type text/html; index index.html; }}
        location /packages/ {{ return 302 https://files.test$request_uri; }}
        location = /@lab/thing {{ default_type application/json; try_files /thing.json =404; }}
        location /@lab/thing/- {{ return 302 https://tarballs.test$request_uri; }}
    }}
    server {{
        listen [::]:80; listen [::]:443 ssl http2;
        server_name files.test tarballs.test deb.test;
        root {folder}/$host;
    }}
}}
"""
SSHD = """
Port {port}
HostKey {folder}/ssh/host
AuthorizedKeysFile {folder}/ssh/id.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PidFile none
MaxStartups 64
"""
# Answers when a connection is accepted there.
UP = """
import socket, sys, time
while True:
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
        break
    except ConnectionRefusedError:
        time.sleep(0.01)
"""


def program(name):
    """The path of a server's program, which an account's PATH may not lead to; a test that lacks it is skipped."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/go/bin")
    if not path:
        raise unittest.SkipTest(f"{name} is not installed; run scripts/setup interop")
    return path


def postgres_program(name):
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if not found:
        raise unittest.SkipTest(f"{name} is not installed; run scripts/setup interop")
    return found[-1]


class RealLab(Lab):
    """The lab with the servers that a test file names: any of "web", "git", "ssh", "db", "packages"."""

    def __init__(self, *parts):
        super().__init__(NAMES, left_free=(80, 443, SSH_PORT))
        self.parts = parts
        self.processes = []
        # Some servers refuse to be root. In a user's lab there is no other account but the user's own.
        self.account = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())

    def __enter__(self):
        super().__enter__()
        try:
            self._start_name_server()
            jobs = [threading.Thread(target=self._prepare, args=(part,)) for part in self.parts]
            self.failed = []
            for job in jobs:
                job.start()
            for job in jobs:
                job.join()
            if self.failed:
                raise self.failed[0]
            if {"web", "git", "packages"} & {*self.parts}:
                self._start_web()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process, end in self.processes:
            try:
                os.killpg(process.pid, end)  # some leave it to their children to notice
            except ProcessLookupError:
                pass
            process.wait()
        super().__exit__()

    def _prepare(self, part):
        try:
            {"web": lambda: None, "git": self._start_git, "ssh": self._start_ssh, "db": self._start_db,
             "packages": self._make_packages}[part]()
        except BaseException as error:  # told by __enter__, in the thread of the tests
            self.failed.append(error)

    # Starting

    def _ordinary(self, *argv):
        """The command as an account that is not root."""
        if os.geteuid() == 0:
            ids = [f"--reuid={self.account.pw_uid}", f"--regid={self.account.pw_gid}"]
            return ["setpriv", *ids, "--clear-groups", *argv]
        ids = [f"--map-user={self.account.pw_uid}", f"--map-group={self.account.pw_gid}"]
        return ["unshare", "--user", *ids, *argv]

    def _give(self, *paths):
        """Makes files and folders the ordinary account's."""
        if os.geteuid() == 0:
            for path in paths:
                for part in (path, *path.rglob("*")):
                    os.chown(part, self.account.pw_uid, self.account.pw_gid)

    def _serve(self, name, *argv, where=("127.0.0.1", 0), end=signal.SIGKILL, **options):
        """Starts a server and waits until it accepts connections."""
        log = self.folder / f"{name}.log"
        with log.open("w") as out:
            process = self.start(*argv, place="servers", stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 start_new_session=True, **options)
        self.processes.append((process, end))
        if where[1]:
            waiting = self.start(PYTHON, "-c", UP, where[0], where[1], place="servers")
            while waiting.poll() is None:
                if process.poll() is not None:
                    waiting.kill()
                try:
                    waiting.wait(0.2)
                except subprocess.TimeoutExpired:
                    pass
            if waiting.returncode != 0:
                raise RuntimeError(f"{name} did not start:\n{log.read_text()}")

    def _must(self, *argv, **options):
        run = self.run(*argv, place="servers", **options)
        if run.returncode != 0:
            raise RuntimeError(f"{argv}:\n{run.stdout}{run.stderr}")

    def _start_name_server(self):
        self._must("ip", "addr", "add", f"{NAME_SERVER}/32", "dev", "in")
        records = [f"--host-record={name},{','.join(addresses)}" for name, addresses in NAMES.items()]
        self._serve("dnsmasq", program("dnsmasq"), "--no-daemon", "--log-queries", "--no-resolv", "--no-hosts", "--local=/test/",
                    "--conf-file=/dev/null", "--bind-interfaces", f"--listen-address={NAME_SERVER}", "--except-interface=lo",
                    *records, where=(NAME_SERVER, 53))
        # The lab host's own file: bound to /etc/resolv.conf there.
        (self.folder / "resolv.conf").write_text(f"nameserver {NAME_SERVER}\noptions timeout:5 attempts:2\n")

    def _start_web(self):
        home = self.folder / "nginx"
        (home / "tmp").mkdir(parents=True)
        (home / "nginx.conf").write_text(NGINX.format(folder=self.folder, certificate=self.certificate))
        self._serve("nginx", program("nginx"), "-p", home, "-c", "nginx.conf", where=("127.0.0.1", 443))

    def _start_ssh(self):
        folder = self.folder / "ssh"
        folder.mkdir()
        for key in ("host", "id"):
            self._must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key)
        (folder / "known_hosts").write_text(f"[git.test]:{SSH_PORT} {(folder / 'host.pub').read_text()}")
        (folder / "sshd_config").write_text(SSHD.format(folder=self.folder, port=SSH_PORT))
        self._give(folder)
        self._serve("sshd", *self._ordinary(program("sshd"), "-D", "-e", "-f", folder / "sshd_config"),
                    where=("127.0.0.1", SSH_PORT))
        # A client that owns a key insists on its mode, and who owns it inside differs; `keys` is read by everybody.
        keys = self.folder / "keys"
        keys.mkdir()
        for name in ("id", "known_hosts"):
            (keys / name).write_bytes((folder / name).read_bytes())

    def _start_git(self):
        folder = self.folder / "repositories"
        folder.mkdir()
        work = self.folder / "work"
        home = {"HOME": str(self.folder)}
        self._must("git", "init", "--quiet", "--initial-branch=main", work, env=home)
        (work / "README").write_text("a repository\n")
        self._must("git", "-C", work, "add", "README", env=home)
        self._must("git", "-C", work, "-c", "user.name=lab", "-c", "user.email=lab@lab.test", "commit", "--quiet", "-m", "Begin",
                   env=home)
        self._must("git", "clone", "--quiet", "--bare", work, folder / "thing.git", env=home)
        self._must("git", "-C", folder / "thing.git", "config", "http.receivepack", "true", env=home)
        self._give(folder)
        self.folder.chmod(0o777)  # the socket is the account's to make
        self._serve("fcgiwrap", *self._ordinary(program("fcgiwrap"), "-c", "4", "-s", f"unix:{self.folder}/fcgi.sock"), env=home)
        clients.wait_for((self.folder / "fcgi.sock").exists, "the socket of fcgiwrap")

    def _start_db(self):
        folder = self.folder / "db"
        folder.mkdir(mode=0o700)
        self._give(folder)
        self._must(*self._ordinary(postgres_program("initdb"), "-D", folder, "-A", "trust", "-U", "lab", "--no-sync", "-E", "UTF8",
                                   "--locale=C"))
        with (folder / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all trust\n")
        shutil.copy2(self.certificate, folder / "tls.pem")
        (folder / "tls.pem").chmod(0o600)
        self._give(folder / "tls.pem")
        options = {"listen_addresses": "*", "port": DB_PORT, "unix_socket_directories": "", "fsync": "off", "ssl": "on",
                   "ssl_cert_file": "tls.pem", "ssl_key_file": "tls.pem"}
        self._serve("postgres", *self._ordinary(postgres_program("postgres"), "-D", folder),
                    *(f"--{key}={value}" for key, value in options.items()), where=("127.0.0.1", DB_PORT),
                    end=signal.SIGQUIT)  # at once, but its shared memory is removed

    def _make_packages(self):
        self._make_index()
        self._make_registry()
        self._make_repository()

    def _make_index(self):
        """A wheel, and the page of the index that tells of it."""
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w") as parts:
            parts.writestr("lab_thing.py", "WHERE = 'from the index'\n")
            info = "lab_thing-1.0.dist-info"
            parts.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: lab-thing\nVersion: 1.0\n")
            parts.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            parts.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*parts.namelist(), f"{info}/RECORD"]))
        name = "lab_thing-1.0-py3-none-any.whl"
        packages, page = self.folder / "files.test/packages", self.folder / "index.test/simple/lab-thing"
        packages.mkdir(parents=True)
        page.mkdir(parents=True)
        (packages / name).write_bytes(wheel.getvalue())
        digest = hashlib.sha256(wheel.getvalue()).hexdigest()
        (page / "index.html").write_text(f"<!DOCTYPE html><a href='/packages/{name}#sha256={digest}'>{name}</a>\n")

    def _make_registry(self):
        """A package with a scope, and what the registry says of it."""
        tarball = io.BytesIO()
        with tarfile.open(fileobj=tarball, mode="w:gz") as parts:
            for name, text in (("package.json", json.dumps({"name": "@lab/thing", "version": "1.0.0", "main": "main.js"})),
                               ("main.js", "module.exports = 'from the registry'\n")):
                entry = tarfile.TarInfo(f"package/{name}")
                entry.size = len(text)
                parts.addfile(entry, io.BytesIO(text.encode()))
        folder = self.folder / "tarballs.test/@lab/thing/-"
        folder.mkdir(parents=True)
        (self.folder / "registry.test").mkdir()
        (folder / "thing-1.0.0.tgz").write_bytes(tarball.getvalue())
        digest = base64.b64encode(hashlib.sha512(tarball.getvalue()).digest()).decode()
        version = {"name": "@lab/thing", "version": "1.0.0", "main": "main.js",
                   "dist": {"tarball": "https://registry.test/@lab/thing/-/thing-1.0.0.tgz", "integrity": f"sha512-{digest}"}}
        (self.folder / "registry.test/thing.json").write_text(
            json.dumps({"name": "@lab/thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))

    def _make_repository(self):
        """A package, and the index of a repository without suites."""
        folder, content = self.folder / "deb.test", self.folder / "deb"
        (content / "DEBIAN").mkdir(parents=True)
        folder.mkdir()
        (content / "DEBIAN/control").write_text("Package: lab-thing\nVersion: 1.0\nArchitecture: all\n"
                                                "Maintainer: lab <lab@lab.test>\nDescription: a thing of the lab\n")
        (content / "hello").write_text("from the repository\n")
        self._must("dpkg-deb", "--root-owner-group", "--build", content, folder / "lab-thing_1.0_all.deb")
        self._must("sh", "-c", 'cd "$1" && apt-ftparchive packages . >Packages && apt-ftparchive release . >Release.new && '
                               "mv Release.new Release", "sh", folder)

    # Looking

    def asked(self):
        """Requests that nginx had: port, TLS server name, host, path and status."""
        return [tuple(line.rsplit(" ", 4)) for line in (self.folder / "nginx/access.log").read_text().splitlines()]

    def looked_up(self):
        """Names that dnsmasq was asked for."""
        lines = (self.folder / "dnsmasq.log").read_text().splitlines()
        return {line.split("] ", 1)[1].split()[0] for line in lines if ": query[" in line}


class Outcome:
    """A sandbox that has ended: its command's status and output, and what the network policy refused."""

    def __init__(self, run, told):
        self.status, self.out, self.err = run.returncode, run.stdout, run.stderr
        self.refused = told.get("denied", [])

    def __str__(self):
        return f"status {self.status}\n{self.out}\n{self.err}\nrefused: {self.refused}"


def sandbox(lab, allow, *command, options=(), env=None):
    """Runs a command in a sandbox from which these hosts can be reached. No variable tells of any proxy."""
    result = lab.folder / f"result-{threading.get_ident()}.json"
    words = [f"--allow={host}" for host in allow] + [f"--volume={lab.ca}:/ca.pem:ro", *options]
    words += [f"--env={name}={value}" for name, value in ({"HOME": "/tmp"} | (env or {})).items()]
    run = lab.atoll("run", *words, "--result", result, "--", *command, timeout=LIMIT_S)
    told = json.loads(result.read_text()) if result.exists() else {}
    result.unlink(missing_ok=True)
    return Outcome(run, told)


class EgressTest(unittest.TestCase):
    """Tests with one lab for all of a file."""

    maxDiff = 4000
    PARTS = ("web",)
    _labs = {}  # that run, by their parts

    @classmethod
    def setUpClass(cls):
        clients.need_clients()
        if cls.PARTS not in cls._labs:
            cls._labs[cls.PARTS] = unittest.enterModuleContext(RealLab(*cls.PARTS))
            unittest.addModuleCleanup(cls._labs.pop, cls.PARTS)
        cls.lab = cls._labs[cls.PARTS]

    def reaches(self, outcome, *words):
        """It went well, with these words in the output."""
        self.assertEqual(outcome.status, 0, outcome)
        for word in words:
            self.assertIn(word, outcome.out, outcome)

    def is_refused(self, outcome, name, port=None):
        """It failed by itself, at once and not after a time, and the result names what was refused."""
        self.assertNotIn(outcome.status, (0, 125), outcome)
        self.assertNotRegex(outcome.out + outcome.err, "(?i)timed? ?out|temporary failure|try again")
        found = [item for item in outcome.refused if name in (item["name"], item["address"])
                 and (port is None or item["port"] == port)]
        self.assertTrue(found, outcome)
        return found
