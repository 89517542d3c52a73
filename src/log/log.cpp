// SPDX-License-Identifier: GPL-2.0-or-later
// The only file that includes spdlog. A process has at most one logger, created by the first
// record:
//
//   write() ── redaction, sanitising ── logger ─┬─ StderrSink, at once
//                                               └─ queue of 1,024 ── thread ── FileSink
//
// A fork copies no thread and perhaps a locked mutex, so after_fork() leaves the parent's logger
// alone, for ever, and makes the next record create another one without a thread.
#include "log/log.h"

#include "core/redact.h"
#include "io/signals_blocked.h"
#include "log/file_sink.h"
#include "term/sanitise.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <thread>
#include <unistd.h>

namespace gpuq::log {
namespace {

constexpr std::size_t k_waiting_records = 1024;

std::atomic<std::size_t> g_given = 0;   ///< records given to the logger
std::atomic<std::size_t> g_written = 0; ///< records that a sink has written

/// The sink that spdlog writes to: a file of ours, or stderr.
class Sink : public spdlog::sinks::base_sink<std::mutex> {
public:
    explicit Sink(std::unique_ptr<FileSink> file)
        : m_file(std::move(file))
    {
    }

protected:
    void sink_it_(const spdlog::details::log_msg& record) override
    {
        spdlog::memory_buf_t line;
        formatter_->format(record, line);
        if (m_file) {
            m_file->write({line.data(), line.size()});
        } else {
            [[maybe_unused]] const ssize_t size = ::write(STDERR_FILENO, line.data(), line.size());
        }
        ++g_written;
    }
    void flush_() override {}

private:
    std::unique_ptr<FileSink> m_file; ///< null: stderr
};

/// Where the records of this process go. `path` empty: stderr.
struct Target {
    std::string path;
    std::string process;
    std::size_t most = 0;
    bool own_thread = true;
};

struct State {
    std::mutex mutex;
    Target target;
    std::shared_ptr<spdlog::details::thread_pool> pool;
    std::shared_ptr<spdlog::logger> logger; ///< null: not created yet
};

/// Never destroyed, since other threads may write while the process exits.
State*& state()
{
    static auto* one = new State;
    return one;
}

/// A thread that receives no signal: handlers of this process expect those of their own.
std::shared_ptr<spdlog::details::thread_pool> make_pool()
{
    const SignalsBlocked blocked;
    return std::make_shared<spdlog::details::thread_pool>(k_waiting_records, 1U);
}

std::shared_ptr<spdlog::logger> make_logger(State& now)
{
    const Target& target = now.target;
    const bool to_file = !target.path.empty();
    auto sink = std::make_shared<Sink>(
        to_file ? std::make_unique<FileSink>(target.path, target.most) : nullptr);
    std::shared_ptr<spdlog::logger> logger;
    if (to_file && target.own_thread) {
        now.pool = make_pool();
        logger =
            std::make_shared<spdlog::async_logger>(target.process, std::move(sink), now.pool,
                                                   spdlog::async_overflow_policy::overrun_oldest);
    } else {
        logger = std::make_shared<spdlog::logger>(target.process, std::move(sink));
    }
    // A terminal in raw mode needs the carriage return.
    const std::string end = !to_file && ::isatty(STDERR_FILENO) == 1 ? "\r\n" : "\n";
    logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        to_file ? "%Y-%m-%dT%H:%M:%S.%eZ %l %n[%P] %v" : "gpuq: %H:%M:%S.%e %l %v",
        to_file ? spdlog::pattern_time_type::utc : spdlog::pattern_time_type::local, end));
    logger->set_level(spdlog::level::trace); // the thresholds are ours, by part
    return logger;
}

spdlog::level::level_enum spdlog_level(Level level)
{
    return static_cast<spdlog::level::level_enum>(level); // the same order
}
static_assert(static_cast<int>(Level::error) == SPDLOG_LEVEL_ERROR);
static_assert(static_cast<int>(Level::off) > SPDLOG_LEVEL_ERROR);

void start(Target target, const Levels& levels)
{
    State& now = *state();
    const std::lock_guard lock(now.mutex);
    now.logger.reset();
    now.target = std::move(target);
    for (std::size_t part = 0; part < k_parts; ++part) {
        detail::levels[part] = levels.of_part[part];
    }
}

} // namespace

namespace detail {

constexpr Level k_off = Level::off;
std::array<std::atomic<Level>, k_parts> levels = {k_off, k_off, k_off, k_off, k_off,
                                                  k_off, k_off, k_off, k_off};

void write(Level level, Part part, std::string_view text)
{
    static const Redactor redactor;
    const std::string line = fmt::format("{}: {}", name_of(part), sanitised(redactor.text(text)));
    State& now = *state();
    std::shared_ptr<spdlog::logger> logger;
    {
        const std::lock_guard lock(now.mutex);
        if (!now.logger) {
            now.logger = make_logger(now);
        }
        logger = now.logger;
    }
    ++g_given;
    logger->log(spdlog_level(level), line);
}

} // namespace detail

void to_stderr(const Levels& levels)
{
    start({}, levels);
}

void to_file(const std::string& path, const std::string& process, const Levels& levels,
             std::size_t most)
{
    start({path, process, most}, levels);
}

Levels levels()
{
    Levels now{};
    std::copy(detail::levels.begin(), detail::levels.end(), now.of_part.begin());
    return now;
}

void flush(std::chrono::milliseconds at_most)
{
    const State& now = *state();
    const auto until = std::chrono::steady_clock::now() + at_most;
    constexpr std::chrono::milliseconds k_pause{1};
    while (now.pool && g_written + now.pool->overrun_counter() < g_given &&
           std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(k_pause);
    }
}

void after_fork(const std::string& process)
{
    const State& before = *state();
    auto* const now = new State; // the parent's may be locked
    now->target = before.target;
    now->target.own_thread = false;
    if (!process.empty()) {
        now->target.process = process;
    }
    state() = now;
    g_given = 0;
    g_written = 0;
}

Timer::~Timer()
{
    if (m_what.empty()) {
        return;
    }
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - m_begin;
    debug(m_part, "{}: {:.1f} ms{}{}", m_what, took.count(), m_outcome.empty() ? "" : ", ",
          m_outcome);
}

} // namespace gpuq::log
