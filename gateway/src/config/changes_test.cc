#include "config/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/parse_fixture.h"
#include "config/reload_fixture.h"

namespace sluice::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr const char* kA = "0f7c3a52-1111-4222-8333-94444444444a";
constexpr const char* kB = "0f7c3a52-1111-4222-8333-94444444444b";

std::string lun(int id, const std::string& rest) {
  return "  - {id: " + std::to_string(id) + ", " + rest + "}\n";
}
std::string file(const std::string& path, const std::string& rest = "") {
  return "backend: file, path: " + path + rest;
}

Config parsed(const std::string& yaml) {
  Result<Config> config = read_yaml(yaml);
  EXPECT_TRUE(config.ok()) << config.error();
  return std::move(config).value();
}

Reloaded changed(const std::string& now, const std::string& next) {
  Result<Reloaded> done = reload(parsed(now), parsed(next));
  EXPECT_TRUE(done.ok()) << done.error();
  return std::move(done).value();
}

TEST(Diff, EqualConfigurationsProduceNoChanges) {
  const std::string yaml = with_luns(lun(0, file("/a")) + lun(1, "backend: memory, size: 1MiB"));
  const Reloaded done = changed(yaml, "# moved down a line\n" + yaml);
  EXPECT_TRUE(done.nothing());
  EXPECT_THAT(done.changes.need_restart, IsEmpty());
  EXPECT_THAT(done.lines(), IsEmpty());
}

TEST(Diff, ALunIsAddedAndRemoved) {
  const std::string one = with_luns(lun(0, file("/a")));
  const std::string two = with_luns(lun(0, file("/a")) + lun(1, file("/b")));
  EXPECT_THAT(changed(one, two).lines(), ElementsAre("LUN 1 of iqn.2026-11.example:t added"));
  EXPECT_EQ(changed(one, two).changes.opens.size(), 1u);
  EXPECT_THAT(changed(two, one).lines(), ElementsAre("LUN 1 of iqn.2026-11.example:t removed"));
  EXPECT_THAT(changed(two, one).changes.opens, IsEmpty());
}

TEST(Diff, ATargetIsAddedAndRemovedWithItsLuns) {
  const std::string none = "targets: []\n";
  const std::string one = with_luns(lun(0, file("/a")));
  EXPECT_THAT(
      changed(none, one).lines(),
      UnorderedElementsAre("iqn.2026-11.example:t added", "LUN 0 of iqn.2026-11.example:t added"));
  EXPECT_THAT(changed(one, none).lines(),
              UnorderedElementsAre("iqn.2026-11.example:t removed",
                                   "LUN 0 of iqn.2026-11.example:t removed"));
}

TEST(Diff, ALunGrowsAndShrinkingIsRefused) {
  const std::string small = with_luns(lun(0, file("/a", ", size: 1GiB")));
  const std::string large = with_luns(lun(0, file("/a", ", size: 2GiB")));
  const Reloaded done = changed(small, large);
  EXPECT_THAT(done.lines(), ElementsAre("LUN 0 of iqn.2026-11.example:t resized"));
  EXPECT_THAT(done.changes.opens, IsEmpty());
  const Result<Changes> shrink = diff(parsed(large), parsed(small));
  ASSERT_FALSE(shrink.ok());
  EXPECT_EQ(shrink.error(),
            "LUN 0 of iqn.2026-11.example:t: can't shrink from 2GiB to 1GiB, data would be lost");
}

TEST(Diff, OmittingTheSizeChangesNothing) {
  EXPECT_TRUE(changed(with_luns(lun(0, file("/a", ", size: 1GiB"))), with_luns(lun(0, file("/a"))))
                  .nothing());
}

TEST(Diff, TheWriteCacheIsSwitchedWithoutReopening) {
  const Reloaded done =
      changed(with_luns(lun(0, file("/a"))), with_luns(lun(0, file("/a", ", write-cache: on"))));
  EXPECT_THAT(done.lines(), ElementsAre("LUN 0 of iqn.2026-11.example:t write cache changed"));
  EXPECT_THAT(done.changes.opens, IsEmpty());
}

TEST(Diff, PropertiesFixedWhileALunIsOpenRequireARestart) {
  const Reloaded done = changed(
      with_luns(lun(0, file("/a"))),
      with_luns(lun(0, file("/a",
                            ", io: direct, block-size: 4096, read-only: on, product: X, oui: "
                            "'001b21'"))));
  const std::string name = "LUN 0 of iqn.2026-11.example:t: ";
  EXPECT_THAT(done.changes.need_restart,
              UnorderedElementsAre(name + "io", name + "block-size", name + "read-only",
                                   name + "product", name + "oui"));
  EXPECT_TRUE(done.nothing());
  EXPECT_FALSE(done.changes.in_force.targets[0].luns[0].spec.direct);
  EXPECT_EQ(done.changes.in_force.targets[0].luns[0].product, "VOLUME");
}

