// SPDX-License-Identifier: GPL-2.0-or-later
#include "remote/libssh/transport.h"

#include "io/subprocess.h"
#include "remote/channel.h"

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <random>
#include <sstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

/// OpenSSL keeps random generators for each thread and frees them as the thread ends. A login's
/// thread is detached: the leak sanitizer may see it in the middle of that when the program ends.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
extern "C" const char* __lsan_default_suppressions()
{
    return "leak:libcrypto.so\n";
}

// The contract of a Transport, on a real sshd on the loopback interface, by libssh and by OpenSSH.

namespace gpuq::remote {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string user_name()
{
    const passwd* const entry = ::getpwuid(::geteuid());
    return entry == nullptr ? "root" : entry->pw_name;
}

void execute(std::vector<std::string> argv)
{
    const auto done = run({.argv = std::move(argv)});
    ASSERT_TRUE(done) << done.error().text;
    ASSERT_EQ(done->status, 0) << done->out;
}

void kill_children(pid_t parent)
{
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", parent));
    for (pid_t child = 0; children >> child;) {
        kill_children(child);
        ::kill(child, SIGKILL);
    }
}

/// An sshd with one account and one key, in a directory of its own.
class Sshd {
public:
    Sshd()
    {
        std::string name = "/tmp/gpuq-sshd-XXXXXX";
        directory = ::mkdtemp(name.data());
        if (::geteuid() == 0) {
            ::mkdir("/run/sshd", 0755); // required by sshd itself
        }
        for (const char* key : {"host_key", "user_key"}) {
            execute({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path(key)});
        }
        trust("host_key");
    }
    Sshd(const Sshd&) = delete;
    Sshd& operator=(const Sshd&) = delete;
    ~Sshd()
    {
        stop();
        std::filesystem::remove_all(directory);
    }

    std::string path(const std::string& name) const { return directory + "/" + name; }

    void write(const std::string& name, const std::string& text) const
    {
        std::ofstream(path(name)) << text;
        ::chmod(path(name).c_str(), 0700);
    }
    /// Makes a public key the one in known_hosts.
    void trust(const std::string& key) const
    {
        std::string kind, text;
        std::ifstream(path(key + ".pub")) >> kind >> text;
        write("known_hosts", fmt::format("login {} {}\n", kind, text));
    }

