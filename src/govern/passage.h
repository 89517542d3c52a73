// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "govern/apply.h"
#include "govern/generated.h"
#include "govern/scene.h"

#include <set>
#include <string>
#include <vector>

namespace gpuq::govern {

/// The transition to one policy: the steps listed in apply.h and, if one of them fails, the way
/// back. The journal records each step before it begins, and copies of the previous files allow
/// apply(), advance() and rollback() to restart the controller after a crash.
class Passage {
public:
    /// All arguments must outlive the object.
    Passage(Admin& admin, const Scene& scene, const Candidate& candidate,
            const StepReport& report_step);

    /// Starts a controller of its own with the new files. Changes nothing.
    Result<void> rehearse();
    /// Steps 2 to 6. After an error the state is between the old and the new one.
    Result<void> run();
    /// Restores the state before run().
    Result<void> put_back();
    /// After run(): the unwanted partitions that may still have jobs.
    std::vector<std::string> leaving() const;

private:
    Result<void> begin(const std::string& step);
    Result<void> tighten();
    Result<void> set(const SlurmObject& object);
    Result<void> refresh_access();
    Result<void> put_text(const std::string& name, const std::string& text);
    Result<void> put_include(const std::string& text);
    Result<void> put_script();
    Leaving all_leaving() const;
    Result<Leaving> find_used();
    Result<void> loosen();
    Result<void> show_reservations(const std::vector<SlurmObject>& objects,
                                   const std::string& script);
    Result<void> put_objects_back();

    Admin& m_admin;
    const Scene& m_scene;
    const Candidate& m_candidate;
    const StepReport& m_report_step;
    std::vector<SlurmObject> m_least;
    std::set<std::string> m_unwanted;
    std::string m_least_include;
    Leaving m_leaving;
    bool m_has_set_access = false;
};

} // namespace gpuq::govern
