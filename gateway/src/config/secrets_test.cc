// CHAP secrets: where they may come from, and that they come out nowhere.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "config/flags.h"
#include "config/parse_fixture.h"
#include "config/protected_file.h"
#include "config/reload_fixture.h"
#include "config/summary.h"

namespace sluice::config {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kSecret = "correct horse battery";
constexpr const char* kOther = "another fine secret";

class Secrets : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/sluice-secrets-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(directory_.c_str());
  }

  std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) {
    std::string path = directory_ + "/" + name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    files_.push_back(path);
    return path;
  }

  static std::string host(const std::string& chap) {
    return "targets:\n- iqn: iqn.2026-11.example:t\n  hosts:\n  - initiators: ['*']\n    " + chap;
  }

  std::string directory_;
  std::vector<std::string> files_;
};

TEST_F(Secrets, AreReadFromAFileWithoutItsNewline) {
  const std::string path = file("s", std::string(kSecret) + "\n");
  const Result<Config> config = read_yaml(host("chap: {user: alice, secret-file: " + path + "}\n"));
  ASSERT_TRUE(config.ok()) << config.error();
  EXPECT_EQ(config.value().targets[0].hosts[0].chap.secret, kSecret);
  EXPECT_EQ(config.value().targets[0].hosts[0].chap.source, "file " + path);
}

TEST_F(Secrets, AreReadFromTheEnvironment) {
  setenv("SLUICE_TEST_SECRET", kSecret, 1);
  const Result<Config> config =
      read_yaml(host("chap: {user: alice, secret-env: SLUICE_TEST_SECRET}\n"));
  unsetenv("SLUICE_TEST_SECRET");
  ASSERT_TRUE(config.ok()) << config.error();
  EXPECT_EQ(config.value().targets[0].hosts[0].chap.secret, kSecret);
}

TEST_F(Secrets, AFileReadableByOthersIsRefusedWithTheFix) {
  const std::string path = file("s", kSecret, 0644);
  const Result<Config> config = read_yaml(host("chap: {user: alice, secret-file: " + path + "}\n"));
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error(), "g.yaml:5: targets[0].hosts[0].chap.secret-file: " + path +
                                " has mode 0644, others can read or change it; run: chmod 600 " +
                                path);
}

TEST_F(Secrets, InlineSecretsAreRefusedInAFileReadableByOthers) {
  const std::string yaml = host("chap: {user: alice, secret: '" + std::string(kSecret) + "'}\n");
  EXPECT_TRUE(read_yaml(yaml).ok());
  const Result<Config> refused = read_yaml(yaml, "g.yaml has mode 0644");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), "g.yaml:5: targets[0].hosts[0].chap.secret: g.yaml has mode 0644");
}

TEST_F(Secrets, LengthMustBe12To255Bytes) {
  const std::string head = "g.yaml:5: targets[0].hosts[0].chap.secret-file: the secret has ";
  for (const auto& [size, text] : {std::pair<size_t, std::string>{11, "11"}, {256, "256"}}) {
    const std::string path = file("s", std::string(size, 'x'));
    const Result<Config> config = read_yaml(host("chap: {user: a, secret-file: " + path + "}\n"));
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.error(), head + text + " bytes, allowed 12 to 255 (RFC 7143 §9.2.1)");
  }
  for (const size_t size : {12, 255}) {
    const std::string path = file("s", std::string(size, 'x'));
    EXPECT_TRUE(read_yaml(host("chap: {user: a, secret-file: " + path + "}\n")).ok());
  }
}

TEST_F(Secrets, ExactlyOneSourceMustBeGiven) {
  const Result<Config> none = read_yaml(host("chap: {user: alice}\n"));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error(),
            "g.yaml:5: targets[0].hosts[0].chap.user: one of secret-file, secret-env and secret "
            "must be given");
  const Result<Config> two = read_yaml(host("chap: {user: alice, secret-env: A, secret: bbbb}\n"));
  ASSERT_FALSE(two.ok());
  EXPECT_THAT(two.error(), HasSubstr("only one of secret-file, secret-env and secret"));
}

