// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/application.h"

#include "cli/base/read_only.h"
#include "cli/commands/verbs.h"
#include "fakes/fake_credentials.h"
#include "ports/accounting.h"
#include "ports/admin.h"
#include "ports/clock.h"
#include "ports/cluster.h"
#include "ports/files.h"
#include "ports/host.h"
#include "ports/store.h"
#include "ports/submit_script.h"
#include "ports/use_records.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

namespace gpuq::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Aborts when any service is opened.
class ClosedServices : public Services {
public:
    Result<Cluster*> cluster() override { std::abort(); }
    Result<Accounting*> accounting() override { std::abort(); }
    Result<UseRecords*> use_records() override { std::abort(); }
    Result<Admin*> admin() override { std::abort(); }
    Result<std::string> jobs_since(Time) override { std::abort(); }
    Result<Store*> store() override { std::abort(); }
    Result<std::string> state_dir() override { std::abort(); }
    Host& host() override { std::abort(); }
    Files& program_files() override { std::abort(); }
    SecretFiles& secret_files() override { std::abort(); }
    LoginTickets& login_tickets() override { return no_tickets; }
    fakes::FakeLoginTickets no_tickets;
    Clock& clock() override { std::abort(); }
    std::array<unsigned char, 8> random() override { std::abort(); }
    Result<Settings> settings() override { return Settings{}; }
    std::optional<std::string> variable(const std::string& name) override
    {
        return name == "GPUQ_READONLY"  ? read_only
               : name == "SUDO_COMMAND" ? sudo_command
                                        : std::nullopt;
    }
    void forget_variable(const std::string& name) override { forgotten.insert(name); }
    std::vector<std::string> environment() override { return {}; }
    Result<std::string> supervisor() override { std::abort(); }
    Result<std::string> program() override { std::abort(); }
    Result<TextFile> text_file(const std::string&, std::size_t) override { std::abort(); }
    Result<std::unique_ptr<SubmitScript>> submit_script(const std::string&) override
    {
        std::abort();
    }
    Result<SshKeyPair> new_ssh_key() override { std::abort(); }
    void choose_cluster(const std::string& name) override { chosen = name; }
    void choose_configuration(const std::string&) override {}

    std::string chosen;
    std::optional<std::string> read_only;
    std::optional<std::string> sudo_command;
    std::set<std::string> forgotten;
};

struct Outcome {
    int status;
    std::string out;
    std::string err;
};

Outcome use(std::vector<std::string> arguments, ClosedServices& services)
{
    arguments.insert(arguments.begin(), "gpuq");
    std::vector<char*> argv;
    for (std::string& word : arguments) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = run_application(static_cast<int>(arguments.size()), argv.data(), services);
    std::string out = testing::internal::GetCapturedStdout();
    return {status, std::move(out), testing::internal::GetCapturedStderr()};
}

Outcome use(std::vector<std::string> arguments)
{
    ClosedServices services;
    return use(std::move(arguments), services);
}

TEST(Application, SaysWhatItCanDo)
{
    for (const auto& arguments : {std::vector<std::string>{"help"}, {"--help"}, {"-h"}}) {
        const Outcome help = use(arguments);
        EXPECT_EQ(help.status, 0);
        EXPECT_EQ(help.err, "");
        const std::string flat = std::regex_replace(help.out, std::regex("\n {4,}"), " ");
        for (const Verb* verb : verbs()) {
            EXPECT_THAT(help.out, HasSubstr(fmt::format("\n  {} ", verb->name)));
            EXPECT_THAT(flat, HasSubstr(std::string(verb->summary)));
        }
        EXPECT_THAT(help.out, Not(HasSubstr("  serve "))); // called only through ssh
    }
}

TEST(Application, HelpFitsAScreenOfEightyColumns)
{
    std::string all = use({"help"}).out;
    for (const Verb* verb : verbs()) {
        std::string text = use({"help", std::string(verb->name)}).out;
        all += text.substr(text.find('\n')); // its synopsis may be longer
    }
    std::istringstream lines(all);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LT(line.size(), 80U) << line;
    }
}

TEST(Application, SaysWhatAVerbCanDo)
{
    for (const auto& arguments :
         {std::vector<std::string>{"help", "run"}, {"run", "--help"}, {"run", "-t", "2h", "-h"}}) {
        const Outcome help = use(arguments);
        EXPECT_EQ(help.status, 0);
        EXPECT_THAT(help.out, AllOf(HasSubstr("gpuq run [options]"), HasSubstr("-t, --time TIME"),
                                    HasSubstr("--max-wait TIME"), HasSubstr("-Q, --quiet"),
                                    Not(HasSubstr("--array"))));
    }
    EXPECT_EQ(use({"help", "logz"}).status, 2);
}

