"""`rooflab grade --slurm` and `rooflab bench lm --slurm` on a real Slurm: one node, this machine, on loopback.

The daemons of Debian's packages are started here, in a folder of their own and as the user who runs the tests. Root is
not needed, and a Slurm that the machine has is not touched.
"""

import contextlib
import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from cli.three_students import COMMAND, table

from rooflab.benchmark import lm_results
from rooflab.cli import main

PROGRAMS = {
    name: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    for name in ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "setpriv")
}
MISSING = ", ".join(name for name, path in PROGRAMS.items() if path is None)
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"no {MISSING}: apt-get install slurmctld slurmd slurm-client munge brings Slurm"
)
CONF = """
ClusterName=rooflab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}
SlurmdSpoolDir={folder}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,sched_min_interval=0
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus}
PartitionName=main Nodes={host} Default=YES
"""


def said_by(name, *options):
    """What a program of Slurm prints, or nothing if it fails."""
    return subprocess.run([PROGRAMS[name], *options], capture_output=True, text=True, check=False).stdout


def until(ready, what, seconds=300):
    """Wait until `ready()`."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.1)


def free_ports():
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


@contextlib.contextmanager
def running(command, log):
    """A daemon that ends with the block, or with this process if that is killed."""
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [PROGRAMS["setpriv"], "--pdeathsig", "TERM", *command], stdout=file, stderr=subprocess.STDOUT
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """The name of the only node."""
    folder, host, user = tmp_path_factory.mktemp("slurm"), socket.gethostname().split(".")[0], getpass.getuser()
    key, conf = folder / "munge.key", folder / "slurm.conf"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    text = CONF.format(host=host, folder=folder, user=user, ports=free_ports(), cpus=os.cpu_count())
    conf.write_text(text, encoding="utf-8")
    munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    munge += ["--foreground", "--force", f"--socket={folder}/munge.socket"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("SLURM_CONF", str(conf))
        stack.enter_context(running([PROGRAMS["munged"], *munge], folder / "munged.txt"))
        until((folder / "munge.socket").exists, "munged")
        for name in ("slurmctld", "slurmd"):
            stack.enter_context(running([PROGRAMS[name], "-D"], folder / f"{name}.txt"))
        stack.callback(until, lambda: not said_by("squeue", "--noheader"), "no job is left", 30)
        stack.callback(said_by, "scancel", "--full", f"--user={user}")
        until(lambda: "idle" in said_by("sinfo", "--noheader", "--format=%T"), "the node is idle")
        yield host


@pytest.mark.slow
def test_a_class_of_three(node, handed, tmp_path, capsys):
    assert main([*COMMAND, "--slurm", "--chunk", "2"]) == 1
    assert {name: row["points"] for name, row in table(tmp_path).items()} == {"ada": "3", "bob": "", "eve": "0"}
    assert capsys.readouterr().out.endswith("2 graded, 1 could not be graded: grades/grades.csv\n")
    assert sorted(path.name for path in (tmp_path / "grades" / "slurm").glob("*.log")) == ["task-0.log", "task-1.log"]


def test_an_option_that_slurm_refuses_is_one_sentence(node, handed, capsys):
    assert main([*COMMAND, "--slurm=--partition=none"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("Slurm did not take the job: sbatch: error: ")
    assert "invalid partition specified: none" in said


@pytest.mark.slow
def test_a_sweep_of_bench_lm(node, tmp_path, capsys):
    sweep = ["bench", "lm", "--device", "meta:H200", "--context-length", "128,256", "--json", str(tmp_path / "r.json")]
    assert main([*sweep, "--slurm"]) == 0
    said = capsys.readouterr().out
    job = said.split(":")[0].removeprefix("Job ")
    assert said.startswith(f"Job {job}: 2 tasks of ")
    until(lambda: not said_by("squeue", "--noheader", f"--jobs={job}"), "the job ends")
    logs = [path.read_text(encoding="utf-8") for path in (tmp_path / "r.json.tasks").glob("*.log")]
    assert main([*sweep, "--gather"]) == 0, logs
    assert [row.case.context_length for row in lm_results.load(tmp_path / "r.json")[0]] == [128, 256]


@pytest.fixture
def many(handed):
    """A function that starts the grading of six notebooks in six tasks, and the names of the students."""
    for number in range(6):
        shutil.copy(handed / ("ada.ipynb" if number % 3 else "eve.ipynb"), handed / f"s{number}.ipynb")
    for name in ("ada", "bob", "eve"):
        (handed / f"{name}.ipynb").unlink()
    command = [sys.executable, "-m", "rooflab", *COMMAND, "--slurm", "--chunk", "1"]
    with contextlib.ExitStack() as stack:

        def start():
            grading = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores Ctrl-C
            )
            stack.callback(grading.communicate)
            stack.callback(grading.kill)
            return grading

        yield start, [path.stem for path in sorted(handed.glob("*.ipynb"))]


def graded(folder):
    """Students who have a file of results, and when it was written."""
    return {path.stem: path.stat().st_mtime_ns for path in (folder / "grades").glob("*.json")}


def points(folder):
    return {name: row["points"] for name, row in table(folder).items()}


def finish(start, have, folder, students):
    """Run again: this grades what is missing, and nothing else."""
    said = (again := start()).communicate(timeout=600)
    assert again.returncode == 0 and said[0].startswith(f"{have} of 6 are graded already.\n"), said
    manifest = json.loads((folder / "grades" / "slurm" / "manifest.json").read_text(encoding="utf-8"))
    assert len(manifest["tasks"]) == 6 - have
    assert points(folder) == {name: "3" if number % 3 else "0" for number, name in enumerate(students)}


@pytest.mark.slow
def test_a_cancelled_task_and_a_lost_node(node, many, tmp_path):
    start, students = many
    grading = start()
    until(lambda: graded(tmp_path), "the first grade")
    array = said_by("squeue", "--noheader", "--format=%F").split()[0]
    said_by("scancel", f"{array}_5")  # by an administrator, before it has started
    said_by("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost")
    until(lambda: not said_by("squeue", "--noheader", "--states=RUNNING"), "its tasks are ended")
    before = graded(tmp_path)
    said_by("scontrol", "update", f"NodeName={node}", "State=RESUME")  # what ran there is queued again
    said = grading.communicate(timeout=600)
    assert grading.returncode == 1, said
    assert said[0].count("The job ended without a grade; its log is in the folder slurm.") == 1, said
    assert [name for name, row in table(tmp_path).items() if row["status"] == "failed"] == students[-1:]
    assert 0 < len(before) < 5, "some were graded by the node that was lost, and some when it was back"
    finish(start, 5, tmp_path, students)


@pytest.mark.slow
def test_ctrl_c_cancels_the_job_and_the_next_run_goes_on(node, many, tmp_path):
    start, students = many
    grading = start()
    until(lambda: len(graded(tmp_path)) > 1, "two grades")
    grading.send_signal(signal.SIGINT)
    said = grading.communicate(timeout=120)[1]
    assert (grading.returncode, said) == (130, "Stopped. The same command goes on from here.\n")
    until(lambda: not said_by("squeue", "--noheader"), "the job is gone")
    have = graded(tmp_path)
    assert 1 < len(have) < 6
    finish(start, len(have), tmp_path, students)
