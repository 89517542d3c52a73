// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/base/rank_notes.h"

#include "core/number.h"
#include "io/descriptor.h"
#include "term/sanitise.h"

#include <fmt/format.h>

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace gpuq::supervisor {
namespace {

constexpr const char* k_folder = "ranks";
constexpr const char* k_first = "first";
constexpr std::string_view k_memory = "memory.";
constexpr std::size_t k_most_notes = 10000;

Descriptor open_folder(int link_folder)
{
    return Descriptor(
        ::openat(link_folder, k_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Writes a note atomically; an existing one is kept unless `replace`.
void write_note(int folder, const std::string& name, const std::string& text, bool replace)
{
    const std::string draft = fmt::format(".{}.{}", name, ::getpid());
    {
        const Descriptor file(::openat(
            folder, draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file || !write_all(file.get(), text)) {
            ::unlinkat(folder, draft.c_str(), 0);
            return;
        }
    }
    if (replace) {
        ::renameat(folder, draft.c_str(), folder, name.c_str());
        return;
    }
    (void)!::linkat(folder, draft.c_str(), folder, name.c_str(), 0); // fails if it exists
    ::unlinkat(folder, draft.c_str(), 0);
}

/// The fields of a note's single line; empty if it is missing or incomplete.
std::vector<std::string> words_of(int folder, const std::string& name)
{
    const Descriptor file(
        ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    char bytes[512];
    const ssize_t size = file ? ::read(file.get(), bytes, sizeof bytes) : 0;
    std::string_view line(bytes, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    std::vector<std::string> words;
    if (!line.ends_with('\n')) {
        return words;
    }
    line.remove_suffix(1);
    while (!line.empty()) {
        const std::size_t end = std::min(line.find(' '), line.size());
        words.push_back(sanitised(line.substr(0, end)));
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    return words;
}

std::optional<RankEnd> end_in(const std::vector<std::string>& words)
{
    const auto rank = words.size() == 3 ? whole_number(words[0]) : std::nullopt;
    const auto status = rank ? whole_number(words[1]) : std::nullopt;
    return status && *status <= 0xffff ? std::optional(RankEnd{static_cast<int>(*rank), words[2],
                                                               static_cast<int>(*status)})
                                       : std::nullopt;
}

void take_memory(RankNotes& notes, const std::vector<std::string>& words)
{
    const auto ours = words.size() == 3 ? whole_number(words[0]) : std::nullopt;
    const auto nearby = ours ? whole_number(words[1]) : std::nullopt;
    if (nearby) {
        MemoryKills& kills = notes.memory[words[2]];
        kills.ours = std::max(kills.ours, *ours);
        kills.nearby = std::max(kills.nearby, *nearby);
    }
}

} // namespace

void make_rank_notes(int link_folder)
{
    ::mkdirat(link_folder, k_folder, 0700);
}

void note_end(int link_folder, const RankEnd& end)
{
    write_note(open_folder(link_folder).get(), k_first,
               fmt::format("{} {} {}\n", end.rank, end.wait_status, end.node), /*replace=*/false);
}

void note_memory(int link_folder, int rank, const std::string& node, const MemoryKills& kills)
{
    write_note(open_folder(link_folder).get(), fmt::format("{}{}", k_memory, rank),
               fmt::format("{} {} {}\n", kills.ours, kills.nearby, node), /*replace=*/true);
}

RankNotes read_rank_notes(int link_folder)
{
    RankNotes notes;
    Descriptor folder = open_folder(link_folder);
    const int listed = folder ? ::dup(folder.get()) : -1;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(listed < 0 ? nullptr : ::fdopendir(listed),
                                                      ::closedir);
    if (!entries) {
        return notes;
    }
    notes.first = end_in(words_of(folder.get(), k_first));
    for (std::size_t seen = 0; seen < k_most_notes; ++seen) {
        const dirent* entry = ::readdir(entries.get());
        if (entry == nullptr) {
            break;
        }
        if (std::string_view(entry->d_name).starts_with(k_memory)) {
            take_memory(notes, words_of(folder.get(), entry->d_name));
        }
    }
    return notes;
}

} // namespace gpuq::supervisor
