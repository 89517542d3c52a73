// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeps/taker.h"

#include "core/layout.h"
#include "core/strings.h"
#include "fakes/memory_store.h"
#include "sweeps/changes.h"
#include "sweeps/numbered_sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>

// Schedules of faults, by a seed. Workers die before, in or after any access to the disk, while
// others run between any two accesses. For some time the disk is full or returns errors, also after
// it has written something, and Slurm's controller does not respond: a job is not submitted, or
// twice, and no client learns that a link has ended.

namespace gpuq::sweeps {
namespace {

using namespace std::chrono_literals;

struct Death {};

/// The faults at present, and chance.
struct Faults {
    std::mt19937 random;
    bool disk = false, slurm = false;

    bool chosen(unsigned int in) { return random() % in == 0; }
    /// Each of them fails for some time and then works again.
    void change()
    {
        disk = disk ? !chosen(40) : chosen(60);
        slurm = slurm ? !chosen(40) : chosen(60);
    }
};

/// The disk as one process sees it.
class FaultyStore : public Store {
public:
    /// `others` advances other processes between two accesses; nothing: this one does not die.
    FaultyStore(fakes::MemoryStore& store, Faults& faults, std::function<void()> others)
        : m_store(store)
        , m_faults(faults)
        , m_others(std::move(others))
    {
    }
    const std::string& root() const override { return m_store.root(); }
    Result<std::string> read(const std::string& path) override
    {
        TRY(begin_read(path));
        return m_store.read(path);
    }
    Result<std::string> read_at(const std::string& path, std::uint64_t offset,
                                std::size_t size) override
    {
        TRY(begin_read(path));
        return m_store.read_at(path, offset, size);
    }
    Result<std::uint64_t> size(const std::string& path) override
    {
        TRY(begin_read(path));
        return m_store.size(path);
    }
    Result<std::vector<std::string>> list(const std::string& path) override
    {
        TRY(begin_read(path));
        return m_store.list(path);
    }
    Result<void> write(const std::string& path, std::string_view content) override
    {
        return written(path, [&] { return m_store.write(path, content); });
    }
    Result<void> write_once(const std::string& path, std::string_view content) override
    {
        return written(path, [&] { return m_store.write_once(path, content); });
    }
    Result<void> append_line(const std::string& path, std::string_view line) override
    {
        access();
        const bool dies = m_others && m_faults.chosen(60);
        const bool fails = m_faults.disk && m_faults.chosen(3);
        if (!dies && !fails) {
            return m_store.append_line(path, line);
        }
        const auto found = m_store.files.find(path);
        const bool is_torn =
            found != m_store.files.end() && !found->second.empty() && found->second.back() != '\n';
        const std::string text = (is_torn ? "\n" : "") + std::string(line) + "\n";
        m_store.append(path, text.substr(0, m_faults.random() % (text.size() + 1)));
        if (dies) {
            throw Death();
        }
        return fail(Error::Kind::io, path + ": Input/output error");
    }
    Result<void> write_together(const std::vector<NewFile>& files) override
    {
        return m_store.write_together(files);
    }
    Result<void> make_dir(const std::string& path) override { return m_store.make_dir(path); }
    Result<void> remove(const std::string& path) override { return m_store.remove(path); }
    Result<std::uint64_t> tree_size(const std::string& path) override
    {
        return m_store.tree_size(path);
    }
    Result<Descriptor> try_lock(const std::string& path, std::uint32_t byte) override
    {
        return m_store.try_lock(path, byte);
    }
    Result<void> remove_tree(const std::string& path) override { return m_store.remove_tree(path); }

private:
    Result<void> begin_read(const std::string& path)
    {
        access();
        return m_faults.disk && m_faults.chosen(8)
                   ? Result<void>(fail(Error::Kind::io, path + ": Input/output error"))
                   : Result<void>();
    }
    template <typename Write>
    Result<void> written(const std::string& path, Write write)
    {
        access();
        if (m_faults.disk && m_faults.chosen(3)) {
            return fail(Error::Kind::io, path + ": No space left on device");
        }
        const auto result = write();
        if (m_others && m_faults.chosen(60)) {
            throw Death();
        }
        // As if fsync of the directory had failed: the file exists.
        return result && m_faults.disk && m_faults.chosen(3)
                   ? Result<void>(fail(Error::Kind::io, path + ": Input/output error"))
                   : result;
    }
    void access()
    {
        if (m_others && m_faults.chosen(400)) {
            throw Death();
        }
        if (m_others && m_faults.chosen(4)) {
            m_others();
        }
    }

    fakes::MemoryStore& m_store;
    Faults& m_faults;
    std::function<void()> m_others;
};

class Schedule {
public:
    explicit Schedule(unsigned int seed)
        : m_faults{std::mt19937(seed)}
        , m_plain(m_disk, m_faults, nullptr)
        , m_sweep(numbered_sweep("cal"))
    {
        if (m_faults.chosen(3)) {
            m_sweep.gpu_time = std::chrono::minutes(1 + m_faults.random() % 3);
        }
        m_tries = 1 + static_cast<int>(m_faults.random() % 12);
        EXPECT_TRUE(write_sweep(m_disk, m_sweep, numbered_tries(m_tries)));
    }

