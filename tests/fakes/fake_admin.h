// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/admin.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpuq::fakes {

/// Thrown when the simulated process is killed; no later change takes effect.
struct Killed : std::runtime_error {
    Killed()
        : std::runtime_error("killed")
    {
    }
};

/// A small model of a controller with its accounting and its files. Partitions and settings are
/// those of the file at the last reconfiguration. A file that names an unknown QOS or node
/// terminates the controller, as in Slurm 22.05.
class FakeAdmin : public Admin {
public:
    // Current state. Tests change it like an administrator working by hand.
    std::map<std::string, std::string> files{
        {"slurm.conf", "include /etc/slurm/gpuq/policy.conf\n"}};
    std::map<std::string, FileRights> touched; ///< rights changed by hand, by file name
    std::map<std::string, SlurmObject> qos;
    std::map<std::string, SlurmObject> access;
    std::map<std::string, SlurmObject> shares;
    std::map<std::string, SlurmObject> reservations;
    std::map<std::string, SlurmObject> partitions;
    std::map<std::string, std::string> settings;
    std::vector<AssociationLimit> limits;
    std::vector<QueuedJob> queue;
    std::vector<std::string> nodes;
    std::vector<std::string> accounts{"root"};
    std::vector<std::string> users;
    bool alive = true;
    /// Whether the script knows all reservations: those made after it was loaded may be unknown to
    /// it.
    bool reservations_seen = true;

    // Faults. The numbers count the calls that change something.
    int killed_at = -1;  ///< killed just before this change
    int refuses_at = -1; ///< this change fails
    bool rehearsal_fails = false;
    bool loads_scripts = true;
    std::string release = "22.05.8";
    bool dies_at_reconfigure = false; ///< for any content of the files

    std::map<std::string, int> threads_per_core;
    int changes = 0;               ///< number of changes so far
    std::vector<std::string> log;  ///< one line per change
    std::function<void()> watched; ///< called after each change

    Result<SlurmState> state() override
    {
        if (!alive) {
            return dead();
        }
        SlurmState actual;
        actual.release = release;
        actual.nodes = nodes;
        actual.gpu_nodes = nodes;
        actual.threads_per_core = threads_per_core;
        actual.accounts = accounts;
        actual.users = users;
        actual.limits = limits;
        for (const auto& [name, value] : settings) {
            actual.objects.push_back({SlurmObject::Kind::setting, name, {{"value", value}}, 0});
        }
        for (const auto* part : {&partitions, &qos, &access, &shares, &reservations}) {
            for (const auto& [name, object] : *part) {
                actual.objects.push_back(object);
            }
        }
        return actual;
    }

    Result<void> set(const SlurmObject& object) override
    {
        return change("set " + std::string(word(object.kind)) + " " + object.name, [&] {
            if (object.kind == SlurmObject::Kind::limit) {
                std::erase_if(limits, [&](const AssociationLimit& one) {
                    return one.who == object.name &&
                           one.limit.find("gres/gpu") != std::string::npos;
                });
                for (const auto& [name, value] : object.fields) {
                    limits.push_back({object.name, name + "=" + value});
                }
                return;
            }
            SlurmObject& place = of(object.kind)[object.name];
            place = object;
            place.line = 0;
            reservations_seen = reservations_seen && object.kind != SlurmObject::Kind::reservation;
        });
    }

    Result<void> remove(SlurmObject::Kind kind, const std::string& name) override
    {
        return change("remove " + std::string(word(kind)) + " " + name, [&] {
            of(kind).erase(name);
            if (kind == SlurmObject::Kind::qos) {
                access.erase(name);
            }
        });
    }

    Result<std::vector<QueuedJob>> jobs() override { return queue; }

    struct RunningJob {
        std::string partition;
        std::chrono::seconds left;
    };
    std::map<std::string, RunningJob> running; ///< by id
    Result<std::vector<std::string>>
    limit_jobs(const std::map<std::string, std::chrono::seconds>& time_left) override
    {
        std::vector<std::string> limited;
        for (auto& [id, job] : running) {
            const auto most = time_left.find(job.partition);
            if (most != time_left.end() && job.left > most->second) {
                TRY(change("limit job " + id, [&, one = &job] { one->left = most->second; }));
                limited.push_back(id);
            }
        }
        return limited;
    }

    Result<void> reconfigure() override
    {
        return change("reconfigure", [&] {
            alive = alive && !dies_at_reconfigure && is_sound(files["policy.conf"]);
            if (alive) {
                load(files["policy.conf"]);
            }
        });
    }

    Result<void> ping() override { return alive ? Result<void>() : dead(); }

    Result<void> start_controller() override
    {
        return change("start", [&] {
            dies_at_reconfigure = false;
            alive = is_sound(files["policy.conf"]);
            if (alive) {
                load(files["policy.conf"]);
            }
        });
    }

    Result<std::optional<std::string>> loaded_script() override
    {
        if (loads_scripts) {
            m_loaded = files["job_submit.lua"];
        }
        const auto at = m_loaded.find("version = \"");
        return at == std::string::npos ? std::optional<std::string>()
                                       : std::optional(m_loaded.substr(at + 11, 16));
    }

    Result<void> rehearse(const std::string& include, const std::string&) override
    {
        log.push_back("rehearse");
        // QOS may be missing: they are created a moment later.
        return rehearsal_fails || !has_known_nodes(include)
                   ? Result<void>(fail(Error::Kind::usage, "slurmctld does not start"))
                   : Result<void>();
    }

