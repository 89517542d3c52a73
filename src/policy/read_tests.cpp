// SPDX-License-Identifier: GPL-2.0-or-later
#include "policy/sections.h"

#include <fmt/format.h>

namespace gpuq::policy {
namespace {

using yaml::Node;
using Need = Reader::Need;

void job_in(Reader& reader, Case& test, const Node& node)
{
    const auto gpus = [&](const Node& value) {
        test.gpus = value.text;
        if (value.text != "0") {
            reader.gpus(value);
        }
    };
    reader.map(
        node, "job",
        {
            {"user", [&](const Node& value) { test.user = reader.text(value).value; }},
            {"account", [&](const Node& value) { test.account = reader.text(value).value; }},
            {"time", [&](const Node& value) { test.time = reader.walltime(value).value; }},
            {"gpus", gpus},
            {"shares", [&](const Node& value) { test.shares = reader.number(value, 1).value; }},
            {"nodes",
             [&](const Node& value) { test.nodes = reader.number(value, 1, 65536).value; }},
            {"cpus", [&](const Node& value) { test.cpus = reader.number(value, 1, 4096).value; }},
            {"memory", [&](const Node& value) { test.memory_mib = reader.memory(value).value; }},
            {"queue", [&](const Node& value) { test.queue = reader.name(value).value; }},
            {"course", [&](const Node& value) { test.course = reader.name(value).value; }},
            {"through",
             [&](const Node& value) {
                 const std::string word = reader.word(value, {"gpuq", "sweep", "sbatch"}).value;
                 test.through = word == "sbatch"  ? Submitter::other
                                : word == "sweep" ? Submitter::sweep
                                                  : Submitter::run;
             }},
        });
}

Case test_in(Reader& reader, const Node& node)
{
    Case test;
    test.line = node.line;
    bool refused = false;
    const auto expect = [&](const Node& value) {
        reader.map(value, "expect",
                   {
                       {"queue", [&](const Node& name) { test.in = reader.name(name).value; }},
                       {"refused",
                        [&](const Node& text) {
                            test.because = reader.text(text).value;
                            refused = true;
                        }},
                   });
        if (test.in.has_value() == refused) {
            reader.note(value, "missing", "expect needs one of 'queue' and 'refused'");
        }
    };
    reader.map(node, "a test",
               {
                   {"name", [&](const Node& value) { test.name = reader.text(value).value; }},
                   {"at", [&](const Node& value) { test.at = local_time_in(reader, value); }},
                   {"job", [&](const Node& value) { job_in(reader, test, value); }, Need::yes},
                   {"expect", expect, Need::yes},
               });
    if (test.name.empty()) {
        test.name = fmt::format("line {}", test.line);
    }
    return test;
}

} // namespace

std::vector<Case> tests_in(Reader& reader, const Node& node)
{
    std::vector<Case> tests;
    if (node.kind != Node::Kind::list) {
        reader.note(node, "not-a-list", "tests must be a list: `- {job: ..., expect: ...}`");
        return tests;
    }
    for (const Node& item : node.items) {
        tests.push_back(test_in(reader, item));
    }
    return tests;
}

} // namespace gpuq::policy
