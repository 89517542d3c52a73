// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/generated.h"

#include "govern/conf.h"
#include "govern/values.h"
#include "policy/objects.h"

#include <sstream>

namespace gpuq::govern {
namespace {

constexpr std::string_view k_drains = " State=DRAIN";

bool drains(const ConfLine& line)
{
    return line.text.find(k_drains) != std::string::npos;
}

} // namespace

std::set<std::string> partitions_of(const std::string& include)
{
    std::set<std::string> names;
    for (const ConfLine& line : lines_of(include)) {
        if (line.key == "partitionname") {
            names.insert(line.value);
        }
    }
    return names;
}

std::set<std::string> leaving_of(const std::string& include)
{
    std::set<std::string> names;
    for (const ConfLine& line : lines_of(include)) {
        if (line.key == "partitionname" && drains(line)) {
            names.insert(line.value);
        }
    }
    return names;
}

std::string include_of(const std::vector<SlurmObject>& objects, const std::string& before,
                       const std::set<std::string>& leaving)
{
    std::string text = policy::slurm_conf_of(objects);
    for (const ConfLine& line : lines_of(before)) {
        if (line.key == "partitionname" && leaving.contains(line.value)) {
            text += line.text + (drains(line) ? "" : std::string(k_drains)) + "\n";
        }
    }
    return text;
}

std::set<std::string> qos_named_in(const std::string& include)
{
    std::set<std::string> names;
    for (const ConfLine& line : lines_of(include)) {
        std::istringstream words(line.text);
        for (std::string word; words >> word;) {
            if (word.starts_with("QOS=") || word.starts_with("AllowQos=")) {
                names.merge(as_set(word.substr(word.find('=') + 1)));
            }
        }
    }
    return names;
}

} // namespace gpuq::govern
