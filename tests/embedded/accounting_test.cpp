// SPDX-License-Identifier: GPL-2.0-or-later
#include "embedded/accounting.h"

#include <gtest/gtest.h>

namespace gpuq::embedded {
namespace {

TEST(AccountingFailure, IsTheFirstErrorOfTheLogWithoutTimeAndProgram)
{
    EXPECT_EQ(cause_in("slurmdbd: MySQL server version is: 11.8.9\n"
                       "slurmdbd: error: Database settings not recommended values: x\n"
                       "slurmdbd: error: mysql_query failed: 5027 Number of columns\n"
                       "slurmdbd: fatal: null result\n"),
              "mysql_query failed: 5027 Number of columns");
    EXPECT_EQ(cause_in("2026-11-25  8:58:06 0 [Note] InnoDB: Using atomics\n"
                       "2026-11-25  8:58:06 0 [ERROR] InnoDB: Plugin initialization aborted\n"
                       "2026-11-25  8:58:06 0 [ERROR] Aborting\n"),
              "InnoDB: Plugin initialization aborted");
    EXPECT_EQ(cause_in("slurmdbd: fatal: slurmdbd.conf owned by 0\n"), "slurmdbd.conf owned by 0");
}

TEST(AccountingFailure, OfALogWithoutErrorsIsItsLastLine)
{
    EXPECT_EQ(cause_in("one\ntwo\n\n"), "two");
    EXPECT_EQ(cause_in(""), "");
}

TEST(AccountingFailure, IsOneLineOfPlainCharacters)
{
    EXPECT_EQ(cause_in("slurmdbd: error: a\x1b[31m\tb\rc\n"), "a?[31m?b?c");
    EXPECT_EQ(cause_in("error: " + std::string(5000, 'x')).size(), 300U);
}

TEST(AccountingFailure, NamesARemedyWhereOneIsKnown)
{
    EXPECT_EQ(remedy_for("cannot find accounting_storage plugin for accounting_storage/mysql"),
              "`sudo apt-get install slurm-wlm-mysql-plugin`");
    EXPECT_EQ(remedy_for("file ./ibdata1 failed with error 28"),
              "make room or choose another --dir");
    EXPECT_EQ(remedy_for("something else"), "");
}

} // namespace
} // namespace gpuq::embedded
