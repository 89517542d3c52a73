// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/script.h"

#include "core/quote.h"
#include "core/walltime.h"
#include "core/words.h"
#include "runs/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpuq {
namespace {

/// A word on an #SBATCH line, which sbatch reads by rules of its own: only quotes keep a blank, and
/// a backslash keeps the next character inside them as well. There is no way to write a line
/// break; none reaches here, for names have no control characters.
std::string directive_word(std::string_view word)
{
    if (!word.empty() && word.find_first_of(" \t\\'\"#") == std::string_view::npos) {
        return std::string(word);
    }
    std::string quoted = "\"";
    for (const char c : word) {
        quoted += c == '"' || c == '\\' ? "\\" : "";
        quoted += c;
    }
    return quoted + "\"";
}

class Script {
public:
    void line(const std::string& text) { m_text += text + "\n"; }
    /// Nothing for an option that was not asked for.
    void directive(std::string_view option, const std::optional<std::string>& value)
    {
        if (value) {
            line(fmt::format("#SBATCH {}", directive_word(fmt::format("--{}={}", option, *value))));
        }
    }
    std::string text() const { return m_text; }

private:
    std::string m_text = "#!/bin/bash\n";
};

std::string gres_of(const JobSpec& spec)
{
    return spec.gpu_model ? fmt::format("gpu:{}:{}", *spec.gpu_model, spec.gpus_per_node)
                          : fmt::format("gpu:{}", spec.gpus_per_node);
}

void write_resources(Script& script, const JobSpec& spec)
{
    script.directive("job-name", spec.name);
    script.directive("partition", spec.partition);
    script.directive("time", slurm_time(spec.walltime));
    script.directive("nodes", fmt::format("{}", spec.nodes));
    script.directive("ntasks-per-node", "1");
    if (spec.gpus_per_node > 0) {
        script.directive("gres", gres_of(spec));
    }
    if (spec.cpus_per_node) {
        script.directive("cpus-per-task", fmt::format("{}", *spec.cpus_per_node));
    }
    if (spec.memory_mib_per_node) {
        script.directive("mem", fmt::format("{}M", *spec.memory_mib_per_node));
    }
    script.directive("account", spec.account);
    script.directive("qos", spec.qos);
    if (spec.after_ok) {
        script.directive("dependency", fmt::format("afterok:{}", spec.after_ok->value));
        script.directive("kill-on-invalid-dep", "yes");
    } else if (spec.after_any) {
        script.directive("dependency", fmt::format("afterany:{}", spec.after_any->value));
    }
    if (spec.pause.count() > 0) {
        script.directive("begin", fmt::format("now+{}", spec.pause.count()));
    }
    if (!spec.exclude.empty()) {
        script.directive("exclude", fmt::format("{}", fmt::join(spec.exclude, ",")));
    }
}

void write_slurm_options(Script& script, const std::optional<std::string>& options)
{
    const auto words = options ? split_words(*options) : std::vector<std::string>{};
    if (!words || words->empty()) {
        return;
    }
    std::string line = "#SBATCH";
    for (const std::string& word : *words) {
        line += " " + directive_word(word);
    }
    script.line(line);
}

void write_environment(Script& script, const Request& request)
{
    script.line("export PYTHONUNBUFFERED=\"${PYTHONUNBUFFERED-1}\"");
    for (const auto& [name, value] : request.env) {
        script.line(fmt::format("export {}={}", name, shell_quoted(value)));
    }
    if (!request.modules.empty()) {
        script.line("");
        script.line(std::string(k_find_module));
        for (const std::string& module : request.modules) {
            script.line(fmt::format("module load {} || exit 125", shell_quoted(module)));
        }
    }
    if (request.conda) {
        script.line("");
        script.line(std::string(k_find_conda));
        script.line(fmt::format("conda activate {} || exit 125", shell_quoted(*request.conda)));
    }
}

/// The container and the program; modules and conda are the script's own business.
std::vector<std::string> inner_words(const Request& request)
{
    Request inner = request;
    inner.modules.clear();
    inner.conda.reset();
    return program_argv(inner);
}

std::vector<std::string> command_words(const Request& request, const JobSpec& spec)
{
    std::vector<std::string> words;
    if (spec.nodes > 1) {
        words = {"srun", fmt::format("--nodes={}", spec.nodes), "--ntasks-per-node=1"};
        if (spec.cpus_per_node) {
            words.push_back(fmt::format("--cpus-per-task={}", *spec.cpus_per_node));
        }
        words.emplace_back("--");
    }
    for (std::string& word : inner_words(request)) {
        words.push_back(std::move(word));
    }
    return words;
}

} // namespace

std::string sbatch_script(const Request& request, const JobSpec& spec)
{
    Script script;
    write_resources(script, spec);
    script.directive("output", "slurm-%j.out");
    script.directive("error", "slurm-%j.err");
    script.line("#SBATCH --no-requeue");
    write_slurm_options(script, request.slurm_options);
    script.line("");
    script.line(fmt::format("cd -- {} || exit 125", shell_quoted(request.work_dir)));
    write_environment(script, request);
    script.line("");
    script.line("exec -- " + shell_command(command_words(request, spec)) + " </dev/null");
    return script.text();
}

std::string batch_script(const SupervisorCall& call, const Request& request, const JobSpec& spec)
{
    Script script;
    if (spec.by_sbatch) {
        write_resources(script, spec);
        write_slurm_options(script, request.slurm_options);
    }
    script.line("exec -- " + shell_command({call.supervisor, "run", call.state_dir, call.key.text(),
                                            fmt::format("{}", call.link.value)}));
    return script.text();
}

} // namespace gpuq
