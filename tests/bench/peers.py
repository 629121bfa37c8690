# SPDX-License-Identifier: Apache-2.0
"""The sandboxes that atoll is compared with: how each is installed, and how it runs `true`."""
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

NPM_PACKAGES = {"srt": "@anthropic-ai/sandbox-runtime@0.0.83", "codex": "@openai/codex@0.171.0"}
INSTALL_LIMIT_S = 300
TRY_LIMIT_S = 30

BWRAP = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]


@dataclass
class Peer:
    """A peer that can run here, or the reason why it cannot."""

    name: str
    command: list = field(default_factory=list)
    missing: str = ""


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:160] if lines else ""


def tried(peer, account):
    """The peer, with the reason if it cannot run `true`."""
    if peer.missing:
        return peer
    try:
        done = subprocess.run(peer.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, errors="replace", timeout=TRY_LIMIT_S,
                              check=False, **account.popen())
    except (OSError, subprocess.TimeoutExpired) as error:
        return Peer(peer.name, missing=str(error))
    if done.returncode != 0:
        return Peer(peer.name, missing=last_line(done.stderr) or f"it ends with status {done.returncode}")
    return peer


def npm_install(cache):
    """Installs the peers that npm has into the cache. Returns the reason if it cannot."""
    folder = cache / "npm"
    stamp = folder / "installed"
    wanted = " ".join(NPM_PACKAGES.values())
    if stamp.exists() and stamp.read_text() == wanted:
        return ""
    if not shutil.which("npm"):
        return "npm is not installed"
    folder.mkdir(parents=True, exist_ok=True)
    print("bench: installing with npm:", wanted, file=sys.stderr)
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(command + wanted.split(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=INSTALL_LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"npm did not end within {INSTALL_LIMIT_S} s"
    if done.returncode != 0:
        return "npm failed: " + last_line(done.stderr)
    subprocess.run(["chmod", "-R", "a+rX", str(cache)], check=True)
    stamp.write_text(wanted)
    return ""


def npm_peer(name, arguments, cache, reason):
    if reason:
        return Peer(name, missing=reason)
    return Peer(name, [str(cache / "npm/node_modules/.bin" / name), *arguments])


def runc_bundle(folder, account):
    """A bundle whose root is the host's /usr, for runc to run `true` in."""
    for name in ("proc", "dev", "sys", "usr"):
        (folder / "rootfs" / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        if os.path.isdir(f"/usr/{name}"):
            (folder / "rootfs" / name).symlink_to(f"usr/{name}")
    subprocess.run(["runc", "spec"] + (["--rootless"] if account.uid != 0 else []), cwd=folder, check=True,
                   **account.only_ids())
    config = json.loads((folder / "config.json").read_text())
    config["process"] |= {"terminal": False, "args": ["true"]}
    config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] != "/sys/fs/cgroup"]
    config["mounts"].append({"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]})
    (folder / "config.json").write_text(json.dumps(config))


def runc_peer(account):
    if not shutil.which("runc"):
        return Peer("runc", missing="runc is not installed")
    folder = account.folder / "bundle"
    folder.mkdir()
    account.give(folder)
    try:
        runc_bundle(folder, account)
    except (OSError, subprocess.CalledProcessError) as error:
        return Peer("runc", missing=str(error))
    return Peer("runc", ["runc", "--root", str(account.folder / "runc"), "run", "--bundle", str(folder),
                         f"atoll-bench-{os.getpid()}"])


def find_peers(account, cache, npm_reason):
    """All peers for the account, the one with a bound first."""
    bwrap = Peer("bwrap", [*BWRAP, "true"]) if shutil.which("bwrap") else Peer("bwrap", missing="it is not installed")
    peers = [
        bwrap,
        runc_peer(account),
        npm_peer("codex", ["sandbox", "--", "true"], cache, npm_reason),
        npm_peer("srt", ["-c", "true"], cache, npm_reason),
    ]
    return [tried(peer, account) for peer in peers]
