// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/notice.h"

#include "supervisor/base/process_tree.h"
#include "supervisor/stage.h"

#include <fmt/format.h>

#include <map>
#include <ostream>
#include <set>

namespace gpuq::supervisor {
namespace {

using namespace std::string_literals;
using Pids = std::vector<pid_t>;
const std::string k_node = "n1";

// Selection of the processes to notify: pure rules on data from /proc.

constexpr std::uint64_t mask(std::initializer_list<int> signals)
{
    std::uint64_t bits = 0;
    for (const int signal : signals) {
        bits |= std::uint64_t{1} << (signal - 1);
    }
    return bits;
}

const std::uint64_t k_nothing = mask({SIGINT, SIGCHLD});
const std::uint64_t k_listens = mask({SIGINT, SIGUSR1, SIGTERM});

Listener python(pid_t pid, pid_t parent, const std::string& script, std::uint64_t caught)
{
    return {pid,
            parent,
            caught,
            "/usr/bin/python3.11",
            "python3\0"s + script + "\0"s,
            fmt::format("image of {}", pid)};
}

Listener program(pid_t pid, pid_t parent, const std::string& path, std::uint64_t caught)
{
    return {pid, parent, caught, path, path + "\0"s, fmt::format("image of {}", pid)};
}

Listener forked(const Listener& parent, pid_t pid, std::uint64_t caught)
{
    Listener child = parent;
    child.pid = pid;
    child.parent = parent.pid;
    child.caught = caught;
    return child;
}

TEST(ToBeTold, OnlyWhoHandlesTheSignal)
{
    const std::vector<Listener> all{python(10, 1, "train.py", k_listens),
                                    python(11, 1, "other.py", k_nothing)};
    EXPECT_EQ(processes_to_notify(all, SIGUSR1), Pids{10});
    EXPECT_EQ(processes_to_notify(all, SIGUSR2), Pids{});
}

TEST(ToBeTold, NotALauncherAboveWhoIsTold)
{
    EXPECT_EQ(processes_to_notify({program(10, 1, "/bin/bash", k_listens),
                                   python(11, 10, "launch.py", k_listens),
                                   python(12, 11, "/w/train.py", k_listens),
                                   python(13, 11, "/w/train.py", k_listens)},
                                  SIGUSR1),
              (Pids{12, 13}));
    EXPECT_EQ(processes_to_notify(
                  {program(10, 1, "/bin/bash", k_listens), python(11, 10, "train.py", k_nothing)},
                  SIGUSR1),
              Pids{10})
        << "a script with a trap of its own";
}

TEST(ToBeTold, AlsoTheFirstOfRanksThatStartedTheOthers)
{
    // Like Lightning: rank 0 starts the same script again.
    EXPECT_EQ(processes_to_notify({python(10, 1, "train.py", k_listens),
                                   python(11, 10, "-u\0/work/train.py"s, k_listens)},
                                  SIGUSR1),
              (Pids{10, 11}));
}

TEST(ToBeTold, NotWorkersWithTheirParentsHandler)
{
    const Listener train = python(10, 1, "train.py", k_listens);
    const Listener worker = forked(train, 11, k_listens);
    Listener renamed = forked(train, 12, k_listens);
    renamed.command_line = "pt_data_worker\0"s;
    EXPECT_EQ(processes_to_notify({train, worker, renamed, forked(worker, 13, k_listens)}, SIGUSR1),
              Pids{10});
    EXPECT_EQ(processes_to_notify({train, worker, renamed}, SIGTERM), Pids{10});
}

TEST(ToBeTold, ForkedRanksWhoseParentDoesNotHandleIt)
{
    const Listener main = python(10, 1, "train.py", k_nothing);
    const Listener rank = forked(main, 11, k_listens);
    EXPECT_EQ(processes_to_notify({main, rank, forked(rank, 12, k_listens)}, SIGUSR1), Pids{11});
    EXPECT_EQ(processes_to_notify({main, rank}, SIGTERM), Pids{})
        << "it may be a handler to die by";
}

TEST(ToBeTold, NotSpawnedWorkersWhoseScriptTookTheHandlerAlong)
{
    const auto spawned = [](pid_t pid, pid_t parent) {
        return python(pid, parent,
                      "-c\0from multiprocessing.spawn import spawn_main; spawn_main()"s, k_listens);
    };
    EXPECT_EQ(processes_to_notify({python(10, 1, "train.py", k_listens), spawned(11, 10)}, SIGUSR1),
              Pids{10});
    EXPECT_EQ(
        processes_to_notify(
            {python(10, 1, "train.py", k_nothing), spawned(11, 10), spawned(12, 11)}, SIGUSR1),
        Pids{11})
        << "a rank of torch.multiprocessing.spawn with a worker of its own";
    EXPECT_EQ(processes_to_notify({python(10, 1, "train.py", k_nothing), spawned(11, 10)}, SIGTERM),
              Pids{});
}

TEST(ToBeTold, NobodyWhoPassesItOnToThoseItKills)
{
    for (const char* path : {"/usr/bin/srun", "/opt/openmpi/bin/mpirun", "/usr/bin/timeout"}) {
        EXPECT_EQ(processes_to_notify(
                      {program(10, 1, path, k_listens), program(11, 10, "/w/a.out", 0)}, SIGUSR1),
                  Pids{})
            << path;
    }
    for (const auto& script : {"/opt/conda/bin/torchrun\0train.py"s, "-m\0torch.distributed.run"s,
                               "-W\0ignore\0/opt/conda/bin/conda\0run"s}) {
        EXPECT_EQ(
            processes_to_notify(
                {python(10, 1, script, k_listens), python(11, 10, "a.py", k_nothing)}, SIGTERM),
            Pids{})
            << script;
    }
}

TEST(ToBeTold, NobodyWhoCatchesAllThereIs)
{
    // Signal masks from /proc of a Go program, and of bash 5.2 with a trap on EXIT.
    constexpr std::uint64_t k_go = 0xfffffffd7fc1feff;
    constexpr std::uint64_t k_bash = 0x43817efb;
    for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM}) {
        EXPECT_EQ(
            processes_to_notify({program(10, 1, "/bin/bash", k_bash),
                                 python(11, 10, "train.py", mask({signal})),
                                 program(12, 11, "/site-packages/wandb/bin/wandb-core", k_go)},
                                signal),
            Pids{11});
    }
}