    void run()
    {
        for (int step = 0; step < k_most_steps && (step % 8 != 0 || !is_complete()); ++step) {
            m_faults.change();
            if (step > k_most_steps / 2) {
                m_faults.disk = m_faults.slurm = false;
            }
            m_now += 1s;
            if (m_workers.size() + m_queue.size() < k_workers && m_faults.chosen(2)) {
                submit();
            }
            if (!m_queue.empty() && m_faults.chosen(3)) {
                start_job();
            }
            for (std::size_t i = 0; i < m_workers.size(); ++i) {
                advance(i, &Schedule::check_budget);
            }
            if (!m_workers.empty()) {
                advance(m_faults.random() % m_workers.size(), &Schedule::work);
            }
            record_ends();
        }
        EXPECT_TRUE(is_complete());
        for (const auto& [number, ends] : ends_on_disk()) {
            EXPECT_EQ(ends.size(), 1U) << "try " << number;
        }
        if (m_sweep.gpu_time) {
            EXPECT_LE(m_used, *m_sweep.gpu_time + k_workers * k_between_budgets);
        }
    }

private:
    static constexpr int k_most_steps = 6000;
    static constexpr std::size_t k_workers = 3;
    static constexpr auto k_between_budgets = 1s; ///< two checks of a worker

    struct Worker {
        Claimant self;
        std::unique_ptr<FaultyStore> store;
        std::unique_ptr<TryTaker> taker;
        std::optional<TryTaker::Taken> running;
        Time began;                  ///< its program
        std::optional<TryEvent> end; ///< to be recorded
        bool busy = false;           ///< in a call, while others advance
    };
    struct Job {
        Claimant self;
        int id = 0;
    };

    // Slurm and the clients.

    /// A new worker, or the next link of one whose link is over. A request without an answer is
    /// made again, though the first one may have succeeded.
    void submit()
    {
        Claimant self{numbered_key(m_next_key++), LinkNumber{1}};
        EXPECT_TRUE(m_disk.write(layout::run_json(self.worker), "{}"));
        const auto ended = std::find_if(m_over.begin(), m_over.end(), [&](const Claimant& who) {
            return !m_disk.size(layout::ended_json(who.worker)) && !is_used(next_of(who));
        });
        if (ended != m_over.end() && m_faults.chosen(2)) {
            self = next_of(*ended);
        }
        m_asked.insert({self.worker.text(), self.link.value});
        for (int attempt = 0; attempt < 3; ++attempt) {
            const bool fails = m_faults.slurm && m_faults.chosen(2);
            if (!fails || m_faults.chosen(2)) {
                m_queue.push_back({self, ++m_last_job});
            }
            if (!fails) {
                return;
            }
        }
    }

    static Claimant next_of(const Claimant& who)
    {
        return {who.worker, LinkNumber{who.link.value + 1}};
    }
    bool is_used(const Claimant& who) const
    {
        return m_asked.contains({who.worker.text(), who.link.value});
    }

    /// Of several jobs for one link, one becomes it.
    void start_job()
    {
        const auto at =
            m_queue.begin() + static_cast<std::ptrdiff_t>(m_faults.random() % m_queue.size());
        const Job job = *at;
        m_queue.erase(at);
        if (m_disk.size(layout::ended_json(job.self.worker))) {
            return;
        }
        const std::string path = layout::claim(job.self.worker, job.self.link);
        (void)m_plain.write_once(path, std::to_string(job.id));
        const auto owner = m_plain.read(path);
        if (!owner || *owner != std::to_string(job.id)) {
            return;
        }
        auto worker = std::make_unique<Worker>(Worker{job.self, nullptr, nullptr, {}, {}, {}});
        worker->store =
            std::make_unique<FaultyStore>(m_disk, m_faults, [this] { advance_other(); });
        worker->taker =
            std::make_unique<TryTaker>(*worker->store, k_numbered_sweep, worker->self,
                                       [store = worker->store.get()](const Claimant& who) {
                                           return is_link_over(*store, who);
                                       });
        m_workers.push_back(std::move(worker));
    }

    /// By the guardian at the end, or later by a client that Slurm has given an answer.
    void record_ends()
    {
        std::erase_if(m_unrecorded, [this](const Claimant& who) {
            return m_faults.chosen(8) && (m_faults.chosen(2) ? is_journaled(who) : is_seen(who));
        });
    }

    bool is_journaled(const Claimant& who)
    {
        return m_plain
            .append_line(
                layout::journal(who.worker, who.link),
                R"({"v":1,"at":"2026-01-01T00:00:00Z","event":"ended","status":0,"cause":"lost"})")
            .has_value();
    }

