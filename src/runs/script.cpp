// SPDX-License-Identifier: GPL-2.0-or-later
#include "runs/script.h"

#include "core/quote.h"
#include "core/split_arguments.h"
#include "core/walltime.h"
#include "ports/job.h"
#include "runs/records/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gpuq {
namespace {

/// Quotes an option for an #SBATCH line, which sbatch parses by its own rules: blanks need quotes,
/// and a backslash escapes the next character within them as well. A line break can't be expressed;
/// none occurs, since names have no control characters.
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
    /// Writes nothing if the option has no value.
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
    return gres_text({spec.gpus_per_node, spec.gpu_model, std::nullopt, spec.share});
}

int cpus_per_task(const JobSpec& spec)
{
    return std::max(*spec.cpus_per_node / spec.tasks_per_node, 1);
}

void write_resources(Script& script, const JobSpec& spec)
{
    script.directive("job-name", spec.name);
    script.directive("partition", spec.partition);
    script.directive("time", slurm_time(spec.walltime));
    script.directive("nodes", fmt::format("{}", spec.nodes));
    script.directive("ntasks-per-node", fmt::format("{}", spec.tasks_per_node));
    if (spec.gpus_per_node > 0) {
        script.directive("gres", gres_of(spec));
    }
    if (spec.cpus_per_node) {
        script.directive("cpus-per-task", fmt::format("{}", cpus_per_task(spec)));
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

/// The value of the last --gres, which alone counts for sbatch.
std::optional<std::string> last_gres(const std::vector<std::string>& options)
{
    constexpr std::string_view k_gres = "--gres";
    std::optional<std::string> value;
    for (std::size_t i = 0; i < options.size(); ++i) {
        if (options[i] == k_gres && i + 1 < options.size()) {
            value = options[i + 1];
        } else if (options[i].starts_with("--gres=")) {
            value = options[i].substr(k_gres.size() + 1);
        }
    }
    return value;
}

void write_slurm_options(Script& script, const std::optional<std::string>& options,
                         const JobSpec& spec)
{
    const auto arguments = options ? split_arguments(*options) : std::vector<std::string>{};
    if (!arguments || arguments->empty()) {
        return;
    }
    std::string line = "#SBATCH";
    for (const std::string& word : *arguments) {
        line += " " + directive_word(word);
    }
    script.line(line);
    const auto other = last_gres(*arguments); // it replaces the one with the GPUs
    if (const std::string gpus = gres_of(spec); other && !gpus.empty()) {
        script.directive("gres", fmt::format("{},{}", gpus, *other));
    }
}

void write_environment(Script& script, const Request& request)
{
    script.line("export PYTHONUNBUFFERED=\"${PYTHONUNBUFFERED-1}\"");
    for (const auto& [name, value] : request.setup.env) {
        script.line(fmt::format("export {}={}", name, shell_quoted(value)));
    }
    for (const std::string& file : request.setup.sources) {
        script.line(fmt::format(". {} </dev/null >&2 || exit 125", shell_quoted(file)));
    }
    if (!request.setup.modules.empty()) {
        script.line("");
        script.line(std::string(k_find_module));
        for (const std::string& module : request.setup.modules) {
            script.line(fmt::format("module load {} || exit 125", shell_quoted(module)));
        }
    }
    if (request.setup.conda) {
        script.line("");
        script.line(std::string(k_find_conda));
        script.line(
            fmt::format("conda activate {} || exit 125", shell_quoted(*request.setup.conda)));
    }
}

void write_venv(Script& script, const Request& request)
{
    if (!request.setup.venv) {
        return;
    }
    const std::string bin = *request.setup.venv + "/bin";
    script.line(fmt::format("[ -x {} ] || exit 125", shell_quoted(bin + "/python")));
    script.line(fmt::format("export VIRTUAL_ENV={} PATH={}:\"$PATH\"",
                            shell_quoted(*request.setup.venv), shell_quoted(bin)));
    script.line("unset PYTHONHOME");
}

/// The container and the program; the script itself sets up everything else.
std::vector<std::string> inner_arguments(const Request& request)
{
    Request inner = request;
    inner.setup = inner.setup.inside();
    return program_argv(inner);
}

/// Sets the same variables as the supervisor (supervisor/base/job_environment.h), but reserves no
/// port.
void write_meeting(Script& script, const Request& request, const JobSpec& spec)
{
    const auto meet = [&](const std::string& name, const std::string& value) {
        const bool set = std::any_of(request.setup.env.begin(), request.setup.env.end(),
                                     [&](const auto& pair) { return pair.first == name; });
        if (!set) {
            script.line(fmt::format("export {}={}", name, value));
        }
    };
    meet("MASTER_ADDR", spec.nodes == 1
                            ? "127.0.0.1"
                            : "\"$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\"");
    meet("MASTER_PORT", "$((20000 + SLURM_JOB_ID % 10000))");
    if (spec.tasks_per_node == 1) {
        meet("PET_MASTER_ADDR", "\"$MASTER_ADDR\"");
        meet("PET_MASTER_PORT", "\"$MASTER_PORT\"");
        meet("PET_NNODES", fmt::format("{}", spec.nodes));
        if (spec.gpus_per_node > 1) {
            meet("PET_NPROC_PER_NODE", fmt::format("{}", spec.gpus_per_node));
        }
    }
}

/// Executed in each rank, before the program.
std::string rank_script(const Request& request)
{
    std::string text = "export RANK=\"${RANK-$SLURM_PROCID}\" "
                       "LOCAL_RANK=\"${LOCAL_RANK-$SLURM_LOCALID}\" "
                       "WORLD_SIZE=\"${WORLD_SIZE-$SLURM_NTASKS}\" "
                       "NODE_RANK=\"${NODE_RANK-$SLURM_NODEID}\" "
                       "GROUP_RANK=\"${GROUP_RANK-$SLURM_NODEID}\" ";
    text += fmt::format("LOCAL_WORLD_SIZE=\"${{LOCAL_WORLD_SIZE-{}}}\"; ", tasks_on_node(request));
    if (tasks_on_node(request) == 1) {
        text += "export PET_NODE_RANK=\"${PET_NODE_RANK-$SLURM_NODEID}\"; ";
    }
    if (request.gpus_per_task) {
        text += fmt::format("IFS=, read -ra gpus <<<\"$CUDA_VISIBLE_DEVICES\"; "
                            "gpus=(\"${{gpus[@]:SLURM_LOCALID*{0}:{0}}}\"); "
                            "export CUDA_VISIBLE_DEVICES=\"$(IFS=,; echo \"${{gpus[*]}}\")\"; ",
                            *request.gpus_per_task);
    }
    return text + "exec -- \"$@\"";
}

std::vector<std::string> command_arguments(const Request& request, const JobSpec& spec)
{
    std::vector<std::string> arguments;
    if (spec.nodes > 1 || request.tasks_per_node) {
        arguments = {"srun", fmt::format("--nodes={}", spec.nodes),
                     fmt::format("--ntasks-per-node={}", spec.tasks_per_node),
                     "--kill-on-bad-exit=1"};
        if (spec.cpus_per_node) {
            arguments.push_back(fmt::format("--cpus-per-task={}", cpus_per_task(spec)));
        }
        arguments.insert(arguments.end(), {"--", "bash", "-c", rank_script(request), "rank"});
    }
    for (std::string& word : inner_arguments(request)) {
        arguments.push_back(std::move(word));
    }
    return arguments;
}

} // namespace

std::string sbatch_script(const Request& request, const JobSpec& spec)
{
    Script script;
    write_resources(script, spec);
    script.directive("output", "slurm-%j.out");
    script.directive("error", "slurm-%j.err");
    script.line("#SBATCH --no-requeue");
    write_slurm_options(script, request.slurm_options, spec);
    script.line("");
    script.line(fmt::format("cd -- {} || exit 125", shell_quoted(request.work_dir)));
    write_environment(script, request);
    write_venv(script, request);
    script.line("");
    write_meeting(script, request, spec);
    script.line("exec -- " + shell_command(command_arguments(request, spec)) + " </dev/null");
    return script.text();
}

std::string batch_script(const SupervisorCall& call, const Request& request, const JobSpec& spec)
{
    Script script;
    if (spec.by_sbatch) {
        write_resources(script, spec);
        write_slurm_options(script, request.slurm_options, spec);
    }
    script.line("exec -- " + shell_command({call.supervisor, "run", call.state_dir, call.key.text(),
                                            fmt::format("{}", call.link.value)}));
    return script.text();
}

} // namespace gpuq