    std::vector<std::string> audit; ///< lines of `record`
    Result<void> record(const std::string& text) override
    {
        audit.push_back(text);
        return {};
    }

    std::string path(const std::string& name) override
    {
        return name == "slurm.conf" || name == "job_submit.lua" ? "/etc/slurm/" + name
                                                                : "/etc/slurm/gpuq/" + name;
    }
    Result<std::optional<std::string>> read(const std::string& name) override
    {
        const auto found = files.find(name);
        return found == files.end() ? std::optional<std::string>() : std::optional(found->second);
    }
    Result<std::optional<FileRights>> rights(const std::string& name) override
    {
        const auto found = touched.find(name);
        const FileRights plain{"root", name == "gpuq" ? 0755U : 0644U};
        return files.contains(name) || name == "gpuq"
                   ? std::optional(found == touched.end() ? plain : found->second)
                   : std::nullopt;
    }
    Result<void> claim_directory() override
    {
        return change("take folder", [&] { touched.erase("gpuq"); });
    }
    Result<void> write(const std::string& name, const std::string& text) override
    {
        return change("write " + name, [&] {
            files[name] = text;
            touched.erase(name);
            reservations_seen = reservations_seen || name == "job_submit.lua";
        });
    }
    Result<void> erase(const std::string& name) override
    {
        return change("erase " + name, [&] {
            files.erase(name);
            touched.erase(name);
        });
    }

    Result<std::unique_ptr<Hold>> hold() override
    {
        if (m_held) {
            return fail(Error::Kind::busy, "held");
        }
        return std::unique_ptr<Hold>(std::make_unique<Held>(m_held));
    }

private:
    class Held : public Hold {
    public:
        explicit Held(bool& held)
            : m_held(held)
        {
            m_held = true;
        }
        ~Held() override { m_held = false; }

    private:
        bool& m_held;
    };

    static Error dead() { return fail(Error::Kind::unreachable, "slurmctld does not answer"); }

    Result<void> change(const std::string& what, const std::function<void()>& work)
    {
        const int number = changes++;
        if (number == killed_at) {
            throw Killed();
        }
        if (number == refuses_at) {
            return fail(Error::Kind::denied, "Slurm says no: " + what);
        }
        log.push_back(what);
        work();
        if (watched) {
            watched();
        }
        return {};
    }

    std::map<std::string, SlurmObject>& of(SlurmObject::Kind kind)
    {
        switch (kind) {
        case SlurmObject::Kind::qos:
            return qos;
        case SlurmObject::Kind::access:
            return access;
        case SlurmObject::Kind::share:
            return shares;
        case SlurmObject::Kind::reservation:
            return reservations;
        default:
            throw std::logic_error("not one by one");
        }
    }

    static std::vector<std::string> program_arguments(const std::string& line)
    {
        std::istringstream stream(line);
        std::vector<std::string> arguments;
        for (std::string word; stream >> word;) {
            arguments.push_back(word);
        }
        return arguments;
    }

    /// The fields of a partition as a controller shows them.
    static SlurmObject partition_of(const std::vector<std::string>& arguments)
    {
        SlurmObject one{
            SlurmObject::Kind::partition, arguments[0].substr(arguments[0].find('=') + 1), {}, 0};
        for (std::size_t i = 1; i < arguments.size(); ++i) {
            const auto sign = arguments[i].find('=');
            const std::string name = arguments[i].substr(0, sign);
            std::string value = arguments[i].substr(sign + 1);
            if (name == "MaxTime" || name == "DefaultTime") {
                int days = 0;
                int hours = 0;
                int minutes = 0;
                (void)std::sscanf(value.c_str(), "%d-%d:%d", &days, &hours, &minutes);
                value = std::to_string((days * 24 + hours) * 60 + minutes);
            }
            const bool by_default = (name == "GraceTime" && value == "0") ||
                                    (name == "Default" && value == "NO") ||
                                    (name == "PriorityTier" && value == "1");
            if (!by_default) {
                one.fields[name] = value;
            }
        }
        return one;
    }

    void load(const std::string& text)
    {
        partitions.clear();
        settings = site_settings;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            const auto arguments = program_arguments(line);
            if (arguments.empty() || arguments[0].starts_with("#")) {
                continue;
            }
            if (arguments[0].starts_with("PartitionName=")) {
                const SlurmObject one = partition_of(arguments);
                partitions[one.name] = one;
            } else {
                settings[arguments[0].substr(0, arguments[0].find('='))] =
                    arguments[0].substr(arguments[0].find('=') + 1);
            }
        }
    }

    bool has_known_nodes(const std::string& text) const
    {
        return text.find("Nodes=nowhere") == std::string::npos;
    }

    bool is_sound(const std::string& text) const
    {
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            for (const std::string& word : program_arguments(line)) {
                const bool names = word.starts_with("QOS=") || word.starts_with("AllowQos=");
                if (names && !qos.contains(word.substr(word.find('=') + 1))) {
                    return false;
                }
            }
        }
        return has_known_nodes(text);
    }

    std::string m_loaded;
    bool m_held = false;

public:
    std::map<std::string, std::string> site_settings; ///< settings in slurm.conf itself
};

} // namespace gpuq::fakes
