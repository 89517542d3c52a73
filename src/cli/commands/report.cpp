// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands/verbs.h"

#include "cli/base/message.h"
#include "cli/base/status_sources.h"
#include "cli/base/table_output.h"
#include "cli/queries/bundle.h"
#include "cli/queries/plain_target.h"
#include "cli/render/run_table.h"
#include "core/size.h"
#include "report/json.h"
#include "report/tar.h"
#include "runs/find.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace gpuq::cli {
namespace {

constexpr std::array k_options = {
    Option{'o', "output", "FILE",
           "output file, - for standard output; default: gpuq-report-ID.tar"},
    Option{0, "no-logs", "", "omit the program's output"},
};

/// Creates a file that only its owner may read; never overwrites a file or follows a link.
Result<void> write_new_file(const std::string& path, const std::string& content)
{
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        const bool exists = errno == EEXIST;
        return fail(exists ? Error::Kind::usage : Error::Kind::io,
                    fmt::format("can't write {}: {}{}", path, std::strerror(errno),
                                exists ? "; --output names another file" : ""));
    }
    std::size_t at = 0;
    ssize_t size = 0;
    while (at < content.size() && (size >= 0 || errno == EINTR)) {
        size = ::write(fd, content.data() + at, content.size() - at);
        at += size > 0 ? static_cast<std::size_t>(size) : 0;
    }
    const int error = errno;
    if (::close(fd) != 0 || at < content.size()) {
        (void)::unlink(path.c_str());
        return fail(Error::Kind::io,
                    fmt::format("can't write {}: {}", path,
                                std::strerror(at < content.size() ? error : errno)));
    }
    return {};
}

Result<int> report_run(Invocation& invocation)
{
    if (invocation.arguments.size() != 1) {
        return fail(Error::Kind::usage, "report takes one run: gpuq report last");
    }
    Services& services = invocation.services;
    TRY_ASSIGN(Store* const store, services.store());
    TRY_ASSIGN(const RunKey key,
               find_supervised(services, *store, invocation.arguments.front(), "report",
                               "scontrol show job {0} and sacct -j {0} show Slurm's records"));
    const RunStatus status = query_run(status_sources(services, *store), key);
    const auto output = invocation.options.value("output");
    const bool to_stdout = output == "-";
    if (to_stdout && (invocation.globals.json || ::isatty(STDOUT_FILENO) == 1)) {
        return fail(Error::Kind::usage,
                    "--output -: an archive goes into a pipe or a file, without --json");
    }
    const Logs logs = invocation.options.has("no-logs") ? Logs::left_out : Logs::last_lines;
    const auto files = bundle_of(services, *store, status, logs);
    const std::string path = output.value_or(fmt::format("gpuq-report-{}.tar", run_id(status)));
    const std::string archive = report::tar_of(files, services.clock().now());
    if (to_stdout) {
        TRY(print_text(archive));
        return 0;
    }
    TRY(write_new_file(path, archive));
    if (invocation.globals.json) {
        std::vector<std::string> names;
        for (const auto& file : files) {
            names.push_back(file.name);
        }
        TRY(print_text(report::json_document(
            {{"file", path}, {"bytes", archive.size()}, {"files", report::Json::array(names)}})));
    } else if (!invocation.globals.quiet) {
        print_message(fmt::format(
            "wrote {} ({} files, {}); look through it before you send it: tar -xOf {} | "
            "less",
            path, files.size(), bytes_text(archive.size()), path));
    }
    return 0;
}

} // namespace

const Verb k_report_verb{"report", "gpuq report [--output FILE] [--no-logs] RUN",
                         "collect the data about a run for support, without secrets", report_run,
                         k_options};

} // namespace gpuq::cli
