// SPDX-License-Identifier: GPL-2.0-or-later
#include "credentials/keytab.h"

#include "credentials/keytab_bytes.h"

#include <gtest/gtest.h>

namespace gpuq::credentials {
namespace {

using Names = std::vector<std::string>;

TEST(Keytab, NamesItsPrincipalsOnce)
{
    const std::string keytab = k_keytab_head + key_of({"ada"}, "X.ORG") +
                               key_of({"old"}, "X.ORG", true) + key_of({"ada"}, "X.ORG") +
                               key_of({"ben", "admin"}, "Y");
    EXPECT_EQ(*principals_in_keytab(keytab), (Names{"ada@X.ORG", "ben/admin@Y"}));
}

TEST(Keytab, OfAnythingElseIsNone)
{
    const std::string whole = k_keytab_head + key_of({"ada"}, "X");
    EXPECT_TRUE(principals_in_keytab(whole));
    EXPECT_FALSE(principals_in_keytab(""));
    EXPECT_FALSE(principals_in_keytab("\x05\x01" + key_of({"ada"}, "X")));
    EXPECT_FALSE(principals_in_keytab(k_keytab_head));
    EXPECT_FALSE(principals_in_keytab(k_keytab_head + key_of({"old"}, "X", true)));
    EXPECT_FALSE(principals_in_keytab(k_keytab_head + std::string("\x80\0\0\0", 4)));
    EXPECT_FALSE(principals_in_keytab(k_keytab_head + key_of({}, "X")));
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(principals_in_keytab(whole.substr(0, size))) << size;
    }
}

} // namespace
} // namespace gpuq::credentials
