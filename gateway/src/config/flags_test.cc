#include "config/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/complete.h"
#include "config/default_name.h"
#include "config/duration.h"
#include "config/summary.h"

namespace sluice::config {
namespace {

using testing::HasSubstr;

Invocation invoke(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "sluice-gateway");
  return parse_flags(static_cast<int>(arguments.size()), arguments.data());
}

Result<Config> loaded(const std::vector<const char*>& arguments) {
  const Invocation invocation = invoke(arguments);
  if (!invocation.flags) return Error{invocation.output};
  return load(*invocation.flags);
}

TEST(Flags, ConfigureAGatewayWithoutAFile) {
  const Result<Config> config =
      loaded({"--listen",       "127.0.0.1:3260",
              "--target",       "iqn.2026-11.example:t",
              "--lun",          "0=null:1GiB",
              "--lun",          "1=file:/path/disk.img,size=1GiB,io=buffered,write-cache=off",
              "--lun",          "2=block:/dev/loop0",
              "--reactors",     "3",
              "--metrics",      "127.0.0.1:7462",
              "--state-dir",    "/state",
              "--admin-socket", "/admin",
              "--log-level",    "debug"});
  ASSERT_TRUE(config.ok()) << config.error();
  const Config& c = config.value();
  EXPECT_EQ(c.portals.at(0).address, "127.0.0.1:3260");
  EXPECT_EQ(c.reactors, 3u);
  EXPECT_EQ(c.metrics, "127.0.0.1:7462");
  EXPECT_EQ(c.state_directory, "/state");
  EXPECT_EQ(c.admin_socket, "/admin");
  EXPECT_EQ(c.log.level, log::Level::kDebug);
  ASSERT_EQ(c.targets.at(0).luns.size(), 3u);
  EXPECT_EQ(describe(c.targets[0].luns[1].spec),
            "file:/path/disk.img, 1GiB, io=buffered, block-size=512, write-cache=off");
  EXPECT_EQ(c.targets[0].luns[2].spec.path, "/dev/loop0");
  EXPECT_TRUE(c.targets[0].hosts.at(0).initiators.empty()) << "open to any initiator";
}

TEST(Flags, ALunBelongsToThePrecedingTarget) {
  const Result<Config> config =
      loaded({"--target", "iqn.2026-11.example:a", "--lun", "0=null:1GiB", "--target",
              "iqn.2026-11.example:b", "--lun", "0=null:2GiB", "--lun", "1=null:3GiB", "--listen",
              "127.0.0.1:1", "--listen", "127.0.0.1:2"});
  ASSERT_TRUE(config.ok()) << config.error();
  ASSERT_EQ(config.value().targets.size(), 2u);
  EXPECT_EQ(config.value().targets[0].luns.size(), 1u);
  EXPECT_EQ(config.value().targets[1].luns.size(), 2u);
  EXPECT_EQ(config.value().targets[1].luns[0].spec.size, uint64_t{2} << 30);
  EXPECT_EQ(config.value().portals.size(), 2u);
}

TEST(Flags, ALunWithoutATargetIsExportedByATargetNamedAfterTheHost) {
  const Result<Config> config = loaded({"--lun", "0=null:1GiB"});
  ASSERT_TRUE(config.ok()) << config.error();
  EXPECT_EQ(config.value().targets.at(0).iqn, default_target_name());
  EXPECT_EQ(target_name_for_host("Web_01.example.com"), "iqn.2026-11.dev.sluice:web-01");
  EXPECT_EQ(target_name_for_host(""), "iqn.2026-11.dev.sluice:gateway");
}

struct Mistake {
  const char* name;
  std::vector<const char*> arguments;
  const char* message;  // part of it
};
class WrongFlags : public testing::TestWithParam<Mistake> {};

TEST_P(WrongFlags, AreRefusedWithTheReason) {
  const Result<Config> config = loaded(GetParam().arguments);
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error(), HasSubstr(GetParam().message));
}

