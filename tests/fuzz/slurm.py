#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign on a Slurm cluster of this one machine.

  slurm.py --shootdown FILE --scripts DIR [--seconds N] [--tasks N] [--keep]

Starts munged, slurmctld and slurmd of its own on 127.0.0.1, with configuration,
keys, ports and state in a temporary directory; submits an array of tasks on a
planted bug and the merge that depends on it; looks at what came of it; ends the
daemons that it started. As root or as anybody. Exit status 77, a skipped test,
where Slurm or munge is not installed.
"""
import argparse
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
NEEDED = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo"]
TARGET = ["--cpus", "4", "--append", "fault_drain=yes", "--hw", "typical",
          "--hw-defer", "on", "--drain", "dsb", "drain_race"]

CONF = """\
ClusterName=shootdown
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={port2}
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=100000,batch_sched_delay=0
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=here Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def wait_for(what, seconds, function):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        result = function()
        if result:
            return result
        time.sleep(0.2)
    raise TimeoutError(f"{what}: not within {seconds} s")


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        self.environment = dict(os.environ,
                                SLURM_CONF=os.path.join(folder, "slurm.conf"))
        for name in list(self.environment):
            if name.startswith(("SLURM_", "SBATCH_")) and name != "SLURM_CONF":
                del self.environment[name]

    def run(self, *command, **more):
        done = subprocess.run(command, env=self.environment, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              **more)
        text = done.stdout.decode(errors="replace")
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.returncode}\n"
                               f"{text}")
        return text

    def daemon(self, *command):
        with open(os.path.join(self.folder, command[0] + ".out"), "wb") as log:
            self.daemons.append(subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True))

    def start(self):
        path = lambda name: os.path.join(self.folder, name)
        for name in ("state", "spool"):
            os.mkdir(path(name))
        with open(path("munge.key"), "wb") as file:
            os.chmod(path("munge.key"), 0o400)
            file.write(os.urandom(128))
        port, port2 = free_ports(2)
        with open(path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write(CONF.format(
                host=socket.gethostname().split(".")[0], port=port,
                port2=port2, dir=self.folder, user=getpass.getuser(),
                cpus=os.cpu_count()))
        version = re.search(r"(\d+)\.", self.run("slurmd", "-V"))
        if int(version[1]) >= 23:  # older ones do not know the word
            with open(path("cgroup.conf"), "w", encoding="utf-8") as file:
                file.write("CgroupPlugin=disabled\n")
        # --force: it does not like a directory that others may enter.
        self.daemon("munged", "--foreground", "--force",
                    "--key-file=" + path("munge.key"),
                    "--socket=" + path("munge.socket"),
                    "--pid-file=" + path("munged.pid"),
                    "--log-file=" + path("munged.log"),
                    "--seed-file=" + path("munged.seed"))
        wait_for("munged", 10, lambda: os.path.exists(path("munge.socket")))
        self.daemon("slurmctld", "-D", "-f", path("slurm.conf"))
        self.daemon("slurmd", "-D", "-f", path("slurm.conf"))
        wait_for("the node", 30, self.is_idle)

    def is_idle(self):
        try:
            return "idle" in self.run("sinfo", "-h", "-o", "%T")
        except RuntimeError:
            return False

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def logs(self):
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".log", ".out")):
                with open(os.path.join(self.folder, name),
                          errors="replace", encoding="utf-8") as file:
                    print(f"--- {name}\n{file.read()[-1500:]}")


def campaign(cluster, o, out):
    """Submits both jobs and waits; returns the seconds that it took."""
    start = time.monotonic()
    # Going on after the first finding: the corpus is not to be empty.
    words = [f"-max_total_time={o.seconds}", "-keep_going=1", "-seed=1",
             *TARGET]
    environment = "--export=ALL,SHOOTDOWN=" + os.path.abspath(o.shootdown)
    job = cluster.run(
        "sbatch", "--parsable", environment, f"--array=0-{o.tasks - 1}",
        f"--output={out}/task-%a.log", os.path.join(o.scripts, "fuzz.sbatch"),
        out, *words).strip()
    merge = cluster.run(
        "sbatch", "--parsable", environment, "--dependency=afterany:" + job,
        f"--output={out}/merge.log", os.path.join(o.scripts, "merge.sbatch"),
        out, *words[1:]).strip()
    wait_for("the jobs", 40 + o.tasks * (o.seconds + 10),
             lambda: cluster.run("squeue", "-h").strip() == "")
    return time.monotonic() - start, job, merge


def text_of(*parts):
    with open(os.path.join(*parts), errors="replace",
              encoding="utf-8") as file:
        return file.read()


def check(o, out):
    wrong = []
    shards = set()
    for task in range(o.tasks):
        text = text_of(out, f"task-{task}.log")
        shards.add(f"shard-{task}")
        if "DONE" not in text and "S2" not in text:
            wrong.append(f"task {task} did neither end nor find:\n"
                         f"{text[-600:]}")
    there = {name for name in os.listdir(out) if name.startswith("shard-")}
    if there != shards:
        wrong.append(f"shards: {sorted(there)}")
    findings = [name for name in os.listdir(os.path.join(out, "findings"))
                if name.startswith("stale-")]
    if not findings:
        wrong.append("no finding")
    corpus = os.listdir(os.path.join(out, "corpus"))
    if not corpus:
        wrong.append("no corpus:\n" + text_of(out, "merge.log")[-800:])
    for name in findings[:1]:
        again = subprocess.run(
            [o.shootdown, "fuzz", *TARGET, os.path.join(out, "findings", name)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if again.returncode != 77:
            wrong.append(f"{name} again: {again.returncode}\n"
                         + again.stdout.decode(errors="replace")[-800:])
    print(f"{o.tasks} tasks, {len(findings)} findings, {len(corpus)} inputs "
          "in the merged corpus")
    return wrong


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--shootdown", required=True)
    parser.add_argument("--scripts", required=True)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--keep", action="store_true",
                        help="leave the directory and print its name")
    o = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        print("not installed: " + ", ".join(missing))
        return SKIPPED

    folder = tempfile.mkdtemp(prefix="shootdown-slurm-")
    cluster = Cluster(folder)
    out = os.path.join(folder, "campaign")
    os.mkdir(out)
    try:
        start = time.monotonic()
        cluster.start()
        print(f"a cluster in {time.monotonic() - start:.1f} s")
        seconds, _, _ = campaign(cluster, o, out)
        print(f"array and merge in {seconds:.1f} s")
        wrong = check(o, out)
    except (TimeoutError, RuntimeError, OSError) as problem:
        wrong = [str(problem)]
    finally:
        cluster.stop()
    if wrong:
        cluster.logs()
        print("\n".join(wrong))
    if o.keep:
        print(folder)
    else:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
