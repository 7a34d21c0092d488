#include "desired/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "desired/exporter_fixture.h"

namespace sluice::desired {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kT = "iqn.2026-11.example:t";
constexpr const char* kU = "iqn.2026-11.example:u";
constexpr const char* kHost = "iqn.2026-11.example:host";
constexpr const char* kOther = "iqn.2026-11.example:other";

lun::HostAccess host(const std::string& initiator) {
  lun::HostAccess access;
  access.initiators = {initiator};
  return access;
}

Target target(const std::string& iqn, std::vector<Lun> luns,
              std::vector<lun::HostAccess> access = {host(kHost)}) {
  Target target;
  target.iqn = iqn;
  target.access = std::move(access);
  target.luns = std::move(luns);
  return target;
}

class ExporterTest : public testing::Test, protected TestExports {
 protected:
  Outcome put(std::vector<Target> targets) {
    Update update;
    update.put = std::move(targets);
    return exporter.apply(std::move(update));
  }
};

TEST_F(ExporterTest, ANewTargetAppearsWithAllItsLunsAndHosts) {
  Target desired = target(kT, {{.number = 5, .volume = "b", .read_only = true}, {0, "a"}});
  desired.alias = "disks";
  desired.group = 7;
  desired.relative_ports = {2};
  desired.ports = {{.group = 7, .tpgt = 31, .relative_port = 77}};
  const Outcome outcome = put({desired});
  EXPECT_EQ(luns(kT), "0:a 5:b(ro)");
  EXPECT_TRUE(admits(kT, kHost));
  const auto shown = exports.find(kT);
  EXPECT_EQ(shown->alias(), "disks");
  EXPECT_EQ(shown->target_port_group(), 7);
  EXPECT_EQ(shown->relative_port_of(31), 77);
  EXPECT_THAT(shown->relative_ports(), ElementsAre(2));
  EXPECT_THAT(outcome.added, ElementsAre(kT));
  EXPECT_THAT(outcome.luns_added, ElementsAre(LunName{kT, 0}, LunName{kT, 5}));
  EXPECT_THAT(outcome.access_changed, IsEmpty());
  EXPECT_THAT(reviewed, IsEmpty()) << "no session exists yet";
}

TEST_F(ExporterTest, ARepeatedUpdateChangesAndReviewsNothing) {
  put({target(kT, {{0, "a"}})});
  const auto map = exports.find(kT)->lun_map();
  const Outcome outcome = put({target(kT, {{0, "a"}})});
  EXPECT_EQ(exports.find(kT)->lun_map(), map);
  EXPECT_THAT(outcome.added, IsEmpty());
  EXPECT_THAT(outcome.luns_added, IsEmpty());
  EXPECT_THAT(outcome.luns_removed, IsEmpty());
  EXPECT_THAT(outcome.access_changed, IsEmpty());
  EXPECT_THAT(reviewed, IsEmpty());
}

TEST_F(ExporterTest, OnlyTargetsWhoseAccessListDiffersAreReviewed) {
  put({target(kT, {{0, "a"}}), target(kU, {{0, "b"}})});
  const Outcome outcome = put({target(kT, {{0, "a"}, {1, "c"}}), target(kU, {}, {host(kOther)})});
  EXPECT_THAT(outcome.access_changed, ElementsAre(kU));
  EXPECT_THAT(reviewed, ElementsAre(kU));
}

TEST_F(ExporterTest, EveryPropertyOfAHostCountsAsADifference) {
  const lun::HostAccess before = host(kHost);
  const std::vector<std::function<void(lun::HostAccess&)>> changes = {
      [](auto& access) { access.initiators.emplace_back(kOther); },
      [](auto& access) { access.chap = {"user", "a secret of 16 b"}; },
      [](auto& access) { access.mutual = {"user", "a secret of 16 b"}; },
      [](auto& access) { access.chap_users = {"user"}; },
      [](auto& access) { access.read_only = true; },
      [](auto& access) { access.max_sessions = 3; },
  };
  for (const auto& change : changes) {
    put({target(kT, {}, {before})});
    reviewed.clear();
    lun::HostAccess after = before;
    change(after);
    put({target(kT, {}, {after})});
    EXPECT_THAT(reviewed, ElementsAre(kT));
  }
}

TEST_F(ExporterTest, LostAccessIsReviewedBeforeNewLunsBecomeVisible) {
  put({target(kT, {{0, "a"}}), target(kU, {{0, "b"}})});
  std::vector<std::string> seen;
  at_review = [&](const std::string& iqn) {
    EXPECT_EQ(iqn, kU);
    EXPECT_FALSE(admits(kU, kHost));
    EXPECT_TRUE(admits(kU, kOther));
    seen = {luns(kT), luns(kU)};
  };
  // The target that gains a LUN comes first in the update.
  put({target(kT, {{0, "a"}, {1, "c"}}), target(kU, {{0, "b"}, {1, "d"}}, {host(kOther)})});
  EXPECT_THAT(seen, ElementsAre("0:a", "0:b"));
  EXPECT_EQ(luns(kT), "0:a 1:c");
  EXPECT_EQ(luns(kU), "0:b 1:d");
}

TEST_F(ExporterTest, ARemovedTargetIsGoneAndReviewedBeforeItsUnitsAppearElsewhere) {
  put({target(kT, {}), target(kU, {{0, "a"}, {4, "b"}})});
  const auto before = exports.find(kU);
  std::vector<std::string> seen;
  at_review = [&](const std::string&) { seen = {luns(kT), luns(kU)}; };
  Update update;
  update.put = {target(kT, {{0, "a"}})};
  update.removed = {kU};
  const Outcome outcome = exporter.apply(std::move(update));
  EXPECT_THAT(reviewed, ElementsAre(kU));
  EXPECT_THAT(seen, ElementsAre("", "absent"));
  EXPECT_TRUE(before->luns().empty()) << "sessions that live lose the LUNs";
  EXPECT_EQ(luns(kT), "0:a");
  EXPECT_THAT(outcome.removed, ElementsAre(kU));
  EXPECT_THAT(outcome.luns_removed, ElementsAre(LunName{kU, 0}, LunName{kU, 4}));
}

TEST_F(ExporterTest, AUnitThatMovesLeavesItsFormerTargetFirst) {
  put({target(kT, {{0, "a"}}), target(kU, {{0, "b"}, {1, "c"}})});
  std::string seen;
  units.at_shown = [&] {
    if (seen.empty()) seen = luns(kT) + ", " + luns(kU);
  };
  put({target(kT, {{0, "a"}, {1, "b"}}), target(kU, {{0, "d"}})});
  // c stays until its map changes: no other target gains it.
  EXPECT_EQ(seen, "0:a, 1:c");
  EXPECT_EQ(luns(kT) + ", " + luns(kU), "0:a 1:b, 0:d");
}

TEST_F(ExporterTest, ANumberThatGetsAnotherUnitIsNeverAbsent) {
  put({target(kT, {{0, "a"}})});
  const auto former = exports.find(kT)->luns().at(0).unit;
  units.replace("a");
  at_review = [&](const std::string&) { EXPECT_EQ(luns(kT), "0:a"); };
  const Outcome outcome = put({target(kT, {{0, "a"}}, {host(kOther)})});
  EXPECT_NE(exports.find(kT)->luns().at(0).unit, former);
  EXPECT_THAT(outcome.luns_removed, ElementsAre(LunName{kT, 0}));
  EXPECT_THAT(outcome.luns_added, ElementsAre(LunName{kT, 0}));
  EXPECT_THAT(reviewed, ElementsAre(kT));
}

TEST_F(ExporterTest, ALunWithoutAUnitIsOmittedWithItsReasonAndShownLater) {
  units.missing = {"b"};
  Target desired = target(kT, {{0, "a"}, {1, "b"}, {16384, "c"}});
  desired.omitted = {"host h: it is not known here"};
  const Outcome outcome = put({desired, target(kU, {{0, "d"}})});
  EXPECT_THAT(outcome.refused,
              ElementsAre(Pair(kT,
                               "LUN 1: there is no volume b; LUN 16384: numbers are 0 to 16383; "
                               "host h: it is not known here")));
  EXPECT_EQ(luns(kT), "0:a");
  EXPECT_EQ(luns(kU), "0:d");
  units.missing.clear();
  EXPECT_THAT(put({target(kT, {{0, "a"}, {1, "b"}})}).refused, IsEmpty());
  EXPECT_EQ(luns(kT), "0:a 1:b");
}

TEST_F(ExporterTest, ACompleteUpdateRemovesAllOtherTargets) {
  put({target(kT, {{0, "a"}}), target(kU, {{0, "b"}})});
  Update update;
  update.complete = true;
  update.put = {target(kU, {{0, "b"}})};
  EXPECT_THAT(exporter.apply(std::move(update)).removed, ElementsAre(kT));
  EXPECT_EQ(luns(kT), "absent");
  EXPECT_EQ(luns(kU), "0:b");
}

TEST_F(ExporterTest, TheNumbersThatATargetShowsAreReported) {
  put({target(kT, {{0, "a"}, {3, "b"}})});
  EXPECT_EQ(units.numbers[kT], (std::set<uint64_t>{0, 3}));
  Update update;
  update.removed = {kT};
  exporter.apply(std::move(update));
  EXPECT_TRUE(units.numbers[kT].empty());
}

TEST_F(ExporterTest, DiscoveryChangesOnlyWithItsCredentials) {
  Discovery chap;
  chap.access.chap = {"d", "dddddddddddd"};
  EXPECT_TRUE(exporter.apply({.discovery = chap}).discovery_changed);
  EXPECT_FALSE(exporter.apply({.discovery = chap}).discovery_changed);
  EXPECT_FALSE(exporter.apply({}).discovery_changed);
  EXPECT_EQ(exports.discovery_access().chap.user, "d");
  exporter.apply({.discovery = Discovery{.policy = lun::DiscoveryPolicy::kHosts}});
  EXPECT_EQ(exports.discovery_policy(), lun::DiscoveryPolicy::kHosts);
}

TEST_F(ExporterTest, TheDirectoryHoldsTheHostsOfAllTargets) {
  const auto knows = [this](const char* initiator) {
    return exports.hosts()->find(initiator) != nullptr;
  };
  put({target(kT, {})});
  EXPECT_TRUE(knows(kHost));
  put({target(kU, {}, {host(kOther)})});
  EXPECT_TRUE(knows(kHost)) << "the other target is not part of the update";
  EXPECT_TRUE(knows(kOther));
  put({target(kT, {}, {host(kOther)})});
  EXPECT_FALSE(knows(kHost));
  exporter.apply({.removed = {kT, kU}});
  EXPECT_FALSE(knows(kOther));
}

TEST_F(ExporterTest, AHostThatLosesAccessIsUnknownBeforeALunAppears) {
  put({target(kT, {}, {host(kOther)}), target(kU, {{0, "a"}}, {host(kOther)})});
  int shown = 0;
  units.at_shown = [&] {
    ++shown;
    EXPECT_EQ(exports.hosts()->find(kOther), nullptr);
  };
  put({target(kT, {{1, "b"}}), target(kU, {{0, "a"}})});
  EXPECT_EQ(shown, 2);
}

TEST_F(ExporterTest, APortalIsAdvertisedUnderItsAdvertisedAddress) {
  exporter.show_portals({{.bound = "127.0.0.1:3260", .advertised = {}, .tpgt = 2},
                         {.bound = "0.0.0.0:3260", .advertised = "192.0.2.1:3260", .tpgt = 3}});
  const auto portals = exports.portals();
  ASSERT_EQ(portals.size(), 2u);
  EXPECT_EQ(portals[0].address, "127.0.0.1:3260");
  EXPECT_EQ(portals[0].relative_port, 2);
  EXPECT_EQ(portals[1].address, "192.0.2.1:3260");
  EXPECT_EQ(portals[1].tpgt, 3);
}

}  // namespace
}  // namespace sluice::desired
