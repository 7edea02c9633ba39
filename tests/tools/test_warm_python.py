"""A forked Python is as good as a new one: it has nothing of what ran before it, and it ends in the same way."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import warm_python
from tiny.tiny_site import build, written

ENDINGS = {
    "well": ("print('done')", 0),
    "exit": ("raise SystemExit(3)", 3),
    "exit without a number": ("raise SystemExit", 0),
    "a message": ("raise SystemExit('why')", 1),
    "an error": ("1 / 0", 1),
    "a signal": ("import os; os.kill(os.getpid(), 15)", -15),
    "no clean-up": ("import os; os._exit(4)", 4),
    "a thread that is late": (
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()",
        0,
    ),
    "what is registered for the end": ("import atexit; atexit.register(print, 'at the end')", 0),
    "past the streams": ("import os, subprocess; os.write(1, b'one'); subprocess.run(['echo', 'two'])", 0),
}


def ended(code: str, folder: Path, real: bool = False) -> warm_python.Ended:
    script = folder / "script.py"
    script.write_text(code)
    return warm_python.run(["-P", str(script)], cwd=folder, env=os.environ, wall=300, real=real)


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_ends_as_a_new_one_does(ending: str, tmp_path: Path) -> None:
    code, status = ENDINGS[ending]
    forked, new = (ended(code, tmp_path, real) for real in (False, True))
    assert forked.code == new.code == status
    assert forked.output.splitlines()[-1:] == new.output.splitlines()[-1:]


def test_it_finds_what_a_new_one_finds(tmp_path: Path) -> None:
    look = (
        "import os, resource, signal, sys, threading\n"
        "print(os.getcwd(), sys.argv, sys.path, __name__, __file__, sys.flags, sys.gettrace(), sys.stdin.read())\n"
        "print(sorted(os.listdir('/proc/self/fd')), [thread.name for thread in threading.enumerate()])\n"
        "print(sorted(set(os.environ) - {'LC_CTYPE'}), os.environ['PATH'])\n"
        "print([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE)])\n"
        "print(resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_DATA))\n"
    )
    said = [line.split(" object at ")[0] for line in ended(look, tmp_path).output.splitlines()]
    assert said == [line.split(" object at ")[0] for line in ended(look, tmp_path, real=True).output.splitlines()]


def test_nothing_under_test_is_imported_before(tmp_path: Path) -> None:
    look = "import sys; print(sorted(name for name in sys.modules if name.partition('.')[0] in ('atlas', 'conf', 'tests')))"
    assert ended(look, tmp_path).output.strip() == "[]"


def test_nothing_is_computed_before(tmp_path: Path) -> None:
    """A thread of torch's would be missing in the child, which then waits for it for ever."""
    code = "import torch\nx = torch.ones(1 << 20, requires_grad=True)\n(x * x).sum().backward()\nprint(x.grad[:1])"
    assert "tensor([2.])" in ended(code, tmp_path).output


def test_one_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    leave = (
        "import os, sys, builtins, torch\nos.environ['LEFT'] = '1'\nbuiltins.left = sys.left = torch.left = 1\n"
        "sys.path.append('left')\ntorch.set_default_dtype(torch.float64)\nos.chdir('/')\n"
    )
    assert ended(leave, tmp_path).code == 0
    look = (
        "import os, sys, builtins, torch\n"
        "print('LEFT' in os.environ, *(hasattr(one, 'left') for one in (builtins, sys, torch)), 'left' in sys.path,"
        " torch.get_default_dtype(), os.getcwd())"
    )
    assert ended(look, tmp_path).output.strip() == f"False False False False False torch.float32 {tmp_path}"


def test_several_run_side_by_side(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(8)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda folder: ended(f"print({folder.name!r})", folder), folders))
    assert [one.output.strip() for one in done] == [folder.name for folder in folders]


def test_a_variable_that_python_reads_at_its_start_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    said = ended("print(hash('a'))", tmp_path).output
    assert said == ended("print(hash('a'))", tmp_path, real=True).output


def test_a_build_has_the_extensions_of_its_own_folder_of_settings(tmp_path: Path) -> None:
    """Two builds, one after the other, with an extension of the same name that says different things."""
    site = written(tmp_path / "site", {"docs/page.md": "# A page\n\nText.\n"})
    for word in ("first", "second"):
        conf = tmp_path / word
        conf.mkdir()
        (conf / "conf.py").write_text("import sys\nsys.path.insert(0, __file__[:-8])\nextensions = ['atlas']\n")
        (conf / "atlas.py").write_text(f"print('the {word}')\ndef setup(app):\n    return {{}}\n")
        assert f"the {word}" in build(site, conf=conf).output