    bool is_seen(const Claimant& who)
    {
        const auto has_job = [&](const auto& job) { return job.self.worker == who.worker; };
        const bool continues = std::any_of(m_queue.begin(), m_queue.end(), has_job) ||
                               std::any_of(m_workers.begin(), m_workers.end(),
                                           [&](const auto& one) { return has_job(*one); });
        const bool knows = !(m_faults.slurm && m_faults.chosen(2)) && !continues;
        return knows && m_plain.write(layout::ended_json(who.worker), "{}");
    }

    // The workers.

    using Action = void (Schedule::*)(Worker&);

    void advance_other()
    {
        if (m_depth < 2 && !m_workers.empty()) {
            advance(m_faults.random() % m_workers.size(), &Schedule::work);
        }
    }

    void advance(std::size_t index, Action action)
    {
        Worker* const worker = m_workers[index].get();
        if (worker->busy || worker->taker == nullptr) {
            return;
        }
        worker->busy = true;
        ++m_depth;
        try {
            (this->*action)(*worker);
        } catch (const Death&) {
            end_link(*worker);
        }
        --m_depth;
        worker->busy = false;
        if (m_depth == 0) {
            std::erase_if(m_workers, [](const auto& one) { return one->taker == nullptr; });
        }
    }

    void check_budget(Worker& worker)
    {
        if (worker.running && worker.taker->is_spent(m_sweep, m_now)) {
            end_program(worker, TryEnd::paused, 143);
        }
    }

    void work(Worker& worker)
    {
        if (m_faults.chosen(50)) {
            throw Death();
        }
        if (worker.end) {
            if (worker.taker->record(*worker.end)) {
                worker.end.reset();
            }
        } else if (worker.running) {
            if (m_faults.chosen(8)) {
                end_program(worker, TryEnd::finished, 0);
            }
        } else if (worker.taker->is_spent(m_sweep, m_now)) {
            end_link(worker);
        } else {
            take(worker);
        }
    }

    void take(Worker& worker)
    {
        const auto taken = worker.taker->next(m_now);
        if (taken && !*taken) {
            end_link(worker); // nothing is left
        }
        if (!taken || !*taken) {
            return;
        }
        const std::size_t number = (*taken)->number;
        EXPECT_TRUE(m_alive.insert(number).second) << "try " << number << " runs twice";
        EXPECT_FALSE(ends_on_disk().contains(number)) << "try " << number << " has ended";
        worker.running = **taken;
        worker.began = m_now;
    }

    void end_program(Worker& worker, TryEnd end, int status)
    {
        m_alive.erase(worker.running->number);
        m_used += m_now - worker.began;
        if (status >= 0) {
            worker.end = end_of_taken(*worker.running, end, status);
            worker.end->at = m_now;
        }
        worker.running.reset();
    }

    /// All its processes end at once.
    void end_link(Worker& worker)
    {
        if (worker.running) {
            end_program(worker, TryEnd::lost, -1);
        }
        m_over.push_back(worker.self);
        m_unrecorded.push_back(worker.self);
        worker.taker.reset();
    }

    // The conditions.

    /// By try: the attempts whose programs have ended.
    std::map<std::size_t, std::set<int>> ends_on_disk() const
    {
        std::map<std::size_t, std::set<int>> ends;
        for (const auto& [path, text] : m_disk.files) {
            if (!path.starts_with(layout::sweep_workers(m_sweep.run.key))) {
                continue;
            }
            for (const std::string_view line : fields(text, "\n")) {
                const auto event = try_event_in(line);
                if (event && event->kind == TryEvent::Kind::ended &&
                    event->end == TryEnd::finished) {
                    ends[event->number].insert(event->attempt);
                }
            }
        }
        return ends;
    }

    bool is_complete()
    {
        Board board(m_disk, m_sweep.run.key);
        EXPECT_TRUE(board.refresh());
        return m_alive.empty() &&
               (tally_of(board.tries()).succeeded == static_cast<std::size_t>(m_tries) ||
                sweeps::is_spent(board.tries(), m_sweep, m_now));
    }

    Faults m_faults;
    fakes::MemoryStore m_disk;
    FaultyStore m_plain; ///< for processes that do not die
    Sweep m_sweep;
    int m_tries = 0;
    int m_depth = 0;
    unsigned int m_next_key = 1;
    int m_last_job = 0;
    Time m_now = k_first_taken;
    std::chrono::microseconds m_used{0}; ///< GPU time of all programs
    std::vector<Job> m_queue;
    std::set<std::pair<std::string, int>> m_asked; ///< links that jobs were submitted for
    std::vector<std::unique_ptr<Worker>> m_workers;
    std::vector<Claimant> m_over, m_unrecorded;
    std::set<std::size_t> m_alive;
};

TEST(TakerSchedules, RunEachTryOnceWhateverFails)
{
    const char* const soak = std::getenv("GPUQ_SOAK");
    const unsigned int seeds = soak != nullptr ? 10'000 : 1000;
    for (unsigned int seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        Schedule(seed).run();
    }
}

} // namespace
} // namespace gpuq::sweeps
