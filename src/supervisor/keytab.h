// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/credentials.h"
#include "runs/credentials.h"

#include <string>
#include <vector>

namespace gpuq::supervisor {

/// The words of a login with the plan's keytab, which puts its ticket into `cache` (FILE:...).
std::vector<std::string> login_words(const std::string& kinit, const CredentialPlan& plan,
                                     const std::string& cache, bool forwardable);

/// Where the plan has a keytab, and the ticket in the run's store has ended or nearly so: puts a
/// new one there. Waits for 5 s at most. What has gone wrong, else empty.
std::string login_for_store(SecretFiles& files, const CredentialPlan& plan, Time now);

} // namespace gpuq::supervisor
