#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs shell scripts in the guest and compares every byte they print.

  shell.py [--shells N] [--rounds N] [--timeout S] [--text FILE...]
           GUEST_DIR -- COMMAND...

COMMAND boots GUEST_DIR's kernel; the words @INITRD@ and @APPEND@ in it become
an initial RAM disk that holds a static busybox and the scripts, and the words
of the kernel's command line that run them. The same busybox for this machine
runs the same scripts here; both must print the same.

The two programs come from contrib/fetch-busybox.sh; without them the test is
skipped (exit status 77).
"""
import argparse
import difflib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME",
                                    pathlib.Path.home() / ".cache"))
FOLDER = pathlib.Path(os.environ.get("SHOOTDOWN_BUSYBOX_DIR",
                                     CACHE / "shootdown"))
SCRIPTS = ["shell_body.sh", "shell_loop.sh"]


def run(command, timeout, **more):
    """(status, lines); the status of a command that was too slow is None."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True, **more)
    try:
        out, _ = process.communicate(timeout=timeout)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        status = None
    return status, [line.rstrip("\r") for line in
                    out.decode(errors="replace").split("\n")]


def on_this_machine(options, folder):
    """The lines of the scripts here, in an empty environment."""
    busybox = folder / "bin" / "busybox"
    busybox.parent.mkdir()
    busybox.write_bytes((FOLDER / "busybox-host").read_bytes())
    busybox.chmod(0o755)
    subprocess.run([busybox, "--install", "-s", busybox.parent], check=True)
    status, lines = run(
        [busybox, "sh", HERE / "shell_loop.sh", HERE / "shell_body.sh",
         folder / "work", str(options.shells), str(options.rounds)],
        options.timeout, env={"PATH": str(busybox.parent)})
    if status != 0:
        sys.exit("\n".join(lines + [f"here: status {status}"]))
    return lines


def in_the_guest(options, command, folder):
    guest = pathlib.Path(options.guest)
    extra = folder / "extra.cpio"
    start = folder / "start.sh"
    start.write_text(
        "#!/bin/busybox sh\n"
        "/bin/busybox --install -s /bin\n"
        "exec sh /shell_loop.sh /shell_body.sh /tmp/work "
        f"{options.shells} {options.rounds}\n")
    subprocess.run(
        [sys.executable, HERE / "../../guest/user/mkinitramfs.py", extra,
         f"bin/busybox={FOLDER / 'busybox-arm64'}", f"start.sh={start}"]
        + [f"{name}={HERE / name}" for name in SCRIPTS], check=True)
    initrd = folder / "initrd.cpio"
    initrd.write_bytes((guest / "initramfs.cpio").read_bytes()
                       + extra.read_bytes())
    words = {"@INITRD@": str(initrd),
             "@APPEND@": f"quiet init=/start.sh {options.append}"}
    return run([words.get(word, word) for word in command], options.timeout)


def main():
    if "--" not in sys.argv:
        sys.exit(__doc__)
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--shells", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=100)
    parser.add_argument("--append", default="")
    parser.add_argument("guest")
    options = parser.parse_args(sys.argv[1:split])
    options.timeout *= float(os.environ.get("TEST_TIME_SCALE", "1"))
    for name in "busybox-arm64", "busybox-host":
        if not os.access(FOLDER / name, os.X_OK):
            print(f"skipped: no {FOLDER / name}: run contrib/fetch-busybox.sh")
            return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        want = on_this_machine(options, folder)
        want = want[:-1] + ["init: exit status 0", ""]
        status, got = in_the_guest(options, sys.argv[split + 1:], folder)
    if status == 0 and got == want:
        print(f"ok: {len(want)} lines")
        return 0
    print("\n".join(difflib.unified_diff(want, got, "here", "guest",
                                         lineterm="", n=2)))
    print("too slow" if status is None else f"exit status {status}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
