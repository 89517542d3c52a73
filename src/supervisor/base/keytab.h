// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "ports/credentials.h"
#include "runs/credentials.h"

#include <string>
#include <vector>

namespace gpuq::supervisor {

/// The kinit command line for a login with the plan's keytab; the ticket is stored in `cache`
/// (FILE:...).
std::vector<std::string> login_arguments(const std::string& kinit, const CredentialPlan& plan,
                                         const std::string& cache, bool forwardable);

/// If the plan has a keytab and the ticket in the run's store has expired or nearly so, stores a
/// new one. Waits for at most 5 s. Returns an error message, or an empty string.
std::string login_for_store(SecretFiles& files, const CredentialPlan& plan, Time now);

} // namespace gpuq::supervisor