TEST(Diff, AnotherPathUnderTheSameNumberReplacesTheLun) {
  const Reloaded done = changed(with_luns(lun(0, file("/a"))), with_luns(lun(0, file("/b"))));
  EXPECT_THAT(done.lines(), ElementsAre("LUN 0 of iqn.2026-11.example:t removed",
                                        "LUN 0 of iqn.2026-11.example:t added"));
  EXPECT_EQ(done.changes.opens.size(), 1u);
}

TEST(Diff, AnotherPathUnderTheSameUuidIsReopened) {
  const std::string uuid = std::string(", uuid: ") + kA;
  const Reloaded done =
      changed(with_luns(lun(0, file("/a", uuid))), with_luns(lun(0, file("/b", uuid))));
  EXPECT_EQ(done.changes.opens.size(), 1u);
  EXPECT_EQ(done.outcome.luns_added.size(), 1u);
  EXPECT_EQ(done.outcome.luns_removed.size(), 1u);
}

TEST(Diff, AVolumeWithAUuidMovesToAnotherNumberWithoutReopening) {
  const std::string a = std::string(", uuid: ") + kA;
  const std::string b = std::string(", uuid: ") + kB;
  const Reloaded done = changed(with_luns(lun(0, file("/a", a)) + lun(1, file("/b", b))),
                                with_luns(lun(1, file("/a", a)) + lun(0, file("/b", b))));
  EXPECT_THAT(done.changes.opens, IsEmpty());
  EXPECT_EQ(done.outcome.luns_added.size(), 2u);
  EXPECT_EQ(done.outcome.luns_removed.size(), 2u);
}

TEST(Diff, APathInUseUnderAnotherIdentityIsRefused) {
  const Result<Changes> changes =
      diff(parsed(with_luns(lun(0, file("/a", std::string(", uuid: ") + kA)))),
           parsed(with_luns(lun(0, file("/a", std::string(", uuid: ") + kB)))));
  ASSERT_FALSE(changes.ok());
  EXPECT_EQ(changes.error(),
            std::string("LUN 0 of iqn.2026-11.example:t: /a is open as LUN 0 of "
                        "iqn.2026-11.example:t under UUID ") +
                kA +
                ", and identities don't change; give it that UUID, or remove the LUN in one reload "
                "and add it in the next");
}

TEST(Diff, ANewHostListOrSecretChangesOnlyTheHosts) {
  const std::string head = "targets:\n- iqn: iqn.2026-11.example:t\n  hosts: ";
  const std::string any = head + "[{initiators: ['*']}]\n";
  EXPECT_THAT(changed(any, head + "[]\n").lines(),
              ElementsAre("iqn.2026-11.example:t hosts changed"));
  const auto with_secret = [&](const std::string& secret) {
    return head + "[{initiators: ['*'], chap: {user: a, secret: " + secret + "}}]\n";
  };
  EXPECT_THAT(changed(with_secret("aaaaaaaaaaaa"), with_secret("bbbbbbbbbbbb")).lines(),
              ElementsAre("iqn.2026-11.example:t hosts changed"));
}

TEST(Diff, DiscoveryAndLogLevelChangeWithoutARestart) {
  EXPECT_THAT(changed("",
                      "log: {level: debug}\ndiscovery: {chap: {user: a, secret: "
                      "aaaaaaaaaaaa}}\n")
                  .lines(),
              ElementsAre("discovery authentication changed", "log level changed"));
}

TEST(Diff, GlobalKeysRequireARestartAndRetainTheirValue) {
  const Reloaded done = changed(
      "",
      "listen: [{address: 127.0.0.1:9}]\ngateway-number: 2\nreactors: 64\nreactor-memory: 72MiB\n"
      "metrics: 127.0.0.1:1\nadmin-socket: /x\nstate-directory: /y\ncore-dumps: on\n"
      "tcp-congestion: reno\nbusy-poll: 50us\niscsi: {initial-r2t: on}\nconnections: {max: 5}\n"
      "log: {format: json}\n");
  EXPECT_THAT(
      done.changes.need_restart,
      UnorderedElementsAre("listen", "gateway-number", "reactors", "reactor-memory", "metrics",
                           "admin-socket", "state-directory", "core-dumps", "tcp-congestion",
                           "busy-poll", "iscsi", "connections", "log.format"));
  EXPECT_TRUE(done.nothing());
  EXPECT_EQ(done.changes.in_force.gateway_number, 1);
  EXPECT_EQ(done.changes.in_force.portals[0].address, "0.0.0.0:3260");
  EXPECT_FALSE(done.changes.in_force.offer.initial_r2t);
}

TEST(Diff, FromScratchOpensEveryLun) {
  const Config config =
      parsed(with_luns(lun(0, file("/a")) + lun(1, file("/b"))) + "reactors: 3\n");
  const Result<Changes> changes = from_scratch(config);
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(changes.value().opens.size(), 2u);
  EXPECT_THAT(changes.value().need_restart, IsEmpty());
  EXPECT_EQ(changes.value().in_force.reactors, 3u);
}

}  // namespace
}  // namespace sluice::config
