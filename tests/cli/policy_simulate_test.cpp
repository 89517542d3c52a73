// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/policy_simulate.h"

#include "cli/fake_doors.h"
#include "cli/policy_verb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace gpuq::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const std::string k_policy = "version: 1\n"
                             "pools:\n"
                             "  all: {nodes: 'n[1-2]', gpus: 'k80:4'}\n"
                             "queues:\n"
                             "  short: {time: 2h, pools: all, limits: {job: {gpus: 4}}}\n";

class PolicySimulate : public testing::Test {
protected:
    FakeDoors m_doors;
    fs::path m_dir;

    void SetUp() override
    {
        std::string name = fs::temp_directory_path() / "gpuq-simulate-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        m_dir = name;
        m_doors.files["p.yaml"] = {k_policy, 0, 0644};
        std::ofstream(m_dir / "<b>&.csv")
            << "submit_s,duration_s,gpus\n0,3600,8\n60,600,4\n90,60,4\n";
    }
    void TearDown() override { fs::remove_all(m_dir); }

    std::string trace() const { return m_dir / "<b>&.csv"; }
    Use policy(std::vector<std::string> words, Globals globals = {})
    {
        return use(k_policy_verb, m_doors, words, std::move(globals));
    }
    static std::string content(const fs::path& path)
    {
        std::ifstream stream(path);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
};

TEST_F(PolicySimulate, ShowsTheSameJobsUnderBothSideBySide)
{
    const Use shown = policy({"simulate", "--trace", trace(), "p.yaml"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("plain queue"));
    EXPECT_THAT(shown.out, testing::ContainsRegex("runs refused +0 +1\n"));
}

TEST_F(PolicySimulate, WritesAPageThatHoldsTheTableAndIsWhole)
{
    const fs::path file = m_dir / "page.html";
    const Use shown = policy({"simulate", "--trace", trace(), "--html", file, "p.yaml"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.err, HasSubstr("wrote " + file.string()));
    const std::string page = content(file);
    EXPECT_THAT(page, HasSubstr("<th scope=\"row\">runs refused</th><td class=\"right\">0</td>"
                                "<td class=\"right\">1</td>"));
    for (const char* chart : {"waits", "waiting", "use"}) {
        EXPECT_THAT(page, HasSubstr(std::string("<svg class=\"wide\" viewBox=\"0 0 860 320\" "
                                                "role=\"img\" aria-labelledby=\"") +
                                    chart + "-wide-title"));
    }
    EXPECT_THAT(page, HasSubstr("&lt;b&gt;&amp;.csv"));
    EXPECT_THAT(page, Not(HasSubstr("<b>")));
    EXPECT_THAT(page, Not(HasSubstr("nan")));
    EXPECT_TRUE(page.ends_with("</body>\n</html>\n"));
}

TEST_F(PolicySimulate, APageThatCanNotBeWrittenIsToldBeforeAnythingElse)
{
    const Use refused =
        policy({"simulate", "--trace", "none.csv", "--html", m_dir / "no" / "x.html", "p.yaml"});
    EXPECT_NE(refused.status, 0);
    EXPECT_THAT(refused.err, HasSubstr("no/x.html: No such file or directory"));
}

TEST_F(PolicySimulate, DrawsATraceWithNothingInIt)
{
    std::ofstream(m_dir / "empty.csv") << "submit_s,duration_s,gpus\n";
    const fs::path file = m_dir / "page.html";
    const Use shown =
        policy({"simulate", "--trace", m_dir / "empty.csv", "--html", file, "p.yaml"});
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(content(file), Not(HasSubstr("nan")));
}

} // namespace
} // namespace gpuq::cli
