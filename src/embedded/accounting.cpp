// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/accounting.h"

#include "embedded/directory.h"
#include "embedded/machine.h"
#include "embedded/process.h"
#include "embedded/texts.h"
#include "embedded/tools.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <sstream>
#include <unistd.h>

namespace gpuq::embedded {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

/// Options common to the server and the creation of the database.
std::vector<std::string> database_options(const Places& places, const ClusterSpec& spec,
                                          const std::string& directory)
{
    std::vector<std::string> options{"--no-defaults", "--datadir=" + directory,
                                     "--tmpdir=" + places.dir, "--innodb-log-file-size=8M"};
    if (geteuid() == 0) {
        options.push_back("--user=" + spec.user);
    }
    return options;
}

/// Creates the database, under a temporary name until it is complete.
Result<void> make_database(Start& start)
{
    const Places& places = start.places;
    if (fs::is_directory(places.database())) {
        return {};
    }
    const std::string unfinished = places.database() + ".new";
    std::error_code failed;
    fs::remove_all(unfinished, failed);
    TRY(make_dir(unfinished, 0700));
    const std::string sql = places.private_dir() + "/database.sql";
    TRY(write_file(sql, database_sql(), 0600));
    TRY_ASSIGN(std::string tool, program("mariadb-install-db"));
    std::vector<std::string> arguments = database_options(places, start.state.spec, unfinished);
    arguments.insert(arguments.begin(), std::move(tool));
    arguments.insert(arguments.end(),
                     {"--force", // also if the host name does not resolve
                      "--auth-root-authentication-method=socket", "--skip-test-db",
                      "--extra-file=" + sql, "--auth-root-socket-user=" + start.state.spec.user});
    TRY_ASSIGN(const Finished finished,
               run_command({std::move(arguments), environment_of(places)}, in(seconds(60))));
    TRY(write_file(places.log("mariadb-install-db"), finished.output, 0600));
    if (finished.status != 0) {
        return died(places, "mariadb-install-db");
    }
    fs::rename(unfinished, places.database(), failed);
    return failed ? Result<void>(
                        fail(Error::Kind::io, fmt::format("can not make {}: {}", places.database(),
                                                          failed.message())))
                  : Result<void>();
}

Result<void> start_database(Start& start)
{
    const Places& places = start.places;
    std::vector<std::string> options =
        database_options(places, start.state.spec, places.database());
    options.insert(options.end(),
                   {"--skip-networking", "--socket=" + places.database_socket(),
                    "--pid-file=" + places.private_dir() + "/mariadbd.pid", "--skip-log-bin",
                    "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900",
                    // A machine crash may lose the last second of records, in exchange for one
                    // fsync per second instead of one per record.
                    "--innodb-flush-log-at-trx-commit=2",
                    // On by default since 11.6; slurmdbd exits at the first write conflict with it.
                    "--loose-innodb-snapshot-isolation=OFF"});
    TRY(launch(start, "mariadbd", "mariadbd", std::move(options)));
    return wait_until(start, "mariadbd", [&] { return listens(places.database_socket()); });
}

Result<void> start_slurmdbd(Start& start)
{
    TRY(launch(start, "slurmdbd", "slurmdbd", {"-D"}));
    return wait_until(start, "slurmdbd", [&] { return answers(start.state.ports.accounting); });
}

/// Reduces the error of `daemon` to one line; died() quotes several lines of its log.
Error in_one_line(const Start& start, const std::string& daemon, const Error& error)
{
    const bool is_quote = error.text.find('\n') != std::string::npos;
    if (error.kind == Error::Kind::stopped || !is_quote) {
        return error;
    }
    const auto& daemons = start.state.daemons;
    const bool lives = std::any_of(daemons.begin(), daemons.end(), [&](const Daemon& one) {
        return one.name == daemon && is_alive(one.process);
    });
    std::string text = daemon + (lives ? " does not answer" : " failed");
    const std::string cause = cause_in(content_of(start.places.output_file(daemon)));
    for (const std::string& part : {cause, remedy_for(cause)}) {
        text += part.empty() ? "" : ": " + part;
    }
    return fail(error.kind, fmt::format("{} ({})", text, start.places.output_file(daemon)));
}

struct Step {
    const char* daemon; ///< or program; its log explains a failure
    Result<void> (*run)(Start&);
};

constexpr Step k_steps[] = {{"mariadb-install-db", make_database},
                            {"mariadbd", start_database},
                            {"slurmdbd", start_slurmdbd}};

/// True if sacctmgr failed only because everything existed already; messages of Slurm 22.05 to
/// 26.05.
bool changed_nothing(const std::string& output)
{
    constexpr std::array<std::string_view, 5> k_phrases = {
        "Nothing new added", "already exists",
        "Already existing", // since 23.11, like the next one:
        "Request didn't affect anything",
        // for users of a policy who do not exist on this machine
        "Nothing modified"};
    return std::any_of(k_phrases.begin(), k_phrases.end(), [&](std::string_view phrase) {
        return output.find(phrase) != std::string::npos;
    });
}

/// Login names of the users of this machine, for root's cluster.
std::vector<std::string> user_names(const ClusterSpec& spec)
{
    constexpr uid_t k_first = 1000;
    constexpr uid_t k_last = 59999;
    constexpr std::size_t k_most = 1000;
    std::vector<std::string> names{spec.user};
    if (geteuid() == 0) {
        setpwent();
        for (const passwd* entry = getpwent(); entry != nullptr && names.size() < k_most;
             entry = getpwent()) {
            if (entry->pw_uid >= k_first && entry->pw_uid <= k_last) {
                names.emplace_back(entry->pw_name);
            }
        }
        endpwent();
    }
    return names;
}

} // namespace

