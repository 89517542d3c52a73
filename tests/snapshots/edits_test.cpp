// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/take.h"
#include "snapshots/view.h"

#include "fakes/memory_store.h"
#include "io/descriptor.h"
#include "snapshots/work_tree.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

// A work tree that is edited at random between the submissions of many runs, and again between
// their starts: each run gets the files of its submission.

namespace gpuq::snapshots {
namespace {

using testing::WorkTree;

constexpr std::array<const char*, 8> k_files = {"train.py",      "lib/model.py",  "lib/deep/a.py",
                                                "conf.yaml",     "with blank.sh", "lib/größe.py",
                                                "lib2/model.py", "Makefile"};

class EditedTree {
public:
    explicit EditedTree(unsigned int seed)
        : m_random(seed)
    {
        for (const char* file : k_files) {
            m_tree.write(file, text());
        }
    }

    /// As editors, build systems and git do.
    void edit()
    {
        const std::string file = k_files.at(m_random() % k_files.size());
        switch (m_random() % 5) {
        case 0: // of the same size, in place
            m_tree.write(file, text());
            break;
        case 1:
            m_tree.write(file, text() + text());
            break;
        case 2:
            m_tree.write("new", text());
            std::filesystem::create_directories(
                std::filesystem::path(m_tree.path() + "/" + file).parent_path());
            std::filesystem::rename(m_tree.path() + "/new", m_tree.path() + "/" + file);
            break;
        case 3:
            m_tree.remove(file);
            break;
        default: // all that is in its directory, or the file
            m_tree.remove(file.substr(0, file.find('/')));
            m_tree.write(file, text(), m_random() % 2 == 0);
        }
    }

    std::map<std::string, std::string> files() const
    {
        std::map<std::string, std::string> found;
        for (const char* file : k_files) {
            if (std::filesystem::exists(m_tree.path() + "/" + file)) {
                found[file] = m_tree.read(file);
            }
        }
        return found;
    }

    const std::string& path() const { return m_tree.path(); }
    bool chosen(unsigned int in) { return m_random() % in == 0; }

private:
    std::string text() { return std::to_string(10'000 + m_random() % 90'000) + "\n"; }

    WorkTree m_tree;
    std::mt19937 m_random;
};

/// The files that a program sees in the view of a snapshot.
std::map<std::string, std::string> seen(Store& store, const std::string& directory,
                                        const std::string& id,
                                        const std::map<std::string, std::string>& files)
{
    std::vector<std::string> argv = {"sh", "-c", R"(for f; do printf '%s:' "$f"; cat "$f"; done)",
                                     "sh"};
    for (const auto& [file, content] : files) {
        argv.push_back(file);
    }
    Pipe pipe = *make_pipe();
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(pipe.write.get(), STDOUT_FILENO);
        ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);
        const bool entered = ::chdir(directory.c_str()) == 0;
        Reference reference{.required = true};
        reference.id = id;
        ::_exit(entered ? execute(store, reference, argv) : 1);
    }
    pipe.write.reset();
    std::string output;
    std::array<char, 4096> bytes{};
    for (ssize_t count = 0; (count = ::read(pipe.read.get(), bytes.data(), bytes.size())) > 0;) {
        output.append(bytes.data(), static_cast<std::size_t>(count));
    }
    ::waitpid(child, nullptr, 0);
    std::map<std::string, std::string> found;
    std::size_t at = 0;
    for (const auto& [file, content] : files) {
        const std::string name = file + ":";
        if (output.compare(at, name.size(), name) != 0) {
            break;
        }
        found[file] = output.substr(at + name.size(), content.size());
        at += name.size() + content.size();
    }
    return at == output.size() ? found : std::map<std::string, std::string>{{"rest", output}};
}

TEST(Edits, OfFilesDoNotReachRunsThatWereSubmittedBefore)
{
    struct Submitted {
        std::string id;
        Manifest manifest;
        std::map<std::string, std::string> files;
    };
    const bool soak = std::getenv("GPUQ_SOAK") != nullptr;
    fakes::MemoryStore store;
    EditedTree tree(1);
    std::vector<Submitted> runs;
    for (int number = 0; number < (soak ? 1000 : 60); ++number) {
        do {
            tree.edit();
        } while (tree.chosen(2));
        if (tree.files().empty()) {
            continue;
        }
        const auto taken = take(store, tree.path(), {}, true);
        ASSERT_TRUE(taken) << taken.error().text;
        runs.push_back({taken->id, taken->manifest, tree.files()});
    }
    for (const Submitted& run : runs) {
        ASSERT_EQ(seen(store, tree.path(), run.id, run.files), run.files) << run.id;
        (void)remove_put_back(run.manifest);
        if (tree.chosen(4)) {
            tree.edit();
        }
    }
}

} // namespace
} // namespace gpuq::snapshots
