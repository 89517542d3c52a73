// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/sections.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace gpuq::policy {
namespace {

using yaml::Node;

/// Slurm allows almost any character in a name.
bool is_slurm_text(Reader& reader, const Node& node, std::string_view what)
{
    const bool fine = node.kind == Node::Kind::text && !node.text.empty();
    if (!fine) {
        reader.note(node, "not-a-text", fmt::format("{} must be a text; quote it", what));
    }
    return fine;
}

/// `FIELD: VALUE` lines; an empty value counts as none.
std::map<std::string, std::string> slurm_fields_in(Reader& reader, const Node& node)
{
    std::map<std::string, std::string> fields;
    if (node.kind != Node::Kind::map && node.kind != Node::Kind::nothing) {
        reader.note(node, "not-a-map", "an object of Slurm must be `FIELD: VALUE` lines");
    }
    for (const Node::Entry& entry : node.entries) {
        if (entry.value.kind != Node::Kind::text) {
            reader.note(entry.value, "not-a-text",
                        fmt::format("the value of {} must be a text; quote it", entry.key));
        }
        fields.emplace(entry.key, entry.value.text);
    }
    return fields;
}

/// The objects of one kind; those with a single field are written `NAME: VALUE`.
void slurm_objects_in(Reader& reader, Site& site, const Node& node, SlurmObject::Kind kind,
                      const char* only_field)
{
    site.kinds.insert(kind);
    if (node.kind != Node::Kind::map && node.kind != Node::Kind::nothing) {
        reader.note(node, "not-a-map", "objects of Slurm must be `NAME: ...` lines");
    }
    for (const Node::Entry& entry : node.entries) {
        SlurmObject object{kind, entry.key, {}, entry.key_node.line};
        if (!is_slurm_text(reader, entry.key_node, "a name")) {
            continue;
        }
        if (only_field == nullptr) {
            object.fields = slurm_fields_in(reader, entry.value);
        } else if (entry.value.kind == Node::Kind::text) {
            object.fields.emplace(only_field, entry.value.text);
        } else {
            is_slurm_text(reader, entry.value, fmt::format("the value of {}", entry.key));
        }
        site.objects.push_back(std::move(object));
    }
}

} // namespace

Site site_in(Reader& reader, const Node& node)
{
    using Kind = SlurmObject::Kind;
    Site site;
    site.line = node.line;
    const auto into = [&](Kind kind, const char* only_field = nullptr) {
        return [&reader, &site, kind, only_field](const Node& value) {
            slurm_objects_in(reader, site, value, kind, only_field);
        };
    };
    reader.map(node, "site",
               {
                   {"settings", into(Kind::setting, "value")},
                   {"partitions", into(Kind::partition)},
                   {"qos", into(Kind::qos)},
                   {"access", into(Kind::access)},
                   {"shares", into(Kind::share, "fairshare")},
                   {"limits", into(Kind::limit)},
                   {"reservations", into(Kind::reservation)},
                   {"scripts", into(Kind::script, "version")},
               });
    return site;
}

} // namespace gpuq::policy