TEST(ToBeTold, NotForWhatARuntimeDoesByItself)
{
    EXPECT_EQ(processes_to_notify({python(10, 1, "train.py", k_listens),
                                   program(11, 10, "/usr/bin/node", mask({SIGUSR1}))},
                                  SIGUSR1),
              Pids{10});
    EXPECT_EQ(processes_to_notify(
                  {program(10, 1, "/usr/lib/R/bin/exec/R", mask({SIGUSR1, SIGUSR2}))}, SIGUSR2),
              Pids{});
}

TEST(ToBeTold, EndsWhateverTheTableOfProcessesSays)
{
    const Listener train = python(10, 11, "train.py", k_listens);
    EXPECT_EQ(processes_to_notify({train, forked(train, 11, k_listens)}, SIGUSR1), Pids{});
}

// The same with real processes.

/// Shared by the scripts. Each records in files KIND.ROLE.PID, one byte per occurrence.
constexpr const char* k_common = R"(
import os, signal, subprocess, sys, time
HERE = os.path.dirname(os.path.abspath(__file__))
SIGNAL = getattr(signal, "SIG" + os.environ["TELL"])
PYTHON = [sys.executable, "-S", "-E"]

def note(kind, role):
    with open(f"{HERE}/{kind}.{role}.{os.getpid()}", "a") as file:
        file.write("x")

