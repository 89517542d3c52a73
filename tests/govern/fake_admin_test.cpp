// SPDX-License-Identifier: GPL-2.0-or-later
#include "contract/admin_contract.h"
#include "fakes/fake_admin.h"

namespace gpuq {
namespace {

std::shared_ptr<Admin> a_fake()
{
    auto admin = std::make_shared<fakes::FakeAdmin>();
    admin->nodes = {"n0"};
    admin->accounts = {"root", "default"};
    return admin;
}

INSTANTIATE_TEST_SUITE_P(Fake, AdminContract, ::testing::Values(AdminMaker{"fake", a_fake}));

} // namespace
} // namespace gpuq