Result<void> start_accounting(Start& start)
{
    TRY(check_programs(Programs::of_accounting));
    if (!is_running(start, "mariadbd")) { // libmariadb does not recover from a failed connection
        end_daemon(start, "slurmdbd");
    }
    for (const Step& step : k_steps) {
        if (const auto done = step.run(start); !done) {
            Error error = in_one_line(start, step.daemon, done.error());
            end_accounting(start);
            return error;
        }
    }
    return {};
}

void end_accounting(Start& start)
{
    end_daemon(start, "slurmdbd");
    end_daemon(start, "mariadbd");
}

Result<void> account(const Start& start, std::vector<std::string> arguments)
{
    arguments.insert(arguments.begin(), {"sacctmgr", "-i"});
    TRY_ASSIGN(const Finished done, run_tool(start.places, std::move(arguments), seconds(20)));
    if (done.status != 0 && !changed_nothing(done.output)) {
        return fail(Error::Kind::internal, fmt::format("sacctmgr: {}", cause_in(done.output)));
    }
    return {};
}

Result<void> add_accounts(const Start& start)
{
    TRY(account(start, {"add", "cluster", start.state.spec.name}));
    TRY(account(start, {"add", "account", "default", "Description=default", "Organization=local"}));
    return add_users(start);
}

Result<void> add_users(const Start& start)
{
    return account(start,
                   {"add", "user", fmt::format("{}", fmt::join(user_names(start.state.spec), ",")),
                    "Account=default"});
}

std::string cause_in(std::string_view log)
{
    // A time and a program name may precede these marks.
    constexpr std::array<std::string_view, 5> k_marks{"error: ", "fatal: ", "[ERROR] ",
                                                      "FATAL ERROR: ", "ERROR: "};
    constexpr std::array<std::string_view, 3> k_harmless{"not recommended values", "pidfile",
                                                         "Could not open"};
    constexpr std::size_t k_longest = 300;
    const auto has = [](std::string_view line, std::string_view arguments) {
        return line.find(arguments) != std::string_view::npos;
    };
    std::string last;
    std::string cause;
    std::istringstream lines{std::string(log)};
    for (std::string line; cause.empty() && std::getline(lines, line);) {
        std::replace_if(
            line.begin(), line.end(),
            [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }, '?');
        last = line.empty() ? last : line;
        if (std::any_of(k_harmless.begin(), k_harmless.end(),
                        [&](std::string_view arguments) { return has(line, arguments); })) {
            continue;
        }
        for (const std::string_view mark : k_marks) {
            if (const auto at = line.find(mark); at != std::string::npos && cause.empty()) {
                cause = line.substr(at + mark.size());
            }
        }
    }
    return (cause.empty() ? last : cause).substr(0, k_longest);
}

std::string remedy_for(std::string_view cause)
{
    struct Remedy {
        std::string_view message;
        std::string_view text;
    };
    constexpr std::array k_remedies{
        Remedy{"accounting_storage/mysql", "`sudo apt-get install slurm-wlm-mysql-plugin`"},
        Remedy{"No space left", "make room or choose another --dir"},
        Remedy{"Errcode: 28", "make room or choose another --dir"},
        Remedy{"with error 28", "make room or choose another --dir"},
    };
    for (const Remedy& remedy : k_remedies) {
        if (cause.find(remedy.message) != std::string_view::npos) {
            return std::string(remedy.text);
        }
    }
    return "";
}

} // namespace gpuq::embedded