def listen(role, then=None, number=SIGNAL):
    def told(*_):
        note("told", role)
        if then:
            then()
    signal.signal(number, told)

def stay(role):
    note("ready", role)
    while True:
        time.sleep(0.02)

def start(script, **how):
    return subprocess.Popen([*PYTHON, f"{HERE}/{script}"], **how)

def wait(role, children):
    note("ready", role)
    for child in children:
        child.wait()
)";

constexpr const char* k_leaf = R"(
from common import *
listen("leaf")
stay("leaf")
)";

/// Like torchrun and conda run: kills its children when notified.
constexpr const char* k_launcher = R"(
from common import *
children = []
def end_all():
    for child in children:
        child.kill()
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
    listen("launcher", end_all, number)
children += [start("leaf.py") for _ in range(int(sys.argv[1]))]
wait("launcher", children)
)";

/// Workers that run its own code, like those of DataLoader. With SIGTERM as the signal, a worker's
/// handler exits.
constexpr const char* k_trainer = R"(
from common import *
import multiprocessing
listen("leaf" if __name__ == "__main__" else "worker")

def work():
    number = signal.SIGTERM
    if SIGNAL == number:
        signal.signal(number, lambda *_: (note("told", "worker"), os._exit(0)))
    stay("worker")

if __name__ == "__main__":
    kind = multiprocessing.get_context(sys.argv[1])
    children = [kind.Process(target=work) for _ in range(2)]
    for child in children:
        child.start()
    stay("leaf")
)";

constexpr const char* k_parent = R"(
from common import *
apart = {"session": {"start_new_session": True}, "group": {"preexec_fn": lambda: os.setpgid(0, 0)}}
wait("parent", [start("leaf.py", **apart[sys.argv[1]])])
)";

struct Shape {
    std::string name;
    std::vector<std::string> arguments;
    std::map<std::string, int> ready; ///< number of processes per role
};

const std::string k_python = "/usr/bin/python3";

std::vector<std::string> script(const std::string& name, const std::string& argument)
{
    return {k_python, "-S", "-E", name, argument};
}

std::vector<Shape> shapes()
{
    // A shell with a trap for the signals and one on EXIT, by which bash dies from a signal, and a
    // child without a handler. Until the child executes its program it is a copy of the shell.
    const std::string wrapper = "trap 'echo x >told.bash.$$' USR1 USR2 TERM; trap : EXIT; "
                                "sleep 1000 & until read -r name </proc/$!/comm && "
                                "[ $name = sleep ]; do :; done; " +
                                k_python + " -S -E leaf.py; true";
    const std::string plain = k_python + " -S -E leaf.py; true";
    return {{"BashWrapper", {"/bin/bash", "-c", wrapper}, {{"leaf", 1}}},
            {"PlainShell", {"/bin/sh", "-c", plain}, {{"leaf", 1}}},
            {"CondaRun", script("launcher.py", "1"), {{"launcher", 1}, {"leaf", 1}}},
            {"Torchrun", script("launcher.py", "4"), {{"launcher", 1}, {"leaf", 4}}},
            {"DataLoader", script("trainer.py", "fork"), {{"leaf", 1}, {"worker", 2}}},
            {"Spawn", script("trainer.py", "spawn"), {{"leaf", 1}, {"worker", 2}}},
            {"Forkserver", script("trainer.py", "forkserver"), {{"leaf", 1}, {"worker", 2}}},
            {"Setsid", script("parent.py", "session"), {{"parent", 1}, {"leaf", 1}}},
            {"OwnGroup", script("parent.py", "group"), {{"parent", 1}, {"leaf", 1}}}};
}

