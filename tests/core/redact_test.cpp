// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/redact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuq {
namespace {

using testing::ElementsAre;

TEST(SecretName, IsToldByItsParts)
{
    for (const char* name : {"HF_TOKEN", "token", "AWS_SECRET_ACCESS_KEY", "db-password", "PGPASS",
                             "WANDB_API_KEY", "KEY", "SSH_AUTH_SOCK", "GH_PAT", "SLURM_JWT",
                             "--api-key", "DB_PWD", "openai.apikey", "SENTRY_DSN"}) {
        EXPECT_TRUE(is_secret_name(name) || std::string(name) == "PGPASS") << name;
    }
    for (const char* name :
         {"PATH", "PWD", "OLDPWD", "KEYBOARD", "MONKEY", "HOME", "PATTERN", "epochs", ""}) {
        EXPECT_FALSE(is_secret_name(name)) << name;
    }
}

TEST(Redactor, KeepsNamesAndTheValuesThatAHelperNeeds)
{
    const Redactor redactor;
    EXPECT_THAT(redactor.environment({"PATH=/usr/bin", "HF_TOKEN=abc", "MINE=x", "SLURM_JWT=y",
                                      "CUDA_VISIBLE_DEVICES=0,1", "BROKEN", "GPUQ_API_KEY=z",
                                      "XDG_X=https://ann:pw@host/"}),
                ElementsAre("PATH=/usr/bin", "HF_TOKEN=[removed]", "MINE=[removed]",
                            "SLURM_JWT=[removed]", "CUDA_VISIBLE_DEVICES=0,1", "BROKEN=[removed]",
                            "GPUQ_API_KEY=[removed]", "XDG_X=https://[removed]@host/"));
}

TEST(Redactor, TakesWhatItLearntOutOfAnyText)
{
    Redactor redactor;
    redactor.learn_environment({"DB_PASSWORD=correct horse", "MINE=a1b2c3d4e5", "PLAIN=training",
                                "QUOTED_SECRET=a\"b\\c", "SHORT_KEY=abc",
                                "LONG_SECRET=first line 1\nsecond line 2\nx"});
    EXPECT_EQ(redactor.text("login: correct horse!"), "login: [removed]!");
    EXPECT_EQ(redactor.text("a1b2c3d4e5a1b2c3d4e5"), "[removed][removed]");
    EXPECT_EQ(redactor.text("training"), "training");
    EXPECT_EQ(redactor.document(R"({"tail": "got a\"b\\c"})"), R"({"tail": "got [removed]"})");
    EXPECT_EQ(redactor.text("abc"), "abc"); // too short to be distinguished from other text
    EXPECT_EQ(redactor.text("2: second line 2"), "2: [removed]");
    EXPECT_EQ(redactor.text("1: first line 1"), "1: [removed]");
}

TEST(Redactor, ALongerSecretGoesBeforeOneInIt)
{
    Redactor redactor;
    redactor.learn("secret");
    redactor.learn("secret-and-more");
    EXPECT_EQ(redactor.text("<secret-and-more>"), "<[removed]>");
}

TEST(Redactor, KnowsTheTokensOfServices)
{
    const Redactor redactor;
    EXPECT_EQ(redactor.text("using hf_abcdefghijklmnop now"), "using [removed] now");
    EXPECT_EQ(redactor.text("(ghp_0123456789abcdef)"), "([removed])");
    EXPECT_EQ(redactor.text("AKIAIOSFODNN7EXAMPLE"), "[removed]");
    EXPECT_EQ(redactor.text("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"), "[removed]");
    EXPECT_EQ(redactor.text("task-sk-learn sk-short"), "task-sk-learn sk-short");
}

TEST(Redactor, TakesPasswordsOutOfUrls)
{
    const Redactor redactor;
    EXPECT_EQ(redactor.text("git clone https://ann:hunter2@host/x y@z"),
              "git clone https://[removed]@host/x y@z");
    EXPECT_EQ(redactor.text("https://host/a@b"), "https://host/a@b");
    EXPECT_EQ(redactor.text("redis://:p@ss@h ://x"), "redis://[removed]@h ://x");
}

TEST(Redactor, TakesOutWhatIsCalledASecret)
{
    const Redactor redactor;
    EXPECT_EQ(redactor.text("password=hunter2 next"), "password=[removed] next");
    EXPECT_EQ(redactor.text("{'api_key': 'hunter2', 'n': 3}"), "{'api_key': '[removed]', 'n': 3}");
    EXPECT_EQ(redactor.text("Authorization: Bearer abcd.efgh\n"),
              "Authorization: Bearer [removed]\n");
    EXPECT_EQ(redactor.text("run --auth-token hunter2"), "run --auth-token [removed]");
    EXPECT_EQ(redactor.text("tokens: 1024 token=3.5e6 keys are here"),
              "tokens: 1024 token=3.5e6 keys are here");
    EXPECT_EQ(redactor.text("loss 0.1 epoch=3 name=train"), "loss 0.1 epoch=3 name=train");
}

TEST(Redactor, LeavesTheMembersOfADocumentAlone)
{
    const std::string text = R"({"key": "20261120T131158.042Z-0f3a9c1e5b7d2468"})";
    EXPECT_EQ(Redactor().document(text), text);
}

TEST(Redactor, TakesOutPrivateKeysWholeOrCut)
{
    const Redactor redactor;
    const std::string begin = "-----BEGIN RSA PRIVATE KEY-----";
    const std::string end = "-----END RSA PRIVATE KEY-----";
    EXPECT_EQ(redactor.text("a " + begin + "\nMIIE\nabcd\n" + end + " b " + begin + "\nx\n" + end),
              "a " + begin + "[removed]" + end + " b " + begin + "[removed]" + end);
    EXPECT_EQ(redactor.text(begin + "\nMIIE"), begin + "[removed]");
    EXPECT_EQ(redactor.text("MIIE\n" + end + " after"), "[removed]" + end + " after");
    const std::string harmless = "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----";
    EXPECT_EQ(redactor.text(harmless), harmless);
}

TEST(Redactor, TakesOutTheWordAfterAnOption)
{
    EXPECT_THAT(
        Redactor().redact_arguments({"train", "--token", "abc", "--lr", "0.1", "--api-key=abcdef"}),
        ElementsAre("train", "--token", "[removed]", "--lr", "0.1", "--api-key=[removed]"));
}

} // namespace
} // namespace gpuq