    void start()
    {
        Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        ASSERT_EQ(::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
        ASSERT_EQ(::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
        port = ntohs(address.sin_port);
        probe.reset();
        write("sshd_config",
              fmt::format("Port {}\nListenAddress 127.0.0.1\nHostKey {}\nUsePAM no\nPidFile none\n"
                          "StrictModes no\nAuthorizedKeysFile {}\nPermitRootLogin yes\n"
                          "AllowUsers {}\nPasswordAuthentication no\n"
                          "KbdInteractiveAuthentication no\n{}",
                          port, path("host_key"), path("user_key.pub"), user_name(), more));
        write("ssh_config",
              fmt::format("Host login\n HostName 127.0.0.1\n Port {}\n IdentityFile {}\n"
                          " IdentitiesOnly yes\n UserKnownHostsFile {}\n GlobalKnownHostsFile "
                          "/dev/null\n HostKeyAlias login\n GSSAPIAuthentication no\n User {}\n",
                          port, path("user_key"), path("known_hosts"), user_name()));
        const Descriptor log(
            ::open(path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        const auto started =
            spawn({.argv = {"/usr/sbin/sshd", "-D", "-e", "-f", path("sshd_config")},
                   .descriptors = {-1, log.get(), log.get()},
                   .group = Subprocess::Group::own,
                   .death_signal = SIGKILL});
        ASSERT_TRUE(started) << started.error().text;
        pid = started->pid;
        for (int i = 0; i < 500; ++i) {
            const Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            if (::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size) == 0) {
                return;
            }
            std::this_thread::sleep_for(10ms);
        }
        std::stringstream why;
        why << std::ifstream(path("log")).rdbuf();
        FAIL() << "sshd does not listen: " << why.str();
    }
    /// With its connections.
    void stop()
    {
        if (pid > 0) {
            kill_children(pid);
            kill_and_reap(std::exchange(pid, -1));
        }
    }

    std::string directory;
    std::string more; ///< lines for sshd_config
    int port = 0;
    pid_t pid = -1;
};

class TransportContract : public testing::TestWithParam<TransportChoice> {
protected:
    void SetUp() override
    {
        if (::access("/usr/sbin/sshd", X_OK) != 0 ||
            (GetParam() == TransportChoice::libssh && !libssh())) {
            GTEST_SKIP() << "no sshd, or no libssh";
        }
        std::signal(SIGPIPE, SIG_IGN);
        sshd.start();
        // The command's first word is `serve`.
        sshd.write("echo", "#!/bin/sh\nexec cat\n");
        sshd.write("print", "#!/bin/sh\necho out; echo err >&2; exit 5\n");
        sshd.write("words", "#!/bin/sh\necho $#: \"$@\"\n");
    }

    SshCommand command(const std::string& program) const
    {
        SshCommand command;
        command.ssh = {"ssh", "-F", sshd.path("ssh_config")};
        command.host = "login";
        command.program = sshd.path(program);
        return command;
    }

    struct Ended {
        std::string out, err;
        int status = 0;
        Verdict verdict;
    };

    /// Sends `input` once connected, and reads to the end, or until `enough` bytes are there.
    Ended talk(Transport& transport, Attempt attempt, std::string_view input = "",
               std::size_t enough = std::string::npos, std::string_view first = "")
    {
        Ended ended;
        auto streams = transport.connect(attempt, false, first);
        EXPECT_TRUE(streams) << streams.error().text;
        if (!streams) {
            return ended;
        }
        Channel channel(streams->link);
        channel.send_bytes(input, {});
        const auto until = std::chrono::steady_clock::now() + 30s;
        bool open = true;
        while (open && ended.out.size() < enough && std::chrono::steady_clock::now() < until) {
            std::array<pollfd, 2> wait{
                {{channel.input(), POLLIN, 0},
                 {channel.wants_to_write() ? channel.output() : -1, POLLOUT, 0}}};
            EXPECT_GT(::poll(wait.data(), wait.size(), 10000), 0) << "nothing happens";
            (void)channel.write_some();
            const auto bytes = wait[0].revents != 0 ? channel.read_some() : std::string_view();
            open = bytes.has_value();
            ended.out += bytes.value_or("");
        }
        EXPECT_TRUE(!open || ended.out.size() >= enough) << "it has no end";
        std::array<char, 4096> buffer;
        set_nonblocking(streams->errors.get());
        ended.status = transport.end(enough == std::string::npos ? 5000 : 0);
        for (ssize_t count = 0;
             (count = ::read(streams->errors.get(), buffer.data(), buffer.size())) > 0;) {
            ended.err.append(buffer.data(), static_cast<std::size_t>(count));
        }
        ended.verdict = transport.classify({ended.status, ended.err, ended.out});
        return ended;
    }
    Ended talk(const std::string& program)
    {
        HostTransport transport(GetParam(), command(program), "");
        return talk(transport, Attempt::first);
    }

    Sshd sshd;
};

INSTANTIATE_TEST_SUITE_P(Both, TransportContract,
                         testing::Values(TransportChoice::libssh, TransportChoice::openssh),
                         [](const auto& each) {
                             return each.param == TransportChoice::libssh ? "libssh" : "openssh";
                         });

TEST_P(TransportContract, ConnectsToACommand)
{
    const Ended ended = talk("print");
    EXPECT_EQ(ended.out, "out\n");
    EXPECT_THAT(ended.err, HasSubstr("err\n"));
    EXPECT_EQ(ended.status, 5);
}

TEST_P(TransportContract, PassesTheFirstBytesOnTheCommandLine)
{
    HostTransport transport(GetParam(), command("words"), "");
    EXPECT_EQ(talk(transport, Attempt::first).out, "1: serve\n");
    const std::string first = "a'b\n\x1b $HOME";
    const std::string escaped = wire::remote::escape_argument(first);
    EXPECT_EQ(talk(transport, Attempt::again, "", std::string::npos, first).out,
              "2: serve " + escaped + "\n");
}

TEST_P(TransportContract, CarriesMuchInBothDirections)
{
    std::string data(5 << 20, '\0');
    std::mt19937 random(7);
    for (char& byte : data) {
        byte = static_cast<char>(random());
    }
    HostTransport transport(GetParam(), command("echo"), "");
    EXPECT_EQ(talk(transport, Attempt::first, data, data.size()).out, data);
}

TEST_P(TransportContract, CarriesMuchOverAJumpHostThatChangesItsKeys)
{
    if (GetParam() == TransportChoice::openssh) {
        GTEST_SKIP() << "takes 20 s";
    }
    sshd.stop();
    sshd.more = "RekeyLimit 1M\n";
    sshd.start();
    std::string login;
    std::getline(std::ifstream(sshd.path("ssh_config")), login, '\0');
    std::string far = login;
    far.replace(far.find("Host login"), 10, "Host far");
    sshd.write("ssh_config", login + far + " ProxyJump login\n");
    SshCommand to_far = command("echo");
    to_far.host = "far";
    std::string data(5 << 20, '\0');
    std::mt19937 random(8);
    for (char& byte : data) {
        byte = static_cast<char>(random());
    }
    HostTransport transport(GetParam(), to_far, "");
    const Ended ended = talk(transport, Attempt::first, data, data.size());
    EXPECT_EQ(ended.out.size(), data.size()) << ended.err;
    EXPECT_TRUE(ended.out == data);
}

TEST_P(TransportContract, NoticesACut)
{
    HostTransport transport(GetParam(), command("echo"), "");
    auto streams = transport.connect(Attempt::first, false, "");
    ASSERT_TRUE(streams) << streams.error().text;
    Channel channel(streams->link);
    channel.send_bytes("hello", {});
    std::string got;
    bool open = true;
    for (int i = 0; i < 1000 && open; ++i) {
        pollfd wait{channel.input(), POLLIN, 0};
        (void)::poll(&wait, 1, 10);
        (void)channel.write_some();
        const auto bytes = channel.read_some();
        got += bytes.value_or("");
        open = bytes.has_value();
        if (got == "hello") {
            sshd.stop();
        }
    }
    EXPECT_EQ(got, "hello");
    EXPECT_FALSE(open);
    const int status = transport.end(1000);
    EXPECT_EQ(transport.classify({status, "", ""}).what, Verdict::What::broken);
}

TEST_P(TransportContract, FollowsAConfigurationThatDependsOnTheNetwork)
{
    std::stringstream usual;
    usual << std::ifstream(sshd.path("ssh_config")).rdbuf();
    sshd.write("ssh_config",
               fmt::format("Match originalhost login exec \"test -e {}\"\n Port 1\n{}",
                           sshd.path("elsewhere"), usual.str()));
    HostTransport transport(GetParam(), command("print"), "");
    EXPECT_EQ(talk(transport, Attempt::first).out, "out\n");
    sshd.write("elsewhere", "");
    EXPECT_EQ(talk(transport, Attempt::again).out, "");
    std::filesystem::remove(sshd.path("elsewhere"));
    EXPECT_EQ(talk(transport, Attempt::again).out, "out\n");
}

TEST_P(TransportContract, ReadsASlowConfigurationBeforeItReconnects)
{
    std::stringstream usual;
    usual << std::ifstream(sshd.path("ssh_config")).rdbuf();
    HostTransport transport(GetParam(), command("print"), "");
    EXPECT_EQ(talk(transport, Attempt::first).out, "out\n");
    sshd.write("ssh_config",
               fmt::format("Match exec \"until test -e {}; do sleep 0.05; done\"\n Port 1\n{}",
                           sshd.path("now"), usual.str()));
    pollfd wait{transport.prepare(), POLLIN, 0};
    ASSERT_GE(wait.fd, 0);
    EXPECT_EQ(::poll(&wait, 1, 200), 0);
    sshd.write("now", "");
    ASSERT_EQ(::poll(&wait, 1, 10000), 1);
    sshd.write("ssh_config", usual.str()); // now read by OpenSSH's ssh itself only
    EXPECT_EQ(talk(transport, Attempt::again).out,
              GetParam() == TransportChoice::libssh ? "" : "out\n");
    EXPECT_EQ(talk(transport, Attempt::again).out, "out\n");
}

TEST_P(TransportContract, ReportsThatThereIsNoSuchProgram)
{
    const Ended ended = talk("none");
    EXPECT_EQ(ended.verdict.what, Verdict::What::stop);
    EXPECT_EQ(ended.verdict.error.kind, Error::Kind::not_found);
    EXPECT_THAT(ended.verdict.error.text, HasSubstr("no " + sshd.path("none") + " on login"));
}

TEST_P(TransportContract, StopsAtAChangedKey)
{
    sshd.trust("user_key");
    HostTransport transport(GetParam(), command("echo"), "");
    for (const Attempt attempt : {Attempt::first, Attempt::again}) {
        const Ended ended = talk(transport, attempt);
        EXPECT_EQ(ended.verdict.what, Verdict::What::stop);
        EXPECT_THAT(ended.verdict.error.text,
                    HasSubstr(fmt::format("has changed (in {}:1)", sshd.path("known_hosts"))));
    }
}

TEST_P(TransportContract, RefusesRsaKeysThatAreTooSmall)
{
    for (const char* const key : {"host_key", "user_key"}) {
        std::filesystem::remove(sshd.path(key));
        execute({"ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", sshd.path(key)});
        sshd.trust("host_key");
        sshd.stop();
        sshd.start();
        SshCommand larger = command("print");
        larger.ssh.insert(larger.ssh.end(), {"-o", "RequiredRSASize=3072"});
        HostTransport transport(GetParam(), larger, "");
        EXPECT_EQ(talk(transport, Attempt::first).out, "") << key;
        EXPECT_EQ(talk("print").out, "out\n") << key;
        std::filesystem::remove(sshd.path(key));
        execute({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", sshd.path(key)});
    }
}

TEST_P(TransportContract, StopsAtAnUnknownKey)
{
    sshd.write("known_hosts", "");
    const Ended ended = talk("echo");
    EXPECT_EQ(ended.verdict.what, Verdict::What::stop);
    EXPECT_THAT(ended.verdict.error.text, HasSubstr("is not known on this machine"));
}

TEST_P(TransportContract, ReportsARefusedLogin)
{
    sshd.write("user_key.pub", "");
    HostTransport transport(GetParam(), command("echo"), "");
    const Ended first = talk(transport, Attempt::first);
    EXPECT_EQ(first.verdict.what, Verdict::What::stop);
    EXPECT_EQ(first.verdict.error.kind, Error::Kind::denied);
    EXPECT_THAT(first.verdict.error.text, HasSubstr("refused the login"));
    EXPECT_THAT(first.verdict.error.text, HasSubstr("publickey"));
    EXPECT_EQ(talk(transport, Attempt::again).verdict.what, Verdict::What::needs_user);
}

TEST_P(TransportContract, ReportsALoginThatIsRefusedBeforeAllKeysWereTried)
{
    sshd.write("user_key.pub", ""); // since OpenSSH 10.6, keys that are only offered do not count
    sshd.stop();
    sshd.more = "MaxAuthTries 1\n";
    sshd.start();
    execute({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", sshd.path("other_key")});
    SshCommand with_other_key = command("echo");
    with_other_key.ssh.insert(with_other_key.ssh.end(),
                              {"-o", "IdentityFile=" + sshd.path("other_key")});
    HostTransport transport(GetParam(), with_other_key, "");
    const Ended first = talk(transport, Attempt::first);
    EXPECT_EQ(first.verdict.what, Verdict::What::stop);
    EXPECT_EQ(first.verdict.error.kind, Error::Kind::denied);
    EXPECT_EQ(talk(transport, Attempt::again).verdict.what, Verdict::What::needs_user)
        << "else it would be repeated without end";
}

TEST_P(TransportContract, ReportsAHostThatCannotBeReached)
{
    sshd.stop();
    const Ended ended = talk("echo");
    EXPECT_EQ(ended.verdict.what, Verdict::What::broken);
    EXPECT_EQ(ended.verdict.error.kind, Error::Kind::unreachable);
    EXPECT_THAT(ended.verdict.error.text, HasSubstr("login: "));
}

TEST_P(TransportContract, AsksForAPassphraseOnceIfTheUserWantsTo)
{
    execute({"ssh-keygen", "-q", "-p", "-P", "", "-N", "sesame", "-f", sshd.path("user_key")});
    if (GetParam() == TransportChoice::openssh) {
        GTEST_SKIP() << "its askpass program is gpuq itself; see tests/live/test_remote_login.py";
    }
    HostTransport transport(GetParam(), command("echo"), "");
    EXPECT_EQ(talk(transport, Attempt::again).verdict.what, Verdict::What::needs_user);
    for (const std::string answer : {"wrong", "sesame"}) {
        auto streams = transport.connect(Attempt::asked, false, "");
        ASSERT_TRUE(streams);
        pollfd wait{transport.questions().fd, POLLIN, 0};
        ASSERT_EQ(::poll(&wait, 1, 10000), 1);
        const auto question = transport.next_question();
        ASSERT_TRUE(question);
        EXPECT_THAT(question->text, HasSubstr("passphrase for key"));
        EXPECT_TRUE(transport.is_asked());
        transport.answer(answer);
        Channel channel(streams->link);
        channel.send_bytes("x", {});
        std::optional<std::string_view> bytes = "";
        for (int i = 0; i < 1000 && bytes && bytes->empty(); ++i) {
            pollfd ready{channel.input(), POLLIN, 0};
            (void)::poll(&ready, 1, 10);
            (void)channel.write_some();
            bytes = channel.read_some();
        }
        EXPECT_EQ(bytes.has_value(), answer == "sesame");
        const int status = transport.end(0);
        if (answer == "wrong") {
            EXPECT_EQ(transport.classify({status, "", ""}).what, Verdict::What::needs_user);
        }
    }
}

TEST_P(TransportContract, AsksForNoPassphraseOfAFileThatHasNone)
{
    if (GetParam() == TransportChoice::openssh) {
        GTEST_SKIP() << "its askpass program is gpuq itself";
    }
    std::ofstream(sshd.path("copy.pub")) << std::ifstream(sshd.path("user_key.pub")).rdbuf();
    ::chmod(sshd.path("copy.pub").c_str(), 0600);
    sshd.write("garbage", "-----BEGIN OPENSSH PRIVATE KEY-----\n"
                          "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAASg\n"
                          "-----END OPENSSH PRIVATE KEY-----\n");
    sshd.write("user_key.pub", "");
    SshCommand others = command("echo");
    others.ssh.insert(others.ssh.end(), {"-o", "IdentityFile=" + sshd.path("copy.pub"), "-o",
                                         "IdentityFile=" + sshd.path("garbage")});
    HostTransport transport(GetParam(), others, "");
    EXPECT_EQ(talk(transport, Attempt::asked).verdict.what, Verdict::What::needs_user);
}

std::size_t number_of_threads()
{
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(threads), end(threads)));
}

/// Sets an environment variable of this process.
class Variable {
public:
    Variable(std::string name, const std::string& value)
        : m_name(std::move(name))
    {
        const char* const before = std::getenv(m_name.c_str());
        m_before = before == nullptr ? std::nullopt : std::optional<std::string>(before);
        ::setenv(m_name.c_str(), value.c_str(), 1);
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    ~Variable()
    {
        m_before ? ::setenv(m_name.c_str(), m_before->c_str(), 1) : ::unsetenv(m_name.c_str());
    }

private:
    std::string m_name;
    std::optional<std::string> m_before;
};

TEST_P(TransportContract, EndsAnAttemptWhoseKeyTheUserMustConfirmForTheAgent)
{
    if (GetParam() == TransportChoice::openssh) {
        GTEST_SKIP() << "a process of its own";
    }
    sshd.write("confirm", fmt::format("#!/bin/sh\ntouch {}\nsleep 60\n", sshd.path("asked")));
    const Variable socket("SSH_AUTH_SOCK", sshd.path("agent"));
    const Variable program("SSH_ASKPASS", sshd.path("confirm"));
    const Variable display("DISPLAY", "none");
    const auto agent = spawn({.argv = {"ssh-agent", "-D", "-a", sshd.path("agent")},
                              .descriptors = {Subprocess::k_null, Subprocess::k_null},
                              .group = Subprocess::Group::own,
                              .death_signal = SIGKILL});
    ASSERT_TRUE(agent);
    for (int i = 0; i < 500 && ::access(sshd.path("agent").c_str(), F_OK) != 0; ++i) {
        std::this_thread::sleep_for(10ms);
    }
    execute({"ssh-add", "-q", "-c", sshd.path("user_key")});
    std::filesystem::rename(sshd.path("user_key"), sshd.path("away"));
    SshCommand by_agent = command("echo");
    by_agent.ssh.insert(by_agent.ssh.end(), {"-o", "IdentitiesOnly=no"});
    HostTransport transport(GetParam(), by_agent, "");
    const std::size_t before = number_of_threads();
    ASSERT_TRUE(transport.connect(Attempt::again, false, ""));
    for (int i = 0; i < 500 && ::access(sshd.path("asked").c_str(), F_OK) != 0; ++i) {
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(::access(sshd.path("asked").c_str(), F_OK), 0);
    EXPECT_EQ(number_of_threads(), before + 1);
    transport.end(0);
    for (int i = 0; i < 100 && number_of_threads() != before; ++i) {
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(number_of_threads(), before);
    kill_children(agent->pid);
    kill_and_reap(agent->pid);
}

TEST_P(TransportContract, EndsAnAttemptWhoseQuestionIsNotAnswered)
{
    if (GetParam() == TransportChoice::openssh) {
        GTEST_SKIP() << "see tests/live/test_remote_login.py";
    }
    execute({"ssh-keygen", "-q", "-p", "-P", "", "-N", "sesame", "-f", sshd.path("user_key")});
    HostTransport transport(GetParam(), command("echo"), "");
    ASSERT_TRUE(transport.connect(Attempt::asked, false, ""));
    pollfd wait{transport.questions().fd, POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, 10000), 1);
    const auto begin = std::chrono::steady_clock::now();
    transport.end(0);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
    EXPECT_FALSE(transport.is_asked());
}

TEST(HostTransport, ReconnectsByLibsshAlthoughASharedConnectionHasBegun)
{
    if (!libssh()) {
        GTEST_SKIP() << "no libssh";
    }
    std::string directory = "/tmp/gpuq-shared-XXXXXX";
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    const std::string socket = directory + "/socket";
    std::ofstream(directory + "/config")
        << "Host login\n HostName 127.0.0.1\n Port 1\n ControlPath " << socket << "\n";
    SshCommand command;
    command.ssh = {"ssh", "-F", directory + "/config"};
    command.host = "login";
    command.program = "gpuq";
    HostTransport transport(TransportChoice::libssh, command, "");
    const Descriptor master(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket.copy(static_cast<char*>(address.sun_path), socket.size());
    ASSERT_EQ(::bind(master.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(master.get(), 8), 0);
    const auto first = transport.connect(Attempt::first, false, "");
    ASSERT_FALSE(first);
    EXPECT_THAT(first.error().text, HasSubstr("a shared connection (ControlPath) exists"));
    for (const Attempt attempt : {Attempt::again, Attempt::asked}) {
        const auto again = transport.connect(attempt, false, "");
        EXPECT_TRUE(again) << again.error().text;
    }
    transport.end(0);
    std::filesystem::remove_all(directory);
}

/// Connects by libssh, which fails, and then by OpenSSH; returns the output of both.
std::string output_of_both(HostTransport& transport)
{
    std::string out;
    for (const Verdict::What what : {Verdict::What::other_way, Verdict::What::broken}) {
        auto streams = transport.connect(Attempt::first, false, "");
        if (!streams) {
            return streams.error().text;
        }
        Channel channel(streams->link);
        std::optional<std::string_view> bytes = "";
        for (int i = 0; i < 1000 && bytes; ++i) {
            pollfd wait{channel.input(), POLLIN, 0};
            (void)::poll(&wait, 1, 10);
            bytes = channel.read_some();
            out += bytes.value_or("");
        }
        const int status = transport.end(1000);
        if (what == Verdict::What::other_way) {
            EXPECT_EQ(transport.classify({status, "", ""}).what, what);
        }
    }
    return out;
}

TEST(HostTransport, GoesToOpensshForAnUnknownKey)
{
    if (::access("/usr/sbin/sshd", X_OK) != 0 || !libssh()) {
        GTEST_SKIP() << "no sshd, or no libssh";
    }
    Sshd sshd;
    sshd.start();
    sshd.write("known_hosts", "");
    sshd.write("hello", "#!/bin/sh\necho hello\n");
    SshCommand command;
    command.ssh = {"ssh", "-F", sshd.path("ssh_config"), "-o", "StrictHostKeyChecking=accept-new"};
    command.host = "login";
    command.program = sshd.path("hello");
    HostTransport transport(TransportChoice::automatic, command, "");
    EXPECT_EQ(output_of_both(transport), "hello\n");
    EXPECT_THAT(transport.description(), HasSubstr("OpenSSH, since it asks about the unknown"));
}

TEST(HostTransport, GoesToOpensshForANameThatLibsshDoesNotAccept)
{
    if (::access("/usr/sbin/sshd", X_OK) != 0 || !libssh()) {
        GTEST_SKIP() << "no sshd, or no libssh";
    }
    Sshd sshd;
    sshd.start();
    sshd.write("hello", "#!/bin/sh\necho hello\n");
    SshCommand command;
    command.ssh = {"ssh",
                   "-F",
                   sshd.path("ssh_config"),
                   "-o",
                   "HostName=gpu_login",
                   "-o",
                   fmt::format("ProxyCommand=/usr/sbin/sshd -i -f {}", sshd.path("sshd_config"))};
    command.host = "login";
    command.program = sshd.path("hello");
    HostTransport transport(TransportChoice::automatic, command, "");
    EXPECT_EQ(output_of_both(transport), "hello\n");
    EXPECT_EQ(transport.description(), "OpenSSH, since libssh does not accept the name gpu_login");
}

} // namespace
} // namespace gpuq::remote
