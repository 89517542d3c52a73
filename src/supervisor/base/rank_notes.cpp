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

constexpr const char* k_directory = "ranks";
constexpr const char* k_first = "first";
constexpr std::string_view k_memory = "memory.";
constexpr std::size_t k_most_notes = 10000;

Descriptor open_directory(int link_directory)
{
    return Descriptor(
        ::openat(link_directory, k_directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Writes a note atomically; an existing one is kept unless `replace`.
void write_note(int directory, const std::string& name, const std::string& text, bool replace)
{
    const std::string draft = fmt::format(".{}.{}", name, ::getpid());
    {
        const Descriptor file(::openat(
            directory, draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file || !write_all(file.get(), text)) {
            ::unlinkat(directory, draft.c_str(), 0);
            return;
        }
    }
    if (replace) {
        ::renameat(directory, draft.c_str(), directory, name.c_str());
        return;
    }
    (void)!::linkat(directory, draft.c_str(), directory, name.c_str(), 0); // fails if it exists
    ::unlinkat(directory, draft.c_str(), 0);
}

/// The fields of a note's single line; empty if it is missing or incomplete.
std::vector<std::string> program_arguments(int directory, const std::string& name)
{
    const Descriptor file(
        ::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    char bytes[512];
    const ssize_t size = file ? ::read(file.get(), bytes, sizeof bytes) : 0;
    std::string_view line(bytes, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    std::vector<std::string> parts;
    if (!line.ends_with('\n')) {
        return parts;
    }
    line.remove_suffix(1);
    while (!line.empty()) {
        const std::size_t end = std::min(line.find(' '), line.size());
        parts.push_back(sanitised(line.substr(0, end)));
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    return parts;
}

std::optional<RankEnd> end_in(const std::vector<std::string>& parts)
{
    const auto rank = parts.size() == 3 ? whole_number(parts[0]) : std::nullopt;
    const auto status = rank ? whole_number(parts[1]) : std::nullopt;
    return status && *status <= 0xffff ? std::optional(RankEnd{static_cast<int>(*rank), parts[2],
                                                               static_cast<int>(*status)})
                                       : std::nullopt;
}

void take_memory(RankNotes& notes, const std::vector<std::string>& parts)
{
    const auto ours = parts.size() == 3 ? whole_number(parts[0]) : std::nullopt;
    const auto nearby = ours ? whole_number(parts[1]) : std::nullopt;
    if (nearby) {
        MemoryKills& kills = notes.memory[parts[2]];
        kills.ours = std::max(kills.ours, *ours);
        kills.nearby = std::max(kills.nearby, *nearby);
    }
}

} // namespace

void make_rank_notes(int link_directory)
{
    ::mkdirat(link_directory, k_directory, 0700);
}

void note_end(int link_directory, const RankEnd& end)
{
    write_note(open_directory(link_directory).get(), k_first,
               fmt::format("{} {} {}\n", end.rank, end.wait_status, end.node), /*replace=*/false);
}

void note_memory(int link_directory, int rank, const std::string& node, const MemoryKills& kills)
{
    write_note(open_directory(link_directory).get(), fmt::format("{}{}", k_memory, rank),
               fmt::format("{} {} {}\n", kills.ours, kills.nearby, node), /*replace=*/true);
}

RankNotes read_rank_notes(int link_directory)
{
    RankNotes notes;
    Descriptor directory = open_directory(link_directory);
    const int listed = directory ? ::dup(directory.get()) : -1;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(listed < 0 ? nullptr : ::fdopendir(listed),
                                                      ::closedir);
    if (!entries) {
        return notes;
    }
    notes.first = end_in(program_arguments(directory.get(), k_first));
    for (std::size_t seen = 0; seen < k_most_notes; ++seen) {
        const dirent* entry = ::readdir(entries.get());
        if (entry == nullptr) {
            break;
        }
        if (std::string_view(entry->d_name).starts_with(k_memory)) {
            take_memory(notes, program_arguments(directory.get(), entry->d_name));
        }
    }
    return notes;
}

} // namespace gpuq::supervisor
