// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/worker/proposer.h"

#include "core/layout.h"
#include "io/subprocess.h"
#include "io/trusted_path.h"
#include "supervisor/base/program.h"
#include "sweeps/changes.h"
#include "sweeps/proposals.h"
#include "term/sanitise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace gpuq::supervisor {
namespace {

using namespace std::chrono_literals;

constexpr auto k_time_to_propose = 10min;
constexpr std::size_t k_largest_output = 16 << 20;

std::size_t size_of(const Descriptor& file)
{
    struct stat status = {};
    return ::fstat(file.get(), &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

} // namespace

Proposer::~Proposer()
{
    if (m_pid > 0) {
        kill_and_reap(m_pid);
    }
}

Proposer::Results Proposer::results_of(const std::vector<sweeps::Try>& tries)
{
    const auto tally = sweeps::tally_of(tries);
    return {tries.size(), tries.size() - tally.waiting - tally.running};
}

Result<Proposer::Answer> Proposer::ask(EventLoop::Moment now)
{
    const sweeps::Board& board = m_taker.board();
    if (!m_sweep.propose || board.is_closed() || board.is_stopped()) {
        return Answer::none;
    }
    if (m_unwritten) {
        return write_down();
    }
    if (m_pid < 0) {
        return start(now);
    }
    int status = 0;
    if (::waitpid(m_pid, &status, WNOHANG) != m_pid) {
        if (now < m_kill_at && size_of(m_output) <= k_largest_output) {
            return Answer::pending;
        }
        kill_and_reap(std::exchange(m_pid, -1));
        return close_list(now < m_kill_at ? "it prints more than 16 MiB"
                                          : "it takes longer than 10 minutes");
    }
    m_pid = -1;
    const auto answer = take_output(status);
    m_lock = Descriptor();
    return answer;
}

Result<Proposer::Answer> Proposer::start(EventLoop::Moment now)
{
    const sweeps::Board& board = m_taker.board();
    if (board.tries().size() >= m_sweep.propose->most) {
        return close_list("");
    }
    if (m_answered == results_of(board.tries())) {
        return Answer::none;
    }
    TRY_ASSIGN(Descriptor lock, take_lock());
    if (!lock) {
        return Answer::pending;
    }
    const std::size_t known = board.tries().size();
    TRY(m_taker.refresh()); // the answer of the last holder of the lock
    if (board.tries().size() > known || board.is_closed()) {
        return board.is_closed() ? Answer::none : Answer::added;
    }
    TRY_ASSIGN(const Descriptor input,
               file_in_memory(sweeps::results_text(m_sweep, board.tries())));
    TRY_ASSIGN(m_output, file_in_memory(""));
    Environment variables = Environment::own();
    variables.set("GPUQ_SWEEP", m_sweep.run.key.text());
    variables.set("GPUQ_METRIC", sweeps::to_text(m_sweep.metric));
    variables.set("GPUQ_OVER", fmt::format("{}", fmt::join(m_sweep.propose->over, "\n")));
    TRY_ASSIGN(Spawned program, spawn({.argv = m_sweep.propose->command,
                                       .environment = variables.texts(),
                                       .search = Subprocess::Search::its_path,
                                       .work_dir = m_sweep.run.request.work_dir,
                                       .descriptors = {input.get(), m_output.get(), STDERR_FILENO},
                                       .group = Subprocess::Group::own,
                                       .death_signal = SIGKILL}));
    if (const auto failure = failure_of(program)) {
        (void)wait_for(program.pid);
        return close_list(error_text(failure->error));
    }
    m_lock = std::move(lock);
    m_pid = program.pid;
    m_kill_at = now + k_time_to_propose;
    m_batch = board.batches() + 1;
    m_asked = results_of(board.tries());
    return Answer::pending;
}

Result<Proposer::Answer> Proposer::take_output(int wait_status)
{
    if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGTERM) {
        return Answer::pending; // as this worker, which is about to end
    }
    if (wait_status != 0) {
        return close_list(fmt::format("exit status {}", exit_code(wait_status)));
    }
    const std::string text = output();
    const std::size_t most = m_sweep.propose->most - std::min(m_sweep.propose->most, m_asked.tries);
    const auto found = first_not_utf8(text) ? Result<std::vector<sweeps::Values>>(fail(
                                                  Error::Kind::usage, "its output is not UTF-8"))
                                            : sweeps::proposals_in(text, m_sweep.parameters, most);
    if (!found) {
        return close_list(found.error().text);
    }
    if (found->empty()) {
        m_answered = m_asked;
        return m_asked.tries == m_asked.ended ? close_list("") : Answer::none;
    }
    m_unwritten = Unwritten{Answer::added, sweeps::to_lines(*found)};
    return write_down();
}

Result<Proposer::Answer> Proposer::close_list(const std::string& failure)
{
    const std::string& program = m_sweep.propose->command.front();
    m_lock = Descriptor();
    if (!failure.empty()) {
        std::printf("no more proposals: %s: %s\n", sanitised(program).c_str(),
                    sanitised(failure).c_str());
        std::fflush(stdout);
    }
    m_unwritten =
        Unwritten{Answer::none, failure.empty() ? "" : fmt::format("{}: {}", program, failure)};
    return write_down();
}

Result<Proposer::Answer> Proposer::write_down()
{
    const RunKey& key = m_sweep.run.key;
    const auto& [answer, text] = *m_unwritten;
    const auto written = answer == Answer::added
                             ? m_store.write_once(layout::sweep_tries(key, m_batch), text)
                             : m_store.write(layout::sweep_closed(key), text);
    if (!written && written.error().kind != Error::Kind::busy) { // busy: another worker was faster
        return written.error();
    }
    return std::exchange(m_unwritten, std::nullopt)->answer;
}

/// Empty: another worker holds it. An error releases it: a second descriptor of this process could
/// not take it either.
Result<Descriptor> Proposer::take_lock()
{
    TRY_ASSIGN(const Descriptor root, open_trusted_directory(m_store.root()));
    Descriptor file(::openat(root.get(), layout::sweep_lock(m_sweep.run.key).c_str(),
                             O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) {
        return fail(Error::Kind::io,
                    fmt::format("{}: {}", layout::sweep_lock(m_sweep.run.key), error_text(errno)));
    }
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return Descriptor();
    }
    return file;
}

std::string Proposer::output() const
{
    std::string text(std::min(size_of(m_output), k_largest_output), '\0');
    const ssize_t size = ::pread(m_output.get(), text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
}

} // namespace gpuq::supervisor
