// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

/// Members of JSON documents, as documented in gpuq-json(5) and as printed.
namespace gpuq::cli {

/// Members documented in a section of gpuq-json(5).
inline std::set<std::string> documented_in(const std::string& section)
{
    std::ifstream stream(GPUQ_MAN_DIR "/gpuq-json.5");
    const std::string page{std::istreambuf_iterator<char>(stream), {}};
    const std::size_t begin = page.find("\n.SS " + section + "\n") + 1;
    const std::size_t end = std::min(page.find("\n.SS ", begin), page.find("\n.SH ", begin));
    const std::string text = page.substr(begin, end - begin);
    std::set<std::string> names;
    const std::string tag = "\n.TP\n.B ";
    for (std::size_t at = text.find(tag); at != std::string::npos; at = text.find(tag, at + 1)) {
        const std::size_t name = at + tag.size();
        names.insert(text.substr(name, text.find('\n', name) - name));
    }
    return names;
}

/// Members of a printed document at any depth, without the schema's.
inline std::set<std::string> members_in(const std::string& document)
{
    std::set<std::string> names;
    for (std::size_t end = document.find("\": "); end != std::string::npos;
         end = document.find("\": ", end + 1)) {
        const std::size_t begin = document.rfind('"', end - 1) + 1;
        names.insert(document.substr(begin, end - begin));
    }
    names.erase("schema");
    return names;
}

} // namespace gpuq::cli
