"""Machines that `rooflab doctor` is shown instead of this one."""

from rooflab.cli.doctor.installed import Installed
from rooflab.cli.doctor.system import System
from rooflab.cli.doctor.tools import LAB_MODULES

GXX = "g++ (Ubuntu 13.2.0-23ubuntu4) 13.2.0\nCopyright"
OLD_GXX = "g++ (GCC) 8.5.0 20210514 (Red Hat 8.5.0-4)\nCopyright"
APPLE = "Apple clang version 15.0.0 (clang-1500.3.9.4)\nTarget: arm64-apple-darwin23.5.0"
CLANG = "Ubuntu clang version 14.0.0-1ubuntu1.1\nTarget: x86_64-pc-linux-gnu"
WITHOUT_CUDA = "no CUDA device can be used: rooflab was built without CUDA (install nvcc and reinstall)"
NO_BWRAP = "bubblewrap, which isolates student code, is missing: have an administrator install it."
REFUSED = "bubblewrap is not allowed to isolate student code here (bwrap: No permissions to create a new namespace)."
RELEASE = {"/etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n'}
MEMORY = {"/proc/meminfo": "MemTotal:       16316412 kB\nMemFree:         1 kB\n"}


class Machine(System):
    """A laptop with Ubuntu 24.04 and rooflab; another machine has other `texts`, `outputs` and so on."""

    def __init__(self, **others):
        self.platform, self.machine, self.kernel, self.libc = "linux", "x86_64", "6.8.0-45-generic", "glibc 2.39"
        self.python, self.executable = "3.12.3", "/home/ada/.venv/bin/python"
        self.headers, self.libraries = "/usr/include/python3.12/Python.h", "/home/ada/.venv/lib/site-packages"
        self.sources = "."
        self.environ, self.is_root, self.cpus = {}, False, 8
        self.texts = RELEASE | MEMORY
        self.outputs = {("c++", "--version"): GXX, ("bwrap", "--version"): "bubblewrap 0.9.0\n"}
        self.programs = {"apt-get", "sudo"}
        self.files = {self.headers}
        self.modules = {*LAB_MODULES, "ensurepip"}
        self.writable = self.executable_folders = {"/tmp", "/home/ada"}
        self.free = {"/tmp": 50 * 10**9, ".": 50 * 10**9}
        self.asked = installed()
        vars(self).update(others)

    def text(self, path):
        return self.texts.get(path, "")

    def output(self, *command):
        return self.outputs.get(command, "")

    def which(self, program):
        return f"/usr/bin/{program}" if program in self.programs else ""

    def exists(self, path):
        return path in self.files

    def has(self, module):
        return module in self.modules

    def can_write(self, folder):
        return folder in self.writable

    def runs_programs(self, folder):
        return folder in self.executable_folders

    def temporary_folder(self):
        return "/tmp" if "/tmp" in self.writable else ""

    def home(self):
        return "/home/ada"

    def free_bytes(self, folder):
        return self.free.get(folder)

    def rooflab(self):
        return self.asked


NOTHING_MISSING = ("no_cpu_kernels", "no_gpu_kernels", "no_jail", "shut_gpus")


def installed(**others):
    """What a rooflab on a laptop says."""
    told = {"version": "0.2.0", "isa": "avx2", "threads": 8, "cpu": "AMD Ryzen 7", "gpus": (), "driver": ""}
    return Installed(**{**told, "no_gpu": WITHOUT_CUDA, **dict.fromkeys(NOTHING_MISSING, ""), **others})


NOT_INSTALLED = "No module named 'rooflab'"
MACHINES = {
    "laptop": Machine(),
    "mac": Machine(
        platform="darwin",
        machine="arm64",
        kernel="23.5.0",
        texts={},
        outputs={
            ("sw_vers", "-productVersion"): "14.5\n",
            ("xcode-select", "-p"): "/Library/Developer/CommandLineTools\n",
            ("c++", "--version"): APPLE,
            ("sysctl", "-n", "hw.memsize"): f"{16 * 2**30}\n",
        },
        programs=set(),
        asked=installed(
            isa="neon",
            no_cpu_kernels="backend='simt' runs on Linux on x86-64 and aarch64",
            no_jail="Student code can be isolated only on Linux: grade there.",
        ),
    ),
    "colab": Machine(
        environ={"COLAB_RELEASE_TAG": "release-colab", "CXX": "clang++"},
        is_root=True,
        outputs={
            ("clang++", "--version"): CLANG,
            ("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"): "Tesla T4, 550.54.15\n",
        },
        programs={"apt-get"},
        cpus=2,
        asked=installed(threads=2, no_jail=NO_BWRAP, driver="550.54.15"),
    ),
    "cluster": Machine(
        kernel="4.18.0-553.el8_10.x86_64",
        environ={"SLURM_JOB_ID": "1", "MODULESHOME": "/opt/modules"},
        texts=MEMORY
        | {
            "/etc/os-release": "NAME=x\nPRETTY_NAME=Rocky Linux 8.10\n",
            "/proc/self/cgroup": "0::/slurm/job_1/step_0\n",
            "/sys/fs/cgroup/slurm/job_1/memory.max": f"{2 * 2**30}\n",
            "/sys/fs/cgroup/slurm/job_1/step_0/memory.max": "max\n",
            "/sys/fs/cgroup/slurm/memory.max": f"{4 * 2**30}\n",
            "/sys/fs/cgroup/slurm/cpu.max": "150000 100000\n",
            "/sys/fs/cgroup/slurm/job_1/cpu.max": "max 100000\n",
            "/proc/sys/user/max_user_namespaces": "0\n",
        },
        outputs={("c++", "--version"): OLD_GXX},
        programs={"dnf"},
        files=set(),
        modules=set(),
        writable={"/tmp"},
        executable_folders=set(),
        free={"/tmp": 5 * 10**8, ".": 10**12},
        asked=NOT_INSTALLED,
    ),
    "old ubuntu": Machine(python="3.10.12", outputs={}, modules=set(), asked=NOT_INSTALLED),
}