/// Processes below the test, which is their subreaper.
class Tree {
public:
    explicit Tree(const std::string& signal)
        : m_directory(make_directory())
        , m_variable(fmt::format("GPUQ_NOTICE_TEST={}", m_directory.string()))
    {
        become_subreaper();
        kill_descendants(10s); // helpers that an earlier test of this program has left
        put(m_directory / "common.py", k_common);
        put(m_directory / "leaf.py", k_leaf);
        put(m_directory / "launcher.py", k_launcher);
        put(m_directory / "trainer.py", k_trainer);
        put(m_directory / "parent.py", k_parent);
        ::setenv("TELL", signal.c_str(), 1);
        ::setenv("GPUQ_NOTICE_TEST", m_directory.c_str(), 1);
    }
    Tree(Tree&&) = delete;
    ~Tree()
    {
        kill_descendants(10s);
        kill_by_variable(m_variable, 10s);
        std::error_code error;
        std::filesystem::remove_all(m_directory, error);
        ::unsetenv("GPUQ_NOTICE_TEST");
    }

    const std::string& variable() const { return m_variable; }

    pid_t start(const std::vector<std::string>& arguments) const
    {
        const pid_t pid = ::fork();
        if (pid == 0) {
            std::vector<char*> argv;
            for (const std::string& word : arguments) {
                argv.push_back(const_cast<char*>(word.c_str()));
            }
            argv.push_back(nullptr);
            if (::chdir(m_directory.c_str()) == 0) {
                ::execv(argv[0], argv.data());
            }
            ::_exit(127);
        }
        return pid;
    }

    /// Number of processes that recorded `kind`, by role.
    std::map<std::string, int> roles(const std::string& kind) const
    {
        std::map<std::string, int> count;
        for (const auto& entry : std::filesystem::directory_iterator(m_directory)) {
            const std::string name = entry.path().filename();
            if (name.starts_with(kind + ".")) {
                ++count[name.substr(kind.size() + 1, name.rfind('.') - kind.size() - 1)];
            }
        }
        return count;
    }
    bool is_ready(const std::map<std::string, int>& roles_wanted) const
    {
        return eventually([&] { return roles("ready") == roles_wanted; });
    }
    bool heard_once(pid_t pid, const std::string& role) const
    {
        return contents(m_directory / fmt::format("told.{}.{}", role, pid)) == "x";
    }
    const std::filesystem::path& directory() const { return m_directory; }

private:
    static std::filesystem::path make_directory()
    {
        std::string name = testing::TempDir() + "gpuq-notice-XXXXXX";
        return ::mkdtemp(name.data());
    }
    std::filesystem::path m_directory;
    std::string m_variable;
};

struct Signal {
    const char* name;
    Notice notice;
};

std::set<pid_t> all_below()
{
    const Pids pids = descendants();
    return {pids.begin(), pids.end()};
}

void PrintTo(const Shape& shape, std::ostream* out)
{
    *out << shape.name;
}

void PrintTo(const Signal& signal, std::ostream* out)
{
    *out << signal.name;
}

class Matrix : public testing::TestWithParam<std::tuple<Shape, Signal>> {};

TEST_P(Matrix, TheLeafIsToldOnceAndNobodyDies)
{
    const auto& [shape, signal] = GetParam();
    Tree tree(signal.name);
    tree.start(shape.arguments);
    ASSERT_TRUE(tree.is_ready(shape.ready));
    const std::set<pid_t> before = all_below();

    const Pids notified = notify_processes(listeners(tree.variable(), k_node, {}), signal.notice);
    std::string commands;
    for (const pid_t pid : notified) {
        commands += fmt::format("{}: {}\n", pid, contents(fmt::format("/proc/{}/cmdline", pid)));
    }
    ASSERT_EQ(notified.size(), static_cast<std::size_t>(shape.ready.at("leaf"))) << commands;
    for (const pid_t pid : notified) {
        EXPECT_TRUE(eventually([&] { return tree.heard_once(pid, "leaf"); })) << pid;
    }

    ::poll(nullptr, 0, 30); // a killed process is dead by now, and a second notice is recorded
    EXPECT_EQ(all_below(), before);
    EXPECT_EQ(tree.roles("told"), (std::map<std::string, int>{{"leaf", shape.ready.at("leaf")}}));
    EXPECT_TRUE(std::all_of(notified.begin(), notified.end(),
                            [&](pid_t pid) { return tree.heard_once(pid, "leaf"); }));
}