const Mistake kMistakes[] = {
    {"Nothing",
     {},
     "nothing to export; give --config FILE, --target and --lun, or --control-plane"},
    {"FileAndTarget",
     {"--config", "x", "--target", "iqn.2026-11.example:t"},
     "--config can't be joined by"},
    {"ClusterAndTarget",
     {"--control-plane", "c:7460", "--lun", "0=null:1GiB"},
     "--listen, --target, --lun and --chap-file come from the control plane"},
    {"ClusterWithoutTls", {"--control-plane", "c:7460"}, "control-plane.ca: is missing"},
    {"ClusterPlainElsewhere",
     {"--control-plane", "192.0.2.1:7460", "--insecure-loopback"},
     "only a numeric loopback address is allowed"},
    {"ClusterWithoutPort", {"--control-plane", "c", "--insecure-loopback"}, "allowed is host:port"},
    {"NodeWithoutCluster", {"--node", "n", "--lun", "0=null:1GiB"}, "--control-plane"},
    {"Unknown", {"--frobnicate"}, "--frobnicate"},
    {"LunWithoutNumber", {"--lun", "null:1GiB"}, "--lun null:1GiB: write its number first"},
    {"LunWithWord", {"--lun", "x=null:1GiB"}, "--lun x=null:1GiB: write its number first"},
    {"LunTooHigh", {"--lun", "16384=null:1GiB"}, "got 16384, allowed 0 to 16383"},
    {"LunTwice",
     {"--lun", "0=null:1GiB", "--lun", "0=memory:1MiB"},
     "command line: targets[0].luns[1].id: LUN 0 is taken by targets[0].luns[0].id"},
    {"Spec", {"--lun", "0=nil:1GiB"}, "unknown kind 'nil'"},
    {"Name", {"--target", "disk"}, "--target disk: an iSCSI name must have the form"},
    {"Listen", {"--listen", "nowhere", "--lun", "0=null:1GiB"}, "--listen: 'nowhere' is not"},
    {"Port", {"--listen", "127.0.0.1:99999", "--lun", "0=null:1GiB"}, "is not a numeric address"},
    {"Reactors", {"--reactors", "65", "--lun", "0=null:1GiB"}, "--reactors: got 65"},
    {"ReactorsText",
     {"--reactors", "two", "--lun", "0=null:1GiB"},
     "--reactors: got 'two', allowed 1 to 64"},
    {"Level", {"--log-level", "loud", "--lun", "0=null:1GiB"}, "--log-level: 'loud'"},
    {"Format", {"--log-format", "xml", "--lun", "0=null:1GiB"}, "--log-format: got 'xml'"},
    {"Metrics", {"--metrics", "x", "--lun", "0=null:1GiB"}, "--metrics: 'x' is not"},
    {"NoFile", {"--config", "/does/not/exist"}, "can't read /does/not/exist: No such file"},
    {"NoChapFile",
     {"--chap-file", "/does/not/exist", "--lun", "0=null:1GiB"},
     "--chap-file: can't read /does/not/exist"},
};
std::string case_name(const testing::TestParamInfo<Mistake>& c) { return c.param.name; }
INSTANTIATE_TEST_SUITE_P(Flags, WrongFlags, testing::ValuesIn(kMistakes), case_name);

TEST(Flags, HelpAndVersionExitWithZeroAndMistakesWithTwo) {
  EXPECT_EQ(invoke({"--help"}).exit_code, 0);
  EXPECT_THAT(invoke({"--help"}).output, HasSubstr("--chap-file"));
  EXPECT_EQ(invoke({"--version"}).exit_code, 0);
  EXPECT_THAT(invoke({"--version"}).output, HasSubstr("sluice-gateway 0."));
  EXPECT_EQ(invoke({"--frobnicate"}).exit_code, 2);
  EXPECT_EQ(invoke({}).exit_code, 2);
}

TEST(Flags, QueryCommandsNeedNoConfiguration) {
  const Invocation sessions = invoke({"sessions", "--json", "--socket", "/s"});
  ASSERT_TRUE(sessions.flags.has_value()) << sessions.output;
  EXPECT_EQ(sessions.flags->command, Flags::Command::kSessions);
  EXPECT_TRUE(sessions.flags->json);
  EXPECT_EQ(sessions.flags->admin_socket, "/s");
  EXPECT_EQ(invoke({"luns"}).flags->command, Flags::Command::kLuns);
}

TEST(DurationText, IsReadAndWrittenExactly) {
  for (const char* text : {"1500ms", "15s", "2m", "50us", "0s"}) {
    EXPECT_EQ(format_duration(parse_duration(text).value()), text);
  }
  for (const char* bad : {"", "5", "s", "-1s", "1.5s", "1h", "99999999999s"}) {
    EXPECT_FALSE(parse_duration(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace sluice::config
