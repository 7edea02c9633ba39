"""Record on a machine with a GPU and without a network: what it lacks travels there, and one archive comes back.

    python conf/record_offline.py pack WHEELS            here: fetch the wheels that recording needs
    python conf/record_offline.py record WHEELS OUT      there: check each page, record, and write OUT/recordings.tar.gz
    python conf/record_offline.py unpack ARCHIVE         here: verify the recordings, and put them beside their scripts

The machine with the GPU needs a checkout, Python, torch, matplotlib and pandas. At the end ``OUT`` has three files: the
archive, ``check.txt`` with each assert that failed, and ``record.txt``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

CONF = Path(__file__).resolve().parent
sys.path.insert(0, str(CONF))

PACKAGES = ("sphinx", "sphinx-gallery", "graphviz", "pygraphviz")
"""What ``conf/record.py`` imports and a machine for training seldom has. Pip adds what they need."""
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64")
"""Pip takes no wheel for an older C library by itself, so each has to be named."""
ARCHIVE = "recordings.tar.gz"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    packing = commands.add_parser("pack", help="fetch the wheels that recording needs")
    packing.add_argument("wheels", type=Path)
    packing.add_argument("--python", default="3.12", help="the version on the machine with the GPU")
    packing.set_defaults(do=lambda options: pack(options.wheels, options.python))
    recording = commands.add_parser("record", help="check, record, and archive")
    recording.add_argument("wheels", type=Path)
    recording.add_argument("out", type=Path)
    recording.set_defaults(do=lambda options: record(options.wheels, options.out))
    unpacking = commands.add_parser("unpack", help="put verified recordings beside their scripts")
    unpacking.add_argument("archive", type=Path)
    unpacking.set_defaults(do=lambda options: unpack(options.archive))
    options = parser.parse_args(arguments)
    return options.do(options)


def pack(wheels: Path, python: str) -> int:
    """Fetch wheels for Linux on x86-64, of the versions that requirements.txt pins. Returns pip's exit status."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version", python]
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    pins = ["--constraint", str(CONF.parent / "requirements.txt"), "--dest", str(wheels)]
    return subprocess.run([*command, *platforms, *pins, *PACKAGES]).returncode


def record(wheels: Path, out: Path) -> int:
    """Install the wheels for this run alone, check all pages, record those that can be, and archive the recordings.

    A page that fails keeps no other from being recorded.

    :returns: 0 if each page was recorded, else 1; what there is has been archived then too.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        site, made = Path(scratch) / "site", Path(scratch) / "recordings"
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
        subprocess.run([*install, "--target", str(site), *map(str, sorted(wheels.glob("*.whl")))], check=True)
        path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
        script = [sys.executable, "-u", str(CONF / "record.py")]
        _logged([*script, "--check"], path, out / "check.txt")
        status = _logged([*script, "--out", str(made)], path, out / "record.txt")
        made.mkdir(exist_ok=True)
        with tarfile.open(out / ARCHIVE, "w:gz") as archive:
            for folder in sorted(made.glob("*/*")):
                archive.add(folder, folder.relative_to(made))
    return 1 if status else 0


def _logged(command: list[str], path: str, log: Path) -> int:
    """Run a command; what it says goes to the terminal and into a file, line by line, lest the machine be gone at its end."""
    environment = {**os.environ, "PYTHONPATH": path}
    with (
        log.open("w", encoding="utf-8", buffering=1) as file,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
        ) as running,
    ):
        for line in running.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            file.write(line)
    return running.returncode


def unpack(archive: Path) -> int:
    """Put each recording in an archive beside its script, if it fits the script as it is and all its outputs are as recorded.

    :returns: 0 if all were put there, else 1.
    """
    from atlas.runner.outputs import recordings

    pages = {page.name: page for page in recordings.pages(CONF.parent)}
    refused = 0
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        for folder in sorted(Path(scratch).glob("*/*")):
            name = folder.relative_to(scratch).as_posix()
            fault = recordings.look(pages[name], folder).fault if name in pages else "there is no such page"
            if not fault:
                recordings.adopt(pages[name], folder)
            refused += bool(fault)
            print(f"record: {name}: {fault or 'recorded'}", file=sys.stderr if fault else sys.stdout)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