TEST_F(Secrets, MutualChapRequiresChapWithAnotherSecret) {
  const std::string secret = "secret: '" + std::string(kSecret) + "'}\n";
  const Result<Config> alone = read_yaml(host("mutual: {user: t, " + secret));
  ASSERT_FALSE(alone.ok());
  EXPECT_THAT(alone.error(), HasSubstr("mutual: needs chap"));
  const Result<Config> same =
      read_yaml(host("chap: {user: a, " + secret + "    mutual: {user: t, " + secret));
  ASSERT_FALSE(same.ok());
  EXPECT_THAT(same.error(), HasSubstr("mutual: must not have the secret of chap"));
}

TEST_F(Secrets, DoNotAppearInSummariesChangesOrErrors) {
  const std::string yaml =
      host("chap: {user: a, secret: '" + std::string(kSecret) +
           "'}\n    mutual: {user: t, secret: '" + std::string(kOther) + "'}\n");
  const Config config = read_yaml(yaml).value();
  std::string all = summary(config);
  EXPECT_THAT(all, HasSubstr("chap user a (secret: inline)"));
  for (const std::string& line : reload(read_yaml("").value(), config).value().lines()) all += line;
  all += read_yaml(yaml + "    reed-only: on\n").error();
  all += read_yaml(yaml, "fault").error();
  all += read_yaml(host("chap: {user: a, secret: [" + std::string(kSecret) + "]}")).error();
  all += read_yaml(host("chap: {user: a, secret: \"" + std::string(kSecret) + "\\t\"}")).error();
  EXPECT_THAT(all, Not(HasSubstr(kSecret)));
  EXPECT_THAT(all, Not(HasSubstr(kOther)));
}

TEST_F(Secrets, TheChapFileSuppliesHostsForEveryCommandLineTarget) {
  Flags flags;
  flags.targets = {{"iqn.2026-11.example:a", {}}, {"iqn.2026-11.example:b", {}}};
  flags.chap_file =
      file("chap", "hosts:\n- initiators: ['*']\n  chap: {user: alice, secret: '" +
                       std::string(kSecret) + "'}\ndiscovery:\n  chap: {user: d, secret: '" +
                       std::string(kOther) + "'}\n");
  const Result<Config> config = load(flags);
  ASSERT_TRUE(config.ok()) << config.error();
  for (const TargetConfig& target : config.value().targets) {
    EXPECT_EQ(target.hosts.at(0).chap.user, "alice");
  }
  EXPECT_EQ(config.value().discovery.chap.user, "d");
}

TEST_F(Secrets, AChapFileReadableByOthersIsRefused) {
  Flags flags;
  flags.targets = {{"iqn.2026-11.example:a", {}}};
  flags.chap_file = file("chap", "hosts: []\n", 0640);
  const Result<Config> config = load(flags);
  // Root may let its own group read it.
  EXPECT_EQ(config.ok(), geteuid() == 0);
  chmod(flags.chap_file.c_str(), 0644);
  const Result<Config> open = load(flags);
  ASSERT_FALSE(open.ok());
  EXPECT_THAT(open.error(), HasSubstr("run: chmod 600"));
}

TEST(Protection, IsDeterminedByOwnerGroupAndMode) {
  const Reader service{.uid = 500, .gids = {500, 77}};
  const auto fine = [&](uid_t uid, gid_t gid, mode_t mode) {
    return protection_fault("f", {uid, gid, mode}, service).empty();
  };
  EXPECT_TRUE(fine(500, 500, 0600));
  EXPECT_TRUE(fine(500, 500, 0400));
  EXPECT_TRUE(fine(0, 77, 0640));
  EXPECT_TRUE(fine(0, 77, 0440));
  EXPECT_FALSE(fine(0, 78, 0640)) << "a group this process is not in";
  EXPECT_FALSE(fine(0, 77, 0660)) << "its group may write";
  EXPECT_FALSE(fine(500, 500, 0640)) << "only root hands out secrets by group";
  EXPECT_FALSE(fine(0, 77, 0644));
  EXPECT_FALSE(fine(0, 77, 0601));
  EXPECT_FALSE(fine(501, 500, 0600)) << "its owner could change it";
}

}  // namespace
}  // namespace sluice::config