TEST(Application, TheCallerOfSudoDoesNotChooseTheHoursOfACalendar)
{
    for (const auto& [command, ignores] : {std::pair("/usr/bin/gpuq extend 7 1h", true),
                                           {"/usr/bin/gpuq", true},
                                           {"/bin/bash", false},
                                           {"/usr/bin/vi gpuq", false}}) {
        ClosedServices services;
        services.sudo_command = command;
        use({"--version"}, services);
        EXPECT_EQ(services.forgotten.contains("TZ"), ignores) << command;
    }
    ClosedServices services;
    use({"--version"}, services);
    EXPECT_FALSE(services.forgotten.contains("TZ"));
}

TEST(Application, SaysItsVersion)
{
    const Outcome version = use({"--version"});
    EXPECT_EQ(version.status, 0);
    EXPECT_EQ(version.out, "gpuq " GPUQ_VERSION "\n");
}

TEST(Application, NamesTheNearestVerb)
{
    const Outcome outcome = use({"rnu", "-t", "2h"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "gpuq: no verb 'rnu' (did you mean 'run'?); gpuq help lists them\n");
}

TEST(Application, KeepsWordsForLaterVersions)
{
    for (const std::string_view verb : reserved_verbs()) {
        const Outcome outcome = use({std::string(verb), "whatever"});
        EXPECT_EQ(outcome.status, 2);
        EXPECT_THAT(outcome.err, HasSubstr("is not in this version"));
        EXPECT_EQ(find_verb(every_verb(), verb), nullptr)
            << verb << " is built: not reserved any more";
    }
    const Outcome outcome = use({"run", "--array", "1-3", "prog"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, "gpuq: --array is not in this version\n");
}

TEST(Application, WantsAVerb)
{
    const Outcome outcome = use({});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, "gpuq: missing command; try 'gpuq run PROGRAM' or 'gpuq help'\n");
}

TEST(Application, ShowsHostileWordsHarmless)
{
    EXPECT_EQ(use({"\033[2J\u202e\n"}).err,
              "gpuq: no verb '^[[2J\\u{202e}\ngpuq: '; gpuq help lists them\n");
}

TEST(Application, TakesGlobalOptionsBeforeAndAfterTheVerb)
{
    for (const auto& arguments :
         {std::vector<std::string>{"--cluster", "local", "completion", "bash"},
          {"completion", "--cluster=local", "bash"},
          {"--cluster=other", "completion", "bash", "--cluster", "local"}}) {
        ClosedServices services;
        EXPECT_EQ(use(arguments, services).status, 0);
        EXPECT_EQ(services.chosen, "local");
    }
    EXPECT_EQ(use({"--color", "sometimes", "help"}).err,
              "gpuq: --color: one of auto, always, never\n");
    EXPECT_EQ(use({"help", "--color=sometimes"}).status, 2);
}

TEST(Application, OnlyReadsIfGpuqReadonlyIsSet)
{
    using Command = std::vector<std::string>;
    ClosedServices services; // which would abort if a command were executed
    services.read_only = "1";
    for (const Verb* verb : every_verb()) {
        const bool reads =
            std::set<std::string_view>{"ls",   "show",       "diff",  "logs", "free",
                                       "why",  "profile",    "usage", "wait", "doctor",
                                       "help", "completion", "serve"}
                .contains(verb->name);
        EXPECT_EQ(check_read_only(*verb, {"x"}).has_value(), reads) << verb->name;
    }
    for (const auto& command : {Command{"stop", "7"},
                                {"--host", "login", "stop", "7"},
                                {"-Q", "run", "train.py"},
                                {"policy", "apply", "x.yaml"},
                                {"sweep", "--over", "a=1", "export"},
                                {"top"},
                                {"sweep", "retry", "cal", "--dry-run"},
                                {"run", "train.py", "--dry-run"}}) {
        const Outcome outcome = use(command, services);
        EXPECT_EQ(outcome.status, 121) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr("GPUQ_READONLY is set"));
    }
    EXPECT_TRUE(check_read_only(k_sweep_verb, {"export", "cal"}));
    EXPECT_TRUE(check_read_only(k_run_verb, {"--dry-run", "train.py"}));
    EXPECT_TRUE(check_read_only(k_top_verb, {"--once"}));
    EXPECT_TRUE(check_read_only(k_policy_verb, {"plan", "x.yaml"}));
    services.read_only = "0";
    EXPECT_EQ(use({"completion", "bash"}, services).status, 0);
}

TEST(Application, LogsInNowhereWithTheKeysOfAnAccountThatSudoGives)
{
    ClosedServices services;
    services.sudo_command = "/usr/bin/gpuq stop --host login 7";
    for (const auto& command : {std::vector<std::string>{"--host", "login", "stop", "7"},
                                {"stop", "--host=login", "7"}}) {
        const Outcome outcome = use(command, services);
        EXPECT_EQ(outcome.status, 121) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr("--host: not if sudo executes gpuq"));
    }
}

TEST(Application, RefusesOptionsThatAVerbDoesNotHave)
{
    const Outcome outcome = use({"run", "--tmie", "2h", "prog"});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, "gpuq: no option --tmie (did you mean '--time'?)\n");
}

} // namespace
} // namespace gpuq::cli
