"""Results take the place of earlier ones in one step: killed, at once, on disks that can exchange and that cannot."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import killing
from cases import MORE
from predilect._base import replace as _replace
from predilect._base.replace import put_in_place, staged

WAYS = ["exchange", "swap"]


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Disks that can exchange two folders, and disks that cannot."""
    if request.param == "swap":
        monkeypatch.setattr(_replace, "_exchange", lambda new, path: False)
    return request.param


@pytest.fixture
def place(tmp_path):
    """A folder of results, in which something is."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "text").write_text("old")
    return tmp_path / "out"


def put(path, text="new"):
    with staged(path) as new:
        new.mkdir()
        (new / "text").write_text(text)
        put_in_place(new, path)


def left_behind(path, **files):
    """A hidden folder as a process leaves it that is killed."""
    folder = path.with_name(f".{path.name}.predilect-abcd_123")
    for name, text in files.items():
        (folder / name / path.name).mkdir(parents=True)
        (folder / name / path.name / "text").write_text(text)
    return folder


def test_a_folder_takes_the_place_of_another_and_nothing_else_stays(place, way):
    put(place)
    assert (place / "text").read_text() == "new"
    assert killing.hidden(place) == []


@pytest.mark.skipif(sys.platform != "linux", reason="not every disk elsewhere can")
def test_two_folders_are_exchanged_in_one_step(place, monkeypatch):
    monkeypatch.setattr(_replace, "_swap", lambda new, path: pytest.fail("there was a moment without a result"))
    put(place)
    assert (place / "text").read_text() == "new"


def test_a_folder_takes_the_place_of_a_file_and_a_file_that_of_a_file(tmp_path, way):
    (tmp_path / "out").write_text("old")
    put(tmp_path / "out")
    (tmp_path / "p.csv").write_text("old")
    with staged(tmp_path / "p.csv") as new:
        new.write_text("new")
        put_in_place(new, tmp_path / "p.csv")
    assert (tmp_path / "out" / "text").read_text() == (tmp_path / "p.csv").read_text() == "new"
    assert killing.hidden(tmp_path / "out") == ["p.csv"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_the_old_result_is_back_if_the_new_one_cannot_take_its_place(place, monkeypatch, error):
    monkeypatch.setattr(_replace, "_exchange", lambda new, path: False)
    replace = Path.replace

    def fail(self, target):
        if target == place and not place.exists():  # the second rename of a swap
            raise error
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(type(error)):
        put(place)
    assert (place / "text").read_text() == "old"
    assert killing.hidden(place) == []


def test_an_error_of_the_exchange_is_raised(place, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_replace, "_exchange", full)
    with pytest.raises(OSError, match="No space left"):
        put(place)
    assert (place / "text").read_text() == "old"
    assert killing.hidden(place) == []


def test_what_another_process_takes_away_or_puts_there_meanwhile_is_no_error(place, monkeypatch):
    events = []

    def meanwhile(new, path):
        if not events:
            events.append("gone")
            path.rename(path.with_name("elsewhere"))
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return False

    rename = Path.rename

    def slow(self, target):
        rename(self, target)
        if self == place and "put" not in events:
            events.append("put")
            place.mkdir()
            (place / "text").write_text("another's")

    monkeypatch.setattr(_replace, "_exchange", meanwhile)
    put(place, "first")
    assert (place / "text").read_text() == "first"
    monkeypatch.setattr(Path, "rename", slow)
    put(place, "second")
    assert (place / "text").read_text() == "second"
    assert events == ["gone", "put"]
    assert killing.hidden(place) == ["elsewhere"]


def test_a_hidden_folder_that_vanishes_is_an_error_and_not_an_endless_loop(place, way):
    def lose():
        with staged(place) as new:
            put_in_place(new, place)

    with pytest.raises(FileNotFoundError):
        lose()
    assert (place / "text").read_text() == "old"


def test_what_a_killed_process_left_behind_goes_at_the_next_write(place):
    left_behind(place, new="half", old="older", **{"gone-xyz": "oldest"})
    put(place)
    assert (place / "text").read_text() == "new"
    assert killing.hidden(place) == []


def test_a_result_that_a_killed_process_had_moved_away_is_put_back_before_the_next_is_made(place):
    left_behind(place, new="half", old="moved away")
    (place / "text").unlink()
    place.rmdir()
    with staged(place):
        assert (place / "text").read_text() == "moved away"
    assert killing.hidden(place) == []


def test_nothing_but_what_was_left_behind_is_ever_removed(place):
    kept = {".out", ".out-abcd_123", ".out.predilect-abc", ".out.predilect-ABCD_123", ".other.predilect-abcd_123"}
    for name in kept:
        place.with_name(name).mkdir()
    place.with_name(".out.predilect-file_123").write_text("a file")
    place.with_name(".out.predilect-link_123").symlink_to(".out")
    place.with_name(".out.predilect-user_123").mkdir()
    (place.with_name(".out.predilect-user_123") / "thesis.tex").write_text("...")
    kept |= {f".out.predilect-{name}_123" for name in ("file", "link", "user")}
    put(place)
    assert set(killing.hidden(place)) == kept


def test_what_a_running_process_works_in_is_left_alone(place):
    code = (
        "import sys; from pathlib import Path; from predilect._base.replace import staged\n"
        "with staged(Path(sys.argv[1])) as new: new.mkdir(); print(flush=True); sys.stdin.read(); assert new.exists()"
    )
    command = [sys.executable, "-c", code, str(place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with staged(place) as mine:  # two in one process do not disturb each other either
            put(place)
            assert mine.parent.exists()
        assert len(killing.hidden(place)) == 1
        process.stdin.close()
        assert process.wait() == 0
    assert killing.hidden(place) == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EBADF])
def test_where_folders_cannot_be_locked_nothing_is_taken_for_left_behind(place, monkeypatch, number):
    def refuse(folder):
        raise OSError(number, os.strerror(number))

    theirs = left_behind(place, new="half")
    monkeypatch.setattr(_replace, "_lock", refuse)
    put(place)
    assert (place / "text").read_text() == "new"
    assert killing.hidden(place) == [theirs.name]


def test_everything_is_on_the_disk_before_it_takes_its_place(place, monkeypatch):
    order = []
    sync, exchange = _replace._sync, _replace._exchange
    monkeypatch.setattr(_replace, "_sync", lambda path: (order.append(path.name), sync(path))[1])
    monkeypatch.setattr(_replace, "_exchange", lambda new, path: (order.append("exchange"), exchange(new, path))[1])
    with staged(place) as new:
        (new / "model").mkdir(parents=True)
        (new / "model" / "arrays").write_text("new")
        put_in_place(new, place)
    assert order[-2:] == ["exchange", place.parent.name]
    assert {"out", "model", "arrays"} <= set(order[:-2])


@pytest.mark.slow  # many processes
@pytest.mark.parametrize("number", killing.SIGNALS)
@pytest.mark.parametrize("kind", killing.KINDS)
def test_a_result_is_there_and_whole_whenever_its_process_is_killed(tmp_path, kind, number):
    found = killing.kill_again_and_again(kind, number, 10 * MORE, tmp_path / "out")
    codes = {-signal.SIGKILL} if number == signal.SIGKILL else {143}
    assert found == killing.Kills(absent=0, broken=0, leftovers=0, codes=codes)


@pytest.mark.slow  # many processes
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", killing.KINDS)
def test_processes_that_replace_at_once_end_with_one_whole_result(tmp_path, kind, way):
    code = (
        "import sys, killing; from pathlib import Path; from predilect._base import replace as _replace\n"
        "if sys.argv[3] == 'swap': _replace._exchange = lambda new, path: False\n"
        "for k in range(60): killing.replace(sys.argv[1], Path(sys.argv[2]), sys.argv[4] * 300)"
    )
    command = [sys.executable, "-c", code, kind, str(tmp_path / "out"), way]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    running = [subprocess.Popen([*command, k], stderr=subprocess.PIPE, env=environment) for k in "123"]
    assert [process.communicate()[1].decode() for process in running] == ["", "", ""]
    assert killing.is_whole(kind, tmp_path / "out")
    assert killing.hidden(tmp_path / "out") == []
