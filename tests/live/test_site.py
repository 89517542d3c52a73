# SPDX-License-Identifier: GPL-2.0-or-later
"""`gpuq site`: the page and the metrics for the public, made by a user without rights in Slurm; `gpuq usage --by lab`."""
import csv
import io
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import browsers
from clusters import ROOT, Person, short_folder
from policies import SCHEDULER, join, running_policy, sbatch

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="several users need root")

POLICY = """\
version: 1
pools:
  all: {nodes: "c[1-2]", gpus: "k80:2"}
queues:
  short: {time: 2h, pools: all, wait: {max: 2h}}
  long: {time: 8h, pools: all}
publish: {names: labs, least_users: 2}
"""
SAMPLE = re.compile(r'([a-z_]+)(?:\{([a-z_]+="(?:[^"\\\n]|\\.)*"(?:,[a-z_]+="(?:[^"\\\n]|\\.)*")*)\})? (-?[0-9.]+)')


@pytest.fixture(scope="module")
def site(people):
    """Ada and ben of lab physics, in accounts of their own, and lena of lab chemistry have run a job each."""
    with short_folder() as folder:
        policy = folder / "policy.yaml"
        policy.write_text(POLICY)
        with running_policy(policy, lines=("KillWait=1", SCHEDULER)) as cluster:
            for words in (("physics",), ("optics", "parent=physics"), ("lasers", "parent=optics"), ("chemistry",)):
                cluster.slurm("sacctmgr", "-i", "add", "account", *words)
            for name, account in (("ada", "optics"), ("ben", "lasers"), ("lena", "chemistry")):
                join(cluster, people[name], account)
            for name, queue in (("ada", "short"), ("ben", "short"), ("lena", "long")):
                job, error = sbatch(cluster, people[name], "-p", queue, "--gres=gpu:k80:1", "-t", "10", sleep=8)
                assert job, error
                cluster.accounted(job)
            yield cluster


@pytest.fixture
def reader(site, plain_user):
    """A user who has no account in Slurm."""
    with short_folder() as home:
        os.chown(home, plain_user.pw_uid, plain_user.pw_gid)
        yield Person(site, home, plain_user)