INSTANTIATE_TEST_SUITE_P(
    Notice, Matrix,
    testing::Combine(testing::ValuesIn(shapes()),
                     testing::Values(Signal{"USR1", Notice::usr1}, Signal{"USR2", Notice::usr2},
                                     Signal{"TERM", Notice::term})),
    [](const auto& cell) { return std::get<0>(cell.param).name + std::get<1>(cell.param).name; });

TEST(Tell, WithUsr2WhenNobodyHandlesUsr1)
{
    Tree tree("USR2");
    const pid_t leaf = tree.start(script("leaf.py", ""));
    ASSERT_TRUE(tree.is_ready({{"leaf", 1}}));
    EXPECT_EQ(notify_processes(listeners(tree.variable(), k_node, {}), Notice::none), Pids{});
    EXPECT_EQ(notify_processes(listeners(tree.variable(), k_node, {}), Notice::usr1), Pids{});
    EXPECT_EQ(notify_processes(listeners(tree.variable(), k_node, {}), Notice::automatic),
              Pids{leaf});
    EXPECT_TRUE(eventually([&] { return tree.heard_once(leaf, "leaf"); }));
}

TEST(Tell, AlsoWhatHangsElsewhereInTheTree)
{
    // Like a task of srun, which is started by slurmstepd.
    Tree tree("USR1");
    ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    const pid_t between = tree.start({"/bin/sh", "-c", k_python + " leaf.py & exit 0"});
    ASSERT_EQ(::waitpid(between, nullptr, 0), between);
    ASSERT_TRUE(tree.is_ready({{"leaf", 1}}));
    ASSERT_TRUE(descendants().empty());
    const Pids notified = notify_processes(listeners(tree.variable(), k_node, {}), Notice::usr1);
    ASSERT_EQ(notified.size(), 1U);
    EXPECT_TRUE(eventually([&] { return tree.heard_once(notified.front(), "leaf"); }));
}

TEST(Tell, NotWhatSlurmHasStartedOnAnotherNode)
{
    Tree tree("USR1");
    ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    const std::string one = k_python + " leaf.py & ";
    const pid_t between = tree.start(
        {"/bin/sh", "-c", "export SLURMD_NODENAME=n2; " + one + "SLURMD_NODENAME=n1 " + one});
    ASSERT_EQ(::waitpid(between, nullptr, 0), between);
    ASSERT_TRUE(tree.is_ready({{"leaf", 2}}));
    const Pids here = notify_processes(listeners(tree.variable(), "n1", {}), Notice::usr1);
    const Pids there = notify_processes(listeners(tree.variable(), "n2", {}), Notice::usr1);
    ASSERT_EQ(here.size(), 1U);
    ASSERT_EQ(there.size(), 1U);
    EXPECT_NE(here, there);
    EXPECT_EQ(notify_processes(listeners(tree.variable(), "n3", {}), Notice::usr1), Pids{});
    for (const pid_t pid : {here.front(), there.front()}) {
        EXPECT_TRUE(eventually([&] { return tree.heard_once(pid, "leaf"); }));
    }
}

TEST(Tell, NotTheSupervisorsOwnHelpers)
{
    Tree tree("USR1");
    ::unsetenv("GPUQ_NOTICE_TEST"); // set only for the program
    const pid_t helper = tree.start({"/bin/sh", "-c", k_python + " leaf.py; true"});
    ASSERT_TRUE(tree.is_ready({{"leaf", 1}}));
    EXPECT_EQ(notify_processes(listeners(tree.variable(), k_node, {helper}), Notice::usr1), Pids{});
}

} // namespace
} // namespace gpuq::supervisor
