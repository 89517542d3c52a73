# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of the login environment that a program gets on its node, for both ways to start: variables, limits, its
own TMPDIR, sourced files and virtual environments, standard input."""
import json
import os
import pathlib
import re
import resource
import signal

import pytest

from chains import Chain
from clusters import is_running, run, wait_for
from runs import PYTHON, nothing_left, processes_of, records, terminal, the_run, words_of

CLUSTER = dict(nodes=2, gpus=2, model="k80", lines=["KillWait=2", "PropagateResourceLimits=NONE"])
BOTH_WAYS = pytest.mark.parametrize("way", [[], ["--detach"]], ids=["now", "queued"])
OF_THE_LOGIN = {"XDG_RUNTIME_DIR": "/run/user/1", "XDG_SESSION_ID": "3", "SSH_AUTH_SOCK": "/tmp/agent",
                "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "SSH_CONNECTION": "1 2 3 4", "SSH_TTY": "/dev/pts/9",
                "DISPLAY": ":0", "XAUTHORITY": "/x", "WAYLAND_DISPLAY": "w", "TMUX": "/tmp/t,1", "STY": "x",
                "TMPDIR": "/nosuch/login", "TMP": "/nosuch/login", "TEMP": "/nosuch", "TEMPDIR": "/nosuch",
                "VSCODE_IPC_HOOK_CLI": "/x", "GPG_AGENT_INFO": "/x", "INVOCATION_ID": "x",
                "NOTIFY_SOCKET": "/x", "JOURNAL_STREAM": "1:2", "SBATCH_CLUSTERS": "other",
                "SLURM_JOB_ID": "999999", "GPUQ_RESUME_FROM": "/old", "SSH_ASKPASS": "/x", "TMUX_TMPDIR": "/x",
                "KITTY_LISTEN_ON": "unix:/x", "SWAYSOCK": "/x", "JUPYTERHUB_API_TOKEN": "x", "CUDA_MPS_PIPE_DIRECTORY": "/x",
                "PMI_FD": "7", "TORCHELASTIC_USE_AGENT_STORE": "True", "GPUQ_PARAM_lr": "1"}
OF_THE_USER = {"HERE": "kept", "XDG_DATA_HOME": "/d", "LANGUAGE": "fr", "GPUQ_PROGRESS": "(?P<step>[0-9]+)"}


@pytest.fixture(autouse=True)
def clean(person):
    yield
    nothing_left(person)


def output_of(person, way, *words, env=None, **options):
    done = person.gpuq("-Q", "run", *way, *words, env=env, **options)
    assert done.returncode == 0, done.stderr
    record = records(person)[-1]
    assert record.wait_for_end()["status"] == 0, record.log("err")
    return record.log().decode()


def variables_in(text):
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


@BOTH_WAYS
def test_variables_of_the_login_stay_there(person, way):
    text = output_of(person, way, "--env", "TEMP=chosen", "--env", "DISPLAY", "env",
                     env={**OF_THE_LOGIN, **OF_THE_USER, "HOSTNAME": "login"})
    variables = variables_in(text)
    for name, value in OF_THE_LOGIN.items():
        if name not in ("TEMP", "DISPLAY"):
            assert variables.get(name) != value, name
    for name in ("XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "TMUX", "TMP", "VSCODE_IPC_HOOK_CLI", "INVOCATION_ID"):
        assert name not in variables, name
    assert {name: variables.get(name) for name in OF_THE_USER} == OF_THE_USER
    assert (variables["TEMP"], variables["DISPLAY"]) == ("chosen", ":0")
    assert variables.get("HOSTNAME") != "login"
    assert "GPUQ_RESUME_FROM" not in variables


def test_both_ways_give_the_same_variables(person):
    texts = [variables_in(output_of(person, way, "env", env=OF_THE_LOGIN)) for way in ([], ["--detach"])]
    changing = re.compile(r"SLURMD?_|GPUQ_|TMPDIR|CUDA|GPU_|ROCR|ZE_|_$|SHLVL|ENVIRONMENT|PWD|OLDPWD|PET_|MASTER_PORT|SRUN_|"
                          r"\w*(HYDRA|_MCA)_")  # from 24.05 on Slurm sets these for MPI's launchers
    now, queued = ({name: value for name, value in one.items() if not changing.match(name)} for one in texts)
    assert now == queued


@pytest.mark.parametrize("way", [[], ["--detach"], ["-N", "2"]], ids=["now", "queued", "ranks"])
def test_limits_are_the_nodes_but_for_core_and_stack(person, way):
    def login():
        resource.setrlimit(resource.RLIMIT_CORE, (4096, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        resource.setrlimit(resource.RLIMIT_CPU, (3600, 7200))
        resource.setrlimit(resource.RLIMIT_AS, (64 << 30, 65 << 30))
        os.umask(0o027)
    text = output_of(person, way, "sh", "-c", 'cat /proc/self/limits; echo "here $(umask) $PWD"', preexec_fn=login)
    pid = person.cluster.pid("slurmd-n0")
    of_node = pathlib.Path(f"/proc/{pid}/limits").read_text()
    rows = {line[:26].strip(): line[26:].split()[0] for line in text.splitlines() if line.startswith("Max")}
    node_rows = {line[:26].strip(): line[26:].split()[0] for line in of_node.splitlines() if line.startswith("Max")}
    assert rows["Max core file size"] == "4096"
    assert rows["Max stack size"] == str(4 << 20)
    for name in ("Max open files", "Max cpu time", "Max address space", "Max data size", "Max locked memory"):
        assert rows[name] == node_rows[name], name
    # One line for each rank: their lines come in any order.
    assert {line for line in text.splitlines() if line.startswith("here ")} == {f"here 0027 {person.home}"}


@pytest.mark.parametrize("words, expected", [(["run", "sh", "-c", "exit 3"], 3), (["doctor"], None)],
                         ids=["run", "doctor"])
def test_children_have_a_status_where_the_parent_ignores_it(person, words, expected):
    """A parent that ignores SIGCHLD leaves that to its children."""
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    usual, other = person.gpuq("-Q", *words), person.gpuq("-Q", *words, preexec_fn=ignore)
    assert other.returncode == (usual.returncode if expected is None else expected), other
    assert "the check ended" not in other.stdout and other.stderr == ""


SHOW_TMP = 'stat -c "%a %u" "$TMPDIR"; echo "$TMPDIR"; mktemp; mkdir -p $TMPDIR/a/b; chmod 0 $TMPDIR/a; ln -s / $TMPDIR/l'


@BOTH_WAYS
def test_a_program_has_a_directory_of_its_own_for_temporary_files(person, way):
    mode, path, made = output_of(person, way, "sh", "-c", SHOW_TMP, env=OF_THE_LOGIN).splitlines()
    assert mode == f"700 {os.geteuid()}"
    assert path.startswith("/tmp/gpuq-tmp-") and made.startswith(path + "/")
    wait_for(lambda: not os.path.exists(path), 20, "the end of TMPDIR")


def test_so_has_a_program_on_a_terminal(person):
    with terminal(person, "run", "--pty", "sh", "-c", "echo at $TMPDIR; sleep 0.5") as screen:
        screen.wait_for("at /tmp/gpuq-tmp-")
        assert screen.status() == 0


def test_a_chosen_one_is_left_alone(person):
    text = output_of(person, [], "--env", f"TMPDIR={person.home}", "sh", "-c", "echo $TMPDIR; mktemp")
    assert text.splitlines()[0] == str(person.home)
    assert os.path.exists(text.splitlines()[1])
    two = output_of(person, ["-N", "2"], "--env", f"TMPDIR={person.home}", "sh", "-c", "echo $TMPDIR")
    assert set(two.splitlines()) == {str(person.home)}


@pytest.mark.parametrize("status", [0, 7])
def test_each_node_has_one(person, status):
    # srun kills the other node's program if one fails: none ends before both have printed.
    program = ("touch $TMPDIR/x; echo $SLURMD_NODENAME $TMPDIR; touch told-$SLURM_PROCID; "
               f"until [ -e told-0 ] && [ -e told-1 ]; do sleep 0.1; done; sleep 0.5; exit {status}")
    done = person.gpuq("-Q", "run", "-N", "2", "sh", "-c", program, env=OF_THE_LOGIN)
    assert done.returncode == status, done.stderr
    places = dict(line.split() for line in done.stdout.splitlines())
    assert set(places) == {"n0", "n1"} and len(set(places.values())) == 2
    assert all(path.startswith("/tmp/gpuq-tmp-") for path in places.values())
    if status == 0:
        wait_for(lambda: not any(map(os.path.exists, places.values())), 20, "the end of both")
    else:  # srun kills the other nodes' processes: the next run on the node removes their leftovers
        output_of(person, ["-N", "2"], "true")
        wait_for(lambda: not any(map(os.path.exists, places.values())), 20, "the end of both")


def test_a_signal_that_ends_a_program_on_another_node_is_told(person):
    done = person.gpuq("-Q", "run", "-N", "2", "sh", "-c",
                       '[ "$SLURMD_NODENAME" = n0 ] || kill -SEGV $$; sleep 5')
    assert done.returncode == 128 + signal.SIGSEGV, done.stderr
    output_of(person, ["-N", "2"], "true")


def test_what_a_killed_supervisor_leaves_is_removed_by_the_next_run(person):
    with person.start("-Q", "run", "sh", "-c", "echo $TMPDIR; exec sleep 600") as client:
        path = client.stdout.readline().decode().strip()
        assert os.path.isdir(path)
        victims = [pid for pid in processes_of(person) if "gpuq-supervisor" in words_of(pid)[0]]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(map(is_running, victims)), 20, "the end of all supervisors")
        client.wait(60)
    person.cluster.wait_until_idle()
    output_of(person, [], "true")
    wait_for(lambda: not os.path.exists(path), 20, "the sweep")


def test_a_stopped_run_leaves_none(person):
    with person.start("-Q", "run", "sh", "-c", "echo $TMPDIR; exec sleep 600") as client:
        path = client.stdout.readline().decode().strip()
        assert person.gpuq("stop", "last").returncode == 0
        client.wait(20)
    wait_for(lambda: not os.path.exists(path), 20, "the end of TMPDIR")


# Sourced files and virtual environments

@pytest.fixture
def project(person):
    (person.home / "env.sh").write_text("export SOURCED=$HOSTNAME LIST=\"$LIST(env)\"\necho noise\n")
    (person.home / "more.sh").write_text("LIST=\"$LIST(more)\"\n")
    assert run([PYTHON, "-m", "venv", "--without-pip", str(person.home / "venv")], env=person.env).returncode == 0
    (person.home / "train.py").write_text(
        "import os, sys\nprint(sys.prefix, os.environ['VIRTUAL_ENV'], os.environ.get('LIST'), sys.stdin.read())\n")
    return person.home


@BOTH_WAYS
def test_source_and_venv_prepare_the_program(person, project, way):
    text = output_of(person, way, "--source", "env.sh", "--source", "more.sh", "--venv", "venv", "train.py")
    assert text == f"{project}/venv {project}/venv (env)(more) \n"
    request = the_run(person).run["request"]
    assert request["sources"] == [f"{project}/env.sh", f"{project}/more.sh"]
    assert request["venv"] == f"{project}/venv"
    shown = person.gpuq("show", "last")
    assert f"source {project}/env.sh, {project}/more.sh; venv {project}/venv" in shown.stdout
    document = json.loads(person.gpuq("--json", "show", "last").stdout)["request"]
    assert document["sources"] == request["sources"] and document["venv"] == request["venv"]


def test_a_sourced_file_gets_no_input_and_gives_no_output(person, project):
    (project / "greedy.sh").write_text("cat; echo loud; export SEEN=1\n")
    done = person.gpuq("-Q", "run", "--source", "greedy.sh", "sh", "-c", "echo $SEEN; cat", input="mine\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\nmine\n", "loud\n")


def test_a_sourced_file_that_fails_ends_the_run(person, project):
    (project / "bad.sh").write_text("exit 3\n")
    done = person.gpuq("run", "--source", "bad.sh", "echo", "never")
    assert (done.returncode, done.stdout) == (125, "")
    assert f"gpuq: --source {project}/bad.sh ended with exit status 3 on " in done.stderr


def test_what_is_not_there_is_refused_here(person, project):
    (project / "empty").mkdir()
    for words, reason in ((["--source", "nosuch.sh"], "--source nosuch.sh: not found"),
                          (["--venv", "nosuch"], "--venv nosuch: not found"),
                          (["--venv", "empty"], "has no bin/python"),
                          (["--venv", "venv", "--conda", "torch"], "choose one")):
        for verb in (["run", "--detach"], ["shell", "--detach"], ["run", "--dry-run"], ["rehearse"]):
            program = [] if verb[0] == "shell" else ["true"]
            done = person.gpuq(*verb, *words, *program)
            assert done.returncode == 2 and reason in done.stderr, (verb, done)
    assert records(person) == []


def test_every_link_gets_the_same(person, project):
    (project / "step.py").write_text("import os, sys\nprint(sys.prefix, os.environ['LIST'], os.environ['GPUQ_LINK'],"
                                     " os.environ['TMPDIR'], flush=True)\nsys.exit(3)\n")
    done = person.gpuq("run", "-J", "links", "-t", "10m", "--restart-from-scratch", "--source", "env.sh", "--venv",
                       "venv", "step.py", env=OF_THE_LOGIN)
    assert done.returncode == 3, done.stderr
    assert person.gpuq("resume", "last").returncode == 0
    again = wait_for(lambda: Chain(person, "links").events(2, "ended"), 60, "the second link")
    assert again[0]["status"] == 3
    logs = [(the_run(person).dir / f"link-{n}" / "out.log").read_text().split() for n in (1, 2)]
    assert [log[:3] for log in logs] == [[f"{project}/venv", "(env)", "1"], [f"{project}/venv", "(env)", "2"]]
    assert logs[0][3] != logs[1][3]


def test_the_script_of_a_dry_run_prepares_the_same(person, project):
    dry = person.gpuq("run", "--dry-run", "--source", "env.sh", "--venv", "venv", "train.py")
    (project / "job.sh").write_text(dry.stdout)
    done = run(["sbatch", "--wait", "job.sh"], env=person.env, cwd=project, user=person.user)
    assert done.returncode == 0, done
    job = done.stdout.split()[-1]
    assert (project / f"slurm-{job}.out").read_text() == f"{project}/venv {project}/venv (env) \n"


# Standard input in a loop

LOOP = 'while read -r x; do "$gpuq" -Q run {options} -- echo got $x; done'


def loop(person, line, **options):
    return run(["bash", "-c", line], env={**person.env, "gpuq": person.cluster.binary}, user=person.user,
               cwd=person.home, **options)


def test_a_loop_that_reads_lines_keeps_them(person):
    (person.home / "list").write_text("1\n2\n3\n")
    done = loop(person, LOOP.format(options="") + " <list")
    assert done.stdout == "got 1\ngot 2\ngot 3\n", done
    done = loop(person, "printf '1\\n2\\n3\\n' | " + LOOP.format(options="-n"))
    assert (done.stdout, done.stderr) == ("got 1\ngot 2\ngot 3\n", ""), done


def test_a_loop_of_attach_keeps_its_lines(person):
    assert person.gpuq("run", "--detach", "echo", "out").returncode == 0
    the_run(person).wait_for_end()
    (person.home / "list").write_text("1\n2\n3\n")
    attach = 'while read -r x; do echo $x; "$gpuq" attach last; done'
    done = loop(person, attach + " <list")
    assert (done.stdout, done.stderr) == ("1\nout\n2\n3\n", "")
    done = loop(person, "printf '1\\n2\\n3\\n' | " + attach)
    assert done.stdout == "1\n2\n3\n" and "input typed here is ignored" in done.stderr


def test_input_that_a_pipe_has_lost_is_told(person):
    # A program that ends before its input arrives loses none: this one waits for it, and reads none.
    arrived = f"{PYTHON} -c 'import select; select.select([0], [], [])'"
    slow = LOOP.format(options="").replace("-Q ", "").replace("echo got $x", f'sh -c "{arrived}; echo got $x"')
    done = loop(person, "printf '1\\n2\\n3\\n' | " + slow)
    assert done.stdout == "got 1\n"
    assert "gpuq: 4 bytes of standard input were read for the program, which read none: gpuq run -n" in done.stderr
    quiet = loop(person, "printf '1\\n2\\n3\\n' | " + LOOP.format(options=""))
    assert quiet.stderr == ""


def test_what_a_program_reads_of_a_file_is_read_once(person):
    size = 3_000_000
    (person.home / "data").write_bytes(bytes(i % 251 for i in range(size)))
    head = f"{PYTHON} -c 'import os; os.write(1, os.read(0, 1000))'"
    line = f'{{ "$gpuq" -Q run {head} >first; cat >rest; }} <data'
    assert loop(person, line).returncode == 0
    first, rest = ((person.home / name).read_bytes() for name in ("first", "rest"))
    assert first + rest == (person.home / "data").read_bytes() and len(first) == 1000
    line = '{ "$gpuq" -Q run cat >first; cat >rest; } <data'
    assert loop(person, line).returncode == 0
    assert (person.home / "first").read_bytes() == (person.home / "data").read_bytes()
    assert (person.home / "rest").read_bytes() == b""


def test_no_stdin_gives_the_program_an_empty_one(person):
    done = person.gpuq("run", "-n", "wc", "-c", input="lost\n")
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert the_run(person).run["request"]["input"] == "none"
    assert person.gpuq("run", "-n", "--pty", "true").returncode == 2