def samples(text):
    """{(name, labels): value} of a text in Prometheus' format, with the rules of the format."""
    found, kinds = {}, {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            kinds[line.split()[2]] = None
            assert len(line.split(None, 3)) == 4
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name in kinds and kinds[name] is None and kind == "gauge"
            kinds[name] = kind
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert kinds[name] == "gauge" and name.startswith("gpuq_")
            assert (name, labels) not in found, line
            found[name, labels] = float(value)
    return found


def test_the_public_sees_figures_and_no_users(site, reader):
    (reader.home / "www").mkdir()
    os.chown(reader.home / "www", reader.user.pw_uid, reader.user.pw_gid)
    before = site.rpcs()
    done = reader.gpuq("site", "--html", "www", "--prometheus", "--textfile", "www/gpuq.prom")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    after = site.rpcs()
    asked = {name: after[name] - before.get(name, 0) for name in after if after[name] > before.get(name, 0)}
    del asked["REQUEST_STATS_INFO"]
    assert sum(asked.values()) <= 3, asked
    found = samples(done.stdout)
    assert samples((reader.home / "www" / "gpuq.prom").read_text()) == found
    assert found["gpuq_site_gpus", 'model="k80",state="free"'] == 4
    assert found["gpuq_site_accounting_up", None] == 1
    assert found["gpuq_site_queue_jobs", 'queue="short",window="1d"'] == 2
    assert found["gpuq_site_wait_target_met", 'queue="short",quantile="1"'] == 1
    assert not any('queue="long"' in (labels or "") for _, labels in found)
    # Chemistry has one user: its use is shown together with that of physics.
    used = found["gpuq_site_lab_use_gpu_seconds", 'lab="_others",kind="unknown"']
    assert used == found["gpuq_site_use_gpu_seconds", 'model="k80",kind="unknown"'] >= 24
    page = reader.home / "www" / "index.html"
    assert page.stat().st_mode & 0o777 == 0o644
    for text in (page.read_text(), done.stdout):
        for name in ("gpuq-ada", "gpuq-ben", "gpuq-lena", "optics", "lasers", "chemistry", "physics"):
            assert name not in text
    assert promtool_accepts(done.stdout)


def promtool_accepts(text):
    tool = shutil.which("promtool")
    return tool is None or subprocess.run([tool, "check", "metrics"], input=text, text=True, check=False).returncode == 0


def test_the_old_page_stays_while_slurm_is_silent(site, reader):
    assert reader.gpuq("site", "--html", ".").returncode == 0
    old = (reader.home / "index.html").read_text()
    with site.stopped("slurmctld"):
        assert reader.gpuq("site", "--html", ".", timeout=60).returncode == 120
    assert (reader.home / "index.html").read_text() == old
    with site.stopped("slurmdbd"):
        done = reader.gpuq("site", "--html", ".", "--prometheus", timeout=120)
    assert done.returncode == 0 and "waits and use are shown as unknown" in done.stderr
    assert "Unknown: Slurm&#39;s accounting" in (reader.home / "index.html").read_text()
    assert samples(done.stdout)["gpuq_site_accounting_up", None] == 0
    assert sorted(path.name for path in reader.home.iterdir() if path.is_file()) == ["index.html"]


def test_use_is_reported_by_lab(site, reader):
    def rows(*words):
        done = reader.gpuq("usage", "--all", "--from", "1h", "--csv", "--html", "report.html", *words)
        assert done.returncode == 0, done.stderr
        return {row["lab"]: row for row in csv.DictReader(io.StringIO(done.stdout, newline=""))}

    labs = rows("--by", "lab")
    assert {lab: row["jobs"] for lab, row in labs.items()} == {"physics": "2", "chemistry": "1"}
    assert int(labs["physics"]["wait_p50_seconds"]) >= 0 and labs["chemistry"]["wait_p50_seconds"] == ""
    page = (reader.home / "report.html").read_text()
    assert "<h1>GPU use by lab</h1>" in page and '<th scope="row">physics</th>' in page
    assert rows("--by", "lab,account")["chemistry"]["account"] == "chemistry"


@pytest.mark.skipif(not (browsers.DRIVER and browsers.CHROMIUM), reason="no packages chromium and chromium-driver")
def test_a_browser_shows_the_page_on_each_screen(site, reader, tmp_path):
    assert reader.gpuq("site", "--html", ".").returncode == 0
    assert reader.gpuq("usage", "--all", "--by", "lab,account", "--html", "report.html").returncode == 0
    pictures = pathlib.Path(os.environ.get("GPUQ_PICTURES", tmp_path))
    papers = set()
    with browsers.browser() as browser:
        for name in ("index", "report"):
            for scheme in ("light", "dark"):
                for width in (1200, 360):
                    browser.show_on(width, scheme)
                    browser.open(f"file://{reader.home}/{name}.html")
                    assert browser.run("return document.documentElement.scrollWidth") <= width
                    assert browser.run("return document.querySelectorAll('h2 + *').length") >= (6 if name == "index" else 1)
                    papers.add((scheme, browser.run("return getComputedStyle(document.body).backgroundColor")))
                    (pictures / f"{name}-{scheme}-{width}.png").write_bytes(browser.picture())
    assert len(papers) == 2, papers


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd")
def test_the_units_are_valid_and_confined(tmp_path):
    for path in (ROOT / "contrib" / "systemd").iterdir():
        text = path.read_text().replace("ExecStart=gpuq ", "ExecStart=/bin/true ").replace("User=gpuq-site", "User=daemon")
        (tmp_path / path.name).write_text(text)
    units = [tmp_path / "gpuq-site.service", tmp_path / "gpuq-site.timer"]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "gpuq-site" not in done.stderr, done.stderr
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=25", units[0]],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
